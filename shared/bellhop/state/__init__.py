"""Records and messages of an installation: structs, tables, timers, outboxes, the event log.

The kernel of the store belongs here: sealing, payloads, versions, the consumer of queues, the pool
of workers. Rules of a feature do not; the tables of a feature are in its own `records` package,
and `state.records` lists them all. Every package above may import it; it imports `ports`, `core`
and, until records carry the specification of `api`, mirrors it in structs of its own.
"""
