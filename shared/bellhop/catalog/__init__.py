"""Library of all that users applied, as one immutable snapshot, and its selections.

Applying manifests belongs to `declarations`; questions about applied manifests belong here. Every
feature may import it; it imports `clusters`, `api` and the packages below. `catalog.catalog` is
pure.
"""
