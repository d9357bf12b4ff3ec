"""What Bellhop may have to do in a cluster, and which of it its credentials may not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.installation.installation import Installation
from bellhop.registration.forwarder_manifests import NAMESPACE
from bellhop.state.record import Cluster, Content

Check = tuple[str, str, str, str, str]
"""Verb, group, resource, subresource, namespace."""

_WRITE = ("create", "patch", "delete")
_RECORD = ("get", "list", "create", "update", "delete")
"""What Helm does to the Secrets in which it records releases."""

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_RINGING = (
    ("", "namespaces", ""),
    (_ADMISSION, "validatingwebhookconfigurations", ""),
    (_RBAC, "clusterroles", ""),
    (_RBAC, "clusterrolebindings", ""),
    ("", "secrets", NAMESPACE),
    ("", "serviceaccounts", NAMESPACE),
    (_RBAC, "roles", NAMESPACE),
    (_RBAC, "rolebindings", NAMESPACE),
)
_CALLING = ((_ADMISSION, "validatingwebhookconfigurations", ""),)
_INSTALLING = (
    ("", "services", NAMESPACE),
    ("apps", "deployments", NAMESPACE),
    ("networking.k8s.io", "networkpolicies", NAMESPACE),
)
_ANY = "*"
_SOME = 1000
"""Profiles that are read to know which kinds they bring; those of one trigger bring the same."""


class Served(Protocol):
    """A cluster that can be asked what it serves."""

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind."""
        ...


class Examined(Served, Protocol):
    """A cluster that can be asked what its credentials may do."""

    def rights(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Return those rights that are missing."""
        ...


def watched(kube: Served, catalog: Catalog, cluster: Cluster) -> list[Resource]:
    """Return what the sources name that would be in force in a cluster with these labels.

    A set that may choose it counts as one that has: it may do so at any time.
    """
    sets = [each.all_of_them() for each in catalog.sets.values()]
    sources, triggers = catalog.sources.values(), catalog.triggers.values()
    future = Catalog(catalog.revision, [cluster], sources, triggers, (), sets)
    found = (kube.resource(gvk) for gvk in future.kinds_in(cluster.key))
    return [resource for resource in found if resource is not None]


def missing_for_watching(
    kube: Examined,
    resources: Sequence[Resource],
    *,
    ringing: bool,
    installing: bool = False,
    direct: bool = False,
) -> list[str]:
    """Tell which rights are missing that registration cannot do without, a sentence each."""
    rings = _CALLING if direct else _RINGING
    pods = _INSTALLING if installing else ()
    checks: list[Check] = [
        (verb, resource.gvk.group, resource.plural, "", "")
        for resource in resources
        for verb in ("get", "list")
    ]
    checks += [
        (verb, group, resource, "", namespace)
        for needed, verbs in ((rings if ringing else (), _WRITE), (pods, ("get", *_WRITE)))
        for group, resource, namespace in needed
        for verb in verbs
    ]
    return _sentences(kube.rights(checks))


def missing_for_applying(kube: Examined, kinds: Iterable[GVK] | None = None) -> list[str]:
    """Tell which rights over some kinds are missing, or over all; narrower may be enough of all."""
    found = [kube.resource(gvk) for gvk in kinds or ()]
    places = [(_ANY, _ANY)] if kinds is None else [(r.gvk.group, r.plural) for r in found if r]
    checks = [(verb, *place, "", "") for place in places for verb in ("get", *_WRITE)]
    return _sentences(kube.rights(checks))


def missing_for_releases(kube: Examined, namespaces: Iterable[str]) -> list[str]:
    """Tell which rights are missing where Helm keeps its records of releases: in Secrets."""
    checks = [(verb, "", "secrets", "", each) for each in namespaces for verb in _RECORD]
    return _sentences(kube.rights(checks))


def missing_for_acting(kube: Examined, accounts: Iterable[str]) -> list[str]:
    """Tell where the right is missing to act for service accounts, a sentence each."""
    namespaces = sorted({each.partition("/")[0] for each in accounts})
    checks = [("impersonate", "", "serviceaccounts", "", each) for each in namespaces]
    return _sentences(kube.rights(checks))


def brought(here: Installation, cluster: str) -> list[GVK]:
    """Return the kinds of what profiles hold in a cluster, or are to bring there."""
    kinds = {
        GVK(key.group, held.version, key.kind)
        for inventory in here.records.inventories.of(cluster)
        for key, held in inventory.held.items()
        if held.version
    }
    objects = (each for content in _contents(here, cluster) for each in content.manifests)
    return sorted(kinds | {ObjectKey.of(each).gvk for each in objects})


def released(here: Installation, cluster: str) -> list[str]:
    """Return the namespaces of releases that profiles hold in a cluster, or are to bring there.

    One that a template names is known once it is held.
    """
    inventories = here.records.inventories.of(cluster)
    held = {key.namespace for each in inventories for key, one in each.held.items() if one.release}
    charts = [each.chart for each in _contents(here, cluster) if each.chart]
    return sorted(held | {each.namespace for each in charts if "{{" not in each.namespace})


def _contents(here: Installation, cluster: str) -> Iterator[Content]:
    """Yield what profiles are to bring to a cluster."""
    triggers = ("", *here.catalogs.known().triggers)
    several = chain.from_iterable(map(here.records.profiles.of, triggers))
    for profile in islice(several, _SOME):
        if profile.may_name(cluster):
            yield from profile.contents


def _sentences(missing: Iterable[Check]) -> list[str]:
    """Join the verbs that are missing for one resource into one sentence."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for verb, group, resource, _, namespace in missing:
        if resource == _ANY:
            what = "objects of every kind"
        else:
            what = f"{resource}.{group}" if group else resource
        verbs.setdefault((what, namespace), []).append(verb)
    return [
        f"may not {_joined(each)} {what}" + (f" in namespace '{namespace}'" if namespace else "")
        for (what, namespace), each in verbs.items()
    ]


def _joined(verbs: Sequence[str]) -> str:
    return verbs[0] if len(verbs) == 1 else f"{', '.join(verbs[:-1])} or {verbs[-1]}"
