"""What `infra/base` and `infra/overlays` install: as generated, as narrow, and taken as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop import __version__
from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError
from bellhop.ingest import account_tokens
from bellhop.registration import forwarder_manifests as wiring
from bellhop.registration.forwarder_pods import MOUNTED, forwarder_manifests
from infra.lab.binaries import KUBECTL, release
from infra.lab.cluster import Cluster
from tests.infra.forwarder_rig import EXAMPLE
from tests.infra.nats_rig import NAMESPACE
from tests.missing import find_program, missing

INFRA = Path(__file__).parents[2] / "infra"
BASE = INFRA / "base"
FORWARDER = {"url": "", "ca": "the PEM of the certificate authority", "path": "/unguessable"}
OVERLAYS = ("base", "overlays/one-replica", "overlays/kept-spool")
OVERLAYS_NEED = (1, 21)
"""Older kustomize knows `patches` as something else."""


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@cache
def built(folder: str) -> tuple[dict[str, Any], ...]:
    """Build a kustomization with kubectl."""
    kubectl = find_program(KUBECTL)
    if folder != "base" and release(kubectl) < OVERLAYS_NEED:
        missing("the overlays need kubectl 1.21, as docs/explanation/forwarder.md says")
    done = subprocess.run(
        [kubectl, "kustomize", str(INFRA / folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(manifests: Any, kind: str) -> list[dict[str, Any]]:
    return [each for each in manifests if each["kind"] == kind]


def rules(manifests: Any) -> Iterator[dict[str, Any]]:
    for kind in ("Role", "ClusterRole"):
        for role in of_kind(manifests, kind):
            yield from role["rules"]


@pytest.mark.parametrize("path", sorted(INFRA.glob("[bo]*/**/*.yaml")), ids=lambda p: p.stem)
def test_is_yaml_of_kubernetes_objects(path: Path) -> None:
    """Every document has its kind and, except kustomizations and patches, a name."""
    for document in documents(path):
        assert document["apiVersion"]
        assert document["kind"]


def test_has_what_registration_installs() -> None:
    """The base cannot drift from what the library writes."""
    [kustomization] = documents(BASE / "kustomization.yaml")
    in_base = [each for name in kustomization["resources"] for each in documents(BASE / name)]
    [image] = kustomization["images"]

    assert in_base == forwarder_manifests("bellhop-forwarder")
    assert image == {"name": "bellhop-forwarder", "newTag": __version__}


def test_has_a_token_only_for_its_ingest() -> None:
    """It is looked for where it is mounted, and its account is let in."""
    [deployment] = of_kind(forwarder_manifests("i", (), "https://ingest.example"), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [source] = pod["volumes"][1]["projected"]["sources"]
    mount = pod["containers"][0]["volumeMounts"][1]

    assert source["serviceAccountToken"]["audience"] == "https://ingest.example"
    assert f"{mount['mountPath']}/{source['serviceAccountToken']['path']}" == MOUNTED
    account = f"system:serviceaccount:{wiring.NAMESPACE}:{pod['serviceAccountName']}"
    assert account == account_tokens.FORWARDER


def test_events_of_its_own_namespace_do_not_call_it() -> None:
    """Its namespace has the label that webhooks look at, which only API servers from 1.21 set."""
    [namespace] = documents(BASE / "namespace.yaml")
    [configuration] = documents(BASE / "examples" / "webhook.yaml")
    [passed] = configuration["webhooks"][0]["namespaceSelector"]["matchExpressions"]

    assert passed["operator"] == "NotIn"
    assert namespace["metadata"]["labels"][passed["key"]] in passed["values"]


@pytest.mark.parametrize("image", ["", "a b", "-a", "image@sha256:12", "image\n"])
def test_refuses_what_is_no_image(image: str) -> None:
    """Before anything is written, and saying how one looks."""
    with pytest.raises(
        InvalidError, match=r"is not an image; write it as in 'registry\.example\.com"
    ):
        forwarder_manifests(image)


def test_may_call_where_its_ingest_listens() -> None:
    """Its policy would else keep it from an ingest, or an API server, on a port of its own."""
    [policy] = of_kind(forwarder_manifests("image", [9443]), "NetworkPolicy")

    assert [each["port"] for each in policy["spec"]["egress"][1]["ports"]] == [
        443,
        4222,
        6443,
        9443,
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cluster-role", wiring.forwarder_role(EXAMPLE)),
        ("webhook", wiring.webhook_configuration(EXAMPLE, FORWARDER)),
    ],
    ids=["cluster role", "webhook"],
)
def test_shows_what_resyncs_install(path: str, expected: dict[str, Any]) -> None:
    """The examples cannot drift from what the library writes."""
    assert documents(BASE / "examples" / f"{path}.yaml") == [expected]


def test_shows_what_lets_the_forwarder_subscribe_to_nats() -> None:
    """The example cannot drift from what resyncs install where a source asks for CloudEvents."""
    assert documents(BASE / "examples" / "nats-rights.yaml") == wiring.messaging_rights()


def test_grants_reading_single_objects_and_nothing_else() -> None:
    """No wildcard, no list, no watch, no write; of Secrets only its own, and the one of NATS."""
    examples = documents(BASE / "examples" / "cluster-role.yaml")
    messaging = wiring.messaging_rights()
    found = list(rules([*documents(BASE / "rights.yaml"), *examples, *messaging]))

    assert found
    for rule in found:
        assert rule["verbs"] == ["get"]
        assert "*" not in [*rule["apiGroups"], *rule["resources"]]
        if "secrets" in rule["resources"]:
            assert rule["resourceNames"] in ([wiring.NAME], [wiring.MESSAGING_NAME])


def test_is_called_only_for_named_kinds() -> None:
    """No wildcard, no leases, events or tokens; and no write can fail or wait for us."""
    [configuration] = documents(BASE / "examples" / "webhook.yaml")
    [webhook] = configuration["webhooks"]

    for rule in webhook["rules"]:
        named = [*rule["apiGroups"], *rule["apiVersions"], *rule["resources"]]
        assert not [each for each in named if "*" in each]
        assert not {"leases", "events", "serviceaccounts/token"} & set(rule["resources"])
        assert rule["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 2
    assert webhook["sideEffects"] == "NoneOnDryRun"


def test_leads_the_webhook_to_the_pods() -> None:
    """The configuration names the Service, the Service the pods and their port."""
    [configuration] = documents(BASE / "examples" / "webhook.yaml")
    called = configuration["webhooks"][0]["clientConfig"]["service"]
    [service] = documents(BASE / "service.yaml")
    [deployment] = documents(BASE / "deployment.yaml")
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    [port] = service["spec"]["ports"]

    assert (called["namespace"], called["name"]) == (
        service["metadata"]["namespace"],
        service["metadata"]["name"],
    )
    assert called["port"] == port["port"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {"name": port["targetPort"], "protocol": "TCP", "containerPort": 8443} in container[
        "ports"
    ]


def test_runs_the_forwarder_with_nothing_to_spare() -> None:
    """No root, no capability, no writable root file system, and enough memory."""
    [deployment] = documents(BASE / "deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"] == "256Mi"


def test_gives_the_pod_more_time_to_end_than_it_takes() -> None:
    """The kubelet's patience exceeds the forwarder's grace, stopping the server included."""
    [deployment] = documents(BASE / "deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    options = dict(each[2:].split("=") for each in pod["containers"][0]["args"])

    assert pod["terminationGracePeriodSeconds"] >= float(options["grace"]) + 5
    assert float(options["linger"]) < float(options["grace"])


@pytest.mark.parametrize("folder", OVERLAYS)
def test_is_taken_by_an_api_server(folder: str, source_cluster: Cluster) -> None:
    """A dry run of server-side apply takes every manifest, of the examples, too."""
    client = KubeClient("source", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    try:
        client.apply(wiring.forwarder_rights()[0])
        client.apply(NAMESPACE)
        for manifest in built(folder):
            client.apply(manifest, dry_run=True)
        for path in sorted((BASE / "examples").glob("*.yaml")):
            for manifest in documents(path):
                client.apply(manifest, dry_run=True)
    finally:
        client.close()


@pytest.mark.parametrize("folder", OVERLAYS)
def test_installs_each_object_once_and_in_its_namespace(folder: str) -> None:
    """What a kustomization builds has no doubles and leaves nothing in `default`."""
    keys = [(each["kind"], each["metadata"]["name"]) for each in built(folder)]

    assert len(set(keys)) == len(keys)
    for each in built(folder):
        cluster_scoped = each["kind"] in {"Namespace", "ClusterRoleBinding"}
        assert each["metadata"].get("namespace") == (None if cluster_scoped else wiring.NAMESPACE)


def test_keeps_the_spool_where_asked() -> None:
    """The overlay mounts a volume in the place of the pod's own, in one pod at a time."""
    [deployment] = of_kind(built("overlays/kept-spool"), "Deployment")

    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert [each["name"] for each in volumes] == ["spool", "account"]
    assert volumes[:1] == [
        {"name": "spool", "persistentVolumeClaim": {"claimName": "bellhop-forwarder-spool"}}
    ]
