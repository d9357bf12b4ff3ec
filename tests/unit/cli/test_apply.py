"""apply and delete: everything is valid, or nothing is stored, and every mistake is reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata:
  name: web
spec:
  sourceClusterSelector:
    matchLabels: {env: fv}
  eventSourceName: web
  oneForEvent: ONE
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: web}
"""


def write(tmp_path: Path, name: str, text: str) -> str:
    """Write a manifest; return its path."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


SCRIPTED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata:
  name: scripted
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Pod}
  - group: ""
    version: v1
    kind: Service
    evaluate: |
      function evaluate()
        return {matching = true
      end
"""


@pytest.mark.parametrize("options", [(), ("--validate-only",)])
def test_refuses_lua_that_cannot_be_compiled(
    bellhop: Bellhop, here: Installation, options: Sequence[str]
) -> None:
    """With the place in the file, the line of the script, and all other mistakes."""
    result = bellhop("apply", "-f", "-", *options, stdin=f"{SCRIPTED}---{TRIGGER}")
    *_, script, one = result.stderr.splitlines()

    assert result.exit_code == 2
    assert script == (
        "error: standard input, document 1, line 12, spec.resourceSelectors[1].evaluate: the Lua"
        " script cannot be compiled in its line 3: '}' expected (to close '{' at line 2) near"
        " 'end'; the line is `end`"
    )
    assert "document 2" in one
    assert not list(here.records.manifests.names("EventSource"))


@pytest.mark.parametrize("text", ["function evalute()", "local function evaluate()"])
def test_refuses_lua_that_defines_no_evaluate(
    bellhop: Bellhop, here: Installation, text: str
) -> None:
    broken = SCRIPTED.replace("function evaluate()", text).replace("true", "true}")
    result = bellhop("apply", "-f", "-", stdin=broken)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "error: standard input, document 1, line 12, spec.resourceSelectors[1].evaluate: the Lua"
        " script defines no function 'evaluate', which is what is called; name it so, without"
        " 'local'"
    )
    assert not list(here.records.manifests.names("EventSource"))


PATCHED = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: patched}
spec:
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: web}]
  patches:
  - target: {kind: Deployment}
    patch: "{spec: {replicas: 2}}"
  - patch: "- {op: add, path: /a, value: b}"
  - target: {kind: Deployment}
    patch: "- {op: change, path: /a}"
  - target: {kind: "(Deployment"}
    patch: "{{ of a template nobody can tell"
"""


@pytest.mark.parametrize("options", [(), ("--validate-only",)])
def test_refuses_patches_that_are_none(
    bellhop: Bellhop, here: Installation, options: Sequence[str]
) -> None:
    """All of them at once, with the place of each."""
    result = bellhop("apply", "-f", "-", *options, stdin=PATCHED.replace('"(', '"'))
    where = "error: standard input, document 1, line"

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-2:] == [
        (
            f"{where} 11, spec.patches[1].patch: a JSON patch needs a target that says for which"
            " objects"
        ),
        (
            f"{where} 13, spec.patches[2].patch: operation 0 has the op 'change'; use one of add,"
            " replace, test, remove, move, copy"
        ),
    ]
    assert not list(here.records.manifests.names("ClusterProfile"))


def test_refuses_a_target_that_is_no_expression(bellhop: Bellhop) -> None:
    result = bellhop("apply", "-f", "-", stdin=PATCHED)

    assert result.exit_code == 2
    assert "spec.patches[3].target: kind: missing ): (Deployment in '(Deployment'" in result.stderr


WRITTEN = """
apiVersion: v1
kind: KIND
metadata: {name: written, namespace: default, annotations: {projectsveltos.io/lua: ok}}
type: addons.projectsveltos.io/cluster-profile
FIELD:
  main.lua: "function evaluate() hunter2 end"
