"""Kubernetes objects, as manifests of ConfigMaps and Secrets.

`desired` renders the objects, `planning` decides the operations and `executor` their order, and
`operation` carries out one on one object. `preview` carries the same plan out as a dry run.
"""
