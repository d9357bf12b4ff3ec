"""What a cluster's NATS server carries: CloudEvents, subscribed to as Sveltos' agent does.

    NATS ──────► core subjects ──► shelf (on disk) ──┐
                                                     ├─► courier ──► ingest, as it takes CloudEvents
    JetStream ─► durable consumer ──► held ──────────┘
                      ▲                                     │
                      └──────── acknowledged ◄──── taken ───┘

A Secret in the cluster says where the server is; without one nothing here runs, and the client is
not even loaded. It has threads of its own and a connection of its own to ingest: neither a server
that is away nor a flood of messages holds up what rings.
"""