"""


def test_refuses_scripts_that_write_manifests_and_cannot_be_compiled(
    bellhop: Bellhop, here: Installation
) -> None:
    """With the place in the file; of a Secret's script nothing is quoted."""
    plain = WRITTEN.replace("KIND", "ConfigMap").replace("FIELD", "data")
    plain = plain.replace("type: addons.projectsveltos.io/cluster-profile\n", "")
    hidden = WRITTEN.replace("KIND", "Secret").replace("FIELD", "stringData")
    result = bellhop("apply", "-f", "-", stdin=f"{plain}---{hidden}")

    first, second = result.stderr.splitlines()[-2:]
    assert result.exit_code == 2
    assert "data['main.lua']: the Lua script cannot be compiled in its line 1" in first
    assert "hunter2" in first
    assert second.endswith("the Lua script cannot be compiled in its line 1")
    assert not list(here.records.manifests.names("ConfigMap"))


CONTENTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: generated, namespace: default}
data:
  plain.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ x }}"}
  sources.yaml: |
    apiVersion: v1
    kind: List
    items:
    - apiVersion: lib.projectsveltos.io/v1beta1
      kind: EventSource
      metadata: {name: services}
"""


def test_refuses_declarations_as_contents(bellhop: Bellhop, here: Installation) -> None:
    result = bellhop("apply", "-f", "-", stdin=CONTENTS)
    templated = CONTENTS.replace("name: services", "name: {{ .Cluster.metadata.name }}")
    other = CONTENTS.replace("kind: EventSource", "kind: SveltosCluster")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "error: standard input, document 1, line 10, data['sources.yaml']: the EventSource is a"
        " manifest for Bellhop, which reads it only from `bellhop apply` and from no cluster;"
        " apply it separately, and take it out of what is deployed"
    )
    assert not list(here.records.manifests.names("ConfigMap"))
    assert bellhop("apply", "-f", "-", stdin=templated).exit_code == 0
    assert bellhop("apply", "-f", "-", stdin=other).exit_code == 2


def test_refuses_what_is_to_word_notices_and_is_no_template(bellhop: Bellhop) -> None:
    """With the place in the file, before anybody waits for a notice."""
    check = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata:
  name: production
  annotations: {bellhop.dev/notice: "{{ if .Healthy }}"}
spec:
  clusterSelector: {matchLabels: {env: production}}
  livenessChecks: [{name: deployment, type: Addons}]
"""
    result = bellhop("apply", "-f", "-", stdin=check)

    assert result.exit_code == 2
    assert (
        "line 6, metadata.annotations['bellhop.dev/notice']: the template of notices"
        in result.stderr
    )


RULED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata:
  name: ruled
spec:
  resourceSelectors:
  - group: ""
    version: v1
    kind: Service
    evaluateCEL:
    - name: balanced
      rule: resource.spec.type == 'LoadBalancer'
    - name: two-lines
      rule: |
        has(resource.spec.type) &&
          spec.type == 'NodePort'
    - {name: counted, rule: size(resource.spec.ports)}
