"""Gates of deploy, a file each: circuit, pause, permissions, transition, dependencies, rollout.

A gate decides whether a profile may be deployed in a cluster now; it deploys nothing. `gate` has
its three moments, and `sequence` the order. `deploy` imports `sequence` and `checks`. A gate
imports no other gate: checks run Jobs and query metrics from files of their own.
"""
