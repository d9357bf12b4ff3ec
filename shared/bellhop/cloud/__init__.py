"""What functions share in every cloud: no word of any cloud's is in it.

`bellhop.aws` and `bellhop.gcp` put it together with their adapters and the shapes of their events.
Nothing is made at import, and no decisions belong here: those are the stages'.
"""