"""


@pytest.mark.parametrize("options", [(), ("--validate-only",)])
def test_refuses_cel_that_cannot_be_compiled(
    bellhop: Bellhop, here: Installation, options: Sequence[str]
) -> None:
    """With the place in the file, the line and the column in the rule, and the line itself."""
    result = bellhop("apply", "-f", "-", *options, stdin=RULED)
    *_, two, counted = result.stderr.splitlines()

    assert result.exit_code == 2
    assert two == (
        "error: standard input, document 1, line 15,"
        " spec.resourceSelectors[0].evaluateCEL[1].rule: the CEL rule 'two-lines' cannot be"
        " compiled in its line 2, column 7: undeclared reference to 'spec.type'; the line is"
        " `spec.type == 'NodePort'`"
    )
    assert counted == (
        "error: standard input, document 1, line 18,"
        " spec.resourceSelectors[0].evaluateCEL[2].rule: the CEL rule 'counted' cannot be compiled"
        " in its line 1, column 1: it gives an int, and must be true or false; the line is"
        " `size(resource.spec.ports)`"
    )
    assert not list(here.records.manifests.names("EventSource"))


def test_stores_what_it_says(bellhop: Bellhop, here: Installation) -> None:
    result = bellhop("apply", "-f", "-", stdin=fleet.MANIFESTS)

    assert result.exit_code == 0
    assert list(here.catalogs.current().sources) == ["sveltos-service"]
    assert here.catalogs.holder("Secret", "infra", "registry") is not None


def test_reads_folders_in_the_order_of_their_names(bellhop: Bellhop, tmp_path: Path) -> None:
    """*.yaml, *.yml and *.json, sorted; folders inside only with -R."""
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
    write(tmp_path, "in/b.yml", config_map.replace("NAME", "two"))
    write(tmp_path, "in/a.yaml", config_map.replace("NAME", "one"))
    write(tmp_path, "in/notes.txt", "no manifest")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}
    write(tmp_path, "in/c.json", json.dumps(manifest))
    write(tmp_path, "in/more/d.yaml", config_map.replace("NAME", "four"))
    flat = bellhop("apply", "-f", str(tmp_path / "in"))
    deep = bellhop("apply", "-R", "-f", str(tmp_path / "in"))

    assert flat.stdout.splitlines() == [
        "configmap/one created",
        "configmap/two created",
        "configmap/three created",
    ]
    assert deep.stdout.splitlines()[-1] == "configmap/four created"


MISTAKES = [
    pytest.param(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {port: 80}\n",
        "error: FILE, document 1, line 4, data.port: this must be a string, not a number;"
        " put it in quotes",
        id="number in a ConfigMap",
    ),
    pytest.param(
        "apiVersion: v1\nkind: ConfgMap\nmetadata: {name: a}\n",
        "error: FILE, document 1, line 2, kind: the kind 'ConfgMap' is not known;"
        " did you mean 'ConfigMap'?",
        id="unknown kind",
    ),
    pytest.param(
        "a: b\na: c\n",
        "error: FILE, document 1, line 2: the key 'a' is already on line 1; keep one of them",
        id="duplicate key",
    ),
]


def test_of_an_object_that_comes_twice_the_last_counts(
    bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    """As kubectl does, and with a warning that names both places."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: 'N'}\n"
    path = write(tmp_path, "twice.yaml", text.replace("N", "1") + "---\n" + text.replace("N", "2"))
    result = bellhop("apply", "-f", path)

    assert (result.exit_code, result.stdout) == (0, "configmap/a created\n")
    assert result.stderr == (
        f"warning: ConfigMap default/a is at {path}, document 1, line 1 and at {path}, document 2,"
        " line 6; the last one counts\n"
    )
    held = here.catalogs.holder("ConfigMap", "default", "a")
    assert held is not None
    assert held.data == {"v": "2"}
    assert bellhop("apply", "--validate-only", "-f", path).stdout == "configmap/a valid\n"


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_reports_a_mistake_with_its_place(
    bellhop: Bellhop, tmp_path: Path, text: str, said: str
) -> None:
    """File, document, line, path and what to write instead; the exit code is 2."""
    path = write(tmp_path, "wrong.yaml", text)
    result = bellhop("apply", "-f", path)

    assert result.stderr.strip() == said.replace("FILE", path)
    assert (result.exit_code, result.stdout) == (2, "")


def test_reports_every_mistake_of_every_file_and_stores_nothing(
    bellhop: Bellhop, tmp_path: Path, here: Installation
) -> None:
    good = write(tmp_path, "good.yaml", fleet.MANIFESTS)
    broken = write(tmp_path, "broken.yaml", "a: [b")
    wrong = write(
        tmp_path, "wrong.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {}\n"
    )
    result = bellhop("apply", "-f", good, "-f", broken, "-f", wrong)

    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert sum(broken in line for line in lines) == 1
    assert sum(wrong in line for line in lines) == 1
    assert list(here.records.manifests.of("EventSource")) == []


