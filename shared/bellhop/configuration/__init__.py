"""Configuration as custom resources: objects of one cluster instead of files.

Definitions, the way from a custom resource to a stored manifest, and the status that is written
back. The effects of a manifest belong to `declarations`, and the registration of clusters to
`registration`. `runtime`, `operations` and `cli` import it; it imports `diagnosis` and the packages
below.
"""
