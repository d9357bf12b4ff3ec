"""Charts and files where users keep them: repositories, OCI registries, URLs, artifacts of Flux.

Everything is read by the guarded client of `egress`. Features get these as ports; `runtime`,
`diagnosis` and `cli` import them.
"""
