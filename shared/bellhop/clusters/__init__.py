"""Library of clusters: records, kubeconfigs, circuit breaker, pauses, marks of an installation.

Registration, resync and deployment do not belong here; they use it. Every feature may import it; it
imports `api`, `state` and the packages below.
"""
