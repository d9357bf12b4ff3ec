"""Kubernetes objects, as manifests of ConfigMaps and Secrets.

`wants` says which objects, `planning` what is to be done, `executor` in which order, and `step`
does it to one object; `reading` reads what templates of deploy time refer to. `preview` carries
the same plan out dry, and `comparing` says how an object would change.
"""
