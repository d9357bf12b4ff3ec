"""Values of Secrets, which may be in no record, queue, log, status, event log or output."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.cli import event_log
from bellhop.cli.main import cli
from bellhop.core.gvk import GVK
from bellhop.ports.kube import Manifest
from bellhop.state.deployment import Inventory
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube

TOKEN = "hunter2cannotsay"
VALUE = f'{TOKEN} "is" my\tpass: word'
ENCODED = base64.b64encode(VALUE.encode()).decode()

GO = "{projectsveltos.io/instantiate: ok}"
BOTH = "{projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok}"
JINJA = "{projectsveltos.io/instantiate: ok, bellhop.dev/template: jinja2}"
HEAD = "apiVersion: v1\nkind: ConfigMap\n"
SECRET = "(b64dec .Resource.data.password)"


class TellTale(FakeKube):
    """A cluster whose API server, or what stands before it, quotes all that it is given."""

    def __init__(self, cluster: str, answer: Callable[[str], Exception]) -> None:
        super().__init__(cluster)
        self._answer = answer

    def apply(self, manifest: Manifest, **how: Any) -> Manifest:
        self._tell(manifest)
        return super().apply(manifest, **how)

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Manifest | None:
        there = [each for each in self.objects(gvk) if each["metadata"]["name"] == name]
        self._tell(there)
        return super().remove(gvk, namespace, name, uid=uid)

    def _tell(self, given: object) -> None:
        text = json.dumps(given)
        if TOKEN in text or ENCODED in text:
            raise self._answer(text)


class Quiet(TellTale):
    """A cluster that accepts everything, and reports an error only when something is removed."""

    def apply(self, manifest: Manifest, **how: Any) -> Manifest:
        return FakeKube.apply(self, manifest, **how)


def refusing(code: int, reason: str) -> Callable[[str], Exception]:
    """Answer as an API server does, with the object in message, field and cause."""

    def answer(text: str) -> Exception:
        causes = [{"reason": "FieldValueInvalid", "message": text, "field": f"metadata.{text}"}]
        details = {"name": TOKEN, "kind": TOKEN, "causes": causes}
        call = Call("fleet/east", "apply an object")
        return refusal_error(Refusal(code, reason, f"it is: {text}", details), call)

    return answer


class Leak(NamedTuple):
    """One way in which a value could get out."""

    text: str = ""
    annotations: str = GO
    script: str = ""
    ref: str = "{kind: ConfigMap, name: made, namespace: default}"
    one: str = "true"
    holder: str = "ConfigMap"


def labelled(value: str) -> str:
    return HEAD + f"metadata: {{name: x, namespace: default, labels: {{pw: {value}}}}}"


def named(**fields: str) -> str:
    told = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "x", **fields}
    kind, version = told.pop("kind"), told.pop("apiVersion")
    inner = ", ".join(f"{key}: '{value}'" for key, value in told.items())
    return f"apiVersion: '{version}'\nkind: '{kind}'\nmetadata: {{{inner}}}"


LABEL = labelled("{{ .Resource.data.password | quote }}")
LEAKS = {
    "go fail": Leak(f"{{{{ fail {SECRET} }}}}"),
    "go fail, all together": Leak(
        "{{ range .Resources }}{{ fail .data.password }}{{ end }}", one="false"
    ),
    "go missing key": Leak(f"{{{{ (index .Resource {SECRET}).x }}}}"),
    "go conversion": Leak(f"{{{{ mustToDate {SECRET} {SECRET} }}}}"),
    "jinja fail": Leak("{{ fail(Resource.data.password | b64decode) }}", JINJA),
    "jinja attribute": Leak("{{ Resource[Resource.data.password | b64decode].x }}", JINJA),
    "deploy-time fail": Leak(f'{{{{ printf "{{{{ fail %q }}}}" {SECRET} }}}}', BOTH),
    "YAML line": Leak(HEAD + f"metadata: {{name: x}}\ndata: a: {{{{ {SECRET} }}}}"),
    "YAML duplicate key": Leak(
        HEAD + f"x:\n  {{{{ {SECRET} | b64enc }}}}: 1\n  {{{{ {SECRET} | b64enc }}}}: 2"
    ),
    "YAML tag": Leak(HEAD + "x: !{{ .Resource.data.password }} y"),
    "YAML alias": Leak(HEAD + f"x: *{{{{ {SECRET} | b64enc }}}}"),
    "no object": Leak(f"{{{{ {SECRET} | quote }}}}"),
    "no name": Leak(f"apiVersion: v1\nkind: {{{{ {SECRET} | quote }}}}"),
    "name with a slash": Leak(named(name="a/{{ .Resource.data.password }}")),
    "name": Leak(named(name=f"{{{{ {SECRET} | trunc 7 }}}}")),
    "name, encoded": Leak(named(name="{{ .Resource.data.password | lower }}")),
    "name, in hexadecimal": Leak(named(name=f'{{{{ printf "%x" {SECRET} | trunc 20 }}}}')),
    "name, by jinja": Leak(
        named(name="{{ Resource.data.password | b64decode | truncate(9) }}"), JINJA
    ),
    "namespace": Leak(named(namespace=f"{{{{ {SECRET} | trunc 16 }}}}")),
    "kind": Leak(named(kind=f"{{{{ {SECRET} | trunc 16 | title }}}}")),
    "apiVersion": Leak(named(apiVersion=f"{{{{ {SECRET} | trunc 16 }}}}/v1")),
    "name at deploy time": Leak(
        named(name=f'{{{{ {SECRET} | trunc 16 }}}}-{{{{ "{{{{ .Cluster.metadata.name }}}}" }}}}'),
        BOTH,
    ),
    "policyRefs name": Leak(
        ref="{kind: ConfigMap, namespace: default, name: '{{ b64dec .Resource.data.password }}'}"
    ),
    "policyRefs namespace": Leak(
        ref="{kind: Secret, name: x, namespace: '{{ .Resource.data.password | lower }}'}"
    ),
    "policyRefs fail": Leak(
        ref="{kind: ConfigMap, name: '{{ fail (b64dec .Resource.data.password) }}'}"
    ),
    "lua error": Leak(script="error(obj.data.password)"),
    "lua error table": Leak(script="error({unfit = obj.data.password})"),
    "lua index": Leak(script="local t = {} ; return t[obj.data.password].x.y"),
    "lua arithmetic": Leak(script="return obj.data.password + 1"),
    "lua result": Leak(script="return {matching = true, [obj.data.password] = function() end}"),
    "lua result's kind": Leak(script="return {matching = obj.data.password}"),
    "a holder that is a Secret": Leak(labelled(f"'{VALUE[:16]}'"), "{}", holder="Secret"),
    "a template in a Secret": Leak(f'{{{{ fail "{TOKEN}" }}}}', holder="Secret"),
    "a template in a Secret that is none": Leak(f'{{{{ "{TOKEN}" | }}}}', holder="Secret"),
}

ANSWERS = {
    "422": refusing(422, "Invalid"),
    "400": refusing(400, "BadRequest"),
    "403": refusing(403, "Forbidden"),
    "404": refusing(404, "NotFound"),
    "409": refusing(409, "Conflict"),
    "413": refusing(413, "RequestEntityTooLarge"),
    "429": refusing(429, "TooManyRequests"),
    "500": refusing(500, f"InternalError{TOKEN}"),
    "unforeseen": ValueError,
    "a key": KeyError,
}


def declare(fleet: Fleet, leak: Leak) -> None:
    """Declare a source of Secrets and a trigger that hands their values on."""
    script = f"function evaluate() {leak.script} end"
    data = {"main.yaml": leak.text or "{}"}
    holder: dict[str, Any] = {"apiVersion": "v1", "kind": leak.holder, "data": data}
    if leak.holder == "Secret":
        holder |= {
            "stringData": data,
            "data": {},
            "type": "addons.projectsveltos.io/cluster-profile",
        }
    ref = leak.ref.replace("ConfigMap", leak.holder)
    fleet.apply(
        f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: secrets}}
spec:
  collectResources: true
  resourceSelectors:
  - {{group: "", version: v1, kind: Secret, namespace: default,
      evaluate: {json.dumps(script if leak.script else "")}}}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: copy}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: secrets
  oneForEvent: {leak.one}
  policyRefs: [{ref}]
""",
        json.dumps(holder | {"metadata": {"name": "made", "namespace": "default"}}).replace(
            '"namespace": "default"', f'"namespace": "default", "annotations": {leak.annotations}'
        ),
    )


