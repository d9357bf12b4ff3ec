"""Declarations: manifests applied and deleted, the effects of a change, and the guard of removals.

Rendering profiles and deploying them belong to `profiles` and `deploy`, which get messages from
here. Other features import `declarations.records` only; it imports `rendering`, `catalog`,
`clusters`, `api`, `state` and the packages below.
"""
