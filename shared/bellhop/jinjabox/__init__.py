"""Jinja2 for templates of strangers: strict, deterministic, and within limits.

    render("name: {{ Resource.metadata.name }}", {"Resource": service}, name="x", limits=Limits())

A template is parsed by Jinja2, then every operation that could toil, swell or reach into Python is
replaced by one of ours, which pays for itself first. Data is plain JSON-like Python; attributes
of Python objects are never read. Loading this package loads Jinja2, so importers do it late.
"""

from __future__ import annotations

from bellhop.jinjabox.errors import JinjaError
from bellhop.jinjabox.template import origins, render

__all__ = ["JinjaError", "origins", "render"]
