"""Extras: features that few installations use, a package for each; none imports another.

Only `runtime`, `diagnosis`, `operations` and `cli` import them; they import the packages below.
"""
