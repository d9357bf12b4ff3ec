"""`bellhop evaluate` and `bellhop test`: sources tried on objects from files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
import yaml

from tests.unit.cli.conftest import Bellhop

SOURCE = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: addresses}
spec:
  collectResources: true
  resourceSelectors:
  - {group: "", version: v1, kind: ConfigMap}
  - group: ""
    version: v1
    kind: Service
    evaluate: |
      function evaluate()
        hs = {}
        hs.matching = obj.status.loadBalancer.ingress ~= nil
        hs.message = obj.metadata.name .. " was asked"
        return hs
      end
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: eng}
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
"""
PENDING = """
apiVersion: v1
kind: Service
metadata: {name: db, namespace: eng}
status: {loadBalancer: {}}
"""
BROKEN = """
apiVersion: v1
kind: Service
metadata: {name: bare, namespace: eng}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: eng}
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A file with a source."""
    path = tmp_path / "source.yaml"
    path.write_text(SOURCE)
    return str(path)


def written(folder: Path, **files: str) -> Path:
    """Write the files of one test of a source."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name.replace('_', '-')}.yaml").write_text(text)
    return folder


def test_prints_all_of_it_for_programs(bellhop: Bellhop, source: str) -> None:
    """JSON has the message, the time and the selector's number, 0 where none takes it."""
    result = bellhop(
        *("evaluate", source, "--object", "-", "-o", "json"), stdin=f"{SERVICE}---{POD}"
    )

    web, pod = json.loads(result.stdout)
    assert web.pop("ms") > 0
    assert pod.pop("ms") >= 0
    assert web == {
        "source": "addresses",
        "object": "Service eng/web",
        "matching": True,
        "selector": 2,
        "because": "its script says yes: web was asked",
        "message": "web was asked",
        "error": "",
    }
    assert (pod["matching"], pod["selector"], pod["message"]) == (False, 0, "")


def test_a_script_that_fails_says_where_and_the_others_are_evaluated(
    bellhop: Bellhop, source: str
) -> None:
    """The exit code is 1, the line is the script's, and no object is left out."""
    result = bellhop("evaluate", source, "--object", "-", stdin=f"{BROKEN}---{SERVICE}")

    assert result.exit_code == 1
    assert "failed" in result.stdout.splitlines()[1]
    assert "yes" in result.stdout.splitlines()[2]
    assert "addresses:3" in result.stderr


def test_a_list_is_taken_apart(bellhop: Bellhop, source: str) -> None:
    several = {"apiVersion": "v1", "kind": "List", "items": []}
    several["items"] = [yaml.safe_load(SERVICE), yaml.safe_load(PENDING)]  # type: ignore[assignment]
    result = bellhop("evaluate", source, "--object", "-", stdin=yaml.safe_dump(several))

    assert [row.split()[1] for row in result.stdout.splitlines()[1:]] == ["eng/web", "eng/db"]


def test_several_sources_of_a_file_are_distinguished(bellhop: Bellhop, tmp_path: Path) -> None:
    """Each is tried on each object, and a column says which it was."""
    (tmp_path / "two.yaml").write_text(f"{SOURCE}---{SOURCE.replace('addresses', 'others')}")
    result = bellhop("evaluate", str(tmp_path / "two.yaml"), "--object", "-", stdin=POD)

    assert [row.split()[0] for row in result.stdout.splitlines()] == [
        *("SOURCE", "addresses", "others")
    ]


@pytest.mark.parametrize(
    ("named", "stdin", "code", "said"),
    [
        pytest.param("nowhere", SERVICE, 1, "no EventSource of that name", id="neither"),
        pytest.param("{source}", "a: 1\n", 2, "this is not a Kubernetes object", id="no object"),
        pytest.param("{source}", "kind: [", 2, "standard input", id="no YAML"),
        pytest.param("-", SOURCE, 2, "cannot both be standard input", id="both from a pipe"),
    ],
)
def test_bad_input_is_reported_in_a_sentence(
    bellhop: Bellhop, source: str, named: str, stdin: str, code: int, said: str
) -> None:
    named = named.format(source=source)
    result = bellhop("evaluate", named, "--object", "-", stdin=stdin)

    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""


