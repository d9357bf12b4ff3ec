"""Checks of the cluster that holds the configuration, for `bellhop doctor`.

definitions     all kinds are served in the version that is read
rights          Bellhop's account may read and write them
webhook         changes of them are reported at once
origin          no other cluster, and no controller of Sveltos, is in charge as well
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.api.kinds import CONFIGURED_KINDS
from bellhop.configuration.definitions import DEFINITIONS, VERSION
from bellhop.configuration.rights import list_checks
from bellhop.configuration.sveltos_controllers import find_controller
from bellhop.core.gvk import GVK
from bellhop.diagnosis.condition import Condition, failed, passed
from bellhop.diagnosis.webhook_checks import run_checks
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import CONFIGURATION, NAME, is_audited
from bellhop.registration.permissions import check_rights
from bellhop.state.cluster import Cluster

_CHECK = "configuration"
_READ = {gvk.kind for gvk in CONFIGURED_KINDS}
_CLEAR = "`bellhop set configuration-cluster --clear`"
_WEBHOOKS = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


def check_configuration(
    here: Installation, cluster: Cluster, kube: KubeClient
) -> Iterator[Condition]:
    """Yield the results of all checks; nothing for a cluster that does not hold the configuration.

    Each cluster that claims to hold it is checked. An error of one check does not end the others.
    """
    if not cluster.configuration:
        return
    results = list(
        run_checks(
            (_CHECK, lambda: _check_origin(here, cluster)),
            (_CHECK, lambda: _check_definitions(cluster, kube)),
            (_CHECK, lambda: _check_rights(kube)),
            (_CHECK, lambda: _check_webhook(cluster, kube)),
            (_CHECK, lambda: _check_controllers(here, cluster, kube)),
        )
    )
    yield from results
    if not results:
        how = "previews" if cluster.configuration == "preview" else "holds"
        yield passed(_CHECK, f"it {how} the configuration; all that is needed for it is there")


def _check_origin(here: Installation, cluster: Cluster) -> Iterator[Condition]:
    clusters = here.catalogs.known().clusters.values()
    others = [each.key for each in clusters if each.configuration and each.key != cluster.key]
    if others:
        said = f"{', '.join(others)} claims to hold the configuration as well"
        cure = f"{_CLEAR} ends it for one of them; repeat it until one is left"
        yield failed(_CHECK, said, cure)


def _check_definitions(cluster: Cluster, kube: KubeClient) -> Iterator[Condition]:
    lacking = [
        each.name
        for each in DEFINITIONS
        if not kube.resource(GVK.parse(each.api_version, each.kind))
    ]
    if lacking:
        yield failed(
            _CHECK,
            f"it does not serve {', '.join(lacking)} in {VERSION}",
            f"`bellhop install crds {cluster.key}` installs what is missing",
        )


def _check_rights(kube: KubeClient) -> Iterator[Condition]:
    cure = "grant what `bellhop install crds --print-role` prints to the user of the kubeconfig"
    for each in check_rights(kube, list_checks()):
        yield failed(_CHECK, f"its credentials {each}", cure)


def _check_webhook(cluster: Cluster, kube: KubeClient) -> Iterator[Condition]:
    if not cluster.forwarder or is_audited(cluster.forwarder):
        return
    found = kube.get(_WEBHOOKS, "", NAME) or {}
    hooks = [each for each in found.get("webhooks") or () if each["name"] == CONFIGURATION]
    served = [each.plural for each in DEFINITIONS if each.kind in _READ] if hooks else []
    lacking = sorted(set(served) - set(_list_resources(hooks)))
    cure = f"`bellhop resync {cluster.key}` writes it again, or reports what fails"
    if not hooks:
        said = f"its webhook configuration lacks '{CONFIGURATION}': only resyncs find changes"
        yield failed(_CHECK, said, cure)
    elif lacking:
        yield failed(_CHECK, f"'{CONFIGURATION}' does not report {', '.join(lacking)}", cure)


def _list_resources(hooks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (
        resource
        for hook in hooks
        for rule in hook.get("rules") or ()
        for resource in rule.get("resources") or ()
    )


def _check_controllers(
    here: Installation, cluster: Cluster, kube: KubeClient
) -> Iterator[Condition]:
    if cluster.configuration == "preview":
        return
    if said := find_controller(kube, here.records.clock.now()):
        yield failed(
            _CHECK,
            f"controllers of Sveltos run in it as well: {said}",
            f"scale them to zero, or leave the objects to them with {_CLEAR}",
        )
