"""Bellhop: event-driven add-on distribution for fleets of Kubernetes clusters.

Importing this package has no effect and loads nothing: each stage imports what it needs.
"""

__version__ = "0.1.0"
