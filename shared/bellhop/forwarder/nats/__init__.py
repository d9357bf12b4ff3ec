"""CloudEvents of a cluster's NATS server, subscribed to as Sveltos' agent does.

    NATS ──────► core subjects ──► message store (on disk) ─┐
                                                            ├─► sender ──► ingest, as CloudEvents
    JetStream ─► durable consumer ──► unacknowledged ───────┘
                      ▲                                         │
                      └─────────── acknowledged ◄─── accepted ──┘

A Secret in the cluster says where the server is; without one nothing here runs, and the client is
not even loaded. It has threads and a connection to ingest of its own: a server that is down or a
flood of messages does not delay the webhook.
"""
