"""What profiles ask for beside their objects, as a real API server has it: done, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.api.kinds import InvalidDocuments
from bellhop.cli.describe import Story
from bellhop.cli.views.profiles import VIEWS
from bellhop.cli.views.view import Query
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis.held_deletions import held
from bellhop.errors import InvalidError
from bellhop.settings import Settings
from bellhop.state.messages import Resync
from bellhop.state.record import NO_OBJECT, DeploymentStatus
from tests.contract.test_preview_api_server import (  # noqa: F401 - fixtures
    CRD,
    EAST,
    GADGET,
    fleet,
    kube,
)
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.unit.stages.test_handling import EXTRA, SUBRESOURCES, balanced, two, with_refs
from tests.waiting import eventually

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
RIGHTS = GVK("rbac.authorization.k8s.io", "v1", "RoleBinding")
FORCE = "projectsveltos.io/forceRecreate: 'true'"
ON = "continueOnError: true"


def data(kube: KubeClient, namespace: str = "default") -> dict[str, str]:
    """Return what our ConfigMaps say, by name."""
    found = kube.list(CONFIG, namespace=namespace, labels="projectsveltos.io/reason=Resources")
    return {each["metadata"]["name"]: each["data"]["v"] for each in found}


def outcome(fleet: Fleet, name: str = "own") -> DeploymentStatus:
    found = fleet.records.outcomes.get(EAST, name)
    assert found
    return found.value


def again(fleet: Fleet) -> None:
    """Let what failed be tried once more."""
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()


def fixed(value: int, annotation: str = "") -> str:
    text = config("a", f"v: '{value}'") + "immutable: true\n"
    return text.replace("}", f", annotations: {{{annotation}}}}}", 1) if annotation else text


@pytest.mark.parametrize(
    ("force", "annotation", "value"),
    [
        pytest.param("true", "", "2", id="by force on its ref"),
        pytest.param("false", FORCE, "2", id="by its annotation"),
        pytest.param("false", "", "1", id="not at all"),
    ],
)
def test_what_may_not_change_is_made_anew_where_that_is_asked_for(
    fleet: Fleet, kube: KubeClient, force: str, annotation: str, value: str
) -> None:
    """Else it stays, and the outcome has the API server's words."""
    fleet.apply(with_refs(profile(), f"force: {force}"))
    for number in (1, 2):
        fleet.apply(holder("own", fixed(number, annotation)))
        fleet.pump()

    assert data(kube) == {"a": value}
    assert outcome(fleet).phase == ("Provisioned" if value == "2" else "Failed")
    assert ("immutable" in outcome(fleet).message) is (value == "1")


def test_refs_have_their_tiers_and_their_namespaces(fleet: Fleet, kube: KubeClient) -> None:
    """The lower tier wins, of one tier the first; a namespace is made unless it is not to be."""
    fleet.apply(two("tier: 100", "tier: 50"))
    fleet.pump()
    assert data(kube) == {"a": "second", "b": "second"}
    fleet.apply(two("tier: 50", "tier: 50"))
    fleet.pump()
    assert data(kube) == {"a": "first", "b": "second"}
    assert outcome(fleet).message.endswith("give the ref that is to win a lower tier")

    bare = with_refs(profile(), "skipNamespaceCreation: true")
    fleet.apply(join(bare, holder("own", config("a", "v: '1'", namespace="shop"))))
    again(fleet)
    assert "namespace 'shop' is not there; create it first" in outcome(fleet).message
    assert data(kube, "shop") == {}
    fleet.apply(with_refs(profile(), "skipNamespaceCreation: false"))
    again(fleet)
    assert data(kube, "shop") == {"a": "1"}


def test_documents_are_applied_in_their_order_up_to_one_that_is_refused(
    fleet: Fleet, kube: KubeClient
) -> None:
    """A ConfigMap before a bad Secret is there; a namespace and a definition may stand last."""
    bad = "apiVersion: v1\nkind: Secret\nmetadata: {name: Not_a_name, namespace: default}\n"
    good = bad.replace("Not_a_name", "good")
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    before, behind = config("z", "v: '1'", namespace="shop"), config("a", "v: '1'")
    bare = with_refs(profile(), "skipNamespaceCreation: true")
    fleet.apply(bare, holder("own", GADGET, before, bad, behind, space, CRD))
    fleet.pump()
    again(fleet)
    assert data(kube, "shop") == {"z": "1"}
    assert kube.get(GVK("lab.example", "v1", "Gadget"), "shop", "g")
    assert data(kube) == {}
    assert "Not_a_name" in outcome(fleet).message

    fleet.apply(holder("own", GADGET, before, good, behind, space, CRD))
    again(fleet)
    assert (outcome(fleet).phase, data(kube)) == ("Provisioned", {"a": "1"})


