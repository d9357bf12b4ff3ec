"""Tables of applied manifests, of the catalog's revision and snapshot, and of chosen clusters.

Every feature may import them; they import `state` and what is below.
"""
