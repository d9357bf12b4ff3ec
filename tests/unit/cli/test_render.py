"""`bellhop render`: templates and triggers from files, without an installation."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.unit.adapters.kustomize.conftest import kubectl
from tests.unit.cli.conftest import Bellhop

ROOT = Path(__file__).parents[3]
Render = Callable[..., Result]
EXAMPLES = ROOT / "docs/examples"


SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: eng, labels: {sveltos: fv}, managedFields: [{manager: x}]}
spec:
  selector: {app: web}
  ports: [{port: 443, protocol: TCP, targetPort: 8443}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: eng, labels: {sveltos: other}}
spec:
  selector: {app: db}
  ports: [{port: 5432}]
"""
__all__ = ["kubectl"]

POLICY = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: services}
spec:
  collectResources: true
  resourceSelectors:
  - {group: "", version: v1, kind: Service, namespace: eng}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t, annotations: {bellhop.dev/template: jinja2}}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  destinationClusterSelector: {matchLabels: {dep: eng}}
  eventSourceName: services
  oneForEvent: false
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: c}
  - {kind: ConfigMap, namespace: default, name: per-cluster}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, annotations: {projectsveltos.io/instantiate: ok}}
data:
  names.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: names}
    data: {all: "{{ Resources | map(attribute='metadata.name') | join(',') }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: per-cluster, annotations: {projectsveltos.io/template: ok}}
data:
  here.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "here-{{ Cluster.metadata.name }}"}
