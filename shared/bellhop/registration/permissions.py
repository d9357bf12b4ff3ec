"""Permissions that Bellhop needs in a cluster, and those that its credentials lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.state.cluster import Cluster
from bellhop.state.content import Content

Check = tuple[str, ...]
"""Verb, group, resource, subresource, namespace, and the name of an object, if it is only one."""

_WRITE = ("create", "patch", "delete")
_RECORD = ("get", "list", "create", "update", "delete")
"""Verbs of Helm for the Secrets in which it stores releases."""

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_WEBHOOK = (
    ("", "namespaces", ""),
    (_ADMISSION, "validatingwebhookconfigurations", ""),
    (_RBAC, "clusterroles", ""),
    (_RBAC, "clusterrolebindings", ""),
    ("", "secrets", NAMESPACE),
    ("", "serviceaccounts", NAMESPACE),
    (_RBAC, "roles", NAMESPACE),
    (_RBAC, "rolebindings", NAMESPACE),
)
_DIRECT = ((_ADMISSION, "validatingwebhookconfigurations", ""),)
_INSTALLING = (
    ("", "services", NAMESPACE),
    ("apps", "deployments", NAMESPACE),
    ("networking.k8s.io", "networkpolicies", NAMESPACE),
)
_ANY = "*"
_MAX_KINDS = 1000
"""Profiles that are read for their kinds; those of one trigger have the same kinds."""


class ApiCatalog(Protocol):
    """A cluster whose served resources can be read."""

    def resource(self, gvk: GVK) -> Resource | None:
        """Return the resource that serves a kind."""
        ...


class PermissionReader(ApiCatalog, Protocol):
    """A cluster whose permissions can be read."""

    def rights(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Return the missing ones of these permissions."""
        ...


def list_watched(kube: ApiCatalog, catalog: Catalog, cluster: Cluster) -> list[Resource]:
    """Return the resources of sources in force in a cluster with these labels.

    A set that may select it counts as one that does: it may do so at any time.
    """
    sets = [each.all_of_them() for each in catalog.sets.values()]
    sources, triggers = catalog.sources.values(), catalog.triggers.values()
    future = Catalog(catalog.revision, [cluster], sources, triggers, (), sets)
    found = (kube.resource(gvk) for gvk in future.kinds_in(cluster.key))
    return [resource for resource in found if resource is not None]


def check_watching(
    kube: PermissionReader,
    resources: Sequence[Resource],
    *,
    webhook: bool,
    installing: bool = False,
    direct: bool = False,
) -> list[str]:
    """Return the missing permissions without which registration fails, a sentence each."""
    kinds = _DIRECT if direct else _WEBHOOK
    pods = _INSTALLING if installing else ()
    checks: list[Check] = [
        (verb, resource.gvk.group, resource.plural, "", "")
        for resource in resources
        for verb in ("get", "list")
    ]
    checks += [
        (verb, group, resource, "", namespace, _name_of(verb, resource))
        for needed, verbs in ((kinds if webhook else (), _WRITE), (pods, ("get", *_WRITE)))
        for group, resource, namespace in needed
        for verb in verbs
    ]
    return _format_missing(kube.rights(checks))


def _name_of(verb: str, resource: str) -> str:
    """Return the name of the only object that Bellhop writes; RBAC knows none at its creation."""
    if verb == "create":
        return ""
    return NAMESPACE if resource == "namespaces" else NAME


def check_applying(kube: PermissionReader, kinds: Iterable[GVK] | None = None) -> list[str]:
    """Return the missing permissions over some kinds, or over all; fewer than all may suffice."""
    found = [kube.resource(gvk) for gvk in kinds or ()]
    places = [(_ANY, _ANY)] if kinds is None else [(r.gvk.group, r.plural) for r in found if r]
    checks = [(verb, *place, "", "") for place in places for verb in ("get", *_WRITE)]
    return _format_missing(kube.rights(checks))


def check_releases(kube: PermissionReader, namespaces: Iterable[str]) -> list[str]:
    """Return the missing permissions over the Secrets in which Helm stores releases."""
    checks = [(verb, "", "secrets", "", each) for each in namespaces for verb in _RECORD]
    return _format_missing(kube.rights(checks))


def check_impersonation(kube: PermissionReader, accounts: Iterable[str]) -> list[str]:
    """Return the missing permissions to act for service accounts, a sentence each."""
    namespaces = sorted({each.partition("/")[0] for each in accounts})
    checks = [("impersonate", "", "serviceaccounts", "", each) for each in namespaces]
    return _format_missing(kube.rights(checks))


def check_rights(kube: PermissionReader, checks: Sequence[Check]) -> list[str]:
    """Return the missing ones of these permissions, a sentence each; all of them need one call."""
    if not kube.rights([(_ANY, _ANY, _ANY, "", "")]):
        return []
    return _format_missing(kube.rights(checks))


def list_deployed_kinds(here: Installation, cluster: str) -> list[GVK]:
    """Return the kinds that profiles have in a cluster, or will deploy there."""
    kinds = {
        GVK(key.group, held.version, key.kind)
        for inventory in here.records.inventories.of(cluster)
        for key, held in inventory.held.items()
        if held.version
    }
    objects = (each for content in _list_contents(here, cluster) for each in content.manifests)
    return sorted(kinds | {ObjectKey.of(each).gvk for each in objects})


def list_release_namespaces(here: Installation, cluster: str) -> list[str]:
    """Return the namespaces of releases that profiles have in a cluster, or will deploy there.

    One that a template names is known once it is deployed.
    """
    inventories = here.records.inventories.of(cluster)
    held = {key.namespace for each in inventories for key, one in each.held.items() if one.release}
    charts = [each.chart for each in _list_contents(here, cluster) if each.chart]
    return sorted(held | {each.namespace for each in charts if "{{" not in each.namespace})


def _list_contents(here: Installation, cluster: str) -> Iterator[Content]:
    triggers = ("", *here.catalogs.known().triggers)
    several = chain.from_iterable(map(here.records.profiles.of, triggers))
    for profile in islice(several, _MAX_KINDS):
        if profile.may_name(cluster):
            yield from profile.contents


def _format_missing(missing: Iterable[Check]) -> list[str]:
    """Return one sentence for each resource with the missing verbs."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for verb, group, resource, subresource, namespace, *_name in missing:
        if resource == _ANY:
            what = "objects of every kind"
        else:
            what = f"{resource}.{group}" if group else resource
            what += f"/{subresource}" if subresource else ""
        verbs.setdefault((what, namespace), []).append(verb)
    return [
        f"may not {_join_verbs(each)} {what}"
        + (f" in namespace '{namespace}'" if namespace else "")
        for (what, namespace), each in verbs.items()
    ]


def _join_verbs(verbs: Sequence[str]) -> str:
    return verbs[0] if len(verbs) == 1 else f"{', '.join(verbs[:-1])} or {verbs[-1]}"
