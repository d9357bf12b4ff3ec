"""The alert rules for Prometheus fire when their page says, and Prometheus itself reads them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3
import yaml

from infra.lab.port import free_port
from tests.missing import find_program
from tests.waiting import eventually

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs/examples/monitoring/alerts.yaml"
PAGE = ROOT / "docs/how-to/monitor.md"
DECLARED = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
GIB = 2**30


class Firing(NamedTuple):
    """Series of one minute a value by which a rule fires, since when, and what it then says."""

    series: Mapping[str, str]
    minute: int
    summary: str
    labels: Mapping[str, str] = {}


WELL = {
    'up{job="bellhop"}': "1x120",
    "bellhop_heartbeat_timestamp_seconds": "0+60x120",
    "bellhop_disk_free_bytes": f"{5 * GIB}x120",
    "bellhop_disk_size_bytes": f"{10 * GIB}x120",
    'bellhop_dead_letters{queue="deploy"}': "0x120",
    'bellhop_oldest_message_age_seconds{queue="deploy"}': "1x120",
    "bellhop_timer_longest_delay_seconds": "0x120",
    "bellhop_failed_steps_total": "7x120",
    'bellhop_clusters{state="Healthy"}': "80x120",
    'bellhop_clusters{state="Silent"}': "0x120",
    'bellhop_clusters{state="Down"}': "0x120",
    "bellhop_missed_events_total": "3x120",
    'bellhop_held_deletions{cause="events"}': "0x120",
    "bellhop_promotion_stalled": "0x120",
    'bellhop_ingest_requests_total{status="401"}': "2x120",
    'bellhop_ingest_requests_total{status="503"}': "2x120",
    'bellhop_deployment_latency_seconds_bucket{le="60"}': "0+10x120",
    'bellhop_deployment_latency_seconds_bucket{le="300"}': "0+10x120",
    'bellhop_deployment_latency_seconds_bucket{le="+Inf"}': "0+10x120",
    'process_cpu_seconds_total{job="bellhop"}': "0+6x120",
    "bellhop_credentials_expiry_timestamp_seconds": "864000x120",
    "bellhop_backup_timestamp_seconds": "0+60x120",
    'bellhop_collector_success{part="disk"}': "1x120",
}
"""What `serve` exports for two hours in which nothing is wrong."""

FIRING = {
    "BellhopDown": Firing(
        {'up{job="bellhop"}': "0x120"},
        2,
        "bellhop serve is not running, or Prometheus does not reach it",
    ),
    "BellhopScheduleStopped": Firing(
        {"bellhop_heartbeat_timestamp_seconds": "0x120"},
        11,
        "The schedule has not written to the store for 11m 0s: nothing is retried or resynced",
    ),
    "BellhopDiskFull": Firing(
        {"bellhop_disk_free_bytes": f"{GIB // 2}x120"},
        5,
        "Only 512MiB are free where the state folder is",
    ),
    "BellhopDeadLetters": Firing(
        {'bellhop_dead_letters{queue="deploy"}': "3x120"},
        0,
        "Messages of the queue deploy that failed permanently: 3",
        {"queue": "deploy"},
    ),
    "BellhopMessagesOld": Firing(
        {'bellhop_oldest_message_age_seconds{queue="deploy"}': "0+60x120"},
        31,
        "A message of the queue deploy has waited for 31m 0s",
        {"queue": "deploy"},
    ),
    "BellhopTimersLate": Firing(
        {"bellhop_timer_longest_delay_seconds": "0+60x120"}, 31, "A timer is 31m 0s late"
    ),
    "BellhopStepsFail": Firing(
        {"bellhop_failed_steps_total": "0+1x120"},
        60,
        "Steps have kept failing for half an hour, 30 in the last one",
    ),
    "BellhopClustersUnreachable": Firing(
        {'bellhop_clusters{state="Down"}': "2x120"},
        10,
        "Clusters that are Down: 2",
        {"state": "Down"},
    ),
    "BellhopClustersSilent": Firing(
        {'bellhop_clusters{state="Silent"}': "1x120"},
        10,
        "Clusters that answer but send no events: 1",
    ),
    "BellhopEventsMissed": Firing(
        {"bellhop_missed_events_total": "0x59 6x60"},
        60,
        "Resyncs found 6 objects in the last hour for which no event arrived",
    ),
    "BellhopDeletionsHeld": Firing(
        {'bellhop_held_deletions{cause="events"}': "12x120"},
        5,
        "The deletion guard holds 12 deletions",
        {"cause": "events"},
    ),
    "BellhopPromotionsStalled": Firing(
        {"bellhop_promotion_stalled": "2x120"},
        10,
        "Stages of promotions at which a release is stopped: 2",
    ),
    "BellhopRequestsRefused": Firing(
        {'bellhop_ingest_requests_total{status="401"}': "0+1x120"},
        15,
        "15 requests of senders were refused in 15 minutes",
    ),
    "BellhopIngestErrors": Firing(
        {'bellhop_ingest_requests_total{status="503"}': "0+4x120"},
        5,
        "Ingest failed 20 times in 5 minutes",
    ),
    "BellhopSlow": Firing(
        {'bellhop_deployment_latency_seconds_bucket{le="60"}': "0x120"},
        11,
        "One event in a hundred takes 4m 57s or longer until it is applied",
    ),
    "BellhopSaturated": Firing(
        {'process_cpu_seconds_total{job="bellhop"}': "0+57x120"},
        26,
        "bellhop serve uses 95% of a core, and one is all that it can use",
        {"job": "bellhop"},
    ),
    "BellhopCredentialsExpire": Firing(
        {"bellhop_credentials_expiry_timestamp_seconds": "600000x120"},
        10,
        "Credentials of a cluster expire in 6d 22h 30m 0s",
    ),
    "BellhopBackupOld": Firing(
        {"bellhop_backup_timestamp_seconds": "-172800x120"},
        61,
        "The last backup is 2d 1h 1m 0s old",
    ),
    "BellhopMetricsIncomplete": Firing(
        {'bellhop_collector_success{part="disk"}': "0x120"},
        10,
        "The metrics of disk cannot be read",
        {"part": "disk"},
    ),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    return str(find_program("promtool", "prometheus"))


def test_each_rule_fires_when_its_cause_is_there(promtool: str, tmp_path: Path) -> None:
    """Only by the series of its cause, with its labels and its sentence."""
    assert sorted(FIRING) == sorted(rule["alert"] for rule in DECLARED)
    tests = [
        _case({**WELL, **firing.series}, firing.minute, [(rule, firing)])
        for rule in DECLARED
        for firing in [FIRING[rule["alert"]]]
    ]
    _check(promtool, tmp_path, tests)


def test_no_rule_fires_while_all_is_healthy(promtool: str, tmp_path: Path) -> None:
    """Two hours of a healthy installation alert nobody; nor do causes that end in time."""
    quiet = [(rule, None) for rule in DECLARED]
    before = [
        _case({**WELL, **FIRING[rule["alert"]].series}, 0, [(rule, None)])
        for rule in DECLARED
        if "for" in rule
    ]
    _check(promtool, tmp_path, [_case(WELL, 110, quiet), *before])


def _case(
    series: Mapping[str, str], minute: int, expected: Sequence[tuple[Any, Firing | None]]
) -> dict[str, Any]:
    """Return a test as promtool reads it: which rules fire at a minute, and what they say."""
    alerts = []
    for rule, firing in expected:
        alert: dict[str, Any] = {"eval_time": f"{minute}m", "alertname": rule["alert"]}
        if firing:
            url = rule["annotations"]["runbook_url"]
            annotations = {"summary": firing.summary, "runbook_url": url}
            labels = {**rule["labels"], **firing.labels}
            alert["exp_alerts"] = [{"exp_labels": labels, "exp_annotations": annotations}]
        alerts.append(alert)
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": each} for name, each in series.items()],
        "alert_rule_test": alerts,
    }


def _check(promtool: str, folder: Path, tests: Sequence[dict[str, Any]]) -> None:
    path = folder / "tests.yaml"
    path.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests})
    )
    done = subprocess.run(
        [promtool, "test", "rules", path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """A Prometheus with the page's own configuration, of a `serve` on another port."""
    binary, port = find_program("prometheus"), free_port()
    arguments = ("--listen", "127.0.0.1:0", "--state", str(tmp_path / "state"))
    command = [sys.executable, "-m", "bellhop.cli.main", "serve", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [*command, "--metrics", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=kept
    ) as serve:
        assert serve.stdout
        lines = map(json.loads, serve.stdout)
        metrics = next(each["port"] for each in lines if each["message"] == "Metrics are served")
        configuration = tmp_path / "prometheus.yml"
        configuration.write_text(json.dumps(_configured(metrics)))
        with subprocess.Popen(
            [
                binary,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={tmp_path / 'series'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                for each in (process, serve):
                    each.send_signal(signal.SIGTERM)
                    assert each.wait(30) == 0


def _configured(metrics: int) -> dict[str, Any]:
    """Return the page's scrape configuration and rules, with this port, and without patience."""
    block = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    found: dict[str, Any] = yaml.safe_load(block)
    [job] = found["scrape_configs"]
    job["scrape_interval"] = "1s"
    job["static_configs"] = [{"targets": [f"127.0.0.1:{metrics}"]}]
    return {**found, "rule_files": [str(RULES)], "global": {"evaluation_interval": "1s"}}


def test_a_prometheus_scrapes_serve_and_reads_the_rules(prometheus: str) -> None:
    """The target is up, every rule is evaluated, and none fires beside a healthy `serve`."""
    with urllib3.PoolManager(retries=False) as pool:
        eventually(
            lambda: _asked(pool, prometheus, "targets"),
            lambda: _scraped(pool, prometheus),
            patience=60,
        )
        rules = [
            rule for group in _asked(pool, prometheus, "rules")["groups"] for rule in group["rules"]
        ]

    assert [(rule["health"], rule.get("lastError", "")) for rule in rules] == [("ok", "")] * len(
        DECLARED
    )
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def _scraped(pool: urllib3.PoolManager, url: str) -> bool:
    """Say whether a scrape has come, and rules were evaluated since."""
    try:
        query = "query?query=bellhop_build_info"
        groups = _asked(pool, url, "rules")["groups"]
        return bool(_asked(pool, url, query)["result"]) and all(
            rule["health"] != "unknown" for group in groups for rule in group["rules"]
        )
    except urllib3.exceptions.HTTPError:
        return False


def _asked(pool: urllib3.PoolManager, url: str, path: str) -> Any:
    answer = pool.request("GET", f"{url}/api/v1/{path}")
    return json.loads(answer.data)["data"] if answer.status == 200 else {"groups": [], "result": []}
