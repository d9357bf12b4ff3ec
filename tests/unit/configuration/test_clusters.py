"""SveltosClusters of the configuration register clusters, change and deregister them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.configuration.cluster_objects import CONFIGURATION_DIGEST, CONFIGURATION_UID
from bellhop.configuration.clusters import ClusterAdmission
from bellhop.core.address_policy import LOCAL
from bellhop.core.sveltos_annotations import APPLYSET, TAKE_OVER
from bellhop.errors import ConflictError, UnauthorizedError
from bellhop.installation import Inbound, Installation
from bellhop.operations.pause import pause_cluster
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.registration.forwarder_pods import DEPLOYMENT
from bellhop.registration.managed_clusters import ClusterRequest, FoundCluster
from bellhop.registration.registration import register
from bellhop.registration.renewal import renew
from bellhop.registration.request import PATIENCE, Registration
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster as Record
from bellhop.state.delays import renewal_timer
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import require_value
from tests.unit.configuration.objects import (
    KEY,
    UID,
    elsewhere,
    kube_of,
    no_secret,
    secrets,
    sveltos_cluster,
)
from tests.waiting import eventually

OWN = {CONFIGURATION_UID: UID}
IMAGE = "registry.example.com/bellhop-forwarder:1"


def record(here: Installation) -> Record:
    return require_value(here.records.clusters.get(KEY))


def marks(cluster: Record) -> dict[str, str]:
    """Return the annotations of a cluster but the digest of its object, which it must have."""
    assert CONFIGURATION_DIGEST in cluster.annotations
    return {key: each for key, each in cluster.annotations.items() if key != CONFIGURATION_DIGEST}


def stored(here: Installation) -> Kubeconfig:
    return sanitise(here.secrets.read(f"kubeconfig/{KEY}"), reach=LOCAL)


def register_by_command(here: Installation, cluster: Cluster, **more: Any) -> None:
    """Register prod/eu-1 as `bellhop register cluster --no-forwarder` does."""
    kubeconfig = sanitise(cluster.kubeconfig(), reach=LOCAL)
    inbound = Inbound("https://ingest.example", "")
    spec = Registration("prod", "eu-1", kubeconfig, None, inbound, forwarder=False)
    register(here, replace(spec, **more))


def sending(here: Installation) -> Installation:
    """Return an installation that listens, and knows the image of the forwarder."""
    settings = replace(here.settings, forwarder_image=IMAGE)
    return replace(here, settings=settings, inbound=Inbound("https://ingest.example", ""))


def test_registers_a_cluster_as_its_object_says_and_only_once(
    here: Installation, source_cluster: Cluster
) -> None:
    """An object that is admitted again changes no record."""
    window = {"from": "0 20 * * 5", "to": "0 7 * * 1"}
    manifest = sveltos_cluster(
        labels={"env": "prod"},
        annotations={"region": "eu", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        spec={"paused": True, "activeWindow": window, "data": {"zone": "a"}},
    )
    read = secrets(source_cluster.kubeconfig())

    first = ClusterAdmission(here).admit(manifest, read)
    before = require_value(here.records.clusters.get(KEY)), here.records.clusters.get(KEY)
    again = ClusterAdmission(here).admit(manifest, read)

    assert (first.state, first.needs) == ("InForce", ("eu-1-sveltos-kubeconfig",))
    assert again == replace(first, message="")
    assert here.records.clusters.get(KEY) == before[1]
    found = record(here)
    assert found.labels == {"env": "prod"}
    assert marks(found) == {"region": "eu", **OWN}
    assert found.spec == {"paused": True, "activeWindow": window, "data": {"zone": "a"}}
    assert found.forwarder == {}
    assert found.uid
    assert stored(here).server == source_cluster.kubeconfig()["clusters"][0]["cluster"]["server"]


@pytest.mark.parametrize(
    ("spec", "name", "entry", "more"),
    [
        pytest.param({}, "eu-1-sveltos-kubeconfig", "any", {}, id="its only entry"),
        pytest.param({}, "eu-1-sveltos-kubeconfig", "re-kubeconfig", {"value": "x"}, id="renewed"),
        pytest.param({"kubeconfigName": "login"}, "login", "value", {}, id="another Secret"),
        pytest.param(
            {"kubeconfigKeyName": "mine"},
            "eu-1-sveltos-kubeconfig",
            "mine",
            {"kubeconfig": "x"},
            id="a named entry",
        ),
    ],
)
def test_finds_the_kubeconfig_as_sveltos_does(
    here: Installation,
    source_cluster: Cluster,
    spec: Mapping[str, Any],
    name: str,
    entry: str,
    more: Mapping[str, str],
) -> None:
    """The Secret and its entry have names, or those that are usual."""
    read = secrets(source_cluster.kubeconfig(), name, entry, **more)

    done = ClusterAdmission(here).admit(sveltos_cluster(spec=spec), read)

    assert (done.state, done.needs) == ("InForce", (name,))


_EXEC = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: a, user: {exec: {command: /bin/touch, args: [hidden-value]}}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.mark.parametrize(
    ("spec", "kubeconfig", "said"),
    [
        pytest.param({}, _EXEC, "`exec` is refused", id="exec"),
        pytest.param({}, "token: hidden-value", "has no contexts", id="no kubeconfig"),
        pytest.param(
            {},
            _EXEC.replace("exec: {command: /bin/touch, args: [hidden-value]}", "token: a").replace(
                "10.0.0.1:6443", "169.254.169.254"
            ),
            "the host is link-local",
            id="address",
        ),
        pytest.param({"pullMode": True}, _EXEC, "pullMode is not supported", id="pull mode"),
        pytest.param(
            {"workloadIdentity": {"provider": "Azure", "azure": {"clientID": "x"}}},
            _EXEC,
            "workloadIdentity.azure is not supported",
            id="azure",
        ),
        pytest.param(
            {"workloadIdentity": {"provider": "AWS", "aws": {"clusterName": "one"}}},
            _EXEC,
            "cannot register the EKS cluster 'one' in an embedded installation",
            id="aws on one machine",
        ),
        pytest.param(
            {"activeWindow": {"from": "* * * * *", "to": "* * * * *"}},
            _EXEC,
            "it closes whenever it opens",
            id="window",
        ),
        pytest.param({"kubeconfigKeyName": "other"}, _EXEC, "it has no entry 'other'", id="entry"),
        pytest.param({"kubeconfigName": "other"}, _EXEC, "no Secret 'prod/other'", id="no Secret"),
    ],
)
def test_refuses_what_is_not_supported_and_quotes_no_secret(
    here: Installation, spec: Mapping[str, Any], kubeconfig: str, said: str
) -> None:
    """Nothing is registered, and the message names the reason."""
    done = ClusterAdmission(here).admit(sveltos_cluster(spec=spec), secrets(kubeconfig))

    assert (done.state, said in done.message) == ("Rejected", True), done.message
    assert "hidden-value" not in done.message
    assert not here.records.clusters.any()


def test_follows_its_object_in_all_fields(here: Installation, source_cluster: Cluster) -> None:
    """A field that is removed has its default again: clients leave out what is false."""
    read = secrets(source_cluster.kubeconfig())
    admission = ClusterAdmission(here)
    spec = {"paused": True, "data": {"zone": "a"}}
    admission.admit(
        sveltos_cluster(labels={"env": "prod"}, annotations={"a": "b"}, spec=spec), read
    )
    before = record(here)

    admission.admit(sveltos_cluster(labels={"env": "fv", APPLYSET: "fleet"}), read)

    after = record(here)
    assert after.labels == {"env": "fv"}
    assert marks(after) == OWN
    assert after.spec == {}
    assert (after.credentials, after.registered_at) == (before.credentials, before.registered_at)


def test_a_pause_by_a_command_outlasts_changes_of_the_object(
    here: Installation, source_cluster: Cluster
) -> None:
    """Until a command ends it, or the object is paused itself: then only that ends it."""
    read, admission = secrets(source_cluster.kubeconfig()), ClusterAdmission(here)
    admission.admit(sveltos_cluster(), read)
    assert pause_cluster(here, KEY, paused=True) == "configured"

    admission.admit(sveltos_cluster(labels={"env": "fv"}), read)
    assert (record(here).spec, record(here).labels) == ({"paused": True}, {"env": "fv"})

    assert pause_cluster(here, KEY, paused=False) == "configured"
    assert (record(here).spec, marks(record(here))) == ({}, OWN)

    pause_cluster(here, KEY, paused=True)
    admission.admit(sveltos_cluster(spec={"paused": True}), read)
    with pytest.raises(ConflictError, match=r"its SveltosCluster .* has paused: true"):
        pause_cluster(here, KEY, paused=False)
    admission.admit(sveltos_cluster(), read)
    assert (record(here).spec, marks(record(here))) == ({}, OWN)


def test_no_author_chooses_the_configuration_cluster(
    here: Installation, source_cluster: Cluster
) -> None:
    """Annotations of Bellhop in an object do not reach the record; those of the record stay."""
    read = secrets(source_cluster.kubeconfig())
    manifest = sveltos_cluster(annotations={"bellhop.dev/made": "up", CONFIGURATION_UID: "forged"})

    ClusterAdmission(here).admit(manifest, read)

    assert marks(record(here)) == OWN


def test_a_changed_secret_changes_the_stored_kubeconfig_and_nothing_else(
    here: Installation, source_cluster: Cluster
) -> None:
    """The token of the sender is not renewed, and an equal kubeconfig is not stored again."""
    document = source_cluster.kubeconfig()
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(document))
    before = record(here)
    server = document["clusters"][0]["cluster"]["server"].replace("127.0.0.1", "localhost")

    done = ClusterAdmission(here).admit(
        sveltos_cluster(), secrets(elsewhere(source_cluster, server))
    )

    assert done.state == "InForce"
    assert stored(here).server == server
    assert record(here) == replace(before, credentials=stored(here).version)
    kept = here.records.clusters.get(KEY)
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(elsewhere(source_cluster, server)))
    assert here.records.clusters.get(KEY) == kept


def test_a_secret_that_is_lost_leaves_the_stored_kubeconfig_in_use(
    here: Installation, source_cluster: Cluster
) -> None:
    """The object's other fields are followed."""
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(source_cluster.kubeconfig()))
    before = stored(here)

    done = ClusterAdmission(here).admit(sveltos_cluster(labels={"env": "fv"}), no_secret)

    assert done.state == "InForce"
    assert "there is no Secret 'prod/eu-1-sveltos-kubeconfig'" in done.message
    assert (stored(here), record(here).labels) == (before, {"env": "fv"})


