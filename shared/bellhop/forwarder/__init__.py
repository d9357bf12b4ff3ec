"""The forwarder: in a cluster, it answers the API server's webhook and reports what was stored.

    API server ──► webhook ──► workqueue ──► readers ──► outbox ──► sender ──► ingest
                      │            │            │
                   answers      journal     read the object
                   at once     (on disk)   from the API server

An admission request comes before the write is stored, and the write may never be. So the webhook
notes which object it concerns and answers; a reader reads the object until the API server shows
another state than the one before the write, and sends that. The journal has only the names of
pending objects: after a crash they are read again.

It imports `core`, `documents`, `ports` and adapters. Of features it imports only formats and names
that both ends of the webhook share, and no template engine or Lua: it runs in clusters of others,
and is small. Only `forwarder.nats` loads the client of NATS.
"""
