"""Plain values that all packages share: kinds, names, labels, digests, the base of models.

No I/O, no record and no rule of a feature belong here. Every package may import it; it imports
only `errors` and `logs`, which stand beside it at the root, as `settings` does.
"""
