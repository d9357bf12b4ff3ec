"""Patches of rendered objects: strategic merges and JSON patches, as kustomize applies them.

It depends on nothing and does no I/O, since objects, charts and kustomizations are patched alike.
"""
