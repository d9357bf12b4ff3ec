"""After each outage and mistake one command names the cause and the cure, on real clusters."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import urllib3
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.registration import instructions
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Heartbeat
from infra.demo.stand import Stand
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.flow.conftest import SETTINGS, Flow
from tests.scenarios import SERVICE, WEB, balanced, service
from tests.waiting import await_rights, eventually

SOURCE, DESTINATION = "fleet/source", "fleet/destination"
HOUR = timedelta(hours=1)
READ, WRITE = ("list", "watch"), ("create", "patch", "delete")
ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


def said(stand: Stand, *command: str, code: int = 1) -> str:
    """Run a command that ends with a code; return what it printed, with its lines joined."""
    done = stand.bellhop(*command)

    assert done.returncode == code, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def signs(flow: Flow, cluster: str) -> dict[str, list[dict[str, str]]]:
    """Return what `bellhop doctor` finds of a cluster and the house, by verdict."""
    done = flow.stand.bellhop("doctor", cluster, "-o", "json")
    found: dict[str, list[dict[str, str]]] = {"well": [], "wrong": [], "open": []}
    for each in json.loads(done.stdout):
        found[each["verdict"]].append(each)

    assert done.returncode == (1 if found["wrong"] else 0)
    return found


def wrong(flow: Flow, cluster: str) -> dict[str, dict[str, str]]:
    """Return what `bellhop doctor` finds wrong, by piece."""
    return {each["piece"]: each for each in signs(flow, cluster)["wrong"]}


def heard(stand: Stand) -> Heartbeat | None:
    return stand.records().hearings.get(SOURCE)


def client(cluster: Cluster) -> KubeClient:
    return KubeClient("test", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)


def happen(flow: Flow, count: int) -> None:
    """Have so many Services get an address, each of which is to be twinned in the destination."""
    for number in range(count):
        name = f"web-{number}"
        flow.source.create(balanced(name, 60000))
        flow.source.give_address(ObjectKey(SERVICE, "default", name), f"34.172.32.{number + 1}")


@pytest.fixture
def flow(flow: Flow) -> Flow:
    """A source that sends events of Services, and has a heartbeat."""
    flow.apply("network-policy")
    eventually("its forwarder is heard", lambda: heard(flow.stand))
    return flow


def test_says_that_healthy_parts_are_healthy_and_changes_nothing(flow: Flow) -> None:
    """It looks at all pieces of the way in and out; its dry-run call sends no event."""
    made = flow.source.create(service("web", sveltos="fv"))
    eventually("it is changed", lambda: "changed" in flow.stand.do("show", "events"))
    flow.stand.settle(SOURCE)
    before = flow.stand.do("show", "events", "-o", "json").count('"rang"')
    found = signs(flow, SOURCE)
    status = said(flow.stand, "status", code=0)

    assert found["wrong"] == []
    assert found["open"] == []
    assert {each["piece"] for each in found["well"]} >= {
        *("serve", "disk", "listener", "API server", "clock", "sources", "rights"),
        *("certificate", "webhook", "Secret", "account", "webhook call", "heartbeat"),
    }
    assert "No problem is known" in status
    assert "fleet/source Healthy" in status
    assert signs(flow, DESTINATION)["wrong"] == []

    flow.stand.settle(SOURCE)
    now = flow.source.get(WEB)
    assert now is not None
    assert now["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert flow.stand.do("show", "events", "-o", "json").count('"rang"') == before


# Outages ------------------------------------------------------------------------------------------


def test_says_that_serve_is_stopped(flow: Flow) -> None:
    """Killed as by a crash: nothing that it left behind makes it look alive."""
    flow.stand.kill("serve")
    printed = said(flow.stand, "status")
    why = "`bellhop serve` does not run: no event is received, evaluated or deployed; start it"

    assert "bellhop serve does not run, last at work" in printed
    assert why in printed
    assert why in flow.failures()
    assert wrong(flow, SOURCE)["serve"]["cure"] == "start it"


def test_says_that_the_forwarder_is_dead(flow: Flow) -> None:
    """At once, by a dry-run call; and in the cluster's state, when its heartbeat is old."""
    flow.stand.kill("forwarder-source")
    found = wrong(flow, SOURCE)
    records = flow.stand.records()
    now, known = datetime.now(UTC), heard(flow.stand)
    heartbeat, cluster = records.pulses.get(), records.clusters.get(SOURCE)
    assert heartbeat
    assert cluster
    assert known
    # An hour passes.
    records.hearings.put(SOURCE, replace(known, at=now - HOUR))
    records.clusters.put(replace(cluster.value, registered_at=now - HOUR))

    def silent() -> str | None:
        # `serve` writes now and then that it has worked for seconds only.
        records.pulses.put(replace(heartbeat, since=now - HOUR))
        done = flow.stand.bellhop("status")
        shown = " ".join(done.stdout.split())
        return shown if done.returncode == 1 and "fleet/source Silent" in shown else None

    status = eventually("the cluster is silent", silent) or ""

    assert set(found) == {"webhook call"}
    sentence = "its API server does not reach the forwarder at https://127.0.0.1"
    assert sentence in found["webhook call"]["sentence"]
    assert "see whether the forwarder runs" in found["webhook call"]["cure"]
    assert "its forwarder sent its last heartbeat at" in status
    assert "`bellhop doctor fleet/source` looks where it ends" in status


