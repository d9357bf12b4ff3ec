"""Kubernetes API servers, through the official client; nothing else may import that client."""
