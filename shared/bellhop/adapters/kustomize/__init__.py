"""Kustomizations, built by `kubectl kustomize` in a box: the only folder that runs it."""
