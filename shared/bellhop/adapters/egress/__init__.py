"""The guarded HTTP client: every call to an address that a user writes is made here.

Address policy, time limits, byte limits and proxies belong here; formats of a service do not.
Adapters, `forwarder` and `cli` import it.
"""