def test_values_of_secrets_are_quoted_only_if_asked(bellhop: Bellhop, tmp_path: Path) -> None:
    """A script's own words may be the value, as everywhere."""
    text = SOURCE.replace("Service", "Secret").replace(
        "obj.status.loadBalancer.ingress ~= nil", "error(obj.data.token)"
    )
    (tmp_path / "s.yaml").write_text(text)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    given = yaml.safe_dump({**secret, "data": {"token": "aHVzaA=="}})
    command = ("evaluate", str(tmp_path / "s.yaml"), "--object", "-")

    assert "aHVzaA==" not in bellhop(*command, stdin=given).output
    assert "aHVzaA==" in bellhop(*command, "--show-secrets", stdin=given).output


def test_folders_of_tests_pass_and_fail(bellhop: Bellhop, tmp_path: Path) -> None:
    written(tmp_path / "t/good", eventsource=SOURCE, matching=SERVICE, non_matching=PENDING)
    written(tmp_path / "t/more/bad", eventsource=SOURCE, matching=PENDING, non_matching=SERVICE)
    written(tmp_path / "t/alone", eventsource=SOURCE)

    result = bellhop("test", str(tmp_path / "t/good"))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "3 cases: 3 passed, 0 failed")

    result = bellhop("test", str(tmp_path / "t"), "--quiet")
    assert result.exit_code == 1
    assert [line.partition(": ")[2] for line in result.stdout.splitlines()[:-1]] == [
        (
            "Service eng/db: it does not match: it is a v1/Service, not v1/ConfigMap;"
            " its script says no: db was asked"
        ),
        "Service eng/web: it matches: its script says yes: web was asked",
    ]
    assert result.stdout.splitlines()[-1] == "7 cases: 5 passed, 2 failed"


def test_what_cannot_be_tested_fails_and_keeps_nothing_from_being_tested(
    bellhop: Bellhop, tmp_path: Path
) -> None:
    """A source with a mistake, an empty file and a script that fails are errors of their own."""
    written(tmp_path / "t/a", eventsource=SOURCE.replace("function", "funktion"), matching=SERVICE)
    written(tmp_path / "t/b", eventsource=SOURCE, matching="", non_matching=BROKEN)
    written(tmp_path / "t/c", eventsource=f"{SOURCE}---{SOURCE.replace('addresses', 'x')}")
    written(tmp_path / "t/d", eventsource=SOURCE, matching=SERVICE)

    report = tmp_path / "report.xml"
    result = bellhop("test", str(tmp_path / "t"), "--junit", str(report))

    assert result.exit_code == 1
    assert result.stdout.count("ERROR") == 4
    assert result.stdout.splitlines()[-1] == "7 cases: 3 passed, 4 failed"
    suites = fromstring(report.read_text())
    assert [(each.get("tests"), each.get("errors"), each.get("failures")) for each in suites] == [
        *(("1", "1", "0"), ("3", "2", "0"), ("1", "1", "0"), ("2", "0", "0"))
    ]


def test_the_report_holds_whatever_a_script_says(bellhop: Bellhop, tmp_path: Path) -> None:
    """Marks, quotes and characters that XML knows no way to write do not break it."""
    hostile = '"</failure>&\\27[31m\\1\\239\\191\\191"'
    text = SOURCE.replace('obj.metadata.name .. " was asked"', hostile)
    written(tmp_path / "t", eventsource=text, non_matching=SERVICE)
    report = tmp_path / "report.xml"

    assert bellhop("test", str(tmp_path / "t"), "--junit", str(report)).exit_code == 1
    [failure] = fromstring(report.read_text()).iter("failure")
    assert "</failure>&\\x1b[31m\\x01\\uffff" in str(failure.get("message"))


@pytest.mark.parametrize("made", [True, False])
def test_nothing_to_test_is_reported(bellhop: Bellhop, tmp_path: Path, *, made: bool) -> None:
    """A folder that was mistyped does not pass."""
    folder = tmp_path / "t"
    if made:
        folder.mkdir()
    result = bellhop("test", str(folder))

    assert result.exit_code == 1
    assert f"cannot test '{folder}'" in result.stderr


