"""Mistakes that everybody makes, on real API servers: one command names the cause and the cure.

Nothing rings here: sweeps find what happens. Everything runs in this process, as `serve` runs it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from bellhop.cli.main import cli
from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
MADE = "for-web"
ENG = "destinationClusterSelector: {matchLabels: {dep: eng}}"
HELD = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
RIGHT = {"source": source(), "trigger": trigger(more=ENG), "holder": HELD}
WEB = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"ports": [{"port": 80}]},
}


@dataclass
class Desk:
    """Who sits before the command line, and looks into the destination now and then."""

    environment: dict[str, str]
    destination: User

    def type(self, line: str, stdin: str | None = None) -> str:
        """Type a command that succeeds, and return what it printed."""
        done = CliRunner(env=self.environment).invoke(cli, line.split(), input=stdin)
        assert done.exit_code == 0, done.output
        return done.stdout

    def explained(self, what: str) -> dict[str, Any]:
        """Ask why, for programs."""
        found: dict[str, Any] = json.loads(self.type(f"explain {what} -o json"))
        return found

    def is_there(self) -> bool:
        """Say whether the add-on has come to the destination."""
        return MADE in self.destination.names(CONFIG)


@pytest.fixture
def desk(tmp_path: Path, source_cluster: Cluster, destination_cluster: Cluster) -> Iterator[Desk]:
    """An installation that serves, two clusters, and a Service in the first."""
    users = [User(each.kubeconfig()) for each in (source_cluster, destination_cluster)]
    users[0].create(WEB)
    one = Desk({"BELLHOP_STATE": str(tmp_path / "state")}, users[1])
    with running(tmp_path / "state", replace(Settings()), Log(io.StringIO()), "127.0.0.1", 0):
        for each, labels in ((source_cluster, "env=production"), (destination_cluster, "dep=eng")):
            path = tmp_path / f"{each.name}.kubeconfig"
            each.kubeconfig(path)
            one.type(
                f"register cluster --namespace fleet --cluster {each.name} --no-forwarder"
                f" --kubeconfig {path} --labels {labels}"
            )
        yield one
    for user in users:
        user.close()


MISTAKES = [
    pytest.param(
        "label cluster fleet/source env=prod --overwrite",
        {},
        "its sourceClusterSelector asks for env=production, and 'fleet/source'",
        "correct the sourceClusterSelector, or `bellhop label cluster fleet/source env=production"
        " --overwrite`",
        "label cluster fleet/source env=production --overwrite",
        {},
        id="the source cluster lacks a label",
    ),
    pytest.param(
        "label cluster fleet/destination dep=sales --overwrite",
        {},
        "its destinationClusterSelector asks for dep=eng, and 'fleet/destination', the nearest of"
        " 2 clusters, has dep=sales",
        "`bellhop label cluster fleet/destination dep=eng --overwrite`",
        "label cluster fleet/destination dep=eng --overwrite",
        {},
        id="the destination lacks a label",
    ),
    pytest.param(
        "",
        {"source": source(more=", labelFilters: [{key: app, operation: Equal, value: wbe}]")},
        "its label 'app' is 'web', and the filter asks Equal 'wbe'",
        "change Service default/web, or EventSource 'watched'",
        "",
        RIGHT,
        id="a wrong selector",
    ),
    pytest.param(
        "",
        {"source": source(more=', evaluate: "function evaluate()\\n  return obj.x.y\\nend"')},
        "watched:2: attempt to index field 'x' (a nil value); the line is `return obj.x.y`",
        "correct the script of EventSource 'watched', and apply it",
        "",
        RIGHT,
        id="a Lua error",
    ),
    pytest.param(
        "",
        {"holder": holder("made", config("for-{{ .Resource.nmae }}"), annotations=INSTANTIATE)},
        'map has no entry for key "nmae"',
        "fix what EventTrigger 'made' renders, and apply it again",
        "",
        RIGHT,
        id="a template error",
    ),
    pytest.param(
        "",
        {"trigger": trigger(more=ENG, ref="maed")},
        "it names ConfigMap 'default/maed', which is not there yet (did you mean 'default/made'?)",
        "apply it with `bellhop apply -f FILE`, or correct the name 'maed'",
        "",
        RIGHT,
        id="a missing ConfigMap",
    ),
]


@pytest.mark.parametrize(("before", "wrong", "cause", "cure", "command", "right"), MISTAKES)
def test_one_command_names_the_cause_and_the_cure(
    desk: Desk,
    before: str,
    wrong: dict[str, str],
    cause: str,
    cure: str,
    command: str,
    right: dict[str, str],
) -> None:
    """Whether the object or the trigger is asked about; and what it says to do helps."""
    if before:
        desk.type(before)
    desk.type("apply -f -", stdin=join(*{**RIGHT, **wrong}.values()))
    for what in ("fleet/source service default/web", "trigger made"):
        eventually(
            f"{what} says so", lambda what=what: desk.explained(what)["next"].startswith(cure)
        )
        told = " | ".join(link["said"] for link in desk.explained(what)["links"])
        assert cause in told
    assert not desk.is_there()

    if command:
        desk.type(command)
    if right:
        desk.type("apply -f -", stdin=join(*right.values()))
    eventually("the cure has helped", desk.is_there)
    done = "nothing to do: everything is deployed"
    eventually("all is well", lambda: desk.explained("trigger made")["next"] == done)
    found = desk.explained("fleet/source svc default/web")
    assert (found["next"], "in the cluster now" in found["links"][0]["said"]) == (done, True)


def test_says_at_once_what_is_wrong_with_a_trigger(desk: Desk) -> None:
    """`apply` warns with the labels of clusters that are there."""
    desk.type("label cluster fleet/source env=prod --overwrite")
    runner = CliRunner(env=desk.environment)
    done = runner.invoke(cli, ["apply", "-f", "-"], input=join(*RIGHT.values()))

    assert done.exit_code == 0
    assert done.stderr == (
        "warning: EventTrigger 'made' selects no source cluster: its sourceClusterSelector asks for"
        " env=production, and 'fleet/source', the nearest of 2 clusters, has env=prod;"
        " correct the sourceClusterSelector, or"
        " `bellhop label cluster fleet/source env=production --overwrite`\n"
    )