def test_says_that_the_forwarder_is_refused(flow: Flow) -> None:
    """As after a restore of the state from before a registration."""
    opened = open_state(flow.stand.state, Settings())
    kept = opened.installation.records.clusters.get(SOURCE)
    assert kept
    earlier = replace(kept.value, token_digest=instructions.digest_token("an earlier one"))
    opened.installation.declare.register(earlier)
    opened.close()
    found = wrong(flow, SOURCE)

    assert found["Secret"]["sentence"] == "its token is not accepted"
    assert "register the cluster again" in found["Secret"]["cure"]


def test_says_that_a_destination_is_down(flow: Flow) -> None:
    """Though nobody had reason to call it since it went; and once, with what waits for it."""
    flow.apply("service-discovery")
    flow.stand.settle(DESTINATION)
    flow.destination_cluster.stop()
    found = wrong(flow, DESTINATION)
    records = flow.stand.records()
    # Ninety seconds pass.
    ago = datetime.now(UTC) - timedelta(seconds=90)
    health = replace(records.health.get(DESTINATION).value, swept_at=ago)
    records.health.put(DESTINATION, health)
    status = said(flow.stand, "status")
    happen(flow, 5)
    eventually("all wait", lambda: "5 of its profiles wait for it" in flow.failures())

    assert set(found) == {"API server"}
    assert "see whether it runs, and is reached from here" in found["API server"]["cure"]
    assert "fleet/destination Down" in status
    assert "it is down: cannot" in status
    assert len(json.loads(flow.stand.do("show", "failures", "-o", "json"))) == 1