def test_every_object_has_what_is_added(fleet: Fleet, kube: KubeClient) -> None:
    """Labels and annotations come, and go when they are taken back."""
    fleet.apply(profile(more=EXTRA.replace(", extraA", "\n  extraA")))
    fleet.apply(holder("own", config("a", "v: '1'")))
    fleet.pump()
    found = kube.get(CONFIG, "default", "a")
    assert found
    assert found["metadata"]["labels"]["team"] == "red"
    assert found["metadata"]["annotations"]["why"] == "asked"

    fleet.apply(profile())
    fleet.pump()
    found = kube.get(CONFIG, "default", "a")
    assert found
    assert "team" not in found["metadata"]["labels"]
    assert "why" not in found["metadata"]["annotations"]


def test_a_status_is_written_or_refused(fleet: Fleet, kube: KubeClient) -> None:
    """A Service has the address that its manifest says; a ConfigMap has no status to write."""
    asking = f"{SUBRESOURCES}: status"
    service = balanced().replace("spec: {", "spec: {type: LoadBalancer, ")
    fleet.apply(profile(), holder("own", service, annotations=asking))
    fleet.pump()
    found = kube.get(SERVICE, "default", "a")
    assert found
    assert found["status"]["loadBalancer"]["ingress"][0]["ip"] == "203.0.113.7"

    text = config("a", "v: '1'") + "status: {phase: x}\n"
    fleet.apply(holder("own", text, annotations=asking))
    fleet.pump()
    assert "it is refused" in outcome(fleet).message
    assert ".status: field not declared in schema" in outcome(fleet).message


def test_what_another_profile_has_is_told_whole(fleet: Fleet, kube: KubeClient) -> None:
    """Nothing is begun, or all the rest by continueOnConflict; by a lower tier it changes hands."""
    shared = [config(name, "v: first") for name in "ab"]
    fleet.apply(join(profile(name="first"), holder("first", *shared)))
    fleet.pump()
    wanted = [config(name, "v: second") for name in "abc"]
    fleet.apply(join(profile(name="second"), holder("second", *wanted)))
    fleet.pump()
    said = outcome(fleet, "second")
    assert (said.phase, said.reason) == ("FailedNonRetriable", "Conflict")
    assert said.message.count("profile 'first' of tier 100 has it") == 2
    assert data(kube) == {"a": "first", "b": "first"}

    fleet.apply(profile(name="second", more="continueOnConflict: true"))
    fleet.pump()
    assert data(kube) == {"a": "first", "b": "first", "c": "second"}
    fleet.apply(profile(name="second", more="tier: 50"))
    fleet.pump()
    assert data(kube) == dict.fromkeys("abc", "second")
    assert outcome(fleet, "first").message.count("profile 'second' of tier 50 has it") == 2


def test_all_that_is_refused_is_told_until_it_is_given_up(fleet: Fleet, kube: KubeClient) -> None:
    """By continueOnError the good ones are there; after so many failures nobody tries again."""
    bad = [config(f"Not_{number}", "v: '1'") for number in range(3)]
    fleet.apply(
        profile(more=f"{ON}\n  maxConsecutiveFailures: 2"),
        holder("own", *bad, config("good", "v: '1'")),
    )
    fleet.pump()
    assert outcome(fleet).phase == "Failed"
    for number in range(3):
        assert f"cannot apply ConfigMap 'default/Not_{number}'" in outcome(fleet).message
    assert data(kube) == {"good": "1"}

    again(fleet)
    said = outcome(fleet)
    assert (said.phase, said.retry_at) == ("FailedNonRetriable", None)
    assert "it has failed 2 times in a row" in said.message


LUA = "projectsveltos.io/lua: ok"
READS = """templateResourceRefs:
  - {identifier: Web, resource: {apiVersion: v1, kind: Service, namespace: default, name: web}}
"""
WRITES = """local port = resources["Web"].spec.ports[1].port
  return {resources = [[{apiVersion: v1, kind: ConfigMap,
    metadata: {name: made, namespace: default}, data: {v: "]] .. port .. [["}}]]}"""


SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
_RBAC = "apiVersion: rbac.authorization.k8s.io/v1\n"
ROLE = f"""{_RBAC}kind: Role
metadata: {{name: reads, namespace: shop}}
rules: [{{apiGroups: [""], resources: [configmaps], verbs: [get]}}]
"""
BINDING = f"""{_RBAC}kind: RoleBinding
metadata: {{name: reads, namespace: shop}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}}
subjects: [{{kind: ServiceAccount, name: ann, namespace: shop}}]
"""
GADGET_KEY = ObjectKey(GVK("lab.example", "v1", "Gadget"), "shop", "g")


def written_by(body: str) -> str:
    return f"function evaluate()\n  {body}\nend\n"


def scripted(folder: Path, kube: KubeClient) -> Fleet:
    """Return an installation where a script has written what it read of a cluster."""
    one = Fleet(folder / "scripted")
    one.access.clusters["mgmt/mgmt"] = one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    rig.register_host(one)
    spec = {"ports": [{"port": 80, "protocol": "TCP"}]}
    metadata = {"name": "web", "namespace": "default"}
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    one.apply(join(profile(more=READS), holder("own", written_by(WRITES), annotations=LUA)))
    one.pump()
    assert data(kube) == {"made": "80"}
    return one


@pytest.fixture
def guarded(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:
    """An installation that holds what ends of four objects and more."""
    one = Fleet(tmp_path / "guarded", Settings(hold_from=4, hold_share=0.25, hold_agreement=2))
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def labelled(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"watched": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": name}}


def sweep(fleet: Fleet) -> None:
    """Look at the cluster, and let those look at it who count what ended."""
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    fleet.clock.advance(fleet.settings.hold_window * 2)
    fleet.pump()


def test_what_very_many_objects_brought_stays_until_sweeps_agree(
    guarded: Fleet, kube: KubeClient
) -> None:
    """Three of four that go at once, which nothing rang for, are held, then let go."""
    selected = ", labelFilters: [{key: watched, operation: Equal, value: 'yes'}]"
    made = holder("made", config(FOR_EACH, "v: '1'", namespace="swept"), annotations=INSTANTIATE)
    guarded.apply(join(source("ConfigMap", more=selected), trigger(), made))
    for name in "abcd":
        kube.apply(labelled(name))
    sweep(guarded)
    assert sorted(data(kube, "swept")) == [f"for-{name}" for name in "abcd"]
    for name in "abc":
        kube.remove(CONFIG, "default", name)

    sweep(guarded)
    (found,) = held(guarded.installation())
    assert found.number + 4 - len(data(kube, "swept")) == 3
    assert found.number >= 2
    for _ in range(5):
        guarded.clock.advance(guarded.settings.sweep_interval + timedelta(minutes=2))
        guarded.pump()

    assert sorted(data(kube, "swept")) == ["for-d"]
    assert list(held(guarded.installation())) == []


def test_a_script_is_run_anew_when_what_it_reads_has_changed(
    tmp_path: Path, kube: KubeClient
) -> None:
    """An object of a cluster with the next sweep; where it is gone that is told, and all stays."""
    fleet = scripted(tmp_path, kube)
    assert kube.merge(SERVICE, "default", "web", {"spec": {"ports": [{"port": 90}]}})
    sweep(fleet)
    assert data(kube) == {"made": "90"}

    kube.remove(SERVICE, "default", "web")
    sweep(fleet)
    assert "cannot find Service 'default/web' among" in outcome(fleet).message
    assert data(kube) == {"made": "90"}
    fleet.close()


FAILING = [
    pytest.param(
        "local web = resources['Web']\n  error('port ' .. web.spec.ports[1].port)",
        "ConfigMap default/own/main.yaml:3: port 80, in 'error('port ' .. web.spec.ports[1].port)'",
        id="raises what it read",
    ),
    pytest.param(
        "return resources['Web'].spec.nothing.there",
        "ConfigMap default/own/main.yaml:2: attempt to index field 'nothing' (a nil value)",
        id="reads what is not there",
    ),
    pytest.param(
        "while true do end",
        "ConfigMap default/own/main.yaml:2: the script took more than 20000000 steps",
        id="never ends",
    ),
    pytest.param(
        "return {resources = ('x'):rep(2^27)}",
        "ConfigMap default/own/main.yaml:2: the script needed more than 67108864 bytes of memory",
        id="takes too much memory",
    ),
    pytest.param(
        "return {resources = 'a: ['}",
        "ConfigMap default/own/main.yaml, rendered line 2: this is not YAML",
        id="writes no YAML",
    ),
]


@pytest.mark.parametrize(("body", "sentence"), FAILING)
def test_a_script_that_fails_says_where_and_leaves_what_is_there(
    tmp_path: Path, kube: KubeClient, body: str, sentence: str
) -> None:
    """By document, key and line, on the outcome; mended, it writes again."""
    fleet = scripted(tmp_path, kube)
    fleet.apply(holder("own", written_by(body), annotations=LUA))
    fleet.pump()

    assert outcome(fleet).phase.startswith("Failed")
    assert sentence in outcome(fleet).message
    assert data(kube) == {"made": "80"}

    fleet.apply(holder("own", written_by(WRITES.replace("].port", "].port + 1")), annotations=LUA))
    again(fleet)
    assert data(kube) == {"made": "81"}
    fleet.close()


def shown(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """Return what people see of the one profile: how far it is, its message, and its story."""
    here = fleet.installation()
    (row,) = VIEWS["clusterprofile"].rows(here, Query())
    VIEWS["clusterprofile"].describe(here, Query(), Story())
    return str(row["provisioned"]), str(row["message"]), capsys.readouterr().out


def where(condition: str) -> str:
    """Return a template that writes an object where something is so, and nothing elsewhere."""
    return "{{ if " + condition + " }}\n" + config("a", "v: '1'") + "{{ end }}"


def test_what_writes_nothing_yet_is_there_and_says_so(
    fleet: Fleet, kube: KubeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trigger's profile is made by an event that brings nothing, and brings what the next asks.

    It takes back what a later event asks for no more, and says so again.
    """
    text = where('eq (index .Resource.data "v") "ready"')
    selected = ", labelFilters: [{key: watched, operation: Equal, value: 'yes'}]"
    made = holder("made", text, annotations=INSTANTIATE)
    fleet.apply(join(source("ConfigMap", more=selected), trigger(), made))
    for word, there in (("waits", False), ("ready", True), ("waits", False)):
        stored = kube.apply({**labelled("order"), "data": {"v": word}})
        assert fleet.send("east", {"object": stored}).status == 200
        fleet.pump()

        assert data(kube) == ({"a": "1"} if there else {})
        provisioned, message, told = shown(fleet, capsys)
        assert (provisioned, message) == ("1/1", "" if there else NO_OBJECT)
        assert ("no object yet" in told) is not there


def test_what_writes_nothing_for_a_cluster_says_so_there(
    fleet: Fleet, kube: KubeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile that is rendered for each cluster brings it once that is as it asks."""
    text = where('eq (dig "labels" "ready" "" .Cluster.metadata) "yes"')
    rendered = "projectsveltos.io/template: ok"
    fleet.apply(join(profile(), holder("own", text, annotations=rendered)))
    fleet.pump()
    provisioned, message, told = shown(fleet, capsys)
    assert (provisioned, message) == ("1/1", f"{EAST}: {NO_OBJECT}")
    assert NO_OBJECT in told

    fleet.declare.label(EAST, {"ready": "yes"})
    fleet.pump()
    assert data(kube) == {"a": "1"}
    provisioned, message, told = shown(fleet, capsys)
    assert (provisioned, message) == ("1/1", "")
    assert "ConfigMap default/a" in told


def write_theirs(fleet: Fleet, kube: KubeClient) -> None:
    """Write a field of ours as an operator does, and have the cluster ring."""
    body, media = {"data": {"v": "theirs"}}, "application/merge-patch+json"
    query, path = {"fieldManager": "keen-operator"}, "/api/v1/namespaces/default/configmaps/a"
    kube._transport.send(Request("PATCH", path, query, body, media), Call(EAST, "edit it"))
    assert fleet.send("east", {"object": kube.get(CONFIG, "default", "a")}).status == 200
    fleet.pump()


def test_who_writes_it_back_each_time_is_named_and_waits(fleet: Fleet, kube: KubeClient) -> None:
    """By its API server's notes of who wrote; four times it is put back at once."""
    watched = profile(more="syncMode: ContinuousWithDriftDetection")
    fleet.apply(watched, holder("own", config("a", "v: '1'")))
    fleet.pump()
    for _ in range(4):
        write_theirs(fleet, kube)
        assert data(kube) == {"a": "1"}

    write_theirs(fleet, kube)
    assert data(kube) == {"a": "theirs"}
    said = outcome(fleet)
    assert (said.phase, said.reason) == ("Failed", "Drift")
    assert said.message.startswith(
        "cannot keep ConfigMap 'default/a': field manager 'keen-operator' changes it as often as it"
        " is put back, 4 times in a row; it waits 10 s now"
    )

    fleet.clock.advance(timedelta(seconds=10))
    fleet.pump()
    assert data(kube) == {"a": "1"}
    assert outcome(fleet).phase == "Provisioned"


def test_what_others_need_comes_first_and_goes_last(fleet: Fleet, kube: KubeClient) -> None:
    """An object before its namespace and its kind in a file; rights go when nobody uses them."""
    fleet.apply(join(profile(), holder("own", GADGET, BINDING, ROLE, CRD, SPACE)))
    fleet.pump()

    def provisioned() -> bool:
        if outcome(fleet).phase != "Provisioned":
            again(fleet)
        return outcome(fleet).phase == "Provisioned"

    # An API server serves a kind within a second of its definition.
    eventually("all is provisioned", provisioned, pause=0.1)
    assert kube.get(*GADGET_KEY)
    assert kube.get(RIGHTS, "shop", "reads")

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    def left() -> list[str]:
        again(fleet)
        (inventory,) = fleet.records.inventories.of(EAST)
        return [key.kind for key in inventory.held]

    # Here no controller ends a namespace.
    eventually("all else is gone", lambda: left() == ["Namespace"], pause=0.1)
    (gone,) = [entry.detail for entry in fleet.ledger() if entry.what == "removed"]
    assert gone == (
        "Gadget g, RoleBinding reads, Role reads, CustomResourceDefinition gadgets.lab.example,"
        " Namespace shop"
    )


def test_a_field_that_is_no_field_applies_nothing(fleet: Fleet, kube: KubeClient) -> None:
    """A file with one mistake is refused as a whole, by the field's name, and nothing comes."""
    with pytest.raises(InvalidDocuments, match="extraLabel"):
        fleet.apply(join(profile(more="extraLabel: {a: b}"), holder("own", config("a", "v: '1'"))))
    fleet.pump()

    assert data(kube) == {}


def test_a_circle_is_refused_and_nothing_of_it_comes(fleet: Fleet, kube: KubeClient) -> None:
    """It is named in the order in which its profiles wait."""
    circle = [
        profile(name=name, more=f"dependsOn: [{after}]") for name, after in ("ab", "bc", "ca")
    ]
    with pytest.raises(InvalidError, match=r"'a'.*'b'.*'c'"):
        fleet.apply(join(*circle, profile(), holder("own", config("a", "v: '1'"))))
    fleet.pump()

    assert data(kube) == {}


PATCHED = """patches:
  - target: {kind: Service}
    patch: |
      spec:
        ports:
        - {port: 443, protocol: TCP, targetPort: 8443, name: https}
        - {port: 80, $patch: delete}
  - target: {kind: Service}
    patch: |
      - {op: add, path: /metadata/labels/cluster, value: "{{ .Cluster.metadata.name }}"}
"""
WEB = """apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: web}
  ports: [{port: 80, protocol: TCP, name: http}, {port: 53, protocol: UDP, name: dns}]
"""


def test_patched_objects_are_taken_and_are_not_applied_again(
    fleet: Fleet, kube: KubeClient
) -> None:
    """What an API server adds to a patched object is no difference."""
    fleet.apply(join(profile(more=PATCHED), holder("own", WEB)))
    fleet.pump()
    assert outcome(fleet).message == ""
    found = kube.get(SERVICE, "default", "web")
    assert found
    assert [each["name"] for each in found["spec"]["ports"]] == ["https", "dns"]
    assert found["metadata"]["labels"]["cluster"] == "east"

    again(fleet)
    assert outcome(fleet).phase == "Provisioned"
    assert kube.get(SERVICE, "default", "web") == found
