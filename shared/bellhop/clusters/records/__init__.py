"""Tables of clusters, their health, circuits and alerts, and of the installation's id.

Every feature may import them; they import `state` and what is below, and no pydantic.
"""