def test_says_that_a_clock_is_wrong(flow: Flow) -> None:
    """A sender's whose requests are dated ten minutes ahead of ours."""
    source = client(flow.source_cluster)
    entries = instructions.read_entries(source)
    source.close()
    trust = ssl.create_default_context(cadata=entries["ingest-ca"])
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    alive = {"apiVersion": "bellhop.dev/v1", "kind": "Alive", "version": "0.0.9"}
    headers = {"Authorization": f"Bearer {entries['token']}", "Date": date}
    with urllib3.PoolManager(ssl_context=trust, retries=False) as pool:
        url = f"{entries['ingest-url']}/clusters/{SOURCE}"
        assert pool.request("POST", url, json=alive, headers=headers).status == 200
    found = wrong(flow, SOURCE)["clock"]

    assert found["sentence"] == "the forwarder's clock is 10 minutes ahead of ours"
    assert found["cure"] == "set the one that is wrong"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root can make a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Write a file until there is no space for a byte of it."""
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    assert os.statvfs(ballast).f_bavail == 0


def test_says_that_the_disk_is_full(small_disk: Path, source_cluster: Cluster) -> None:
    """While `serve` runs and after it was killed; and that all is well once there is space."""
    with Nursery() as nursery:
        stand = Stand(small_disk / "stand", nursery, settings=SETTINGS)
        stand.serve()
        stand.register(source_cluster, namespace="fleet", labels="env=production")
        eventually("it is heard", lambda: heard(stand))
        stand.settle(SOURCE)
        ballast = small_disk / "ballast"
        fill(ballast)
        running = said(stand, "status")
        shown = said(stand, "show", "failures", code=0)
        stand.kill("serve")
        killed = said(stand, "status")
        examined = stand.bellhop("doctor").stdout
        ballast.unlink()
        stand.serve()
        eventually("all is well", lambda: stand.bellhop("status").returncode == 0)
        stand.close()

    for output in (running, shown, killed):
        assert "it is full" in output
        assert "free some space, and all goes on by itself" in output
    assert "bellhop serve runs" in running
    assert "bellhop serve does not run" in killed
    assert "is full" in examined


# Mistakes -----------------------------------------------------------------------------------------


def limited(cluster: Cluster, *verbs: str) -> dict[str, Any]:
    """Make a kubeconfig of somebody who may look at all, and write nothing; or what is said."""
    admin = client(cluster)
    rbac = "rbac.authorization.k8s.io"
    name = {"name": "looker"}
    asked = list(verbs or READ)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": asked}]
    subject = {"kind": "ServiceAccount", "name": "looker", "namespace": "default"}
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "looker"},
        "subjects": [subject],
    }
    account = {**name, "namespace": "default"}
    who = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
    for each in (who, role, binding):
        admin.apply(each)
    rights = [Right(verb, "", "configmaps") for verb in (*READ, *WRITE)]
    granted = [each for each in rights if {each.verb, "*"} & {*asked}]
    denied = [each for each in rights if each not in granted]
    await_rights(admin, "default/looker", granted, denied)
    token = admin.token_request("default", "looker", seconds=86_400)
    admin.close()
    config = dict(cluster.kubeconfig())
    config["users"] = [{**config["users"][0], "user": {"token": token}}]  # type: ignore[index]
    return config


def test_says_that_rights_are_missing_in_a_destination(flow: Flow) -> None:
    """Its place, of the objects to deploy; in one line, however many profiles fail for it."""
    flow.stand.do("deregister", "cluster", "--namespace", "fleet", "--cluster", "destination")
    path = flow.stand.folder / "limited.kubeconfig"
    path.write_text(json.dumps(limited(flow.destination_cluster)))
    flow.stand.do(
        *("register", "cluster", "--namespace", "fleet", "--cluster", "destination"),
        *("--kubeconfig", str(path), "--labels", "dep=eng", "--no-forwarder"),
    )
    flow.apply("service-discovery")
    happen(flow, 3)
    eventually("it is reported", lambda: "so it is with 3 profiles" in flow.failures())
    rights = [each for each in signs(flow, DESTINATION)["wrong"] if each["piece"] == "rights"]

    assert any("may not get, create, patch or delete services" in x["sentence"] for x in rights)
    assert "Register a cluster" in rights[0]["cure"]
    assert flow.failures().count("to fleet/destination") == 1


@pytest.mark.parametrize(
    ("gvk", "piece", "sentence"),
    [
        pytest.param(WEBHOOK, "webhook", "its webhook configuration is missing", id="webhook"),
        pytest.param(ROLE, "account", "the forwarder may not read services", id="rights"),
    ],
)
def test_says_that_the_webhook_is_deleted(flow: Flow, gvk: GVK, piece: str, sentence: str) -> None:
    """Somebody deleted the webhook configuration; the cure that is named cures it."""
    source = client(flow.source_cluster)
    source.remove(gvk, "", "bellhop-forwarder")
    source.close()
    # An API server learns of a permission a moment later.
    found = eventually("it is found", lambda: wrong(flow, SOURCE).get(piece)) or {}
    assert sentence in found["sentence"]
    assert f"`bellhop resync {SOURCE}`" in found["cure"]
    flow.stand.settle(SOURCE)

    eventually("the cure works", lambda: wrong(flow, SOURCE) == {})


def test_says_that_the_forwarder_has_another_address(flow: Flow) -> None:
    """Registered at an address where nobody listens: the webhook is there, and calls in vain."""
    flow.stand.do(
        *("register", "cluster", "--namespace", "fleet", "--cluster", "source"),
        *("--kubeconfig", str(flow.stand.folder / "source.kubeconfig")),
        *("--forwarder-url", "https://127.0.0.1:1"),
    )
    flow.stand.settle(SOURCE)
    # An API server learns of a webhook configuration a moment after it stored it.
    found = eventually("it is found", lambda: wrong(flow, SOURCE)) or {}

    assert set(found) == {"webhook call"}
    assert "the forwarder at https://127.0.0.1:1" in found["webhook call"]["sentence"]


def test_says_that_the_webhook_cannot_be_installed(flow: Flow) -> None:
    """Rights were taken back after the registration: doctor and the cluster's state say so."""
    path = flow.stand.folder / "limited.kubeconfig"
    path.write_text(json.dumps(limited(flow.source_cluster, "*")))
    flow.stand.do(
        *("register", "cluster", "--namespace", "fleet", "--cluster", "source"),
        *("--kubeconfig", str(path), "--forwarder-url", "https://127.0.0.1:1"),
    )
    limited(flow.source_cluster)
    source = client(flow.source_cluster)
    source.remove(WEBHOOK, "", "bellhop-forwarder")
    source.close()
    flow.stand.settle(SOURCE)
    rights = {each["sentence"] for each in signs(flow, SOURCE)["wrong"]}
    sentence = "its webhook configuration cannot be installed, and only resyncs find events"

    assert any("create, patch or delete validatingwebhookconfigurations" in x for x in rights)
    assert "Silent" in flow.stand.do("get", "clusters")
    assert sentence in said(flow.stand, "status")
    assert sentence in flow.failures()


# Names, and the dead and the slow -----------------------------------------------------------------


def test_a_mistyped_name_is_an_error(flow: Flow) -> None:
    """With what may have been meant."""
    done = flow.stand.bellhop("doctor", "fleet/suorce")

    assert done.returncode == 1
    assert "did you mean 'fleet/source'?" in done.stderr
    assert "did you mean 'source'?" in flow.stand.bellhop("doctor", "suorce").stderr
    assert flow.stand.bellhop("doctor", "source").returncode == 0
