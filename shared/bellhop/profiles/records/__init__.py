"""Tables of profiles: contents and destinations, revisions, reserved names, pending removals.

Every feature may import them; they import `state` and what is below.
"""
