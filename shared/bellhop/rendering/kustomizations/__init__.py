"""Kustomizations: as triggers and profiles declare them, and as one cluster gets them.

Most profiles have none; a process loads this for the first one that has.
"""
