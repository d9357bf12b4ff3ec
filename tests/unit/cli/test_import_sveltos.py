"""`bellhop import sveltos`: what is taken, what is refused, and what is written."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.sveltos.hub import Reference
from bellhop.documents.document import dump, read_documents
from tests.fakes.sveltos import definition, wait_until_served
from tests.unit.cli.conftest import Bellhop

pytest_plugins = ["tests.kube_fixtures"]

Import = Callable[..., dict[str, Any]]

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: a, user: {token: opaque}}]
"""
LIB = "lib.projectsveltos.io/v1beta1"
CONFIG = "config.projectsveltos.io/v1beta1"
HOLDER = {"kind": "ConfigMap", "namespace": "default", "name": "web"}


def an_object(kind: str, name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """An object as an API server stores it."""
    group = CONFIG if kind.endswith(("Profile", "Summary", "Promotion")) else LIB
    server = {"uid": "1", "resourceVersion": "2", "generation": 1, "finalizers": ["x"]}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, **server, **metadata},
        "spec": spec or {},
        "status": {"ready": True},
    }


def a_holder(name: str, kind: str = "ConfigMap", **data: str) -> dict[str, Any]:
    """A ConfigMap, or a Secret with values in base64."""
    if kind == "Secret":
        data = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}


def a_profile(name: str = "web", **spec: Any) -> dict[str, Any]:
    return an_object("ClusterProfile", name, {"clusterSelector": {}, "policyRefs": [HOLDER]} | spec)


def a_cluster(**metadata: Any) -> list[dict[str, Any]]:
    """A registered cluster, and its Secret."""
    secret = a_holder("east-sveltos-kubeconfig", "Secret", kubeconfig=KUBECONFIG)
    return [an_object("SveltosCluster", "east", namespace="default", **metadata), secret]


