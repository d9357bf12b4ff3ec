"""Kinds of which every API server says the same: they are known without asking.

Their groups belong to Kubernetes, so that no definition of a user's can serve them otherwise, and
in these versions neither their plural nor their scope nor their subresources have ever changed.
One that a cluster does not serve answers 404, and is asked for then as any other kind is.
"""

from __future__ import annotations

from bellhop.core.gvk import GVK, Resource

_NAMESPACED = {
    "v1": """ConfigMap=configmaps Endpoints=endpoints LimitRange=limitranges Secret=secrets
        PersistentVolumeClaim=persistentvolumeclaims/status ResourceQuota=resourcequotas/status
        Service=services/proxy/status""",
    "apps/v1": """DaemonSet=daemonsets/status Deployment=deployments/scale/status
        ReplicaSet=replicasets/scale/status StatefulSet=statefulsets/scale/status""",
    "batch/v1": "Job=jobs/status",
    "networking.k8s.io/v1": "Ingress=ingresses/status",
    "rbac.authorization.k8s.io/v1": "Role=roles RoleBinding=rolebindings",
}
_OF_THE_CLUSTER = {
    "v1": "Namespace=namespaces/finalize/status",
    "admissionregistration.k8s.io/v1": """
        MutatingWebhookConfiguration=mutatingwebhookconfigurations
        ValidatingWebhookConfiguration=validatingwebhookconfigurations""",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition=customresourcedefinitions/status",
    "networking.k8s.io/v1": "IngressClass=ingressclasses",
    "rbac.authorization.k8s.io/v1": """ClusterRole=clusterroles
        ClusterRoleBinding=clusterrolebindings""",
    "scheduling.k8s.io/v1": "PriorityClass=priorityclasses",
    "storage.k8s.io/v1": "StorageClass=storageclasses",
}


def _read(api_version: str, entry: str, *, namespaced: bool) -> Resource:
    kind, _, path = entry.partition("=")
    plural, *subresources = path.split("/")
    gvk = GVK.parse(api_version, kind)
    return Resource(gvk, plural, namespaced=namespaced, subresources=tuple(subresources))


BUILT_IN = {
    resource.gvk: resource
    for namespaced, versions in ((True, _NAMESPACED), (False, _OF_THE_CLUSTER))
    for api_version, entries in versions.items()
    for entry in entries.split()
    for resource in (_read(api_version, entry, namespaced=namespaced),)
}
