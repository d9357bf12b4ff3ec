"""Features of profiles, a folder for each sort: Kubernetes objects (`resources`) and Helm charts.

A folder has all that is known of its sort: desired state, the pure `planning`, the executor and
the preview. `deploy.attempt` knows features by `feature` only, and features do not import each
other.
"""