def test_refuses_to_change_one_for_event_with_its_place(bellhop: Bellhop, tmp_path: Path) -> None:
    path = write(tmp_path, "trigger.yaml", TRIGGER.replace("ONE", "true"))
    bellhop("apply", "-f", path)
    write(tmp_path, "trigger.yaml", TRIGGER.replace("ONE", "false"))
    result = bellhop("apply", "-f", path)

    assert result.exit_code == 2
    assert result.stderr.strip() == (
        f"error: {path}, document 1, line 10, spec.oneForEvent: Value is immutable: it was true"
        " and cannot become false; delete EventTrigger 'web' and create it again"
    )


def test_warns_of_what_is_named_and_not_there(bellhop: Bellhop) -> None:
    """A trigger is stored before its source, and the user is warned."""
    result = bellhop("apply", "-f", "-", stdin=TRIGGER.replace("ONE", "true"))

    assert result.exit_code == 0
    assert [line.partition(";")[0] for line in result.stderr.splitlines()] == [
        "warning: EventTrigger 'web' selects no source cluster: no cluster is registered yet",
        "warning: EventTrigger 'web' names EventSource 'web', which is not there yet",
        "warning: EventTrigger 'web' names ConfigMap 'default/web', which is not there yet",
    ]


def test_validates_without_an_installation(bellhop: Bellhop, state: Path) -> None:
    """--validate-only touches no state, so that a CI job can run it."""
    result = bellhop("apply", "--validate-only", "-f", "-", stdin=fleet.MANIFESTS)

    assert result.stdout.splitlines()[0].endswith("/sveltos-service valid")
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ("-f", "NO"), 1, "error: cannot read 'NO': there is no such file", id="no file"
        ),
        pytest.param(
            ("-f", "-"), 2, "error: cannot apply -: there is no document in it", id="empty"
        ),
        pytest.param(
            (),
            2,
            "missing option '-f' / '--filename';",
            id="no option",
        ),
    ],
)
def test_says_what_it_cannot_read(
    bellhop: Bellhop, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A missing file is an error of its own."""
    result = bellhop("apply", *arguments, stdin="# nothing\n")

    assert (result.exit_code, said in result.stderr) == (code, True)


def test_says_that_a_folder_has_nothing_to_read(bellhop: Bellhop, tmp_path: Path) -> None:
    """An empty folder is a mistake, and -R may be what was meant."""
    (tmp_path / "empty").mkdir()
    result = bellhop("apply", "-f", str(tmp_path / "empty"))

    assert result.exit_code == 1
    assert "has no .yaml, .yml, .json file; -R looks into its folders too" in result.stderr


# Deleting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        pytest.param(("et", "service-network-policy"), "EventBasedAddOn", id="by the other name"),
        pytest.param(("eventsource/sveltos-service",), "EventSource", id="kind/name"),
        pytest.param(("cm", "network-policy"), "ConfigMap", id="in the namespace default"),
        pytest.param(("secret", "registry", "-n", "infra"), "Secret", id="in a namespace"),
    ],
)
def test_deletes_by_name(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], gone: str
) -> None:
    fleet.declare(here)
    result = bellhop("delete", *arguments)

    kinds = ("EventSource", "EventBasedAddOn", "ConfigMap", "Secret")
    assert result.exit_code == 0
    assert result.stdout.strip().endswith(" deleted")
    assert [kind for kind in kinds if not list(here.records.manifests.of(kind))] == [gone]


def test_deletes_by_file_what_is_no_longer_valid(bellhop: Bellhop, here: Installation) -> None:
    """Only identities are read, so that a file with a mistake can still take things away."""
    fleet.declare(here)
    result = bellhop("delete", "-f", "-", stdin=fleet.MANIFESTS.replace("version:", "vversion:"))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "eventsource.lib.projectsveltos.io/sveltos-service deleted",
        "eventbasedaddon.lib.projectsveltos.io/service-network-policy deleted",
        "configmap/network-policy deleted",
        "secret/registry deleted",
    ]


def test_deletes_no_cluster_by_file(bellhop: Bellhop, here: Installation) -> None:
    """It names the command that does, and deletes nothing of the files."""
    fleet.declare(here)
    cluster = (
        "apiVersion: lib.projectsveltos.io/v1beta1\nkind: SveltosCluster\n"
        "metadata: {name: eu-1, namespace: prod}\n"
    )
    result = bellhop("delete", "-f", "-", stdin=f"{fleet.MANIFESTS}---\n{cluster}")

    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        "cannot delete SveltosCluster 'prod/eu-1'; `bellhop deregister cluster prod/eu-1` takes the"
        " cluster out"
    ) in result.stderr
    assert list(here.records.manifests.of("Secret"))


def test_deletes_by_file_a_trigger_that_is_stored_by_its_other_name(
    bellhop: Bellhop, here: Installation
) -> None:
    """EventTrigger and EventBasedAddOn are one kind."""
    fleet.declare(here)
    other = fleet.MANIFESTS.replace("EventBasedAddOn", "EventTrigger")
    result = bellhop("delete", "-f", "-", stdin=other)

    assert (result.exit_code, result.stdout.count(" deleted")) == (0, 4)
    assert not list(here.records.manifests.of("EventBasedAddOn"))


def test_deletes_what_is_there_and_says_what_is_not(bellhop: Bellhop, here: Installation) -> None:
    """A missing object is an error after the others are deleted, unless it may be missing."""
    fleet.declare(here)
    result = bellhop("delete", "cm", "network-policy", "other")
    again = bellhop("delete", "cm", "network-policy", "--ignore-not-found")

    assert result.stdout == "configmap/network-policy deleted\n"
    assert result.stderr == "error: cannot delete ConfigMap 'default/other': there is none\n"
    assert (result.exit_code, again.exit_code) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "either -f FILE, or KIND and NAME", id="nothing"),
        pytest.param(("cm", "-f", "x"), "either -f FILE, or KIND and NAME", id="both"),
        pytest.param(("cm",), "name the configmaps to delete", id="no name"),
        pytest.param(("clusters", "a"), "`bellhop deregister cluster` takes", id="clusters"),
        pytest.param(("er", "a"), "Bellhop writes them itself", id="reports"),
        pytest.param(("-f", "-"), "a known kind, and metadata.name", id="no manifest"),
    ],
)
def test_refuses_to_guess_what_to_delete(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    result = bellhop("delete", *arguments, stdin="kind: Pod\nmetadata: {}\n")

    assert (result.exit_code, said in result.stderr) == (2, True)


CHECKED = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: gateway}
spec:
  clusterSelector: {matchLabels: {env: prod}}
  validateHealths:
  - name: up
    featureID: Resources
    version: v1
    kind: Service
    script: |
      function evaluate()
        return {healthy = true
      end
    evaluateCEL:
    - {name: counted, rule: size(resource.spec.ports)}
    metricSource: {url: 'https://{{ .Cluster.metadata.name'}
    metricQueries: [{name: up, query: 'up{name="{{ nonsense }}"}'}]
"""


@pytest.mark.parametrize("options", [(), ("--validate-only",)])
def test_refuses_a_check_that_cannot_be_compiled(
    bellhop: Bellhop, here: Installation, options: Sequence[str]
) -> None:
    """Be it Lua, CEL or a template: with its place in the file, and the line of the script."""
    result = bellhop("apply", "-f", "-", *options, stdin=CHECKED)
    script, rule, url, query = result.stderr.splitlines()[-4:]

    assert result.exit_code == 2
    assert script == (
        "error: standard input, document 1, line 12, spec.validateHealths[0].script: the Lua"
        " script cannot be compiled in its line 3: '}' expected (to close '{' at line 2) near"
        " 'end'; the line is `end`"
    )
    assert "spec.validateHealths[0].evaluateCEL[0].rule: the CEL rule 'counted' cannot" in rule
    assert "spec.validateHealths[0].metricSource.url: the template cannot be read: " in url
    assert "spec.validateHealths[0].metricQueries[0].query: the template cannot be read: " in query
    assert not list(here.records.manifests.names("ClusterProfile"))
