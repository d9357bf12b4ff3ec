"""The forwarder: in a cluster, it is rung by the API server and tells ingest what became of it.

    API server ──ring──► door ──► desk ──► readers ──► outbox ──► sender ──► ingest
                          │        │          │
                      answers   spool      read the object back
                      at once  (on disk)   from the API server

An admission request comes before the write is stored, and the write may never be. So the door
notes which object it concerns and answers; a reader looks at the object until the API server
shows another state than the one before the write; what it then finds is sent. On disk is only
which objects are owed: whatever dies, they are read again.

It loads neither stages nor templates nor Lua: it is a guest in somebody's cluster, and small.
"""
