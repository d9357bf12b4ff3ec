"""What a script that breaks out of its limits brings to a real cluster: nothing, and all stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.settings import Settings
from tests.contract.test_preview_api_server import EAST, kube  # noqa: F401 - fixture
from tests.contract.test_profiles_api_server import (
    LUA,
    ON,
    READS,
    SERVICE,
    again,
    data,
    outcome,
    sweep,
    written_by,
)
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

SECONDS, OUTPUT = 0.2, 4000
ENDLESS = "local s = '' while true do s = ('x'):rep(2^20) end"
"""Few steps that take long, so that the time ends first."""

FULL = "return {resources = ('# all of it\\n'):rep(" + str(OUTPUT // 10) + ")}"
TOO_LONG = "the script took more than 0.2 s of processor time"
TOO_MUCH = "the script writes more than the 4,000 characters that it may"
BROKEN = [
    pytest.param(ENDLESS, TOO_LONG, id="time"),
    pytest.param(FULL, TOO_MUCH, id="output"),
]


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:
    """An installation that knows the cluster, and has little patience with scripts."""
    one = Fleet(tmp_path, Settings(template_seconds=SECONDS, template_output=OUTPUT))
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def writes(*names: str, v: str = "1") -> str:
    """Return what a script does that writes ConfigMaps."""
    manifests = join(*(config(name, f"v: '{v}'") for name in names))
    return f"return {{resources = [[\n{manifests}]]}}"


def wanted(body: str, v: str = "1") -> str:
    """Return what a profile brings by two documents: one as it is, and one by a script."""
    plain = holder("plain", config("plain", f"v: '{v}'"))
    return join(plain, holder("own", written_by(body), annotations=LUA))


def both(more: str = "") -> str:
    """Return a profile of these two, of which the script comes last."""
    refs = ", ".join(
        f"{{kind: ConfigMap, name: {x}, namespace: default}}" for x in ("plain", "own")
    )
    return profile(more=more).replace("{kind: ConfigMap, name: own, namespace: default}", refs)


def assert_refused(fleet: Fleet, limit: str) -> None:
    """See that the outcome tells which document went beyond which limit, and where."""
    assert outcome(fleet).phase.startswith("Failed")
    assert "ConfigMap default/own/main.yaml:" in outcome(fleet).message
    assert limit in outcome(fleet).message


@pytest.mark.parametrize("more", ["", ON], ids=["stops", "goes on"])
@pytest.mark.parametrize(("body", "limit"), BROKEN)
def test_a_script_beyond_a_limit_brings_nothing_of_its_profile(
    fleet: Fleet, kube: KubeClient, body: str, limit: str, more: str
) -> None:
    """Nor do its other documents; another profile is brought, and this one once it is mended."""
    other = join(profile(name="other"), holder("other", config("other", "v: '1'")))
    fleet.apply(join(both(more), wanted(body), other))
    fleet.pump()
    assert_refused(fleet, limit)
    assert data(kube) == {"other": "1"}
    assert outcome(fleet, "other").phase == "Provisioned"

    fleet.apply(wanted(writes("a", "b")))
    fleet.pump()
    assert outcome(fleet).phase == "Provisioned"
    assert data(kube) == {"other": "1", "plain": "1", "a": "1", "b": "1"}


@pytest.mark.parametrize(("body", "limit"), BROKEN)
def test_what_a_script_brought_stays_when_it_breaks_out_of_a_limit(
    fleet: Fleet, kube: KubeClient, body: str, limit: str
) -> None:
    """As it was, though sweeps go by; what is unwanted goes once the script is mended."""
    fleet.apply(join(both(), wanted(writes("a", "b"))))
    fleet.pump()
    before = {"plain": "1", "a": "1", "b": "1"}
    assert data(kube) == before
    fleet.apply(wanted(body, v="2"))
    fleet.pump()
    for _ in range(2):
        assert_refused(fleet, limit)
        assert data(kube) == before
        sweep(fleet)
        again(fleet)

    fleet.apply(wanted(writes("b", "c", v="2"), v="2"))
    fleet.pump()
    assert data(kube) == {"plain": "2", "b": "2", "c": "2"}
    assert outcome(fleet).phase == "Provisioned"


WRITES = """local count, more = resources['Web'].spec.ports[1].port, ''
  DOES
  return {resources = [[{apiVersion: v1, kind: ConfigMap,
    metadata: {name: made, namespace: default}, data: {v: "]] .. count .. [["}}]] .. more}"""
BY_WHAT_IT_READS = [
    pytest.param("for _ = 1, count do local s = ('x'):rep(2^20) end", TOO_LONG, id="time"),
    pytest.param("more = (' # all of it'):rep(count)", TOO_MUCH, id="output"),
]


@pytest.mark.parametrize(("does", "limit"), BY_WHAT_IT_READS)
def test_what_it_reads_may_make_a_script_break_out_of_a_limit(
    fleet: Fleet, kube: KubeClient, does: str, limit: str
) -> None:
    """What somebody writes into a cluster takes nothing away there; less of it mends it."""
    fleet.access.clusters["mgmt/mgmt"] = kube  # type: ignore[assignment]
    rig.register_host(fleet)
    metadata = {"name": "web", "namespace": "default"}
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports(1)})
    script = written_by(WRITES.replace("DOES", does))
    fleet.apply(join(profile(more=READS), holder("own", script, annotations=LUA)))
    fleet.pump()
    assert data(kube) == {"made": "1"}

    for number, there in ((60000, "1"), (2, "2")):
        assert kube.merge(SERVICE, "default", "web", {"spec": ports(number)})
        sweep(fleet)
        again(fleet)
        if number == 60000:
            assert_refused(fleet, limit)
        assert data(kube) == {"made": there}
    assert outcome(fleet).phase == "Provisioned"


def ports(number: int) -> dict[str, Any]:
    return {"ports": [{"port": number, "protocol": "TCP"}]}