@pytest.fixture
def imported(bellhop: Bellhop, tmp_path: Path) -> Import:
    """Import objects, as `kubectl get -o yaml` prints them, and return the report."""

    def run(*objects: dict[str, Any], code: int = 0) -> dict[str, Any]:
        path = tmp_path / "hub.yaml"
        path.write_text(dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        folder = str(tmp_path / "fleet")
        done = bellhop("import", "sveltos", "-f", str(path), "--output-dir", folder, "-o", "json")
        assert done.exit_code == code, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def written(folder: Path) -> dict[str, list[Any]]:
    """Return the documents of each file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): [
            each.data for each in read_documents(path.read_text(), source="file")
        ]
        for path in files
    }


def notes(report: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: " ".join(each["notes"]) for each in report["objects"]}


def test_nothing_of_an_api_server_is_left_in_what_is_written(
    imported: Import, tmp_path: Path
) -> None:
    """A file has what somebody could have written, and a mode that changes no cluster."""
    imported(a_profile(), a_holder("web", a="b"))

    files = written(tmp_path / "fleet")
    assert list(files) == [
        "manifests/clusterprofile.web.yaml",
        "manifests/configmap.default.web.yaml",
    ]
    [profile] = files["manifests/clusterprofile.web.yaml"]
    assert profile == {
        "apiVersion": CONFIG,
        "kind": "ClusterProfile",
        "metadata": {"name": "web"},
        "spec": {"clusterSelector": {}, "policyRefs": [HOLDER], "syncMode": "DryRun"},
    }
    text = (tmp_path / "fleet/manifests/clusterprofile.web.yaml").read_text()
    assert text.startswith("# syncMode was Continuous. To cut over, set it to Continuous again.\n")


def test_a_dry_run_stays_one(imported: Import) -> None:
    """There is nothing to cut over to."""
    report = imported(a_profile(syncMode="DryRun"), a_holder("web"))

    assert notes(report)["web"] == ""


def test_a_request_is_paused(imported: Import, tmp_path: Path) -> None:
    """It has no dry run, and would write roles beside Sveltos'."""
    spec = {"serviceAccountName": "a", "serviceAccountNamespace": "b", "roleRefs": [HOLDER]}
    imported(an_object("RoleRequest", "ann", spec), a_holder("web"))

    [request] = written(tmp_path / "fleet")["manifests/rolerequest.ann.yaml"]
    assert request["metadata"]["annotations"] == {"profile.projectsveltos.io/paused": "true"}


def test_charts_take_over_what_sveltos_installed(imported: Import, tmp_path: Path) -> None:
    """Other options of the chart stay, and what is to be uninstalled is left as it is."""
    chart = {
        "repositoryURL": "https://charts.example.com",
        "repositoryName": "a",
        "chartName": "a/a",
        "chartVersion": "1.0.0",
        "releaseName": "a",
        "releaseNamespace": "a",
        "options": {"installOptions": {"createNamespace": False}},
    }
    charts = [chart, {**chart, "releaseName": "b", "helmChartAction": "Uninstall"}]
    imported(a_profile(policyRefs=[], helmCharts=charts))

    [profile] = written(tmp_path / "fleet")["manifests/clusterprofile.web.yaml"]
    first, second = profile["spec"]["helmCharts"]
    assert first["options"]["installOptions"] == {"createNamespace": False, "takeOwnership": True}
    assert second == charts[1]


def test_what_is_refused_is_not_written_and_says_where_and_why(
    imported: Import, tmp_path: Path
) -> None:
    """Each field with its line; the other objects are written."""
    signed = {"signatureVerification": {"provider": "cosign"}}
    chart = {"repositoryURL": "https://charts.example.com", "chartName": "web", **signed}
    report = imported(
        a_profile("signed", helmCharts=[chart], nonsense=1),
        an_object("ManagementClusterClassifier", "hub"),
        a_profile(),
        a_holder("web"),
        code=1,
    )

    why = notes(report)
    assert "hub.yaml, document 1, line" in why["signed"]
    assert "helmCharts[0].signatureVerification: signatures of charts are not" in why["signed"]
    assert "unknown field 'nonsense'" in why["signed"]
    assert "there is no management cluster" in why["hub"]
    assert [each["result"] for each in report["objects"]] == ["refused", "refused"] + [
        "imported"
    ] * 2
    assert len(written(tmp_path / "fleet")) == 2


def test_a_promotion_is_paused_and_the_profiles_of_its_stages_are_left_out(
    imported: Import, tmp_path: Path
) -> None:
    """Resumed, it would deploy what two management clusters deploy at once."""
    chart = {
        "repositoryURL": "https://charts.example.com",
        "chartName": "web",
        "releaseName": "web",
        "releaseNamespace": "web",
    }
    spec = {
        "profileSpec": {
            "helmCharts": [chart],
            "policyRefs": [{"kind": "ConfigMap", "namespace": "default", "name": "web"}],
        },
        "stages": [{"name": "production"}],
    }
    labels = {"config.projectsveltos.io/promotionname": "agent"}
    report = imported(
        an_object("ClusterPromotion", "agent", spec),
        an_object("ClusterProfile", "agent-production", labels=labels),
        a_holder("web"),
    )

    assert "It is paused" in notes(report)["agent"]
    assert [each["why"] for each in report["omitted"]] == ["generated by Sveltos"]
    [promotion] = written(tmp_path / "fleet")["manifests/clusterpromotion.agent.yaml"]
    assert promotion["metadata"]["annotations"] == {"profile.projectsveltos.io/paused": "true"}
    [converted] = promotion["spec"]["profileSpec"]["helmCharts"]
    assert converted["options"] == {"installOptions": {"takeOwnership": True}}
    assert "manifests/configmap.default.web.yaml" in written(tmp_path / "fleet")


@pytest.mark.parametrize(
    ("reached", "note"),
    [
        ("canary", "It goes on at stage 'canary', and the stages before it get what they have."),
        ("renamed", "Its stages begin with the first one."),
        ("", "Its stages begin with the first one."),
    ],
)
def test_a_promotion_goes_on_at_the_stage_that_it_has_reached(
    imported: Import, tmp_path: Path, reached: str, note: str
) -> None:
    spec = {"profileSpec": {}, "stages": [{"name": "staging"}, {"name": "canary"}]}
    promotion = an_object("ClusterPromotion", "agent", spec)
    report = imported({**promotion, "status": {"currentStageName": reached}})

    assert note in notes(report)["agent"]
    [found] = written(tmp_path / "fleet")["manifests/clusterpromotion.agent.yaml"]
    assert found["metadata"]["annotations"].get("bellhop.dev/reached") == (
        "canary" if reached == "canary" else None
    )


def test_what_sveltos_made_is_left_out_and_counted(imported: Import) -> None:
    """It would be generated again, or would restore an object that is being deleted."""
    generated = {"eventtrigger.lib.projectsveltos.io/eventtriggername": "x"}
    report = imported(
        an_object("ClusterSummary", "a", namespace="default"),
        an_object("EventReport", "a", namespace="default"),
        an_object("EventReport", "b", namespace="default"),
        an_object("ClusterProfile", "sveltos-x", labels=generated),
        an_object(
            "EventSource", "copy", annotations={"projectsveltos.io/deployed-by-sveltos": "true"}
        ),
        an_object("EventSource", "old", deletionTimestamp="2026-01-01T00:00:00Z"),
        a_profile(),
        a_holder("web"),
        a_holder("other"),
        a_holder("token", "Secret"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
    )

    assert {(each["kind"], each["count"], each["why"]) for each in report["omitted"]} == {
        ("ClusterSummary", 1, "written by Sveltos for itself"),
        ("EventReport", 2, "written by Sveltos for itself"),
        ("ClusterProfile", 1, "generated by Sveltos"),
        ("EventSource", 1, "generated by Sveltos"),
        ("EventSource", 1, "being deleted"),
        ("ConfigMap", 1, "named by no object that is imported"),
        ("Secret", 1, "named by no object that is imported"),
        ("Service", 1, "not of Sveltos"),
    }
    assert [each["name"] for each in report["objects"]] == ["web", "web"]


def test_a_cluster_comes_with_its_kubeconfig_for_its_owner_only(
    imported: Import, bellhop: Bellhop, tmp_path: Path
) -> None:
    """`register cluster -f` reads the file; labels of a Classifier are its own to set."""
    classifier = an_object(
        "Classifier",
        "new",
        {
            "classifierLabels": [{"key": "new", "value": "yes"}],
            "kubernetesVersionConstraints": [{"comparison": "Equal", "version": "1.30.0"}],
        },
    )
    report = imported(*a_cluster(labels={"env": "prod", "new": "yes"}), classifier)

    assert notes(report)["east"] == "labels are left to their Classifiers: new"
    path = tmp_path / "fleet/clusters/sveltoscluster.default.east.yaml"
    cluster, secret = written(path.parent)[path.name]
    assert cluster["metadata"]["labels"] == {"env": "prod"}
    assert base64.b64decode(secret["data"]["kubeconfig"]).decode() == KUBECONFIG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    done = bellhop("register", "cluster", "-f", str(path.parent), "--no-forwarder")
    assert "error: default/east: cannot" in done.stderr  # It is read; nobody answers there.


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(a_cluster()[:1], "default/east-sveltos-kubeconfig", id="without a Secret"),
        pytest.param(
            [
                a_cluster()[0],
                a_holder(
                    "east-sveltos-kubeconfig",
                    "Secret",
                    value=KUBECONFIG.replace("token: opaque", "exec: {command: aws}"),
                ),
            ],
            "exec",
            id="a program that logs in",
        ),
        pytest.param(
            [an_object("SveltosCluster", "east", {"pullMode": True}, namespace="default")],
            "pullMode is not supported",
            id="pull mode",
        ),
    ],
)
def test_a_cluster_that_cannot_be_registered_is_refused(
    imported: Import, objects: list[dict[str, Any]], why: str
) -> None:
    """The report says so before anybody tries."""
    report = imported(*objects, code=1)

    assert why in notes(report)["east"]
    assert "opaque" not in json.dumps(report)


