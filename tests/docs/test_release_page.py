"""The page on what is held: its commands are typed, in their order, where something is held."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellhop.api.kinds import parse_all, read_documents
from bellhop.cli.main import cli
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.declarations.records import HeldRemoval
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.match import HeldDeletion, Match

PAGE = Path(__file__).parents[2] / "docs/how-to/release-what-is-held.md"
CLUSTER, SOURCE = "prod/eu-1", "ingresses"
DECLARED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: ingresses}
spec:
  resourceSelectors: [{group: networking.k8s.io, version: v1, kind: Ingress}]
"""


def hold(state: Path) -> None:
    """Have sixty of a hundred Ingresses held in a cluster that is registered."""
    opened = open_state(state, Settings())
    here, now = opened.installation, datetime.now(UTC)
    here.declare.register(Cluster(*CLUSTER.split("/"), {}, "v1.31.0", "digest", now))
    here.declare.apply(parse_all(list(read_documents(DECLARED, source="page"))))
    until = now + timedelta(seconds=10)
    here.records.holds.put(
        HeldDeletion(CLUSTER, SOURCE, "lot", "rings", now, until, of=100, held_at=now)
    )
    for number in range(60):
        key = ObjectKey(GVK("networking.k8s.io", "v1", "Ingress"), "shop", f"i{number}")
        match = Match(CLUSTER, SOURCE, key, matching=True, digest="d", since=now, held=True)
        here.records.holds.stay(match, "lot", None, again=True)
    removal = HeldRemoval("web", "", 120, 120, 120, 1, (CLUSTER,), "3f2a9c01", "a label", now)
    here.records.removals.put(removal)
    opened.close()


def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees the held objects, mends the source, resyncs, and releases the intended ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eventsource.yaml").write_text(DECLARED)
    hold(tmp_path / "state")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.splitlines()]
    environment = {"BELLHOP_STATE": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path)}
    said: dict[str, list[str]] = {}
    for command in commands:
        program, *arguments = shlex.split(command)
        result = CliRunner(env=environment).invoke(cli, arguments)
        assert (program, result.exit_code) == ("bellhop", 0), f"{command}\n{result.output}"
        said.setdefault(arguments[0], []).append(result.stdout)

    assert [*said] == ["get", "apply", "resync", "release", "label"]
    assert "60 of 100 objects were deleted or changed at once" in said["get"][0]
    assert said["release"] == [
        f"Released 60 objects of EventSource '{SOURCE}' in '{CLUSTER}'.\n",
        "Released 120 add-ons of change '3f2a9c01'.\n",
    ]
