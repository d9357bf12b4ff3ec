"""Explanations: a chain from an object to what was applied for it, or to where the chain ends.

It reads records, evaluates with the same functions as `events`, and may read one object in its
cluster. It changes nothing, and never shows the content of a Secret.
"""