def test_a_cluster_of_cluster_api_becomes_one_that_is_registered(
    imported: Import, tmp_path: Path
) -> None:
    """By the Secret that Cluster API writes."""
    cluster = an_object("Cluster", "east", {"paused": False}, namespace="default")
    cluster["apiVersion"] = "cluster.x-k8s.io/v1beta1"
    imported(cluster, a_holder("east-kubeconfig", "Secret", value=KUBECONFIG))

    [file] = written(tmp_path / "fleet").values()
    assert (file[0]["kind"], file[0]["apiVersion"]) == ("SveltosCluster", LIB)
    assert file[0]["spec"] == {"kubeconfigName": "east-kubeconfig"}


def test_of_two_clusters_of_one_name_the_second_is_refused(imported: Import) -> None:
    """One of Cluster API and one of Sveltos may have the same name; here it means one cluster."""
    twin = an_object("Cluster", "east", namespace="default")
    twin["apiVersion"] = "cluster.x-k8s.io/v1beta1"
    secret = a_holder("east-kubeconfig", "Secret", value=KUBECONFIG)
    report = imported(*a_cluster(), twin, secret, code=1)

    assert [each["result"] for each in report["objects"][:2]] == ["imported", "refused"]
    assert "register one of them by hand" in report["objects"][1]["notes"][0]


