"""An API server that calls ingest itself, by a webhook or for its audit log; both are real."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import Server
from bellhop.api.kinds import parse_all, read_documents
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.doctor import check_clusters
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import BusyError, InvalidError
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.registration import instructions
from bellhop.registration.audited_clusters import KUBECONFIG, POLICY, make_policy
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.registration.registration import register
from bellhop.registration.removal import deregister
from bellhop.registration.renewal import find_next, renew, rotate
from bellhop.registration.request import PATIENCE, Registration
from bellhop.runtime.embedded.http import Front
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.state import messages
from bellhop.state.cluster import Cluster as Record
from bellhop.state.messages import ReadBack
from bellhop.state.messages import Resync as Swept
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import require_value, value_of
from tests.unit.registration.conftest import Wished
from tests.waiting import eventually

KEY = "prod/eu-1"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
CONFIG_MAP = GVK("", "v1", "ConfigMap")
SOURCES = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: maps, annotations: {bellhop.dev/own-writes: ring}}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: maps}
spec:
  sourceClusterSelector: {matchLabels: {env: fv}}
  eventSourceName: maps
"""


class House:
    """An installation whose ingest is reached, and the one cluster that calls it."""

    def __init__(self, here: Installation, spec: Registration, kube: KubeClient) -> None:
        self.here = here
        self.spec = spec
        self.kube = kube
        self.stage = Handlers("sweep", make_sweep_table(here, Log(io.StringIO())))

    @property
    def cluster(self) -> Record:
        return require_value(self.here.records.clusters.get(KEY))

    @property
    def url(self) -> str:
        """The address that the API server calls."""
        found = self.kube.get(WEBHOOK, "", NAME)
        assert found
        [hook] = found["webhooks"]
        return str(hook["clientConfig"]["url"])

    @property
    def token(self) -> str:
        return self.url.rpartition("/")[2]

    def sweep(self) -> None:
        self.stage.handle(Swept(KEY))

    def hints(self) -> list[ReadBack]:
        """Take the hints that came."""
        queue: Any = self.here.dead["confirm"]
        found = []
        for delivery in list(queue.receive(100, wait=timedelta(0))):
            message = messages.read(delivery.message.body)
            assert isinstance(message, ReadBack)
            found.append(message)
            queue.settle(delivery, None)
        return found

    def await_event(self, name: str) -> None:
        """Change a ConfigMap until its event arrives: the API server has to follow first."""
        numbers = count()

        def has_arrived() -> bool:
            self.kube.apply(config_map(name, str(next(numbers))))
            return any(name in each.object for each in self.hints())

        eventually(f"a change of {name} is heard", has_arrived)


