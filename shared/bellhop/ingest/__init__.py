"""Ingest: HTTP requests of clusters and senders, authenticated, read, and stored as observations.

Nothing here calls a cluster, evaluates a source or loads Lua, templates or pydantic. Only
`runtime`, `registration`, `diagnosis` and `cli` import it; other features import `ingest.records`.
It imports `clusters.records`, `state` and the packages below.
"""