def test_a_report_that_cannot_be_written_is_reported(bellhop: Bellhop, tmp_path: Path) -> None:
    written(tmp_path / "t", eventsource=SOURCE)
    report = os.fspath(tmp_path / "no/such/folder.xml")
    result = bellhop("test", str(tmp_path / "t"), "--junit", report)

    assert result.exit_code == 2
    assert f"cannot write the report '{report}'" in result.stderr
    assert "EventSource addresses" in result.stdout


AGGREGATING = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: newest}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Service}
  aggregatedSelection: |
    function evaluate()
      local found = {}
      for _, each in ipairs(resources) do
        if each.status.loadBalancer.ingress then table.insert(found, each) end
      end
      if #found > 0 then
        table.insert(found, {apiVersion = "v1", kind = "Sum", metadata = {name = "all"}})
      end
      return {resources = found, message = #found .. " found"}
    end
"""
SUM = """
apiVersion: v1
kind: Sum
metadata: {name: all}
"""


def test_reports_what_a_script_makes_of_all_of_them(bellhop: Bellhop, tmp_path: Path) -> None:
    path = tmp_path / "source.yaml"
    path.write_text(AGGREGATING)

    result = bellhop(
        "evaluate", str(path), "--object", "-", "-o", "json", stdin=f"{SERVICE}---{PENDING}---{POD}"
    )

    results = {
        each["object"]: (each["matching"], each["because"]) for each in json.loads(result.stdout)
    }
    assert list(results) == ["Service eng/web", "Sum all", "Service eng/db", "Pod eng/p"]
    assert results["Service eng/web"] == (True, "its aggregatedSelection chooses it: 2 found")
    assert results["Sum all"] == (True, "its aggregatedSelection makes it: 2 found")
    assert results["Service eng/db"] == (False, "its aggregatedSelection leaves it out: 2 found")
    assert not results["Pod eng/p"][0]


@pytest.mark.parametrize("given", [SERVICE, POD], ids=["a candidate", "none"])
def test_a_script_over_all_that_fails_is_reported(
    bellhop: Bellhop, tmp_path: Path, given: str
) -> None:
    """With its line, and an exit code, whether anything matched or nothing did."""
    path = tmp_path / "source.yaml"
    path.write_text(AGGREGATING.replace("local found = {}", "error('oh no')"))

    result = bellhop("evaluate", str(path), "--object", "-", stdin=given)

    assert result.exit_code == 1
    assert "newest, aggregatedSelection:2: oh no" in result.stderr


def test_a_folder_is_one_cluster_for_such_a_script(bellhop: Bellhop, tmp_path: Path) -> None:
    """Both files are given to it together, and what it makes may be expected, too."""
    matching = f"{SERVICE}---{SUM}"
    written(tmp_path / "good", eventsource=AGGREGATING, matching=matching, non_matching=PENDING)
    written(tmp_path / "bad", eventsource=AGGREGATING, matching=PENDING, non_matching=SERVICE)

    good = bellhop("test", str(tmp_path / "good"))
    bad = bellhop("test", str(tmp_path / "bad"))

    assert good.exit_code == 0, good.stdout
    assert "4 cases: 4 passed" in good.stdout
    assert bad.exit_code == 1
    assert "Service eng/db: it does not match: its aggregatedSelection leaves it out" in bad.stdout
    assert "Service eng/web: it matches: its aggregatedSelection chooses it" in bad.stdout


def test_a_folder_whose_script_over_all_fails(bellhop: Bellhop, tmp_path: Path) -> None:
    """Each object is broken with the error: nobody can say what is in the report."""
    failing = AGGREGATING.replace("local found = {}", "error('oh no')")
    written(tmp_path / "bad", eventsource=failing, matching=SERVICE, non_matching=POD)

    result = bellhop("test", str(tmp_path / "bad"))

    assert result.exit_code == 1
    assert "ERROR" in result.stdout
    assert "oh no" in result.stdout


def test_a_script_over_all_that_is_none_is_refused(bellhop: Bellhop, tmp_path: Path) -> None:
    path = tmp_path / "source.yaml"
    path.write_text(AGGREGATING.replace("return {resources", "return {{resources"))

    result = bellhop("apply", "--validate-only", "-f", str(path))

    assert result.exit_code == 2
    assert "spec.aggregatedSelection" in result.stderr
    assert "cannot be compiled" in result.stderr
