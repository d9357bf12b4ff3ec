"""Declarations: manifests applied and deleted, what a change affects, and the guard of removals.

Rendering profiles and deploying them belong to `profiles` and `deploy`, which get messages from
here. Other features import `declarations.records` only; it imports `rendering`, `catalog`,
`clusters`, `api`, `state` and what is below.
"""
