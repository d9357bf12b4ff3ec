"""The page on monitoring, its rules and its dashboard, held against a real `bellhop serve`."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from bellhop.cli.main import cli
from bellhop.ports.queue import GivenUp
from bellhop.runtime.embedded.gauges import clusters_by_name, profiles_by_name, promotions_by_name
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.messages import Resolve
from tests.docs.test_pages import anchors
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/monitor.md"
EXAMPLES = ROOT / "docs/examples/monitoring"
RULES = [
    rule
    for group in yaml.safe_load((EXAMPLES / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((EXAMPLES / "dashboard.json").read_text())
EXPRESSIONS = [
    *(rule["expr"] for rule in RULES),
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
BUILT_IN = {"up"}
CLUSTER = "prod/hidden"
ROW = re.compile(r"^\| `(bellhop_\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", re.MULTILINE)
NAMES = "### Name clusters and profiles"


class Served(NamedTuple):
    """What a real `serve` answers on both of its listeners, and how its process is called."""

    state: Path
    page: str
    public: int


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A `serve` with metrics, to which one request was sent, and that has a dead letter."""
    state = tmp_path_factory.mktemp("monitor") / "state"
    opened = open_state(state, Settings())
    opened.installation.publisher.publish([Resolve("a")])
    [delivery] = opened.queues["deploy"].receive(1, wait=timedelta(0))
    opened.queues["deploy"].settle(delivery, GivenUp("broken"))
    opened.close()
    arguments = ("--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--state", str(state))
    with subprocess.Popen(
        [sys.executable, "-m", "bellhop.cli.main", "serve", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
    ) as process:
        try:
            yield _asked(state, process)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def _asked(state: Path, process: subprocess.Popen[str]) -> Served:
    assert process.stdout
    lines = {}
    for line in process.stdout:
        found = json.loads(line)
        lines[found["message"]] = found
        if found["message"] == "Bellhop serves":
            break
    url, port = lines["Bellhop serves"]["url"], lines["Metrics are served"]["port"]
    authority = json.loads((state / "address.json").read_text())["ca"]
    with urllib3.PoolManager(retries=False, ca_cert_data=authority) as pool:
        headers = {"Authorization": "Bearer wrong"}
        pool.request("POST", f"{url}/clusters/{CLUSTER}", body=b"{}", headers=headers)
        public = pool.request("GET", f"{url}/metrics")
        page = _scraped(pool, f"http://127.0.0.1:{port}/metrics")
    assert b"bellhop_" not in public.data
    return Served(state, page, public.status)


def _scraped(pool: urllib3.PoolManager, url: str) -> str:
    """Scrape until no part is late, as one may be while a busy machine starts a process."""

    def scraped() -> str:
        page = pool.request("GET", url).data.decode()
        late = re.search(r"^bellhop_collector_success\{.*\} 0", page, re.MULTILINE)
        return "" if late else page

    return eventually("no part is late", scraped)


def families(page: str) -> Mapping[str, Any]:
    """Return the metrics of a scrape by the names that queries use, but for their suffixes."""
    return {
        f"{each.name}_total" if each.type == "counter" else each.name: each
        for each in text_string_to_metric_families(page)
    }


def test_the_public_listener_shows_no_metrics(served: Served) -> None:
    """It answers as to any path that it does not know, and counts that."""
    assert served.public == 404
    assert 'bellhop_ingest_requests_total{status="404"} 1.0' in served.page


def test_no_label_has_a_name(served: Served) -> None:
    """A scrape, which needs no login, shows no cluster, and series stay few."""
    assert "hidden" not in served.page
    assert len(served.page.splitlines()) < 400


def test_the_table_has_each_metric_as_it_is_exported(served: Served) -> None:
    """Name, type and meaning; labels of those that have a value yet."""
    rows = ROW.findall(PAGE.read_text().partition(NAMES)[0])
    documented = {name: (kind, text) for name, kind, _, text in rows}
    found = families(served.page)
    ours = {name: each for name, each in found.items() if name.startswith("bellhop_")}

    assert documented == {name: (each.type, each.documentation) for name, each in ours.items()}
    labels = {name: set(re.findall(r"`(\w+)`", cell)) for name, _, cell, _ in rows}
    for name, each in ours.items():
        for sample in each.samples:
            assert sample.labels.keys() - {"le"} == labels[name]


def test_the_table_of_names_has_each_metric_as_it_is_exported(tmp_path: Path) -> None:
    """Those that are served on request only, with the labels that they may have."""
    opened = open_state(tmp_path / "state", Settings())
    here = opened.installation
    exported: dict[str, Any] = {
        each.name: each
        for read in (clusters_by_name, profiles_by_name, promotions_by_name)
        for each in read(here)
    }
    opened.close()
    rows = ROW.findall(PAGE.read_text().partition(NAMES)[2])

    assert {name: (kind, text) for name, kind, _, text in rows} == {
        name: (each.type, each.documentation) for name, each in exported.items()
    }
    for name, _, cell, _ in rows:
        assert re.findall(r"`(\w+)`", cell) == list(getattr(exported[name], "_labelnames", ()))


@pytest.mark.parametrize("expression", sorted(set(EXPRESSIONS)))
def test_queries_use_exported_metrics(served: Served, expression: str) -> None:
    """A metric or a label that is not there makes a rule that never fires."""
    found = families(served.page)
    names = {
        f"{name.removesuffix('_total') if each.type == 'counter' else name}{suffix}": each
        for name, each in found.items()
        for suffix in SUFFIXES[each.type]
    }
    used = re.findall(r"\b(?:(?:bellhop|process)_\w+|up\b)", expression)

    assert used
    assert set(used) <= names.keys() | BUILT_IN
    values = {key for name in used if name in names for key in _labels(names[name])}
    asked = set(re.findall(r"(\w+)(?:=~?\")", expression)) | set(
        re.findall(r"by \((\w+)\)", expression)
    )
    # Prometheus adds the job, and a step has a label once it was taken.
    assert asked - values <= {"job", "le", "step"}


def _labels(family: Any) -> set[str]:
    return {name for sample in family.samples for name in sample.labels}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_rule_has_a_summary_and_a_runbook(rule: Mapping[str, Any]) -> None:
    """The link leads to the section that has the rule's name."""
    notes = rule["annotations"]
    page, _, anchor = notes["runbook_url"].partition("#")

    assert notes["summary"]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert page.endswith("/how-to/monitor.md")
    assert anchor == rule["alert"].lower()
    assert anchor in anchors(PAGE)


def test_each_runbook_has_a_rule() -> None:
    """A rule that was removed leaves no section behind."""
    sections = re.findall(r"^### (Bellhop\w+)$", PAGE.read_text(), re.MULTILINE)

    assert sorted(sections) == sorted(rule["alert"] for rule in RULES)


def test_panels_do_not_overlap() -> None:
    """Grafana moves those that do, and each panel has an id of its own."""
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len(ids) == len(set(ids))


def test_every_command_works(served: Served, tmp_path: Path) -> None:
    """What a runbook says to type is a command, and shows what is wrong."""
    environment = {"BELLHOP_STATE": str(served.state), "XDG_CONFIG_HOME": str(tmp_path)}
    said = {}
    for command in re.findall(r"^```bash\n(.*?)\n```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        program, *arguments = shlex.split(command)
        result = CliRunner(env=environment).invoke(cli, arguments)
        assert program == "bellhop"
        # `status` says by its exit code that something is wrong.
        assert result.exit_code == int(arguments == ["status"]), f"{command}\n{result.output}"
        said[" ".join(arguments)] = result.stdout

    assert "dead letter deploy/1" in said["status"]
    assert "broken" in said["dead-letters list"]
