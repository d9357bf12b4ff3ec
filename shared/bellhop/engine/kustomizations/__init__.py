"""Kustomizations: as triggers and profiles declare them, and as one cluster is to have them.

Most profiles have none; a process loads this for the first one that has.
"""
