"""Library of all that users applied, as one immutable snapshot, and what selects what.

Applying manifests belongs to `declarations`; questions about applied manifests belong here. Every
feature may import it; it imports `clusters`, `api` and what is below. `catalog.catalog` is pure.
"""
