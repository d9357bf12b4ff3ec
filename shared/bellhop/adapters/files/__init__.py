"""Files of add-ons from URLs, OCI registries and Flux, read by the guarded client."""
