"""What Bellhop runs on and is shipped with, apart from the functions themselves.

`infra.lab` is Python: a real Kubernetes control plane on one machine, for the demo and the
tests. The folders beside it are manifests.
"""
