"""Pages for operators, played: a lost machine, an upgrade under load, and the end of it all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.model.gvk import ObjectKey
from tests.docs.terminal import Terminal, Typed, typed
from tests.flow.conftest import EXAMPLES, Flow, until
from tests.flow.test_examples import POLICY, SERVICE, service

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
SOURCE = "fleet/source"
PASSPHRASE = "four words and a number 7\n"


class Reader:
    """Somebody who types the commands of a page, in its order, as far as they are asked to."""

    def __init__(self, page: str, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lines = typed(HOW_TO / page)

    def type(self, beginning: str) -> None:
        """Type the next command of the page, which begins so; it must succeed."""
        line = self._lines.pop(0)
        assert line.command.startswith(beginning), line.command
        command = line.command.replace("prod/eu-1", SOURCE)
        self._terminal.follow(Typed(command, line.shown))

    def rest(self) -> list[str]:
        """Return what is left to type."""
        return [line.command for line in self._lines]


@pytest.fixture
def terminal(flow: Flow) -> Iterator[Terminal]:
    """A shell of the operator, in the folder of the installation."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with Terminal({**flow.stand.environment, "PATH": path}, flow.stand.folder) as one:
        yield one


def policies(flow: Flow) -> dict[str, str]:
    """Return the deployed policies, each with its uid."""
    found = [each["metadata"] for each in flow.source.list(POLICY)]
    return {each["name"]: each["uid"] for each in found}


def create(flow: Flow, *names: str) -> None:
    for name in names:
        flow.source.create(service(name, sveltos="fv"))


def end(flow: Flow, name: str) -> None:
    flow.source.delete(ObjectKey(SERVICE, "default", name))


def manifests(flow: Flow) -> Path:
    """Copy the example to where the operator keeps it."""
    return Path(shutil.copytree(EXAMPLES / "network-policy", flow.stand.folder / "manifests"))


def change(folder: Path, old: str, new: str) -> None:
    """Change what a trigger deploys."""
    path = folder / "trigger.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def callers(flow: Flow) -> set[str]:
    """Return whom the policies let in."""
    return {
        each["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"]
        for each in flow.source.list(POLICY)
    }


def dead_letters(flow: Flow) -> str:
    return flow.stand.do("dead-letters", "list", "-o", "json").strip()


def test_a_lost_machine_is_restored_with_nothing_lost(flow: Flow, terminal: Terminal) -> None:
    """Events, ends and changes after the backup all come right; what lives keeps its uid.

    It takes seconds: two installations are served in turn, and an operator types a page.
    """
    (flow.stand.folder / "passphrase").write_text(PASSPHRASE)
    folder = manifests(flow)
    page = Reader("back-up-and-restore.md", terminal)
    flow.apply("network-policy")
    create(flow, "kept", "ended", "lost")
    until("all are there", lambda: len(policies(flow)) == 3)
    create(flow, "meanwhile")
    page.type("bellhop backup")

    create(flow, "late", "brief")
    end(flow, "ended")
    change(folder, "app: internal", "app: changed")
    flow.stand.do("apply", "-f", str(folder))
    until("the end is known", lambda: "front-ended" not in policies(flow))
    until("the change is there", lambda: callers(flow) == {"changed"} and len(policies(flow)) == 5)
    before = policies(flow)
    flow.stand.kill("serve")
    flow.stand.close()
    shutil.rmtree(flow.stand.state)
    create(flow, "missed")
    end(flow, "lost")
    end(flow, "brief")

    page.type("bellhop restore")
    flow.stand.serve()
    page.type("bellhop apply")
    wanted = {f"front-{name}" for name in ("kept", "meanwhile", "late", "missed")}
    stray = {"front-brief"}
    until("the cluster is right", lambda: policies(flow).keys() - stray == wanted)
    until("the change is back", lambda: callers(flow) == {"changed"})
    after = policies(flow)
    assert {name: after[name] for name in wanted - {"front-missed"}} == {
        name: before[name] for name in wanted - {"front-missed"}
    }
    flow.stand.settle(SOURCE)
    page.type("bellhop sweep")
    flow.stand.settle(SOURCE)
    page.type("bellhop show strays")
    page.type("bellhop remove-strays")
    assert policies(flow) == {name: after[name] for name in wanted}
    page.type("bellhop status")
    assert dead_letters(flow) == "[]"
    page.type("bellhop --state rehearsal restore")
    page.type("bellhop --state rehearsal get clusters")
    assert not page.rest()
