"""Deploy: one profile in one cluster, from its plan by way of a lease to inventory and status.

Ownership of objects, drift and template dependencies belong here; `gates` decides when a profile
may be deployed, `features` how. Other features import `deploy.records` only; it imports
`rendering`, `catalog`, `clusters`, `api`, `state` and what is below, and no adapter.
"""
