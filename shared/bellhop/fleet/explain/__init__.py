"""Why something happened, or did not: a chain from what was seen to what was applied.

It reads records, judges again with the engine's own judge, and may look at one object in its
cluster. It changes nothing, and never shows what a Secret holds.
"""