"""


@pytest.fixture
def services(tmp_path: Path) -> str:
    """Two Services of the source cluster, in a file."""
    path = tmp_path / "services.yaml"
    path.write_text(SERVICES)
    return str(path)


@pytest.fixture
def render(bellhop: Bellhop, services: str, tmp_path: Path) -> Render:
    """Render rules, from their text or a path, for the two Services of prod/eu-1."""

    def run(rules: Path | str, words: str = "") -> Result:
        path = rules if isinstance(rules, Path) else tmp_path / "policy.yaml"
        if isinstance(rules, str):
            path.write_text(rules)
        given = ("-f", str(path), "--object", services, "--cluster", "prod/eu-1,env=production")
        return bellhop("render", *given, *words.split())

    return run


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        pytest.param("go", "{{ .name }}: {{ .count }}\n", id="Go"),
        pytest.param("jinja2", "{{ name }}: {{ count }}\n", id="Jinja2"),
    ],
)
def test_renders_a_template_with_data(
    bellhop: Bellhop, tmp_path: Path, engine: str, text: str
) -> None:
    """A template and a file of variables give the text, as it is."""
    (tmp_path / "t").write_text(text)
    (tmp_path / "d.yaml").write_text("name: a\ncount: 1000000\n")

    data = ("--data", str(tmp_path / "d.yaml"), "--engine", engine)
    result = bellhop("render", str(tmp_path / "t"), *data)

    assert (result.exit_code, result.output) == (0, "a: 1000000\n")
    assert bellhop("render", "-", *data, stdin=text).output == "a: 1000000\n"


@pytest.mark.parametrize(
    ("missing", "code", "expected"),
    [
        pytest.param("error", 1, 'map has no entry for key "b"', id="error"),
        pytest.param("default", 0, "[<no value>]", id="default"),
    ],
)
def test_the_user_chooses_what_a_missing_key_is(
    bellhop: Bellhop, missing: str, code: int, expected: str
) -> None:
    """A key that is not there is an error unless something else is asked for."""
    result = bellhop("render", "-", "--missingkey", missing, stdin="[{{ .b }}]")

    assert result.exit_code == code
    assert expected in result.output


def test_what_a_trigger_generates_names_its_origin(render: Render) -> None:
    """Each manifest has its destination, its ConfigMap and its entry beside it."""
    result = render(EXAMPLES / "network-policy")

    assert result.exit_code == 0
    assert "# for prod/eu-1, from ConfigMap default/network-policy, networkpolicy.yaml" in (
        result.stdout
    )
    *_, manifest = yaml.safe_load_all(result.stdout)
    assert manifest["metadata"] == {"name": "front-web", "namespace": "eng"}
    assert "Service eng/web matches EventSource 'sveltos-service'\n" in result.stderr
    assert (
        "Service eng/db does not match EventSource 'sveltos-service': its label 'sveltos' is"
        " 'other', and the filter asks Equal 'fv'\n"
    ) in result.stderr


def test_shows_the_profile_and_what_it_refers_to(render: Render) -> None:
    """The profile names its clusters and the instantiated ConfigMap, which holds the text."""
    result = render(EXAMPLES / "network-policy")

    profile, config, manifest = yaml.safe_load_all(result.stdout)
    name = profile["metadata"]["name"]
    assert (profile["kind"], profile["spec"]) == (
        "ClusterProfile",
        {
            "clusterRefs": [
                {
                    "apiVersion": "lib.projectsveltos.io/v1beta1",
                    "kind": "SveltosCluster",
                    "namespace": "prod",
                    "name": "eu-1",
                }
            ],
            "syncMode": "Continuous",
            "tier": 100,
            "continueOnConflict": False,
            "stopMatchingBehavior": "WithdrawPolicies",
            "policyRefs": [
                {
                    "kind": "ConfigMap",
                    "namespace": "projectsveltos",
                    "name": config["metadata"]["name"],
                }
            ],
        },
    )
    assert config["metadata"]["namespace"] == "projectsveltos"
    assert config["metadata"]["name"].startswith(f"{name}-")
    assert "annotations" not in config["metadata"]
    assert yaml.safe_load(config["data"]["networkpolicy.yaml"]) == manifest
    assert (
        f"# ConfigMap projectsveltos/{config['metadata']['name']}, instantiated from"
        " ConfigMap default/network-policy\n"
    ) in result.stdout


def test_what_is_not_instantiated_is_referred_to_as_it_is(render: Render) -> None:
    """A ConfigMap without templates of event time has no copy, and is kept once."""
    result = render(POLICY, "-o json --destination prod/eu-2,dep=eng")

    (made,) = json.loads(result.stdout)["profiles"]
    (copy,) = made["configMaps"]
    first, second = made["profile"]["spec"]["policyRefs"]
    assert copy["from"] == "ConfigMap default/c"
    assert first["name"] == copy["manifest"]["metadata"]["name"]
    assert second == {"kind": "ConfigMap", "namespace": "default", "name": "per-cluster"}


def test_what_is_local_is_rendered_for_each_cluster_and_shown_in_mgmt(render: Render) -> None:
    """It is no destination's, but that of `mgmt/mgmt`, once for each of them."""
    local = "name: per-cluster, deploymentType: Local}"
    words = "-o json --destination prod/eu-2,dep=eng --destination prod/eu-3,dep=eng"
    result = render(POLICY.replace("name: per-cluster}", local), words)

    (made,) = json.loads(result.stdout)["profiles"]
    *_, second = made["profile"]["spec"]["policyRefs"]
    assert second["deploymentType"] == "Local"
    shown = [
        (each["cluster"], [one["manifest"]["metadata"]["name"] for one in each["manifests"]])
        for each in made["destinations"]
    ]
    assert shown == [
        ("prod/eu-2", ["names"]),
        ("prod/eu-3", ["names"]),
        ("mgmt/mgmt", ["here-eu-2", "here-eu-3"]),
    ]


@pytest.mark.parametrize(
    ("later", "annotations"),
    [
        pytest.param({}, None, id="rendered for good"),
        pytest.param(
            {"projectsveltos.io/template": "ok"},
            {"projectsveltos.io/template": "ok", "bellhop.dev/template": "jinja2"},
            id="rendered again for each cluster",
        ),
    ],
)
def test_an_instantiated_secret_stays_a_secret(
    render: Render, later: dict[str, str], annotations: dict[str, str] | None
) -> None:
    """It keeps kind and type, its text is base64, and it is a template only if it still is one."""
    documents = list(yaml.safe_load_all(POLICY))
    documents[1]["spec"]["policyRefs"] = [{"kind": "Secret", "namespace": "default", "name": "s"}]
    text = "{apiVersion: v1, kind: Secret, metadata: {name: 'n{{ Resources | length }}'}}"
    documents[2] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "addons.projectsveltos.io/cluster-profile",
        "metadata": {"name": "s", "annotations": {"projectsveltos.io/instantiate": "ok", **later}},
        "stringData": {"s.yaml": text},
    }
    words = "--destination prod/eu-2,dep=eng --show configmaps"
    result = render(yaml.safe_dump_all(documents), words)

    (secret,) = yaml.safe_load_all(result.stdout)
    assert (secret["kind"], secret["type"]) == (
        "Secret",
        "addons.projectsveltos.io/cluster-profile",
    )
    rendered = base64.b64decode(secret["data"]["s.yaml"]).decode()
    assert rendered == "{apiVersion: v1, kind: Secret, metadata: {name: 'n2'}}"
    assert secret["metadata"].get("annotations") == annotations


