"""The forwarder in the cluster: installed, printed for a repository, taken away."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import new_client_from_config
from kubernetes.dynamic import DynamicClient

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.registration.forwarder_pods import IMAGE as DEFAULT_IMAGE
from bellhop.registration.forwarder_pods import find_applier
from infra.lab.cluster import Cluster
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import INGEST, KEY, SECRET, entries, limited, rules_of_the_how_to

DEPLOYMENT = GVK("apps", "v1", "Deployment")
FORWARDER = {"Deployment": "apps/v1", "Service": "v1", "NetworkPolicy": "networking.k8s.io/v1"}
IMAGE = "registry.example.com/bellhop-forwarder:1"


def installed(kube: KubeClient) -> dict[str, dict[str, Any]]:
    """Return what there is of the forwarder's pods, by kind."""
    kinds = {kind: GVK(*_parted(version), kind) for kind, version in FORWARDER.items()}
    found = {kind: kube.get(gvk, NAMESPACE, NAME) for kind, gvk in kinds.items()}
    return {kind: manifest for kind, manifest in found.items() if manifest}


def _parted(version: str) -> tuple[str, str]:
    group, _, name = version.rpartition("/")
    return group, name


def test_installs_the_forwarder_and_says_so(register: Bellhop, kube: KubeClient) -> None:
    """Deployment, Service and NetworkPolicy, which lets it call where it sends to."""
    result = register("--install", "--image", IMAGE, *INGEST)
    found = installed(kube)

    assert result.exit_code == 0, result.output
    line = f"  installed    its Deployment, Service and NetworkPolicy; image {IMAGE}\n"
    assert line in result.stdout
    assert set(found) == {*FORWARDER}
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    called = found["NetworkPolicy"]["spec"]["egress"][1]["ports"]
    assert 8443 in [each["port"] for each in called]


def test_installs_the_forwarder_by_default(register: Bellhop, kube: KubeClient) -> None:
    """The image of the release; as it has no registry, a user hears where it must be."""
    result = register(*INGEST)

    assert result.exit_code == 0, result.output
    assert set(installed(kube)) == {*FORWARDER}
    assert f"image {DEFAULT_IMAGE}\n" in result.stdout
    assert "has no registry: load it into the cluster's nodes" in result.stderr
    assert "warning: no forwarder is in the cluster" not in result.stderr
    assert "has no registry" in register(*INGEST).stderr
    deployment = kube.get(DEPLOYMENT, NAMESPACE, NAME)
    assert deployment is not None
    status = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    kube.merge_status({**deployment, "status": status}, uid=deployment["metadata"]["uid"])
    assert "has no registry" not in register(*INGEST).stderr


