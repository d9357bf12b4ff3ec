"""The complete example, applied: it works, from an event of a cluster to another cluster.

All tests here share one installation. Registered through the CLI, two real API servers ring through
real forwarders; functions run from their packages, fed and ticked as AWS says it would.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bellhop.model.gvk import GVK, ObjectKey
from infra.lab.cluster import Cluster
from infra.lab.moto import Moto
from infra.lab.terraform import Stack
from tests.terraform.cloud import Cloud
from tests.terraform.conftest import Fleet

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")
POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
TWIN = ObjectKey(SERVICE, "external", "external-web")
ADDRESSES = ObjectKey(ENDPOINTS, "external", "external-web")
WEB = ObjectKey(SERVICE, "default", "web")


def service(name: str, port: int = 80, kind: str = "ClusterIP", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "type": kind,
            "selector": {"app": name},
            "ports": [{"port": port, "targetPort": 9376}],
        },
    }


def test_a_second_plan_is_empty(stack: Stack) -> None:
    """What was applied is what is there."""
    assert "No changes" in stack.run("plan", "-detailed-exitcode")


@pytest.mark.parametrize("form", ["service-discovery", "service-discovery-eventbasedaddon"])
def test_carries_a_service_to_the_other_cluster_and_takes_it_away(
    fleet: Fleet, form: str, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """Seeds 000 and 003: a balanced Service appears elsewhere, and goes with its source."""
    destination = fleet.register(destination_cluster, "dep=eng", forward=False)
    source = fleet.register(source_cluster, "env=production")
    fleet.apply(form)
    fleet.rings("fleet/source")
    source.create(service("web", 60000, "LoadBalancer"))
    source.give_address(WEB, "34.172.32.172")
    fleet.until("both are there", lambda: destination.get(TWIN) and destination.get(ADDRESSES))
    there = destination.get(ADDRESSES)
    assert there
    assert there["subsets"][0]["addresses"] == [{"ip": "34.172.32.172"}]

    source.delete(WEB)
    fleet.until(
        "both are gone", lambda: not destination.get(TWIN) and not destination.get(ADDRESSES)
    )


def test_guards_each_service_with_its_own_policy(fleet: Fleet, source_cluster: Cluster) -> None:
    """Seed 001: one NetworkPolicy for each Service with the label, gone with it."""
    source = fleet.register(source_cluster, "env=production")
    fleet.apply("network-policy")
    fleet.rings("fleet/source")
    source.create(service("my-service", 80, sveltos="fv"))
    source.create(service("another-service", 443, sveltos="fv"))
    both = ["front-another-service", "front-my-service"]
    fleet.until("both are there", lambda: source.names(POLICY) == both)

    source.delete(ObjectKey(SERVICE, "default", "another-service"))
    fleet.until("one is gone", lambda: source.names(POLICY) == ["front-my-service"])

    told = fleet.do("show", "events")
    for word in ("rang", "matched", "rendered", "applied"):
        assert word in told


def test_the_page_runs_as_it_is_written(
    fleet: Fleet, stack: Stack, source_cluster: Cluster, tmp_path: Path
) -> None:
    """Each command of the CLI; what is not AWS' or this machine's is put in its place."""
    output = tmp_path / "output.json"
    output.write_text(stack.run("output", "-json"))
    source_cluster.kubeconfig(tmp_path / "eu-1.kubeconfig")
    page = (ROOT / "docs/how-to/run-on-aws.md").read_text()
    lines = [
        line for line in page.splitlines() if re.match(r"(terraform output.*\| )?bellhop ", line)
    ]
    assert len(lines) > 6
    for line in lines:
        if "cluster-eks" in line:  # There is no EKS here; tests/cli registers one.
            continue
        here = line.replace("terraform output -json", f"cat {output}")
        here = here.replace("eu-1.kubeconfig", str(tmp_path / "eu-1.kubeconfig"))
        here += f" --endpoint {fleet.endpoint}" * ("context add" in line)
        here += f" {' '.join(fleet.more)}" * ("register cluster prod/eu-1 " in line)
        done = fleet.run(here)

        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_gives_each_function_what_its_stage_does(cloud: Cloud) -> None:
    """Each action and resource of each role is one that somebody has written down, and no other."""
    rights = json.loads(Path(__file__).with_name("rights.json").read_text())

    assert cloud.rights() == rights


def test_nobody_sends_from_elsewhere(cloud: Cloud) -> None:
    """The example lets one range of addresses in: who is not in it learns nothing."""
    path = "/clusters/fleet/nobody"

    assert cloud.send(path, {}, b"{}", address="198.51.100.1")["statusCode"] == 403
    assert cloud.send(path, {}, b"{}")["statusCode"] == 401


def test_no_role_was_denied_anything(account: Moto, cloud: Cloud) -> None:
    """All that the functions asked of AWS until now is what their roles allow."""
    asked = account.access()

    assert {each["role"].rpartition("-")[2] for each in asked} >= set(cloud.bellhop["log_groups"])
    assert [each for each in asked if not each["allowed"]] == []


def test_is_not_destroyed_while_a_cluster_is_registered(
    fleet: Fleet, stack: Stack, source_cluster: Cluster
) -> None:
    """Terraform is told why, and everything is there as before, but for its memory of outputs."""
    fleet.register(source_cluster, "env=fv", forward=False)

    secrets = fleet.cloud.client("secretsmanager")
    kept = secrets.describe_secret(SecretId="bellhop-production/kubeconfig/fleet/source")
    assert kept["KmsKeyId"] == fleet.cloud.bellhop["kms_key"]

    told = " ".join(stack.run("destroy", "-auto-approve", expect=(1,)).split())
    assert "1 of its clusters are registered, 'fleet/source' for one" in told
    planned = stack.run("plan", "-detailed-exitcode", expect=(2,))
    assert "without changing any real infrastructure" in planned
    stack.run("apply", "-auto-approve")
    assert stack.outputs()["bellhop"] == fleet.cloud.bellhop


def test_a_destroy_leaves_nothing(stack: Stack, cloud: Cloud) -> None:
    """It is the last test here: with no cluster registered all is taken away."""
    stack.run("destroy", "-auto-approve")

    assert cloud.left() == {}
