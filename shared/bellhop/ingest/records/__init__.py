"""Tables of ingest: observations, heartbeats, senders, issuers of tokens, refused requests.

Every feature may import them; they import `state` and what is below.
"""
