"""Tables of events: matches, selections, the source index, held deletions, access reviews.

Every feature may import them; they import `state` and what is below.
"""
