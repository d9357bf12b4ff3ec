"""Strict readers of YAML, JSON and tar files that others wrote, with the line of each mistake.

Nothing here knows a kind, a record or an add-on. Any package may import it; it imports `core`.
"""