@pytest.mark.parametrize(
    "malformed",
    [
        an_object("Classifier", "c", [1]),
        an_object("Classifier", "c", {"classifierLabels": [{"key": ["a"]}]}),
        an_object("SveltosCluster", "c", namespace="default", labels=["a"]),
        an_object("SveltosCluster", "c", namespace="default", labels={"a": ["b"]}),
    ],
    ids=["a spec that is a list", "a label of lists", "labels that are a list", "a list as label"],
)
def test_a_malformed_object_keeps_no_other_from_being_imported(
    imported: Import, malformed: dict[str, Any]
) -> None:
    """It is refused by its name, and the others are there."""
    report = imported(malformed, *a_cluster(), code=1)
    results = {each["name"]: each["result"] for each in report["objects"]}

    assert results == {"c": "refused", "east": "imported"}


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("web", "web", True),
        ("web", "webs", False),
        ("{{ .a }}-web", "x-web", True),
        ("a{{ .b }}a", "a", False),
        ("a{{ .b }}a", "aa", True),
        ("{{ .a }}-{{ .b }}-c", "x-y-z-c", True),
        ("{{ .a }}-{{ .b }}-c", "x-c", False),
        ("{{.a}}" * 30 + "x", "y" * 200, False),
    ],
)
def test_a_template_fits_what_it_may_be_rendered_as(pattern: str, name: str, fits: bool) -> None:  # noqa: FBT001
    reference = Reference("Secret", "default", pattern)

    assert reference.fits("default", name, ()) is fits


def test_only_holders_that_are_named_are_taken(imported: Import) -> None:
    """By any field, by a template, and in the namespace of each cluster where none is written."""
    check = {"name": "web", "featureID": "Resources", "group": "", "version": "v1"}
    refs = [
        HOLDER,
        {"kind": "Secret", "name": "near"},
        {"kind": "ConfigMap", "namespace": "default", "name": "of-{{ .Cluster.metadata.name }}"},
        {"kind": "ConfigMap", "namespace": "default", "name": "{{ .Cluster.metadata.name }}"},
        {"kind": "ConfigMap", "namespace": "default", "name": "gone"},
        {"kind": "ConfigMap", "namespace": "default", "name": "may-be", "optional": True},
    ]
    profile = a_profile(
        policyRefs=refs,
        validateHealths=[{**check, "kind": "ConfigMap", "name": "checked"}],
        patches=[
            {"target": {"kind": "Secret", "name": "patched"}, "patch": "- {op: remove, path: /x}"}
        ],
    )
    names = ("web", "of-east", "of-west", "checked", "unnamed")
    report = imported(
        profile,
        *a_cluster(),
        *(a_holder(name) for name in names),
        *(a_holder(name, "Secret") for name in ("near", "patched")),
    )

    taken = [each["name"] for each in report["objects"] if each["kind"] in ("ConfigMap", "Secret")]
    assert taken == ["web", "near", "of-east", "of-west"]
    open_name, gone = report["actions"]
    assert open_name == (
        "ClusterProfile 'web' names a ConfigMap by the template '{{ .Cluster.metadata.name }}':"
        " apply what it can mean yourself"
    )
    assert gone == (
        "ClusterProfile 'web' names ConfigMap default/gone, which is not there: add it to the"
        " input, or apply it yourself"
    )


def test_says_what_else_is_to_be_done(imported: Import) -> None:
    """The management cluster is still needed, and checks would notify twice."""
    local = [{**HOLDER, "deploymentType": "Local"}]
    checks = [
        an_object(
            "ClusterHealthCheck",
            f"check-{number}",
            {
                "clusterSelector": {"matchLabels": {"a": "b"}},
                "livenessChecks": [{"name": "a", "type": "Addons"}],
                "notifications": [{"name": "a", "type": "KubernetesEvent"}],
            },
        )
        for number in range(6)
    ]
    report = imported(a_profile(policyRefs=local), a_holder("web"), *checks)

    hub, health = report["actions"]
    assert hub.startswith("register the management cluster as mgmt/mgmt")
    assert hub.endswith(": ClusterProfile 'web'")
    assert health.endswith("'check-4' and 1 more")