def secret(name: str = "db") -> dict[str, Any]:
    data = {"password": ENCODED, "more": base64.b64encode(f"at {name}".encode()).decode()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def work(fleet: Fleet) -> None:
    """Work, and let time pass until what fails has become dead letters."""
    for _ in range(fleet.settings.attempts + 1):
        fleet.pump()
        fleet.clock.advance(timedelta(hours=1))


def forms() -> Iterator[str]:
    """Yield how the value could be spelled: as it is, in base64 at any offset, in hexadecimal."""
    yield from (TOKEN, TOKEN[:7], TOKEN.encode().hex()[:14])
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + TOKEN.encode()).decode()[shift + 1 : 16].lower()


def spoken(fleet: Fleet, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Gather all that Bellhop keeps outside of sealed payloads, and all that it says."""
    said = [fleet.output.getvalue(), *map(str, fleet.ledger())]
    for database in ("store.db", "queue.db"):
        with sqlite3.connect(folder / database) as connection:
            said += connection.iterdump()
    for cluster in fleet.access.clusters:
        said += map(str, fleet.records.outcomes.of(cluster))
        said += map(str, fleet.records.matches.of(cluster))
        said += map(_inventory, fleet.records.inventories.of(cluster))
    for trigger in ("copy", ""):
        said += map(str, fleet.records.profiles.heads(trigger))
    for queue in fleet.queues.values():
        said += map(str, queue.list())
    for entry in fleet.ledger():
        event_log.print_line(entry)
        event_log.print_json_line(entry)
    said.append(capsys.readouterr().out)
    (folder / "key").write_bytes(bytes(32))
    runner = CliRunner(env={"BELLHOP_STATE": str(folder), "XDG_CONFIG_HOME": str(folder)})
    for command in SHOWN:
        result = runner.invoke(cli, command.split())
        assert result.exit_code == 0, result.output
        said.append(result.output)
    return "\n".join(said).lower()


KINDS = ("clusters", "eventsources", "eventtriggers", "eventreports", "clusterprofiles")
SHOWN = (
    *(f"get {kind} {form}" for kind in KINDS for form in ("-o wide", "-o json")),
    *(f"describe {kind}" for kind in KINDS),
    *(f"show {what} -o wide" for what in ("addons", "failures", "events")),
    "dead-letters list -o wide",
)


def _inventory(inventory: Inventory) -> str:
    return "\n".join(f"{key} {held}" for key, held in inventory.held.items())


def failed(fleet: Fleet) -> bool:
    """Say whether the attempt was noticed at all."""
    phases = {each.phase for each in fleet.records.outcomes.of("fleet/east")}
    errors = [each.error for each in fleet.records.matches.of("fleet/east") if each.error]
    letters = any(queue.list() for queue in fleet.queues.values())
    return bool(errors or letters or phases & {"Failed", "FailedNonRetriable"})


def ready(fleet: Fleet, kube: FakeKube) -> None:
    fleet.access.clusters["fleet/east"] = kube
    fleet.register("east", env="production")


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
def test_no_value_gets_out_by_what_users_wrote(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str], leak: Leak
) -> None:
    """No template, script or name carries a Secret's value into anything that is said or kept."""
    ready(fleet, TellTale("fleet/east", ANSWERS["422"]))
    declare(fleet, leak)
    fleet.write("east", secret())
    work(fleet)

    assert failed(fleet)
    text = spoken(fleet, tmp_path, capsys)
    assert [form for form in forms() if form in text] == []


@pytest.mark.rest
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(TellTale, LABEL, id="a label"),
        pytest.param(Quiet, LABEL, id="a label that is removed"),
        pytest.param(
            # Where it matches itself, its own profile would take it over instead.
            Quiet,
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: copies}\n"
            "data: {{ toJson .Resource.data }}",
            id="a copy that is removed",
        ),
        pytest.param(
            TellTale,
            HEAD + "metadata: {name: x, namespace: default}\n"
            "data: {{ dict (b64dec .Resource.data.password) 1 | toJson }}",
            id="a key",
        ),
    ],
)
def test_no_value_gets_out_by_what_an_api_server_says(
    fleet: Fleet,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: type[TellTale],
    text: str,
    answer: Callable[[str], Exception],
) -> None:
    """No answer of an API server to an apply or a removal is repeated."""
    ready(fleet, kind("fleet/east", answer))
    declare(fleet, Leak(text))
    stored = fleet.write("east", secret())
    fleet.pump()
    if kind is Quiet:
        fleet.drop("east", stored)
    work(fleet)

    # Of a kind that is no more the objects are gone.
    assert failed(fleet) or (kind is Quiet and answer is ANSWERS["404"])
    said = spoken(fleet, tmp_path, capsys)
    assert [form for form in forms() if form in said] == []