@pytest.mark.usefixtures("kube")
def test_an_image_for_all_clusters_is_set_once(
    register: Bellhop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable of the environment does as --image does, and the option comes first."""
    monkeypatch.setenv("BELLHOP_FORWARDER_IMAGE", IMAGE)

    assert f"image {IMAGE}\n" in register(*INGEST).stdout
    assert f"image {IMAGE}2\n" in register(*INGEST, "--image", f"{IMAGE}2").stdout


def test_leaves_a_forwarder_that_another_tool_applies(
    register: Bellhop, kube: KubeClient, kubeconfig: Path
) -> None:
    """A renewal changes nothing of the Deployment that a GitOps tool applies, unless asked to.

    Nor where Bellhop has deployed it before.
    """
    register("--image", IMAGE, *INGEST)
    printed = register("--print-manifests", "--image", IMAGE, *INGEST).stdout
    _apply_as("gitops", yaml.safe_load_all(printed), kubeconfig)
    before = installed(kube)
    result = register(*INGEST, "--image", f"{IMAGE}2")

    assert result.exit_code == 0, result.output
    assert installed(kube) == before
    assert "  installed" not in result.stdout
    assert "the image is not changed: 'gitops' applies the forwarder's Deployment" in result.stderr
    assert f"image {IMAGE}2\n" in register(*INGEST, "--install", "--image", f"{IMAGE}2").stdout


def test_knows_which_tool_applies_a_deployment() -> None:
    """By server-side apply, or as kubectl does; a restart or a scale is none."""
    restarted = {"manager": "kubectl-rollout", "operation": "Update"}
    ours = {"manager": "bellhop", "operation": "Apply"}
    flux = {"manager": "kustomize-controller", "operation": "Apply"}
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}

    assert find_applier({"metadata": {}}) == ""
    assert find_applier({"metadata": {"managedFields": [ours, restarted]}}) == ""
    assert find_applier({"metadata": {"managedFields": [ours, flux]}}) == "kustomize-controller"
    by_kubectl = {"metadata": {"managedFields": [ours], "annotations": last}}
    assert find_applier(by_kubectl) == "kubectl apply"


def _apply_as(manager: str, manifests: Iterable[dict[str, Any]], kubeconfig: Path) -> None:
    client = DynamicClient(new_client_from_config(str(kubeconfig)))
    for each in manifests:
        kind = client.resources.get(api_version=each["apiVersion"], kind=each["kind"])
        kind.server_side_apply(
            body=each,
            name=each["metadata"]["name"],
            namespace=each["metadata"].get("namespace"),
            field_manager=manager,
            force_conflicts=True,
        )


def test_installing_twice_changes_nothing_of_its_pods(register: Bellhop, kube: KubeClient) -> None:
    """No pod is replaced, its image and what somebody else added to the Deployment stay."""
    register("--install", "--image", IMAGE, *INGEST)
    deployment = GVK("apps", "v1", "Deployment")
    kube.merge(deployment, NAMESPACE, NAME, {"metadata": {"annotations": {"own": "er"}}})
    before = installed(kube)
    result = register("--install", *INGEST)
    after = installed(kube)

    assert result.exit_code == 0, result.output
    for kind, manifest in before.items():
        for same in ("uid", "generation"):
            assert after[kind]["metadata"].get(same) == manifest["metadata"].get(same)
    assert after["Deployment"]["metadata"]["annotations"]["own"] == "er"


def test_installs_nothing_without_the_rights(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    rules = rules_of_the_how_to()
    narrow = [rule for rule in rules if "deployments" not in rule["resources"]]
    path = limited(kube, source_cluster, tmp_path, narrow)
    refused = register("--install", *INGEST, path=path)

    assert refused.exit_code == 1
    assert "may not get, create, patch or delete deployments.apps in namespace" in refused.stderr
    assert here.records.clusters.get(KEY) is None
    assert kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None
    by_default = register(*INGEST, path=path)
    assert by_default.exit_code == 1
    assert "; --no-install needs fewer, and leaves the forwarder's pods to you" in by_default.stderr
    without = register("--no-install", *INGEST, path=path)
    assert without.exit_code == 0, without.stderr
    renewed = register(*INGEST, path=path)
    assert renewed.exit_code == 0, renewed.stderr
    path = limited(kube, source_cluster, tmp_path, rules)
    taken = register("--install", *INGEST, path=path)
    assert taken.exit_code == 0, taken.stderr
    path = limited(kube, source_cluster, tmp_path, narrow)
    direct = register("--direct", *INGEST, path=path)
    assert direct.exit_code == 0, direct.stderr
    without_any = register("--forwarder", *INGEST, path=path)
    assert without_any.exit_code == 1, without_any.stdout


@pytest.mark.parametrize("last", ["ClusterRole", "Namespace", "RoleBinding", *FORWARDER])
def test_an_installation_that_is_killed_is_done_by_the_next(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
) -> None:
    apply = KubeClient.apply

    def mortal(self: KubeClient, manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["kind"] == last:
            raise KeyboardInterrupt
        return apply(self, manifest, **how)

    with monkeypatch.context() as doomed:
        doomed.setattr(KubeClient, "apply", mortal)
        died = register("--install", *INGEST)
    known = here.records.clusters.get(KEY), kube.get(SECRET, NAMESPACE, NAME)
    again = register("--install", *INGEST)

    assert died.exit_code != 0
    assert known == (None, None)
    assert again.exit_code == 0, again.output
    assert set(installed(kube)) == {*FORWARDER}
    assert entries(kube)["cluster"] == KEY


def test_prints_all_but_the_secret_for_a_repository(
    register: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """Standard output is a file that an API server takes; the rest is said beside it."""
    result = register("--print-manifests", "--image", IMAGE, *INGEST)
    printed = list(yaml.safe_load_all(result.stdout))
    secret = entries(kube)

    assert result.exit_code == 0, result.output
    assert "Cluster 'prod/eu-1' registered." in result.stderr
    assert "warning: no forwarder is in the cluster yet, and no events arrive" in result.stderr
    assert here.records.clusters.get(KEY) is not None
    assert [each["kind"] for each in printed] == [
        "Namespace",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRoleBinding",
        "Service",
        "Deployment",
        "NetworkPolicy",
    ]
    assert installed(kube) == {}
    for manifest in printed:
        kube.apply(manifest, dry_run=True)
    for value in (secret["token"], secret["path"], secret["tls.key"]):
        assert base64.b64encode(value.encode()).decode() not in result.output
        assert value not in result.output


def test_prints_the_image_that_is_there(register: Bellhop, kube: KubeClient) -> None:
    register("--install", "--image", IMAGE, *INGEST)
    result = register("--print-manifests", *INGEST)

    assert f"image: {IMAGE}\n" in result.stdout
    assert "no forwarder is in the cluster" not in result.stderr
    kinds = {each["kind"] for each in yaml.safe_load_all(result.stdout)}
    assert set(installed(kube)) == {*FORWARDER} & kinds


def test_prints_the_secret_when_asked(register: Bellhop, kube: KubeClient) -> None:
    """It is the one that was applied."""
    result = register("--print-manifests", "--show-secrets", *INGEST)
    *_, secret = yaml.safe_load_all(result.stdout)
    applied = kube.get(SECRET, NAMESPACE, NAME)

    assert applied is not None
    assert (secret["kind"], secret["data"]) == ("Secret", applied["data"])


@pytest.mark.parametrize("uninstall", [True, False])
def test_takes_away_what_it_installed_where_the_namespace_is_not_ours(
    register: Bellhop, bellhop: Bellhop, kube: KubeClient, *, uninstall: bool
) -> None:
    """A namespace of ours goes with all in it; in another one, what was asked to go goes."""
    register("--install", *INGEST)
    taken = {"metadata": {"labels": {"app.kubernetes.io/part-of": "others"}}}
    kube.merge(GVK("", "v1", "Namespace"), "", NAMESPACE, taken)
    named = ("--namespace", "prod", "--cluster", "eu-1")
    result = bellhop("deregister", "cluster", *named, *(["--uninstall"] if uninstall else []))

    assert result.exit_code == 0, result.output
    assert set(installed(kube)) == (set() if uninstall else {*FORWARDER})
    assert ("removed Deployment" in result.stdout) is uninstall
    assert kube.get(SECRET, NAMESPACE, NAME) is None