@pytest.mark.parametrize(
    ("show", "kinds", "keys"),
    [
        pytest.param(
            "all",
            ["ClusterProfile", "ConfigMap", "NetworkPolicy"],
            ["profile", "configMaps", "destinations"],
            id="all",
        ),
        pytest.param("profiles", ["ClusterProfile"], ["profile"], id="profiles"),
        pytest.param("configmaps", ["ConfigMap"], ["configMaps"], id="configmaps"),
        pytest.param("manifests", ["NetworkPolicy"], ["destinations"], id="manifests"),
    ],
)
def test_the_user_chooses_what_is_shown(
    bellhop: Bellhop, services: str, show: str, kinds: list[str], keys: list[str]
) -> None:
    """Each part can be had by itself, under the profile's comment, in either form."""
    arguments = (
        *("render", "-f", str(EXAMPLES / "network-policy"), "--object", services),
        *("--cluster", "prod/eu-1,env=production", "--show", show),
    )

    text, document = (
        bellhop(*arguments).stdout,
        json.loads(bellhop(*arguments, "-o", "json").stdout),
    )

    assert [each["kind"] for each in yaml.safe_load_all(text) if each] == kinds
    assert text.count("# ClusterProfile service-network-policy-") == 1
    assert list(document["profiles"][0]) == ["name", "object", "tier", *keys]


def test_each_destination_gets_its_own(render: Render, tmp_path: Path) -> None:
    """Deploy-time templates are rendered for each cluster that the trigger selects."""
    (tmp_path / "eu-3.yaml").write_text(
        "kind: SveltosCluster\nmetadata: {namespace: prod, name: eu-3, labels: {dep: eng}}\n"
    )

    given = ("prod/eu-2,dep=eng", str(tmp_path / "eu-3.yaml"), "prod/eu-4,dep=ops")
    result = render(POLICY, "-o json" + "".join(f" --destination {each}" for each in given))

    (profile,) = json.loads(result.stdout)["profiles"]
    names = {
        each["cluster"]: [item["manifest"]["metadata"]["name"] for item in each["manifests"]]
        for each in profile["destinations"]
    }
    assert names == {"prod/eu-2": ["names", "here-eu-2"], "prod/eu-3": ["names", "here-eu-3"]}
    data = profile["destinations"][0]["manifests"][0]["manifest"]["data"]
    assert data == {"all": "db,web"}


def test_the_state_folder_is_not_touched(render: Render, state: Path) -> None:
    """Nothing is read from an installation, and none is made."""
    render(EXAMPLES / "ingress")

    assert not state.exists()


def test_by_force_every_object_matches(render: Render) -> None:
    """Neither labels nor Lua are asked."""
    result = render(EXAMPLES / "network-policy", "--force")

    assert result.stdout.count("# ClusterProfile service-network-policy-") == 2
    assert "front-db" in result.stdout


