"""Rights that Bellhop's account needs in the cluster that holds the configuration.

One list of rules is printed as a ClusterRole, with a Role for generated ConfigMaps and Secrets, and
checked by `bellhop doctor`. It grants what is read and written there, and neither the registration
of the cluster nor add-ons deployed to it.
RBAC cannot limit `patch` to finalizers and annotations, which are fields of the object itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bellhop.api.kinds import CONFIGURED_KINDS
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.core.identity import GENERATED_NAMESPACE
from bellhop.ports.kube import Check

ROLE = "bellhop-configuration"

_USERS = frozenset(gvk.kind for gvk in CONFIGURED_KINDS)
_READ = ("get", "list")
_WRITE = (*_READ, "create", "patch", "delete")
_GENERATED = frozenset({"ClusterProfile"})
"""Kinds that users write, and that Bellhop generates as well."""


class Rule(NamedTuple):
    """Verbs on resources of one API group; a name may have a subresource, as `sets/status`.

    They are for all namespaces, or for one.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    namespace: str = ""


def list_rules() -> Iterator[Rule]:
    """Yield the rules, each verb once for a resource."""
    yield Rule("", ("configmaps", "secrets"), _READ)
    yield Rule("", ("configmaps", "secrets"), ("create", "patch", "delete"), GENERATED_NAMESPACE)
    yield Rule("", ("namespaces",), ("get", "create", "patch"))
    yield Rule("", ("events",), ("create", "patch"))
    yield Rule("apps", ("deployments",), ("get",))
    for group in sorted({each.group for each in DEFINITIONS}):
        kinds = [each for each in DEFINITIONS if each.group == group]
        is_mirror = {each.kind: each.kind not in _USERS - _GENERATED for each in kinds}
        yield Rule(
            group,
            _sort(each.plural for each in kinds if not is_mirror[each.kind]),
            (*_READ, "patch"),
        )
        yield Rule(group, _sort(each.plural for each in kinds if is_mirror[each.kind]), _WRITE)
        stated = [each.plural for each in kinds if each.status]
        yield Rule(group, _sort(f"{each}/status" for each in stated), ("patch",))
        owners = [each.plural for each in kinds if each.kind in _USERS]
        yield Rule(group, _sort(f"{each}/finalizers" for each in owners), ("update",))


def make_roles() -> list[dict[str, Any]]:
    """Return the ClusterRole and the Role that grant all rules, after the namespace of the Role."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GENERATED_NAMESPACE}}
    return [
        namespace,
        _make_role("ClusterRole", {"name": ROLE}, ""),
        _make_role("Role", {"name": ROLE, "namespace": GENERATED_NAMESPACE}, GENERATED_NAMESPACE),
    ]


def _make_role(kind: str, metadata: Mapping[str, str], namespace: str) -> dict[str, Any]:
    rules = [
        {"apiGroups": [each.group], "resources": list(each.resources), "verbs": list(each.verbs)}
        for each in list_rules()
        if each.namespace == namespace
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": rules,
    }


def list_checks() -> list[Check]:
    """Return each right of all rules, as a cluster's client asks for it."""
    return [
        (verb, each.group, resource, subresource, each.namespace)
        for each in list_rules()
        for resource, _, subresource in (name.partition("/") for name in each.resources)
        for verb in each.verbs
    ]


def _sort(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
