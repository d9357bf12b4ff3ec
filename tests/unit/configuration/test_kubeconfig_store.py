"""Functions that may not store kubeconfigs say so in the object, and go on once they may."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.admission import Admission
from bellhop.configuration.cluster_objects import CONFIGURATION_UID, ClusterObjects
from bellhop.configuration.clusters import ClusterAdmission
from bellhop.configuration.definitions import make_definitions
from bellhop.configuration.records import ConfiguredObject
from bellhop.configuration.withdrawal import SETTLE
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import ObjectKey
from bellhop.errors import CloudDeniedError, DeniedError, TemporaryError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.store import Secrets
from bellhop.state.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import FakeAccess
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.unit.configuration.objects import KEY, UID, secrets, sveltos_cluster

HUB = "mgmt/mgmt"
SILENT = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "hidden-value"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}
"""The kubeconfig of a cluster that does not answer."""

GRANT = "set `configuration_cluster = true` in the installation's Terraform module"


class ReadOnlySecrets:
    """The secrets of functions that may not write kubeconfigs."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def read(self, name: str) -> bytes:
        return self._secrets.read(name)

    def put(self, name: str, value: bytes) -> None:
        self._refuse("write", name)
        self._secrets.put(name, value)

    def delete(self, name: str) -> None:
        self._refuse("delete", name)
        self._secrets.delete(name)

    def names(self, prefix: str = "") -> Iterator[str]:
        return self._secrets.names(prefix)

    def _refuse(self, verb: str, name: str) -> None:
        if name.startswith("kubeconfig/"):
            said = f"cannot {verb} the secret {name!r}: AWS denies it"
            raise CloudDeniedError(said, reason="AccessDeniedException")


def bound(here: Installation) -> Installation:
    """Return an installation whose functions may not write kubeconfigs."""
    return replace(here, secrets=ReadOnlySecrets(here.secrets))


def test_an_object_is_refused_until_its_kubeconfig_may_be_stored(here: Installation) -> None:
    """Nothing is registered meanwhile; the message says what to set."""
    read = secrets(SILENT)

    denied = ClusterAdmission(bound(here)).admit(sveltos_cluster(), read)

    assert denied.state == "Rejected"
    assert denied.message == (
        f"cannot store the kubeconfig of cluster '{KEY}': the cloud denies it"
        f" (AccessDeniedException); {GRANT}, or run `bellhop register cluster`"
    )
    assert here.records.clusters.get(KEY) is None
    assert ClusterAdmission(here).admit(sveltos_cluster(), read).state == "InForce"


def test_a_new_kubeconfig_that_may_not_be_stored_leaves_the_former_in_use(
    here: Installation,
) -> None:
    """The object says why it is not in force."""
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(SILENT))
    before = here.secrets.read(f"kubeconfig/{KEY}"), here.records.clusters.get(KEY)
    user = {"name": "a", "user": {"token": "another-value"}}

    denied = ClusterAdmission(bound(here)).admit(
        sveltos_cluster(), secrets({**SILENT, "users": [user]})
    )

    assert (denied.state, GRANT in denied.message) == ("Rejected", True)
    assert (here.secrets.read(f"kubeconfig/{KEY}"), here.records.clusters.get(KEY)) == before


def test_a_deletion_waits_until_the_kubeconfig_may_be_deleted(
    here: Installation, clock: FakeClock
) -> None:
    """The record of the object says why, and the next message of it tries again."""
    kubeconfig = sanitise(SILENT, reach=LOCAL)
    here.secrets.put(f"kubeconfig/{HUB}", json.dumps(kubeconfig.to_dict()).encode())
    hub = Cluster("mgmt", "mgmt", {}, "v1.36.2", "", here.records.clock.now())
    here.declare.register(replace(hub, credentials=kubeconfig.version, configuration="on"))
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(SILENT))
    now = here.records.clock.now()
    known = ConfiguredObject(UID, "7", 1, "InForce", in_force=True, at=now)
    here.records.configured.put(CLUSTER.kind, "prod", "eu-1", known)

    for _ in range(2):
        with pytest.raises(DeniedError, match="cannot delete the kubeconfig"):
            delete(bound(here), clock)

    record = require_value(here.records.configured.get(CLUSTER.kind, "prod", "eu-1"))
    assert record.state == "Rejected"
    assert record.message == (
        f"cannot delete the kubeconfig of cluster '{KEY}': the cloud denies it"
        f" (AccessDeniedException); {GRANT}"
    )
    assert here.records.clusters.get(KEY)
    delete(here, clock)
    assert here.records.configured.get(CLUSTER.kind, "prod", "eu-1") is None
    assert here.records.clusters.get(KEY) is None


def delete(here: Installation, clock: FakeClock) -> None:
    """Read the object, which is not there any more, as its message has it read twice."""
    access = FakeAccess()
    access.clusters[HUB] = FakeKube(HUB)
    for each in make_definitions(rules=False):
        access.clusters[HUB].apply(each)
    given = here.records, here.catalogs, access, here.publisher, here.settings
    key = ObjectKey(CLUSTER, "prod", "eu-1")
    admission = Admission(*given, Log(io.StringIO()), ClusterObjects(here))
    with pytest.raises(TemporaryError, match="others may be"):
        admission.admit(HUB, key, lambda: None)
    clock.advance(SETTLE)
    admission.admit(HUB, key, lambda: None)


def test_a_cluster_of_a_cloud_has_no_kubeconfig_to_delete(here: Installation) -> None:
    """Functions without that right deregister it."""
    marks = {CONFIGURATION_UID: UID}
    given = {"managed": "arn:aws:eks:eu-west-1:1:cluster/one", "annotations": marks}
    now = here.records.clock.now()
    here.declare.register(Cluster("prod", "eu-1", {}, "v1.33.1", "", now, **given))

    ClusterAdmission(bound(here)).remove("prod", "eu-1")

    assert here.records.clusters.get(KEY) is None
