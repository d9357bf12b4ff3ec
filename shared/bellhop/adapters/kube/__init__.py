"""Kubernetes API servers, over connections of our own."""