def test_it_may_be_run_again_and_overwrites_nobodys_work(
    bellhop: Bellhop, imported: Import, tmp_path: Path
) -> None:
    """The same again is nothing; a file that somebody has changed stops it, and stays."""
    objects = a_profile(), a_holder("web")
    imported(*objects)
    imported(*objects)
    path = tmp_path / "fleet/manifests/clusterprofile.web.yaml"
    path.write_text("mine")
    (tmp_path / "fleet/manifests/configmap.default.web.yaml").unlink()

    hub = str(tmp_path / "hub.yaml")
    done = bellhop("import", "sveltos", "-f", hub, "--output-dir", str(tmp_path / "fleet"))

    assert done.exit_code == 1
    assert f"cannot write '{path}': the file is there with other contents" in done.stderr
    assert list(written(tmp_path / "fleet/manifests")) == [path.name]
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "nothing of Sveltos is in it", id="empty"),
        pytest.param(
            "{apiVersion: v1, kind: List, items: []}", "nothing of Sveltos", id="no items"
        ),
        pytest.param("- a\n- b\n", "nothing of Sveltos", id="no objects"),
        pytest.param("a: [", "hub.yaml, document 1, line", id="no YAML"),
        pytest.param("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "nothing of", id="others"),
    ],
)
def test_what_has_nothing_of_sveltos_is_wrong_input(
    bellhop: Bellhop, tmp_path: Path, text: str, said: str
) -> None:
    """One sentence names the file, and nothing is written."""
    path = tmp_path / "hub.yaml"
    path.write_text(text)
    done = bellhop("import", "sveltos", "-f", str(path), "--output-dir", str(tmp_path / "fleet"))

    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hub.yaml" in done.stderr
    assert not (tmp_path / "fleet").exists()


def test_too_large_a_file_is_refused(bellhop: Bellhop, tmp_path: Path) -> None:
    """It says how to go on; the API server is read page by page."""
    path = tmp_path / "hub.yaml"
    path.write_text("#" * (16 * 1024 * 1024 + 1))

    done = bellhop("import", "sveltos", "-f", str(path))

    assert done.exit_code == 2
    assert "split it" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="neither"),
        pytest.param(("-f", "a", "--kubeconfig", "b"), id="both"),
        pytest.param(("-f", "a", "--kubeconfig-context", "b"), id="a context of no kubeconfig"),
    ],
)
def test_what_to_read_is_said_once(bellhop: Bellhop, arguments: tuple[str, ...]) -> None:
    """Files or a cluster."""
    assert bellhop("import", "sveltos", *arguments).exit_code == 2


def test_a_table_says_the_same(bellhop: Bellhop, tmp_path: Path) -> None:
    """Without a folder nothing is written."""
    path = tmp_path / "hub.yaml"
    items = [a_profile(), *a_cluster(), a_holder("other")]
    path.write_text(dump({"apiVersion": "v1", "kind": "List", "items": items}))

    done = bellhop("import", "sveltos", "-f", str(path))

    assert done.exit_code == 0
    assert "SveltosCluster   default/east   imported" in done.stdout
    assert "left out: 1 ConfigMap: named by no object that is imported" in done.stdout
    assert "to do: ClusterProfile 'web' names ConfigMap default/web, which is not" in done.stdout
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def hub(kube: KubeClient) -> KubeClient:
    """A management cluster that answers, with those kinds that the test needs."""
    for kind in ("SveltosCluster", "ClusterProfile"):
        kube.apply(definition(kind))
        wait_until_served(kube, kind)
    return kube


def test_an_api_server_is_asked_for_what_is_named(
    bellhop: Bellhop, hub: KubeClient, kubeconfig: Path
) -> None:
    """Its answer is what files would have; of Secrets nothing else is read."""
    refs = [HOLDER, {"kind": "Secret", "namespace": "default", "name": "of-{{ .Cluster.x }}"}]
    for each in (
        a_profile(policyRefs=refs),
        *a_cluster(),
        a_holder("web"),
        a_holder("of-east", "Secret"),
        a_holder("other", "Secret"),
    ):
        hub.apply(
            {
                **each,
                "metadata": {
                    key: each["metadata"][key]
                    for key in ("name", "namespace")
                    if key in each["metadata"]
                },
            }
        )

    done = bellhop("import", "sveltos", "--kubeconfig", str(kubeconfig), "-o", "json")

    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(each["kind"], each["name"]) for each in report["objects"]] == [
        ("SveltosCluster", "east"),
        ("ClusterProfile", "web"),
        ("ConfigMap", "web"),
        ("Secret", "of-east"),
    ]
    assert report["omitted"] == []


def test_an_api_server_without_sveltos_is_wrong_input(bellhop: Bellhop, kubeconfig: Path) -> None:
    """Its kubeconfig is named."""
    done = bellhop("import", "sveltos", "--kubeconfig", str(kubeconfig))

    assert done.exit_code == 2
    assert f"cannot import the cluster of '{kubeconfig}': nothing of Sveltos" in done.stderr