def test_a_failing_script_harms_only_its_object(render: Render) -> None:
    result = render(EXAMPLES / "service-discovery", "--destination prod/eu-2,dep=eng")

    assert result.exit_code == 1
    assert "external-web" in result.stdout
    assert "error: load-balancer-service:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        pytest.param((), 2, "name a TEMPLATE", id="nothing"),
        pytest.param(("t", "-f", "x"), 2, "name a TEMPLATE", id="both"),
        pytest.param(("-f", "x"), 2, "needs --object and --cluster", id="no object"),
        pytest.param(("t", "--cluster", "a/b"), 2, "go with -f", id="a cluster for a template"),
        pytest.param(("nowhere.tpl",), 1, "there is no such file", id="no such template"),
        pytest.param(
            ("-", "--engine", "jinja2", "--missingkey", "zero"), 2, "always strict", id="strict"
        ),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "SERVICES", "--cluster", "eu-1"),
            2,
            "cannot read the cluster 'eu-1'",
            id="a cluster without a namespace",
        ),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "SERVICES", "--cluster", "prod/eu-1,env=test"),
            2,
            "cluster 'prod/eu-1': its sourceClusterSelector asks for env=production",
            id="a cluster that is not selected",
        ),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "SERVICES", "--cluster", "prod/eu-1", "--trigger", "x"),
            1,
            "there is no trigger 'x' in the files; they have: service-network-policy",
            id="no such trigger",
        ),
        pytest.param(
            (
                *("-f", "EXAMPLES/trigger.yaml", "--object", "SERVICES"),
                *("--cluster", "prod/eu-1,env=production"),
            ),
            1,
            "names EventSource 'sveltos-service', which is in no file",
            id="no source",
        ),
        pytest.param(
            (
                *("-f", "EXAMPLES", "--object", "nothing.yaml"),
                *("--cluster", "prod/eu-1,env=production"),
            ),
            1,
            "there is no such file",
            id="no such object",
        ),
        pytest.param(
            ("-f", "x", "--object", "y", "--cluster", "a/b", "--data", "z"),
            2,
            "a trigger has its own variables",
            id="data for a trigger",
        ),
        pytest.param(("-", "--data", "-"), 2, "cannot both be standard input", id="two on one"),
        pytest.param(("-", "--data", "WRITTEN"), 2, "it must be one mapping", id="data of two"),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "SERVICES", "--cluster", "WRITTEN"),
            2,
            "it must be one manifest",
            id="two clusters in a file",
        ),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "WRITTEN", "--cluster", "prod/eu-1,env=production"),
            2,
            "written.yaml, document 1, line 1: this is not a Kubernetes object",
            id="an object of no kind",
        ),
        pytest.param(
            ("-f", "EXAMPLES", "--object", "NAMELESS", "--cluster", "prod/eu-1,env=production"),
            2,
            "the object has no metadata.name",
            id="an object without a name",
        ),
        pytest.param(("FOLDER",), 2, "cannot read", id="a folder for a template"),
        pytest.param(("BYTES",), 2, "it is not UTF-8", id="a template of bytes"),
    ],
)
def test_says_what_is_missing(
    bellhop: Bellhop,
    services: str,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    (tmp_path / "written.yaml").write_text("a: 1\n---\nb: 2\n")
    (tmp_path / "nameless.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {}\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    places = {
        "EXAMPLES": EXAMPLES / "network-policy",
        "SERVICES": services,
        "WRITTEN": tmp_path / "written.yaml",
        "NAMELESS": tmp_path / "nameless.yaml",
        "BYTES": tmp_path / "bytes",
        "FOLDER": tmp_path,
    }
    given = list(arguments)
    for word, place in places.items():
        given = [each.replace(word, str(place)) for each in given]

    result = bellhop("render", *given)

    assert expected in result.output
    assert result.exit_code == code


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"kind": "Pod"}, "it is a v1/Service, not v1/Pod", id="kind"),
        pytest.param({"namespace": "ops"}, "its namespace is 'eng', not 'ops'", id="namespace"),
        pytest.param({"name": "x"}, "its name is 'db', not 'x'", id="name"),
        pytest.param(
            {"selector": {"matchLabels": {"a": "b"}}},
            "its labels are not what the selector asks for: a=b",
            id="selector",
        ),
        pytest.param(
            {"labelFilters": [{"key": "no", "operation": "Has"}]},
            "its label 'no' is not there, and the filter asks Has",
            id="filter",
        ),
        pytest.param(
            {
                "evaluate": "function evaluate() return {matching=false, message='closed'} end",
            },
            "its script says no: closed",
            id="script",
        ),
        pytest.param(
            {"evaluateCEL": [{"name": "open", "rule": "resource.kind == 'Pod'"}]},
            "no CEL rule holds",
            id="rules",
        ),
    ],
)
def test_says_why_an_object_does_not_match(
    render: Render, selector: dict[str, object], expected: str
) -> None:
    """The first thing that keeps a source from an object is named."""
    documents = list(yaml.safe_load_all(POLICY))
    documents[0]["spec"]["resourceSelectors"][0].update(selector)
    result = render(yaml.safe_dump_all(documents))

    assert f"does not match EventSource 'services': {expected}" in result.stderr
    assert "Nothing would be generated." in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("asked", [False, True], ids=["as a rule", "with --show-secrets"])