def test_a_kubeconfig_of_another_cluster_registers_that_one(
    here: Installation, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """The name means another cluster from then on, as by the command."""
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(source_cluster.kubeconfig()))
    before = record(here)

    ClusterAdmission(here).admit(sveltos_cluster(), secrets(destination_cluster.kubeconfig()))

    assert record(here).uid not in ("", before.uid)
    assert marks(record(here)) == OWN


def test_a_cluster_that_a_command_registered_keeps_its_origin(
    here: Installation, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """Neither the object nor its deletion touches it, until the object takes it over."""
    register_by_command(here, source_cluster, labels={"env": "prod"})
    before = here.records.clusters.get(KEY)
    read = secrets(destination_cluster.kubeconfig())

    done = ClusterAdmission(here).admit(sveltos_cluster(), read)
    ClusterAdmission(here).remove("prod", "eu-1")

    assert (done.state, TAKE_OVER in done.message) == ("OtherOrigin", True)
    assert here.records.clusters.get(KEY) == before
    taking = sveltos_cluster(annotations={TAKE_OVER: "files"})
    assert ClusterAdmission(here).admit(taking, read).state == "InForce"
    assert marks(record(here)) == OWN
    assert stored(here) == sanitise(destination_cluster.kubeconfig(), reach=LOCAL)


def test_an_object_takes_over_a_cluster_with_its_address(
    here: Installation, source_cluster: Cluster
) -> None:
    """It is the same cluster, and is not registered again."""
    register_by_command(here, source_cluster, labels={"env": "prod"})
    before = record(here)
    manifest = sveltos_cluster(labels={"env": "prod"})

    done = ClusterAdmission(here).admit(manifest, secrets(source_cluster.kubeconfig()))

    assert done.state == "InForce"
    assert record(here) == replace(before, annotations=record(here).annotations)
    assert marks(record(here)) == OWN


def test_a_deleted_object_deregisters_its_cluster(
    here: Installation, source_cluster: Cluster
) -> None:
    """Deleted twice, or unknown, it is nothing."""
    ClusterAdmission(here).admit(sveltos_cluster(), secrets(source_cluster.kubeconfig()))

    for _ in range(2):
        ClusterAdmission(here).remove("prod", "eu-1")

    assert not here.records.clusters.any()
    assert list(here.secrets.names("kubeconfig/")) == []


def test_the_configuration_cluster_is_never_deregistered_by_an_object(
    here: Installation, source_cluster: Cluster
) -> None:
    """Its own object needs no Secret: it was read by the credentials that are stored."""
    register_by_command(here, source_cluster)
    here.declare.configure(KEY, "on")
    before = record(here)

    done = ClusterAdmission(here).admit(sveltos_cluster(labels={"env": "hub"}), no_secret)
    followed = record(here)
    ClusterAdmission(here).remove("prod", "eu-1")

    assert (done.state, followed.labels) == ("InForce", {"env": "hub"})
    assert record(here) == replace(before, labels={"env": "hub"}, annotations={})


def test_a_cluster_that_does_not_answer_is_registered_and_finished_later(
    here: Installation, source_cluster: Cluster, clock: FakeClock
) -> None:
    """Renewals register it wholly, with its forwarder, as soon as it answers."""
    read = secrets(source_cluster.kubeconfig())
    source_cluster.stop()

    done = ClusterAdmission(sending(here)).admit(sveltos_cluster(labels={"env": "prod"}), read)
    again = ClusterAdmission(sending(here)).admit(sveltos_cluster(labels={"env": "prod"}), read)

    assert (done.state, again.state) == ("InForce", "InForce")
    assert "the connection is refused" in done.message
    assert (record(here).kubernetes, record(here).uid) == ("", "")
    assert stored(here) == sanitise(source_cluster.kubeconfig(), reach=LOCAL)

    source_cluster.start()
    clock.advance(PATIENCE + timedelta(seconds=1))
    renew(sending(here), KEY)

    found = record(here)
    assert found.uid
    assert found.kubernetes
    assert "begun" not in found.forwarder
    assert found.labels == {"env": "prod"}
    assert marks(found) == OWN
    kube = kube_of(source_cluster)
    deployment = kube.get(DEPLOYMENT, NAMESPACE, NAME)
    kube.close()
    assert deployment is not None
    assert IMAGE in json.dumps(deployment)


def test_a_refused_login_is_registered_with_its_error(
    here: Installation, source_cluster: Cluster
) -> None:
    """The kubeconfig is valid, and may be accepted later."""
    document = source_cluster.kubeconfig()
    document["users"][0]["user"] = {"token": "nobody-knows-it"}

    done = ClusterAdmission(here).admit(sveltos_cluster(), secrets(document))

    assert done.state == "InForce"
    assert "nobody-knows-it" not in done.message
    assert done.message
    assert record(here).kubernetes == ""


def test_the_forwarder_is_installed_if_its_image_is_known(
    here: Installation, source_cluster: Cluster
) -> None:
    """Its deletion with the object removes it."""
    admission = ClusterAdmission(sending(here))
    admission.admit(sveltos_cluster(), secrets(source_cluster.kubeconfig()))
    kube = kube_of(source_cluster)

    deployment = kube.get(DEPLOYMENT, NAMESPACE, NAME)

    kube.close()
    assert deployment is not None
    assert IMAGE in json.dumps(deployment)
    assert record(here).token_digest


class FakeCloud:
    """One cluster of a cloud, which is a real API server; `asked` are the requests for it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._found = FoundCluster(name, sanitise(cluster.kubeconfig(), reach=LOCAL))
        self.asked: list[ClusterRequest] = []

    def find(self, request: ClusterRequest) -> FoundCluster:
        """Return the cluster."""
        self.asked.append(request)
        return self._found


_AWS = {
    "provider": "AWS",
    "endpoint": "https://ignored.example",
    "aws": {"clusterName": "one", "region": "eu-west-1", "roleARN": "arn:aws:iam::1:role/far"},
}
_GCP = {
    "provider": "GCP",
    "endpoint": "https://ignored.example",
    "gcp": {"clusterName": "one", "location": "europe-west1", "projectID": "far"},
}
_GKE_NAME = "projects/far/locations/europe-west1/clusters/one"


@pytest.mark.parametrize(
    ("identity", "name", "asked"),
    [
        pytest.param(
            _AWS,
            "arn:aws:eks:eu-west-1:123456789012:cluster/one",
            ClusterRequest("EKS", "one", "eu-west-1", "arn:aws:iam::1:role/far"),
            id="aws",
        ),
        pytest.param(_GCP, _GKE_NAME, ClusterRequest("GKE", _GKE_NAME), id="gcp"),
    ],
)
def test_a_workload_identity_registers_a_managed_cluster(
    here: Installation,
    source_cluster: Cluster,
    identity: Mapping[str, Any],
    name: str,
    asked: ClusterRequest,
) -> None:
    """No kubeconfig is stored, no Secret is needed, and the cloud is asked once."""
    cloud = FakeCloud(source_cluster, name)
    manifest = sveltos_cluster(spec={"workloadIdentity": identity})

    done = ClusterAdmission(here, managed=cloud).admit(manifest, no_secret)
    again = ClusterAdmission(here, managed=cloud).admit(manifest, no_secret)

    assert (done.state, again.state, done.needs) == ("InForce", "InForce", ())
    assert cloud.asked == [asked]
    assert (record(here).managed, record(here).assume_role) == (name, asked.assume_role)
    assert list(here.secrets.names("kubeconfig/")) == []


def test_a_setting_names_the_image() -> None:
    """Without it, clusters of the configuration get no forwarder."""
    assert Settings().forwarder_image == ""


def test_the_login_is_renewed_by_tokens_of_its_account(
    here: Installation, source_cluster: Cluster, clock: FakeClock
) -> None:
    """The Secret keeps the first token, and is stored again only if it changes."""
    kube = kube_of(source_cluster)
    for manifest in _ADMINISTRATOR:
        kube.apply(manifest)
    document = source_cluster.kubeconfig()
    document["users"][0]["user"] = {"token": kube.token_request("default", "bellhop")}
    option = {"renewTokenRequestInterval": "30m0s", "tokenDuration": "1h"}
    manifest = sveltos_cluster(spec={"tokenRequestRenewalOption": option})
    admission = ClusterAdmission(here)
    eventually("the account has its rights", lambda: _may_list_nodes(document))
    admission.admit(manifest, secrets(document))
    first = stored(here)
    assert renew(here, KEY) == []

    clock.advance(timedelta(minutes=31))
    assert renew(here, KEY) == ["renewed its token of service account 'default/bellhop'"]
    second = stored(here)
    admission.admit(manifest, secrets(document))

    assert second.token != first.token
    assert stored(here) == second
    assert record(here).credentials == second.version
    assert here.records.timers.get(renewal_timer(KEY)) is not None
    document["users"][0]["user"] = {"token": kube.token_request("default", "bellhop", seconds=700)}
    kube.close()
    admission.admit(manifest, secrets(document))
    assert stored(here).token == document["users"][0]["user"]["token"]
    assert marks(record(here)) == OWN


_ACCOUNT = {"namespace": "default", "name": "bellhop"}
_ADMINISTRATOR: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _ACCOUNT},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bellhop-test"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", **_ACCOUNT}],
    },
)


def _may_list_nodes(document: Mapping[str, Any]) -> bool:
    kube = KubeClient("test", sanitise(document, reach=LOCAL), reach=LOCAL)
    try:
        return not kube.rights([Right("list", "", "nodes")])
    except UnauthorizedError:
        return False
    finally:
        kube.close()
