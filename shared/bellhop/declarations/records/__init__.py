"""Tables of declarations: apply sets in progress and held removals.

Every feature may import them; they import `state` and what is below.
"""
