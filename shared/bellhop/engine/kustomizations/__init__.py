"""Kustomizations: as triggers and profiles declare them, and as one cluster is to have them.

Most profiles have none: whoever loads this has met one.
"""