@pytest.mark.parametrize(
    ("text", "script", "message"),
    [
        pytest.param(
            "{{ fail (b64dec .Resource.data.key) }}", "", "default/c/a:1:3", id="template"
        ),
        pytest.param("{}", "error(obj.data.key)", "s:1: ", id="script"),
    ],
)
def test_quotes_a_secret_only_when_asked(
    bellhop: Bellhop, tmp_path: Path, text: str, script: str, message: str, *, asked: bool
) -> None:
    """Errors withhold what may be a Secret's value, and say how to see it; then it is shown."""
    selector = {"group": "", "version": "v1", "kind": "Secret"}
    if script:
        selector["evaluate"] = f"function evaluate() {script} end"
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventSource",
            "metadata": {"name": "s"},
            "spec": {"collectResources": True, "resourceSelectors": [selector]},
        },
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventTrigger",
            "metadata": {"name": "t"},
            "spec": {
                "sourceClusterSelector": {"matchLabels": {"env": "x"}},
                "eventSourceName": "s",
                "oneForEvent": True,
                "policyRefs": [{"kind": "ConfigMap", "namespace": "default", "name": "c"}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {"projectsveltos.io/instantiate": "ok"}},
            "data": {"a": text},
        },
    ]
    value = base64.b64encode(b"hunter2").decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x"},
        "data": {"key": value},
    }
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(documents))
    (tmp_path / "secret.yaml").write_text(yaml.safe_dump(secret))
    arguments = ["render", "-f", str(tmp_path / "all.yaml"), "--cluster", "a/b,env=x"]
    arguments += ["--object", str(tmp_path / "secret.yaml"), *(["--show-secrets"] if asked else [])]

    result = bellhop(*arguments)

    assert result.exit_code == 1
    assert message in result.stderr
    assert (value in result.output or "hunter2" in result.output) == asked
    assert ("bellhop render --show-secrets" in result.stderr) != asked


def test_one_of_several_triggers_is_chosen_by_its_name(
    bellhop: Bellhop, services: str, tmp_path: Path
) -> None:
    trigger = "---\n" + POLICY.split("---")[1].replace("name: t,", "name: other,")
    (tmp_path / "all.yaml").write_text(POLICY + trigger)
    asked = (
        *("render", "-f", str(tmp_path / "all.yaml"), "--object", services),
        *("--cluster", "prod/eu-1,env=production"),
    )

    chosen = bellhop(*asked, "--trigger", "other")

    assert chosen.exit_code == 0
    assert "the destination selector selects none of those given" in chosen.stdout
    assert "--trigger names none" in bellhop(*asked).output


def remote(tmp_path: Path, ref: str) -> tuple[str, ...]:
    """Write a trigger with remote files; return the beginning of its rendering."""
    text = POLICY.replace("{kind: ConfigMap, namespace: default, name: per-cluster}", ref)
    (tmp_path / "policy.yaml").write_text(text)
    chosen = ("--cluster", "prod/eu-1,env=production", "--destination", "prod/eu-2,dep=eng")
    return ("render", "-f", str(tmp_path / "policy.yaml"), *chosen)


AT_URL = "{remoteURL: {url: 'https://files.example/web.yaml', template: true}}"
IN_FLUX = "{kind: GitRepository, namespace: flux, name: web, path: here}"
MADE = """apiVersion: v1
kind: ConfigMap
metadata: {name: made, namespace: default}
data: {of: '{{ .Cluster.metadata.name }}'}
"""


