"""Tables of deploy: inventories, ownership, statuses, rollouts, watches, dependencies, previews.

Every feature may import them; they import `state` and what is below.
"""
