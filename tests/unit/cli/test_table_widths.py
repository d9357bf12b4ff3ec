"""Tables on a terminal of 80 columns, with names as they are in production."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bellhop.cli import diffs, output
from bellhop.cli.commands import dead_letters, rollback, sender, show, status
from bellhop.cli.kinds import NAMES
from bellhop.cli.output import Column

ROOM = 80
CLUSTER, NAMESPACE = "production/eu-west-1", "production"
GENERATED = "service-network-policy-0123456789ab"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SENTENCE = " ".join(["a sentence that goes on"] * 8)
SHOWN = {
    "show addons": show.ADDONS,
    "show dryrun": diffs.PREVIEW_COLUMNS,
    "show failures": show.FAILURES,
    "show helm-updates": show.UPDATES,
    "show orphans": show.ORPHANS,
    "show resources": show.RESOURCES,
    "show usage": show.USAGE,
    "diff -f": diffs.MANIFEST_COLUMNS,
    "history": rollback.COLUMNS,
    "sender list": sender.COLUMNS,
    "dead-letters list": dead_letters.COLUMNS,
    "status": status.CLUSTERS,
}
TABLES = {**{f"get {each.plural}": each.view.columns for each in NAMES}, **SHOWN}
NAMED = {
    "get clusters": "eu-west-1",
    "get clusterprofiles": GENERATED,
    "get eventreports": "labelled-services-production-eu-west-1",
}
VALUES: dict[str, Any] = {
    "account": "tenant-a/deployer",
    "action": "No Action",
    "age": "12d",
    "at": AT,
    "change": "3f2a9c01",
    "changed": "ConfigMap default/network-policy",
    "cluster": CLUSTER,
    "clusters": 120,
    "currentVersion": "4.11.3",
    "died": AT,
    "error": "",
    "eventsource": "labelled-services",
    "formerUntil": AT,
    "from": CLUSTER,
    "group": f"{CLUSTER}/{GENERATED}",
    "gvk": "networking.k8s.io/v1/NetworkPolicy",
    "heard": "12s",
    "id": "3f2a9c01d4e5",
    "kind": "ClusterProfile",
    "kinds": "Deployment,StatefulSet",
    "labels": "env=production,region=eu-west,tier=gold",
    "made": AT,
    "max": 10,
    "message": SENTENCE,
    "missed": "12/4000",
    "name": "service-network-policy",
    "namespace": NAMESPACE,
    "next": SENTENCE,
    "newerPatchVersion": "4.11.8",
    "newerVersion": "4.12.1",
    "object": "NetworkPolicy default/front-my-service",
    "phase": "Processing",
    "profile": f"ClusterProfile/{GENERATED}",
    "profiles": [f"ClusterProfile/{GENERATED}"],
    "proof": "token",
    "provisioned": "118/120",
    "reached": "12s",
    "reason": SENTENCE,
    "releaseName": "ingress-nginx",
    "rendered": AT,
    "replaced": AT,
    "resourceType": "networking.k8s.io:NetworkPolicy",
    "selects": "apps/v1 Deployment, v1 Service",
    "sentence": SENTENCE,
    "since": AT,
    "source": "labelled-services",
    "stage": "production",
    "state": "Provisioning",
    "time": AT,
    "trigger": "service-network-policy",
    "version": "v1.31.2",
    "what": "deployment",
    "which": f"ClusterProfile/ingress to {CLUSTER}",
    "why": SENTENCE,
}


def drawn(
    columns: Sequence[Column],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    **values: Any,
) -> list[str]:
    """Return the lines of a table with one row; a number stands for what has no value here."""
    monkeypatch.setattr(output, "terminal_width", lambda: ROOM)
    row = {each.key: {**VALUES, **values}.get(each.key, 12) for each in columns if not each.wide}
    output.print_table([each for each in columns if not each.wide], [row], "table", nothing="")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("table", [pytest.param(each, id=each) for each in TABLES])
def test_a_table_fits_eighty_columns(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no name of an object, a cluster or a change is cut."""
    name = NAMED.get(table, VALUES["name"])
    columns = TABLES[table]
    several = {"clusters": [CLUSTER, "production/us-east-1"]} if table == "show usage" else {}
    title, *lines = drawn(columns, capsys, monkeypatch, name=name, **several)

    assert max(map(len, [title, *lines])) <= ROOM, lines
    words = " ".join(lines).replace(",", " ").split()
    keys = {each.key for each in columns if not each.wide}
    expected = {
        "name": name,
        "cluster": CLUSTER,
        "releaseName": "ingress-nginx",
        "change": "3f2a9c01",
    }
    assert [each for key, each in expected.items() if key in keys and each not in words] == []
    assert {each for found in several.values() for each in found} <= set(words)


def test_a_table_that_fits_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a trigger is seen at 80 columns, with the titles."""
    lines = drawn(TABLES["get eventtriggers"], capsys, monkeypatch)

    assert "…" not in "".join(lines)
    assert lines[1].split() == [
        "service-network-policy",
        "labelled-services",
        "120",
        "118/120",
        "12",
    ]
