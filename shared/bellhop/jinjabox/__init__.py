"""Jinja2 for untrusted templates: strict, deterministic, and within limits.

    render("name: {{ Resource.metadata.name }}", {"Resource": service}, name="x", limits=Limits())

A template is parsed by Jinja2, then every operation that could toil, swell or reach into Python is
replaced by one of ours, which pays for itself first. Data is plain JSON-like Python; attributes
of Python objects are never read. Loading this package loads Jinja2, so importers do it late.
"""

from __future__ import annotations

from bellhop.jinjabox.template import JinjaError, origins, render

__all__ = ["JinjaError", "origins", "render"]
