"""Records and messages of an installation: structs, tables, timers, outboxes, the event log.

The kernel of the store belongs here: sealing, payloads, versions, the consumer of queues, the pool
of workers. Rules of a feature do not; the tables of a feature are in its own `records.py`,
and `state.records`, the only module that imports upwards, lists them all. Every package above may
import it; it imports `ports` and `core`. Specifications of `api` have structs of their own here.
"""
