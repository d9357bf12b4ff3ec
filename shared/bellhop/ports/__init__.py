"""Protocols of what Bellhop needs from the world: each has few methods, and a file has one concern.

No logic, no defaults, no imports of any SDK belong here; what backends share lives above.
"""
