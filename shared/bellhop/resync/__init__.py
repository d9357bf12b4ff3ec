"""Resync: a cluster listed through its API server, against observations and inventories.

Missed events, drift and orphans are found here; correcting them belongs to `events` and `deploy`,
which get messages. Other features import `resync.records` only; it imports the records of
other features, `clusters`, `catalog`, `rendering`, `state` and what is below.
"""