def test_files_that_are_remote_are_reported(
    bellhop: Bellhop, services: str, tmp_path: Path
) -> None:
    """Nothing is downloaded by who only looks."""
    result = bellhop(*remote(tmp_path, AT_URL), "--object", services)

    assert result.exit_code == 1
    assert "cannot render https://files.example/web.yaml" in result.stderr
    assert "--files 'https://files.example/web.yaml=PATH'" in result.stderr
    result = bellhop(*remote(tmp_path, IN_FLUX), "--object", services)
    assert "--files 'GitRepository/flux/web=PATH'" in result.stderr


def test_a_local_copy_is_rendered_for_a_url(
    bellhop: Bellhop, services: str, tmp_path: Path
) -> None:
    """Its templates have what each cluster gives them."""
    (tmp_path / "web").write_text(MADE)
    given = f"https://me:secret@files.example/web.yaml={tmp_path / 'web'}"
    result = bellhop(*remote(tmp_path, AT_URL), "--object", services, "--files", given)

    assert result.exit_code == 0, result.stderr
    assert "from https://files.example/web.yaml, web.yaml" in result.stdout
    assert "of: eu-2" in result.stdout


@pytest.mark.parametrize("packed", [True, False])
def test_a_local_copy_is_rendered_for_a_flux_source(
    bellhop: Bellhop, services: str, tmp_path: Path, *, packed: bool
) -> None:
    """A folder or an archive of it; what Git has in it does not count."""
    folder = tmp_path / "copy"
    for name in ("here/made.yaml", "other/not.yaml", ".git/config.yaml", "here/.git/x.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(MADE.replace("made", Path(name).stem))
    archive = tmp_path / "copy.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "here/made.yaml", "here/made.yaml")
    given = f"GitRepository/flux/web={archive if packed else folder}"
    shown = ("--show", "manifests", "--files", given)
    result = bellhop(*remote(tmp_path, IN_FLUX), "--object", services, *shown)

    assert result.exit_code == 0, result.stderr
    assert "from GitRepository flux/web, here/made.yaml" in result.stdout
    assert "name: not" not in result.stdout
    assert "name: x" not in result.stdout


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param("web.yaml", "write URL=PATH, or KIND/NAMESPACE/NAME=PATH", id="no pair"),
        pytest.param("ConfigMap/a/b=x", "with Bucket, GitRepository, OCIRepository", id="a kind"),
        pytest.param("https://a/b=none", "cannot read 'none': No such file", id="no file"),
        pytest.param("https://a/b=", "write URL=PATH", id="no path"),
        pytest.param("https://u:hidden@a/b=", "'https://a/b='", id="credentials"),
        pytest.param("https://a/b=/dev/zero", "it is neither a file nor a folder", id="a device"),
    ],
)
def test_a_local_copy_that_cannot_be_read_is_reported(
    bellhop: Bellhop, services: str, tmp_path: Path, given: str, sentence: str
) -> None:
    result = bellhop(*remote(tmp_path, AT_URL), "--object", services, "--files", given)

    assert result.exit_code != 0
    assert sentence in result.stderr


def test_a_local_copy_is_built_for_a_kustomization(
    bellhop: Bellhop, services: str, tmp_path: Path, kubectl: Path
) -> None:
    """By the kubectl of this machine, as where it is deployed."""
    del kubectl
    folder = tmp_path / "copy/here"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text("resources: [made.yaml]\nnamePrefix: built-\n")
    (folder / "made.yaml").write_text(MADE)
    asked = remote(tmp_path, "{kind: ConfigMap, namespace: default, name: per-cluster}")
    text = (tmp_path / "policy.yaml").read_text()
    field = f"  oneForEvent: false\n  kustomizationRefs: [{IN_FLUX}]\n"
    (tmp_path / "policy.yaml").write_text(text.replace("  oneForEvent: false\n", field))
    given = f"GitRepository/flux/web={tmp_path / 'copy'}"
    result = bellhop(*asked, "--object", services, "--show", "manifests", "--files", given)

    assert result.exit_code == 0, result.stderr
    assert "name: built-made" in result.stdout
