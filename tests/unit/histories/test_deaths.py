"""Each kind of step that histories do not draw, with its process killed anywhere on its way.

The message of a process that died comes again; its work is finished, once, and nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.sveltos_annotations import ADOPT, MADE_BY, OWNER
from bellhop.state.cluster import MANAGEMENT
from tests.fakes import rig
from tests.fakes.fleet import EAST, SERVICE, Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed
from tests.fakes.share import SHARE

LEAVES = "stopMatchingBehavior: LeavePolicies"
LABELLED = "of-{{ .Cluster.metadata.name }}-{{ .Cluster.metadata.labels.env }}"
_STRIDE = 11
"""Steps between one death and the next; every call is two."""
_FAR = 41
"""The same on a way that is long."""


@dataclass(frozen=True)
class Way:
    """The manifests, the requests of then, and the objects in the end, by cluster."""

    before: Callable[[Fleet], object]
    asks: Callable[[Fleet], object]
    ends: Callable[[Mapping[str, FakeKube]], object]
    expected: object
    stride: int = _STRIDE


def named(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def said(kube: FakeKube) -> dict[str, str]:
    return {named(each): each["data"]["v"] for each in kube.objects(CONFIG)}


def balanced(port: int) -> str:
    return f"""apiVersion: v1
kind: Service
metadata: {{name: a, namespace: default}}
spec: {{ports: [{{port: {port}, protocol: TCP}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.{port}}}]}}}}
"""


def with_status(port: int) -> str:
    return holder("own", balanced(port), annotations="projectsveltos.io/subresources: status")


def addresses(kubes: Mapping[str, FakeKube]) -> list[tuple[int, str]]:
    return [
        (each["spec"]["ports"][0]["port"], each["status"]["loadBalancer"]["ingress"][0]["ip"])
        for each in kubes[EAST].objects(SERVICE)
    ]


def fixed(value: int) -> str:
    forced = config("a", f"v: '{value}'") + "immutable: true\n"
    return holder("own", forced.replace("}", ", annotations: {FORCE}}", 1).replace("FORCE", FORCE))


FORCE = "projectsveltos.io/forceRecreate: 'true'"


def marks(kubes: Mapping[str, FakeKube]) -> list[set[str]]:
    """Return the annotations of each object."""
    return [{*each["metadata"].get("annotations", {})} for each in kubes[EAST].objects(CONFIG)]


def theirs(fleet: Fleet) -> None:
    metadata = {"name": "a", "namespace": "default"}
    data = {"v": "theirs", "kept": "yes"}
    fleet.access.clusters[EAST].put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    )


def adopting(value: str) -> str:
    adopted = config("a", f"v: '{value}'").replace("}", f", annotations: {{{ADOPT}: 'true'}}}}", 1)
    return holder("own", adopted)


def hosted(fleet: Fleet) -> None:
    """Deploy something to a cluster, and something else to `mgmt/mgmt` for it."""
    found = fleet.records.clusters.get(EAST)
    assert found
    host = replace(found.value, namespace="mgmt", name="mgmt", labels={}, uid="mgmt")
    fleet.declare.register(host)
    refs = "[{kind: ConfigMap, name: own, namespace: default}"
    both = f"{refs}, {{kind: ConfigMap, name: here, namespace: default, deploymentType: Local}}]"
    local = holder("here", config(LABELLED, "v: '1'"), annotations="projectsveltos.io/template: ok")
    selected = profile("clusterSelector: {matchLabels: {dep: eng}}").replace(f"{refs}]", both)
    fleet.apply(join(selected, holder("own", config("a", "v: '1'")), local))


def names(kubes: Mapping[str, FakeKube]) -> dict[str, list[str]]:
    return {name: sorted(said(kube)) for name, kube in kubes.items()}


def generated(fleet: Fleet) -> None:
    """Generate a ConfigMap for each of two Services, and deploy what each of them says."""
    name = "'{{ .MatchingResource.Name }}-own'"
    more = "instantiateForEachMatchingResource: true"
    generator = (
        f"configMapGenerator: [{{name: of, namespace: default, nameFormat: {name}, {more}}}]"
    )
    own = "{{ range $n, $r := .MatchingResources }}"
    text = f"own: '{own}{{{{ if $n }}}}-{{{{ end }}}}{{{{ $r.Name }}}}{{{{ end }}}}'"
    of = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of, namespace: default}\n"
    instantiated = "projectsveltos.io/instantiate: ok"
    fleet.apply(
        join(
            source(),
            trigger(one="false", more=generator),
            holder("made", config("all", text.replace("own:", "v:")), annotations=instantiated),
            of + "data: {v: '{{ .Resource.metadata.name }}'}\n",
        )
    )
    for each in "ab":
        fleet.write("east", service(each))


def drop(fleet: Fleet, gone: Mapping[str, Any]) -> None:
    fleet.drop("east", gone)


def titled(fleet: Fleet) -> list[str]:
    """Name what is generated, by those who have the names and by those who say so."""
    shards = "0123456789abcdef"
    items = (item for shard in shards for item in fleet.store.query(f"title/{shard}"))
    has = sorted(item.sort.rpartition("/")[2] for item in items)
    says = sorted(name for each in fleet.records.profiles.of("made") for _, name in each.titles)
    assert has == says
    return has


WAYS = {
    "a status is written": Way(
        lambda fleet: fleet.apply(profile(), with_status(1)),
        lambda fleet: fleet.apply(with_status(2)),
        addresses,
        [(2, "203.0.113.2")],
    ),
    "an object is made anew": Way(
        lambda fleet: fleet.apply(profile(), fixed(1)),
        lambda fleet: fleet.apply(fixed(2)),
        lambda kubes: said(kubes[EAST]),
        {"a": "2"},
    ),
    "a namespace is made": Way(
        lambda fleet: fleet.apply(profile(), holder("own", config("a", "v: '1'"))),
        lambda fleet: fleet.apply(holder("own", config("b", "v: '2'", namespace="shop"))),
        lambda kubes: said(kubes[EAST]),
        {"b": "2"},
    ),
    "objects are left": Way(
        lambda fleet: fleet.apply(profile(more=LEAVES), holder("own", config("a", "v: '1'"))),
        lambda fleet: rig.delete(fleet, ("ClusterProfile", "", "own")),
        marks,
        [{MADE_BY}],
    ),
    "objects are left and come back": Way(
        lambda fleet: fleet.apply(profile(more=LEAVES), holder("own", config("a", "v: '1'"))),
        lambda fleet: (
            rig.delete(fleet, ("ClusterProfile", "", "own")),
            fleet.pump(),
            fleet.apply(profile(more=LEAVES)),
        ),
        lambda kubes: [OWNER in each for each in marks(kubes)],
        [True],
        _FAR,
    ),
    "an object is adopted and left": Way(
        lambda fleet: (theirs(fleet), fleet.apply(profile(), adopting("1"))),
        lambda fleet: (
            fleet.apply(adopting("2")),
            fleet.pump(),
            rig.delete(fleet, ("ClusterProfile", "", "own")),
        ),
        lambda kubes: (kubes[EAST].objects(CONFIG)[0]["data"]["kept"], marks(kubes)),
        ("yes", [set()]),
        _FAR,
    ),
    "an object is handed over": Way(
        lambda fleet: (
            fleet.apply(profile(), holder("own", config("a", "v: '1'"))),
            fleet.pump(),
            fleet.apply(profile(name="next"), holder("next", config("a", "v: '2'"))),
        ),
        lambda fleet: rig.delete(fleet, ("ClusterProfile", "", "own")),
        lambda kubes: (said(kubes[EAST]), [x for x in kubes[EAST].calls if x.verb == "remove"]),
        ({"a": "2"}, []),
    ),
    "what is Local follows a label": Way(
        hosted,
        lambda fleet: rig.label(fleet, "east", {"env": "test"}),
        names,
        {EAST: ["a"], MANAGEMENT: ["of-east-test"]},
        _FAR,
    ),
    "what is Local goes": Way(
        hosted,
        lambda fleet: rig.label(fleet, "east", {"dep": None}),
        names,
        {EAST: [], MANAGEMENT: []},
        _FAR,
    ),
}
"""Of a profile that users wrote."""


def opened(folder: Path) -> tuple[Fleet, dict[str, FakeKube], Fate]:
    """Return an installation with a cluster, and one for `mgmt/mgmt`, and what kills it."""
    fleet = Fleet(folder)
    fate = rig.make_mortal(fleet)
    kubes = {EAST: FakeKube(EAST), MANAGEMENT: FakeKube(MANAGEMENT)}
    fleet.access.clusters = dict(kubes)
    fleet.register("east", env="production", dep="eng")
    return fleet, kubes, fate


def insist(fleet: Fleet, fate: Fate, asks: Callable[[Fleet], object]) -> bool:
    """Ask for something as a user does, who asks again where it was killed; say whether it was."""
    try:
        asks(fleet)
        fleet.pump()
    except Killed:
        fate.revive()
        fleet.reread()
        rig.release(fleet)
        asks(fleet)
        return True
    finally:
        fate.revive()
    return False


@pytest.mark.rest
@pytest.mark.parametrize("name", WAYS)
def test_ends_as_it_was_asked_for_wherever_it_dies(name: str) -> None:
    """Objects, marks and records are as if no process had died; no lease and no claim is left."""
    way, doom, died = WAYS[name], 1, True
    while died:
        with rig.folder() as folder:
            fleet, kubes, fate = opened(Path(folder))
            way.before(fleet)
            fleet.pump()
            fate.doom(doom)
            died = insist(fleet, fate, way.asks)
            rig.settle(fleet)

            assert way.ends(kubes) == way.expected, doom
            held = rig.inventories(fleet, "east").values()
            assert {key for keys in held for key in keys} == {*rig.owners(fleet, "east")}, doom
            assert rig.left_over(fleet) == [], doom
            fleet.close()
        doom += _STRIDE * SHARE
    assert doom > 8 * _STRIDE


CALLED_OFF = {
    "a status is written": (with_status(1), [(1, "203.0.113.1")]),
    "an object is made anew": (fixed(1), {"a": "1"}),
    "a namespace is made": (holder("own", config("a", "v: '1'")), {"a": "1"}),
}
"""The manifest that is applied once more as it was, and the objects then."""


@pytest.mark.parametrize("name", CALLED_OFF)
def test_is_as_before_where_it_is_called_off_after_a_death(name: str) -> None:
    """Writes that a dead worker may have done count neither as undone nor as unchanged."""
    way, (back, expected), doom, died = WAYS[name], CALLED_OFF[name], 1, True
    while died:
        with rig.folder() as folder:
            fleet, kubes, fate = opened(Path(folder))
            way.before(fleet)
            fleet.pump()
            fate.doom(doom)
            died = insist(fleet, fate, way.asks)
            rig.release(fleet)
            fleet.apply(back)
            rig.settle(fleet)

            assert way.ends(kubes) == expected, doom
            fleet.close()
        doom += way.stride * SHARE
    assert doom > 5 * way.stride


def test_names_for_each_object_end_with_it_wherever_it_dies() -> None:
    """The names of a deleted object are deleted; those of the other are still there."""
    doom, died = 1, True
    while died:
        with rig.folder() as folder:
            fleet, kubes, fate = opened(Path(folder))
            generated(fleet)
            fleet.pump()
            assert titled(fleet) == ["a-own", "b-own"]
            (gone,) = (each for each in kubes[EAST].objects(SERVICE) if named(each) == "a")
            fate.doom(doom)
            died = insist(fleet, fate, partial(drop, gone=gone))
            rig.settle(fleet)

            assert titled(fleet) == ["b-own"], doom
            assert said(kubes[EAST]) == {"all": "b"}, doom
            assert rig.left_over(fleet) == [], doom
            fleet.close()
        doom += _FAR * SHARE
    assert doom > 5 * _FAR
