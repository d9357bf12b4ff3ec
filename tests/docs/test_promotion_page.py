"""The page on promotions: typed where three real clusters are the stages."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from infra.lab.cluster import Cluster as LabCluster
from tests.docs.test_steps_page import bellhop, until
from tests.docs.typed import type_page

pytest_plugins = ["tests.kube_fixtures"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/promote-through-stages.md").read_text()
EXAMPLE = (ROOT / "docs/examples/promotion/agent.yaml").read_text()


@pytest.fixture
def stages(
    tmp_path: Path,
    source_cluster: LabCluster,
    destination_cluster: LabCluster,
    governed_cluster: LabCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Serve an installation with a cluster for each stage, and go to an empty folder."""
    state, settings = tmp_path / "state", Settings()
    monkeypatch.setenv("BELLHOP_STATE", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    clusters = {
        "staging": source_cluster,
        "canary": destination_cluster,
        "production": governed_cluster,
    }
    with running(state, settings, Log(io.StringIO()), "127.0.0.1", 0):
        opened = open_state(state, settings)
        here = opened.installation
        for name, lab in clusters.items():
            kubeconfig = sanitise(lab.kubeconfig(), reach=LOCAL)
            here.secrets.put(f"kubeconfig/fleet/{name}", json.dumps(kubeconfig.to_dict()).encode())
            labels = {"env": name}
            here.declare.register(
                Cluster("fleet", name, labels, "v1.20", "0" * 64, datetime.now(UTC))
            )
        opened.close()
        yield tmp_path


def test_the_page_shows_the_example() -> None:
    assert f"```yaml file=agent.yaml\n{EXAMPLE}```" in PAGE


def test_a_reader_takes_a_release_through_the_stages(stages: Path) -> None:
    """Each command prints what stands below it, but that the hour of the delay is a second."""
    typed, _, rest = PAGE.partition("## What a release contains")
    first, *others = re.split(r"```sh\nbellhop ([^\n]*)\n```\n", typed)
    type_page(first, stages)
    later = stages / "agent.yaml"
    later.write_text(later.read_text().replace("delay: 1h", "delay: 1s"))
    assert "configured" in bellhop("apply", "-f", str(later))
    until(lambda text: "AwaitingApproval" in text, "get", "promotions")

    for command, after in zip(others[::2], others[1::2], strict=True):
        _write_files(typed, stages)
        printed = bellhop(*shlex.split(command))
        shown = re.match(r"\n```text\n(.*?)```\n", after, re.DOTALL)
        assert shown is None or _squeeze(shown[1]) in _squeeze(printed), command
        if command.startswith("approve"):
            until(_ends_in_production("1"), "get", "promotions")
        type_page(after[shown.end() :] if shown else after, stages)

    until(lambda text: "canary AwaitingApproval" in _squeeze(text), "get", "promotions")
    bellhop("approve", "promotion", "agent")
    until(_ends_in_production("2"), "get", "promotions")
    for command in re.findall(r"```sh\nbellhop (rollback [^\n]*)\n```", rest):
        assert bellhop(*shlex.split(command)), command
    until(_ends_in_production("2"), "get", "promotions")


def _write_files(page: str, folder: Path) -> None:
    """Save the files of a page that a reader has not saved yet."""
    for name, text in re.findall(r"```yaml file=(\S+)\n(.*?)```", page, re.DOTALL):
        if not (folder / name).exists():
            (folder / name).write_text(text)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _ends_in_production(release: str) -> Callable[[str], bool]:
    return lambda text: f"agent {release} production Promoted" in _squeeze(text)