def test_a_message_of_lua_on_a_secret_is_not_kept(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script may say what it likes of other objects; on a Secret its words are dropped."""
    ready(fleet, FakeKube("fleet/east"))
    declare(fleet, Leak(script="return {matching = true, message = obj.data.password}"))
    fleet.write("east", secret())
    fleet.pump()

    (match,) = fleet.records.matches.of("fleet/east")
    assert (match.matching, match.message) == (True, "")
    text = spoken(fleet, tmp_path, capsys)
    assert [form for form in forms() if form in text] == []


def test_a_refusal_says_what_it_may(fleet: Fleet) -> None:
    """Object, cluster, reason and field are shown, and how to find out the rest."""
    ready(fleet, TellTale("fleet/east", ANSWERS["422"]))
    declare(fleet, Leak(LABEL))
    fleet.write("east", secret())
    fleet.pump()

    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert outcome.reason == "Invalid"
    assert outcome.message == (
        "cannot apply an object on cluster 'fleet/east': it is refused: Invalid, metadata; the rest"
        " is withheld, for it may quote a Secret: `kubectl apply --dry-run=server` of what"
        " `bellhop render` prints shows it"
    )


@pytest.mark.parametrize("annotations", [GO, BOTH])
def test_names_of_metadata_are_no_values(fleet: Fleet, annotations: str) -> None:
    """A Secret whose value has its own name, or the cluster's, still gives it to its add-ons."""
    ready(fleet, FakeKube("fleet/east"))
    name = "copy-of-{{ .Resource.metadata.name }}"
    digest = "{{ sha256sum .Resource.data.password | trunc 12 }}"
    text = named(name=f"{name}-{digest}", namespace="{{ .Resource.metadata.namespace }}")
    declare(fleet, Leak(text, annotations))
    manifest = secret("orders-database")
    manifest["data"]["password"] = base64.b64encode(
        b"postgres://copy-of-orders-database.default.east/production"
    ).decode()
    fleet.write("east", manifest)
    fleet.pump()

    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert outcome.phase == "Provisioned", outcome.message
    assert len(fleet.access.clusters["fleet/east"].objects(GVK("", "v1", "ConfigMap"))) == 1


def test_logs_no_token_of_a_sender(fleet: Fleet) -> None:
    """A token that is refused appears in no line."""
    fleet.register("east", env="production")
    assert fleet.send("east", {"object": service("a")}, token="hush-token").status == 401
    assert "hush" not in fleet.output.getvalue()
