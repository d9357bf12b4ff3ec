"""RoleRequests: rights of service accounts in selected clusters, as manifests."""
