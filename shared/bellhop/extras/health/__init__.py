"""ClusterHealthChecks: whether a cluster is healthy, and notifications to people about it."""
