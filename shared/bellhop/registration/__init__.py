"""Registration: how a cluster joins and leaves, with its forwarder, credentials and senders.

Renewal and permissions of credentials belong here; pausing and labels do not. `extras`,
`operations`, `diagnosis`, `runtime` and `cli` import it; it imports `installation`, the features
and what is below.
"""
