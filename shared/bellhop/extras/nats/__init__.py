"""NATS: the rights of a forwarder to read where its NATS server is."""
