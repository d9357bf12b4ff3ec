"""A real Kubernetes control plane on one machine, with neither containers nor nodes.

Add-on distribution is only as right as the API server it meets: server-side apply, admission,
RBAC and pruning are not worth imitating. The lab therefore finds or builds the real binaries
(`python -m infra.lab build`) and runs as many isolated clusters as asked for on one etcd:

    from infra.lab.binaries import find
    from infra.lab.control_plane import ControlPlane

    with ControlPlane(find(), folder) as plane:
        source, destination = plane.start_clusters("source", "destination")

The clusters listen only on the loopback address and end with the process that started them.
"""