def config_map(name: str, value: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


@pytest.fixture
def clock() -> FakeClock:
    """A clock that goes as that of the API server did when the test began."""
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def house(
    here: Installation, wished: Wished, source: KubeClient, source_cluster: Cluster
) -> Iterator[House]:
    """An installation that listens, with a source in force where `env` is `fv`."""
    now = datetime.now(UTC)
    authority = make_authority("an ingest", now=now, validity=timedelta(hours=1))
    certificate, key = issue(authority, ["127.0.0.1"], now=now, validity=timedelta(hours=1))
    front = Front(Ingest(here.records, here.publisher, here.settings, Log(io.StringIO())))
    server = Server(front, host="127.0.0.1", port=0, certificate_pem=certificate, key_pem=key)
    server.start()
    here.declare.apply(parse_all(list(read_documents(SOURCES, source="test.yaml"))))
    inbound = Inbound(server.url, authority.certificate_pem.decode())
    labels = {"env": "fv"}
    yield House(here, wished(source_cluster, labels=labels, inbound=inbound, direct=True), source)
    server.stop()


def test_an_api_server_calls_ingest_itself(house: House) -> None:
    """Written objects are read back, also deletions; the cluster has no pod and no Secret."""
    done = register(house.here, house.spec)
    assert done.warnings == []
    house.await_event("first")
    house.sweep()
    place = ObjectKey(CONFIG_MAP, "default", "web")
    house.hints()
    house.kube.apply(config_map("web", "x"))
    [hint] = house.hints()
    house.stage.handle(hint)
    stored = require_value(house.here.records.observations.get(KEY, place))
    house.kube.apply(config_map("web", "x"), dry_run=True)
    nothing = house.hints()
    house.kube.remove(CONFIG_MAP, "default", "web")
    [gone] = house.hints()
    house.stage.handle(gone)
    buried = require_value(house.here.records.observations.get(KEY, place))

    assert stored.manifest is not None
    assert stored.manifest["data"] == {"a": "x"}
    assert nothing == []
    assert buried.gone
    assert house.kube.get(instructions.SECRET, NAMESPACE, NAME) is None
    assert house.kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None
    assert cluster_status.describe_silence(house.here, KEY) == ""


def test_keeps_its_token_to_itself(house: House) -> None:
    """It is only in the cluster, and sealed in the records, which otherwise have a digest."""
    register(house.here, house.spec)

    assert house.url == f"{house.spec.inbound.url}/clusters/{KEY}/{house.token}"
    assert instructions.digest_token(house.token) == house.cluster.token_digest
    items = list(house.here.records.store.all())
    assert items
    assert house.token not in repr(items)
    assert house.token not in repr(house.cluster)


def test_its_token_sends_only_hints(house: House) -> None:
    """Many may read a webhook configuration: its token proves no fact."""
    register(house.here, house.spec)
    ingest = Ingest(
        house.here.records, house.here.publisher, house.here.settings, Log(io.StringIO())
    )
    forged = {"object": {**config_map("forged", "x")}}
    bodies = [
        {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": [forged]},
        {"apiVersion": "bellhop.dev/v1", "kind": "Missed"},
        {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": []},
    ]
    statuses = [
        ingest.respond(Request(KEY, house.token, json.dumps(body).encode())).status
        for body in bodies
    ]

    assert statuses == [403, 403, 403]
    assert list(house.here.records.observations.heads(KEY)) == []


def test_rotates_a_token_that_is_in_use(house: House, clock: FakeClock) -> None:
    """The old one is accepted for minutes after the API server got the new one; then it ends."""
    register(house.here, house.spec)
    clock.advance(instructions.OVERLAP)
    renew(house.here, KEY)
    first = house.token
    rotate(house.here, KEY)
    second = house.token
    digests = house.cluster.gate((), 0).digests(clock.now())

    assert first != second
    assert set(digests) == {instructions.digest_token(first), instructions.digest_token(second)}
    house.await_event("during")
    clock.advance(instructions.OVERLAP)
    assert "ended its former token" in renew(house.here, KEY)
    house.await_event("after")
    assert instructions.digest_token(first) not in house.cluster.gate((), 0).digests(clock.now())
    assert find_next(house.cluster, house.here.records.clock.now()) is None


def test_a_rotation_that_dies_is_finished_later(house: House, clock: FakeClock) -> None:
    """Between the record and the cluster: the token that the API server has goes on to count."""
    register(house.here, house.spec)
    before = house.token
    put = house.here.records.callers.put

    class KilledError(BaseException):
        """The end of a killed process."""

    def die(*_: str) -> None:
        raise KilledError

    house.here.records.callers.put = die  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        rotate(house.here, KEY)
    house.here.records.callers.put = put  # type: ignore[method-assign]
    clock.advance(timedelta(days=1))

    assert instructions.digest_token(before) in house.cluster.gate((), 0).digests(clock.now())
    house.sweep()
    assert house.token == before
    clock.advance(PATIENCE)
    renew(house.here, KEY)
    assert house.token != before
    assert instructions.digest_token(house.token) == house.cluster.token_digest


def test_gets_a_forwarder_and_loses_it_again(
    house: House, wished: Wished, source_cluster: Cluster
) -> None:
    """At each step the token that is in use counts; what is left behind is removed."""
    register(house.here, house.spec)
    direct = house.token
    register(house.here, wished(source_cluster, inbound=house.spec.inbound))
    digests = house.cluster.gate((), 0).digests(house.here.records.clock.now())
    assert instructions.digest_token(direct) in digests
    house.await_event("still")
    mounted = instructions.read_entries(house.kube)["token"]
    register(house.here, house.spec)
    digests = house.cluster.gate((), 0).digests(house.here.records.clock.now())

    assert instructions.digest_token(mounted) in digests
    assert house.kube.get(instructions.SECRET, NAMESPACE, NAME) is None
    house.await_event("direct")


def test_a_resync_restores_its_call(house: House) -> None:
    """A deleted webhook is restored with the same token."""
    register(house.here, house.spec)
    before = house.url
    house.kube.remove(WEBHOOK, "", NAME)
    house.sweep()

    assert house.url == before
    house.here.records.callers.delete(KEY)
    house.sweep()
    assert "token is missing" in house.here.records.health.get(KEY).value.message
    rotate(house.here, KEY)
    house.await_event("again")


def test_a_resync_during_the_registration_misses_no_token(house: House) -> None:
    """The record comes before the token, which is not lost meanwhile; a resync would stay so."""
    put = house.here.records.callers.put

    def resync_first(cluster: str, token: str) -> None:
        house.sweep()
        put(cluster, token)

    house.here.records.callers.put = resync_first  # type: ignore[method-assign]
    register(house.here, house.spec)
    health = house.here.records.health.get(KEY).value

    assert (health.state, health.message, health.mute) == ("Healthy", "", False)
    house.await_event("registered")


def test_the_doctor_finds_wrong_whatever_makes_a_cluster_silent(house: House) -> None:
    """The webhook is right by now, and the last resync could not install it."""
    register(house.here, house.spec)
    house.sweep()
    health = house.here.records.health.get(KEY)
    mute = replace(health.value, message="its webhook cannot be installed: no", mute=True)
    house.here.records.health.put(KEY, mute, expect=health.token)
    [(_, signs)] = check_clusters(house.here, [KEY])
    wrong = [(each.type, each.message) for each in signs if each.status == "failed"]

    assert wrong == [("last resync", "its webhook cannot be installed: no")]


def test_is_examined(house: House) -> None:
    """The doctor calls ingest through the API server, and reports a token that is not accepted."""
    register(house.here, house.spec)
    house.await_event("known")
    [(_, signs)] = check_clusters(house.here, [KEY])
    found = {each.type: (each.status, each.message) for each in signs}

    assert found["webhook"] == ("yes", "it calls ingest itself")
    assert found["webhook call"] == ("yes", "its API server reaches ingest")
    assert {"Secret", "account", "certificate", "forwarder"}.isdisjoint(found)
    hook = house.kube.get(WEBHOOK, "", NAME)
    assert hook
    [webhook] = hook["webhooks"]
    webhook["clientConfig"]["url"] = f"{house.cluster.forwarder['url']}/wrong"
    house.kube.merge(WEBHOOK, "", NAME, {"webhooks": [webhook]})
    [(_, signs)] = check_clusters(house.here, [KEY])
    wrong = [each.message for each in signs if (each.type, each.status) == ("webhook", "failed")]
    assert wrong == ["it calls ingest with a token that is not accepted"]


def test_reports_that_bellhop_is_at_another_address(house: House) -> None:
    """Its API server calls the address of its registration, unless that was given there."""
    at_first = replace(house.here, inbound=house.spec.inbound)
    moved = replace(house.here, inbound=Inbound("https://127.0.0.1:1", ""))
    found, lines = [], []
    for here in (at_first, house.here):
        register(here, house.spec)
        [(_, signs)] = check_clusters(moved, [KEY])
        found.append([each for each in signs if each.type == "webhook"])
        lines.append([each.message for each in list_failures(moved) if each.about == KEY])

    [[wrong], [well]] = found
    calls = f"it calls {house.spec.inbound.url}, and Bellhop is at https://127.0.0.1:1"
    assert (wrong.status, wrong.message) == ("failed", calls)
    assert "register the cluster again" in wrong.cure
    assert well.status == "yes"
    again = "no event arrives; register it again: `bellhop register cluster`"
    assert lines == [[f"{calls}: {again}"], []]


@pytest.mark.parametrize(
    ("calls", "now"),
    [
        pytest.param("https://h:443/clusters/x", "https://h", id="the port of https"),
        pytest.param("https://H/clusters/x", "https://h/", id="capitals"),
        pytest.param("https://h/stage/clusters/x", "https://h/stage", id="a path"),
        pytest.param("", "https://h", id="nothing known"),
    ],
)
def test_other_spellings_of_an_address_are_the_same(house: House, calls: str, now: str) -> None:
    """No cluster has to be registered again for them."""
    register(house.here, house.spec)
    cluster = replace(house.cluster, forwarder={"direct": "yes", "url": calls})
    assert (
        cluster_status.describe_address_change(
            replace(house.here, inbound=Inbound(now, "")), cluster
        )
        == ""
    )


def test_leaves_nothing_when_it_is_deregistered(house: House) -> None:
    """Neither in the cluster nor here."""
    register(house.here, house.spec)
    done = deregister(house.here, KEY)

    assert done.removed == [f"ValidatingWebhookConfiguration '{NAME}'"]
    assert house.kube.get(WEBHOOK, "", NAME) is None
    assert house.here.records.callers.get(KEY) == ""


def test_calls_no_address_that_api_servers_do_not(house: House) -> None:
    """Before anything is changed."""
    with pytest.raises(InvalidError, match="they only call https"):
        register(house.here, replace(house.spec, inbound=Inbound("http://ingest.example", "")))

    assert house.here.records.clusters.get(KEY) is None


# By an audit log ---------------------------------------------------------------------------------


class Audited:
    """A cluster whose API server starts again with the files that were written."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self._plain = list(cluster._flags)

    @property
    def token(self) -> str:
        config = yaml.safe_load((self.folder / KUBECONFIG).read_text())
        [user] = config["users"]
        return str(user["user"]["token"])

    def restart(self) -> None:
        self.cluster.stop()
        self.cluster._flags = [
            *self._plain,
            f"--audit-policy-file={self.folder / POLICY}",
            f"--audit-webhook-config-file={self.folder / KUBECONFIG}",
            "--audit-webhook-batch-max-wait=100ms",
            "--audit-webhook-initial-backoff=1s",
        ]
        self.cluster.start()

    def restore(self) -> None:
        """Have it as it was."""
        self.cluster.stop()
        self.cluster._flags = self._plain
        self.cluster.start()


@pytest.fixture
def audited(source_cluster: Cluster, tmp_path: Path) -> Iterator[Audited]:
    """The cluster, as it is after the test what it was before."""
    one = Audited(source_cluster, tmp_path / "audit")
    yield one
    one.restore()


@pytest.mark.rest
def test_an_api_server_sends_its_audit_log(
    house: House, audited: Audited, clock: FakeClock
) -> None:
    """Writes come as they were stored, deletions as hints; its token is rotated without a gap.

    It takes seconds: an API server boots three times, as it reads its audit policy only at its
    start.
    """
    done = register(house.here, replace(house.spec, direct=False, audit=audited.folder))
    house.sweep()
    first = audited.token
    kube = house.kube
    place = ObjectKey(CONFIG_MAP, "default", "web")

    def stored(value: str) -> bool:
        found = value_of(house.here.records.observations.get(KEY, place))
        return bool(found and found.manifest and found.manifest["data"] == {"a": value})

    assert done.warnings == []
    assert [stat.S_IMODE(each.stat().st_mode) for each in audited.folder.iterdir()] == [0o600] * 2
    assert kube.get(WEBHOOK, "", NAME) is None
    audited.restart()
    kube.apply(config_map("web", "x"))
    eventually("x is stored", lambda: stored("x"))
    kube.remove(CONFIG_MAP, "default", "web")
    eventually(
        "the deletion is heard of", lambda: any("web" in each.object for each in house.hints())
    )
    with pytest.raises(InvalidError, match="has it in a file; give --audit"):
        rotate(house.here, KEY)
    rotate(house.here, KEY, audited.folder)
    second = audited.token
    with pytest.raises(BusyError, match="its API servers may have the former one"):
        rotate(house.here, KEY, audited.folder)
    register(house.here, replace(house.spec, direct=False, audit=audited.folder))
    assert audited.token == second
    kube.apply(config_map("web", "y"))
    eventually("y is stored", lambda: stored("y"))
    audited.restart()
    clock.advance(instructions.AUDIT_OVERLAP)
    assert "ended its former token" in renew(house.here, KEY)
    kube.apply(config_map("web", "z"))
    eventually("z is stored", lambda: stored("z"))

    assert audited.token != first
    assert instructions.digest_token(audited.token) == house.cluster.token_digest
    assert instructions.digest_token(first) not in house.cluster.gate((), 0).digests(clock.now())
    assert first not in repr(list(house.here.records.store.all()))
    assert find_next(house.cluster, house.here.records.clock.now()) is None
    [(_, signs)] = check_clusters(house.here, [KEY])
    assert [each.message for each in signs if each.status == "failed"] == []


def test_a_log_of_a_cluster_that_sends_otherwise_is_not_rotated(
    house: House, tmp_path: Path
) -> None:
    """No file is written for it."""
    register(house.here, house.spec)
    with pytest.raises(InvalidError, match="does not send its audit log"):
        rotate(house.here, KEY, tmp_path / "audit")

    assert not (tmp_path / "audit").exists()


def test_a_policy_names_what_sends_events_and_nothing_else() -> None:
    """Each kind with its writes; without kinds the policy is empty."""
    services = Resource(
        GVK("", "v1", "Service"), "services", namespaced=True, subresources=("status", "proxy")
    )
    found = make_policy(
        [services, Resource(GVK("apps", "v1", "Deployment"), "deployments", namespaced=True)]
    )

    assert [each["level"] for each in found["rules"]] == ["RequestResponse", "None"]
    assert found["rules"][0]["resources"] == [
        {"group": "", "resources": ["services", "services/status"]},
        {"group": "apps", "resources": ["deployments"]},
    ]
    assert make_policy([])["rules"] == [{"level": "None"}]
    secrets = Resource(GVK("", "v1", "Secret"), "secrets", namespaced=True, subresources=("x",))
    _, names, _ = make_policy([services], [secrets])["rules"]
    # Of the configuration no content is sent.
    assert (names["level"], names["resources"]) == (
        "Metadata",
        [{"group": "", "resources": ["secrets"]}],
    )
