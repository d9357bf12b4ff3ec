"""Charts where users keep them: repositories and OCI registries, read by the guarded client."""
