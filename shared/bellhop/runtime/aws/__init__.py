"""The composition on AWS, as `embedded` is that of one machine: `cloud` with AWS' adapters.

A function names its stage; its first event puts together what the stage works with. Nothing is
made at import: a snapshot of a function that has started has no client, no key and no random
number. No decisions belong here, and no words of AWS' SDK.
"""
