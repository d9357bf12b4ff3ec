"""What Bellhop needs from the world: one small Protocol a file, at most five methods each.

No logic, no defaults, no imports of any SDK belong here; what backends share lives above.
"""
