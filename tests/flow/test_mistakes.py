"""Mistakes that everybody makes, on real API servers: one command names the cause and the cure.

Nothing sends events here: resyncs find changes. All runs in this process, as `serve` runs it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

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
LABELS = ("env=production", "dep=eng")
WEB = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"ports": [{"port": 80}]},
}


@dataclass
class Operator:
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


@pytest.fixture(scope="class")
def shared_operator(
    tmp_path_factory: pytest.TempPathFactory, both_clusters: tuple[Cluster, Cluster]
) -> Iterator[Operator]:
    """An installation that serves, two clusters, and a Service in the first, for all tests."""
    folder = tmp_path_factory.mktemp("mistakes")
    users = [User(each.kubeconfig()) for each in both_clusters]
    users[0].create(WEB)
    one = Operator({"BELLHOP_STATE": str(folder / "state")}, users[1])
    with running(folder / "state", Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        for each, labels in zip(both_clusters, LABELS, strict=True):
            path = folder / f"{each.name}.kubeconfig"
            each.kubeconfig(path)
            one.type(
                f"register cluster --namespace fleet --cluster {each.name} --no-forwarder"
                f" --kubeconfig {path} --labels {labels}"
            )
        yield one
    for user in users:
        user.close()


@pytest.fixture
def operator(shared_operator: Operator) -> Iterator[Operator]:
    """The operator, with the clusters as they were registered, and nothing declared."""
    yield shared_operator
    for name, labels in zip(("source", "destination"), LABELS, strict=True):
        shared_operator.type(f"label cluster fleet/{name} {labels} --overwrite")
    shared_operator.type("delete -f -", stdin=join(*RIGHT.values()))
    eventually("the add-on is withdrawn", lambda: not shared_operator.is_there())


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


class TestMistakes:
    """All tests share one installation."""

    @pytest.mark.parametrize(("before", "wrong", "cause", "cure", "command", "right"), MISTAKES)
    def test_one_command_names_the_cause_and_the_cure(
        self,
        operator: Operator,
        before: str,
        wrong: dict[str, str],
        cause: str,
        cure: str,
        command: str,
        right: dict[str, str],
    ) -> None:
        """Whether the object or the trigger is asked about; and what it says to do helps."""
        if before:
            operator.type(before)
        operator.type("apply -f -", stdin=join(*{**RIGHT, **wrong}.values()))

        def says(what: str) -> bool:
            found = operator.explained(what)
            explanation = " | ".join(link["said"] for link in found["links"])
            return found["next"].startswith(cure) and cause in explanation

        for what in ("fleet/source service default/web", "trigger made"):
            eventually(
                lambda what=what: f"it says so, and not {operator.explained(what)}",
                lambda what=what: says(what),
            )
        assert not operator.is_there()

        if command:
            operator.type(command)
        if right:
            operator.type("apply -f -", stdin=join(*right.values()))
        eventually("the cure has helped", operator.is_there)
        done = "nothing to do: everything is deployed"
        for what in ("trigger made", "fleet/source svc default/web"):
            eventually(
                f"all is well with {what}",
                lambda what=what: operator.explained(what)["next"] == done,
            )
        found = operator.explained("fleet/source svc default/web")
        assert "in the cluster now" in found["links"][0]["said"]

    def test_says_at_once_what_is_wrong_with_a_trigger(self, operator: Operator) -> None:
        """`apply` warns with the labels of clusters that are there."""
        operator.type("label cluster fleet/source env=prod --overwrite")
        runner = CliRunner(env=operator.environment)
        done = runner.invoke(cli, ["apply", "-f", "-"], input=join(*RIGHT.values()))

        assert done.exit_code == 0
        assert done.stderr == (
            "warning: EventTrigger 'made' selects no source cluster: its sourceClusterSelector asks"
            " for env=production, and 'fleet/source', the nearest of 2 clusters, has env=prod;"
            " correct the sourceClusterSelector, or"
            " `bellhop label cluster fleet/source env=production --overwrite`\n"
        )
