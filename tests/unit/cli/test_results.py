"""Output for programs: `apply -o` and `describe -o`, and keys that have former names."""

from __future__ import annotations

import json

import yaml

from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

MANIFEST = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}"


def test_apply_prints_results_for_programs(bellhop: Bellhop) -> None:
    bellhop("apply", "-f", "-", stdin=MANIFEST.replace("name: a", "name: b"))
    tried = bellhop("apply", "-f", "-", "--dry-run", "-o", "yaml", stdin=MANIFEST)
    done = bellhop("apply", "-f", "-", "-o", "json", stdin=MANIFEST)
    named = bellhop("apply", "-f", "-", "-o", "name", stdin=MANIFEST)
    valid = bellhop("apply", "-f", "-", "-o", "json", "--validate-only", stdin=MANIFEST)
    row = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "team", "name": "a"}

    assert yaml.safe_load(tried.stdout) == [{**row, "result": "created", "dryRun": True}]
    assert json.loads(done.stdout) == [{**row, "result": "created", "dryRun": False}]
    assert named.stdout == "configmap/a\n"
    assert json.loads(valid.stdout)[0]["result"] == "valid"


def test_describe_prints_manifests_for_programs(bellhop: Bellhop, here: Installation) -> None:
    """As `get` does, and an object that does not exist is an error in each form."""
    fleet.populate(here)
    described = bellhop("describe", "cluster", "default/workload", "-o", "json")

    assert described.stdout == bellhop("get", "cluster", "default/workload", "-o", "json").stdout
    assert json.loads(described.stdout)["metadata"]["name"] == "workload"
    assert bellhop("describe", "cluster", "default/none", "-o", "yaml").exit_code == 1


def test_former_names_of_keys_stay_beside_the_present_ones(
    bellhop: Bellhop, here: Installation
) -> None:
    """Programs that read them have one release to follow."""
    fleet.populate(here)
    for what in ("rang", "gone", "applied"):
        here.records.ledger.note(fleet.entry(what, context={"since_ring_ms": 20.0}))
    lines = bellhop("show", "events", "-o", "json").stdout.splitlines()
    events = list(map(json.loads, lines))
    cluster = json.loads(bellhop("get", "cluster", "default/workload", "-o", "json").stdout)
    signs = json.loads(bellhop("doctor", "-o", "json").stdout)

    shown = {(each["what"], each["event"]) for each in events}
    assert shown == {("rang", "changed"), ("gone", "deleted"), ("applied", "applied")}
    assert {(each["sinceChangeMs"], each["sinceRingMs"]) for each in events} == {(20.0, 20.0)}
    assert cluster["status"]["lastResyncTime"] == cluster["status"]["lastSweepTime"]
    marks = {"well": "OK", "open": "WARN", "wrong": "FAIL"}
    assert signs
    assert [each["status"] for each in signs] == [marks[each["verdict"]] for each in signs]
