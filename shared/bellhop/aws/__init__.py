"""The composition on AWS, as `embedded` is that of one machine: `cloud` with AWS' adapters.

A function names its stage; what it works with is put together here by its first event. Nothing is
made at import: a snapshot of a function that has started holds no client, no key and no number
drawn. No decisions belong here, and no words of AWS' SDK.
"""
