"""Extras: features that few installations use, a package for each, which do not import each other.

Only `runtime`, `diagnosis`, `operations` and `cli` import them; they import what is below.
"""
