"""Scripts, templates and objects that are wrong: each has its sentence, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis.failures import failures as list_failures
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.state.messages import Instantiate
from bellhop.state.record import NO_OBJECT, Match
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
CONFIG = GVK("", "v1", "ConfigMap")
WEB = ObjectKey(SERVICE, "default", "web")


def source(script: str, name: str = "scripted") -> str:
    body = "\n".join("      " + line for line in script.splitlines())
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec:
  collectResources: true
  resourceSelectors:
  - group: ""
    version: v1
    kind: Service
    evaluate: |
{body}
"""


def trigger(name: str, template: str, *, origin: str = "scripted", extra: str = "") -> str:
    body = "\n".join("    " + line for line in template.splitlines())
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: {origin}
  oneForEvent: true
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
  {extra}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: default
  annotations: {{projectsveltos.io/instantiate: ok}}
data:
  main.yaml: |
{body}
"""


MATCHES = "function evaluate()\n  return {matching = true}\nend"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: made-for-{{ .Resource.metadata.name }}
  namespace: default
data: {port: "{{ (index .Resource.spec.ports 0).port }}"}"""


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def made(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(CONFIG)]


def outcome(fleet: Fleet) -> tuple[str, str, str]:
    found = next(iter(fleet.records.outcomes.of("fleet/east")))
    return found.phase, found.reason, found.message


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("function evaluate(", "expected near", id="does not parse"),
        pytest.param("function evaluate()\n  while true do end\nend", "took more", id="for ever"),
        pytest.param("function evaluate()\n  return obj.a.b\nend", "attempt to index", id="fails"),
        pytest.param("function evaluate()\n  return 7\nend", "not a lua table", id="no table"),
        pytest.param("x = 1", "evaluate", id="no function"),
    ],
)
def test_a_script_that_fails_shows_its_sentence_and_withdraws_nothing(
    fleet: Fleet, east: FakeKube, script: str, expected: str
) -> None:
    """What matched before the script broke stays deployed; the error is kept at the object."""
    fleet.apply(source(MATCHES), trigger("made", CONFIG_MAP))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert made(east) == ["made-for-web"]

    fleet.apply(source(script))
    fleet.pump()

    match = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert match
    assert match.matching
    assert expected in match.error
    assert made(east) == ["made-for-web"]

    fleet.apply(source(MATCHES))
    fleet.pump()
    healed = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert healed
    assert healed.error == ""


def test_what_a_script_fails_on_brings_nothing(fleet: Fleet, east: FakeKube) -> None:
    """An object that nobody could judge yet does not match, whoever asks for its profile."""
    fleet.apply(source("function evaluate()\n  return obj.a.b\nend"), trigger("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()

    fleet.stages["deploy"].handle(Instantiate("made", "fleet/east", str(WEB)))
    fleet.pump()

    assert value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert made(east) == []


@pytest.mark.parametrize(
    ("template", "code", "expected"),
    [
        pytest.param("{{ .Resource.nothing }}", "Template", "no entry for key", id="missing key"),
        pytest.param("{{ if }}", "Template", "missing value for if", id="does not parse"),
        pytest.param('{{ fail "not today" }}', "Template", "not today", id="fails by itself"),
        pytest.param('{{ env "HOME" }}', "Template", "env", id="wants the environment"),
        pytest.param("a: [", "Invalid", "default/made/main.yaml", id="not YAML"),
        pytest.param("just text", "Invalid", "not a Kubernetes object", id="not an object"),
        pytest.param("kind: X", "Invalid", "has no 'apiVersion'", id="no apiVersion"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap", "Invalid", "no 'metadata.name'", id="no name"
        ),
    ],
)
def test_a_template_that_fails_shows_its_sentence_and_withdraws_nothing(
    fleet: Fleet, east: FakeKube, template: str, code: str, expected: str
) -> None:
    """What was last good stays deployed; the outcome says what is wrong now."""
    fleet.apply(source(MATCHES), trigger("made", CONFIG_MAP))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()

    fleet.apply(trigger("made", template))
    fleet.pump()

    phase, reason, message = outcome(fleet)
    assert (phase, reason) == ("FailedNonRetriable", code)
    assert expected in message
    assert made(east) == ["made-for-web"]

    fleet.apply(trigger("made", CONFIG_MAP))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "", "")


def test_a_template_that_renders_to_nothing_is_fine(fleet: Fleet, east: FakeKube) -> None:
    """No document at all withdraws what was there, without an error, and that is said."""
    fleet.apply(source(MATCHES), trigger("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()
    fleet.apply(trigger("made", "{{ if false }}x{{ end }}\n---\n---\n"))
    fleet.pump()

    assert made(east) == []
    assert outcome(fleet) == ("Provisioned", "", NO_OBJECT)


def test_a_missing_config_map_is_named_and_taken_when_it_comes(
    fleet: Fleet, east: FakeKube
) -> None:
    """A ref to nothing fails with its name; applying the object later deploys it."""
    documents = trigger("made", CONFIG_MAP).split("---\n")
    fleet.apply(source(MATCHES), documents[0])
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert outcome(fleet)[2] == (
        "cannot find ConfigMap default/made that policyRefs names; apply it, or mark the ref"
        " optional"
    )

    fleet.apply(documents[1])
    fleet.pump()
    assert made(east) == ["made-for-web"]


def test_an_optional_ref_whose_name_comes_to_nothing_is_skipped(
    fleet: Fleet, east: FakeKube
) -> None:
    """A label that the object lacks makes no name, so no ConfigMap can have it."""
    name = "'in-{{ index .Resource.metadata.labels \"region\" }}'"
    ref = f"{{kind: ConfigMap, name: {name}, namespace: default, optional: true}}"
    declared = trigger("made", CONFIG_MAP).replace("policyRefs: [", f"policyRefs: [{ref}, ")
    fleet.apply(source(MATCHES), declared)
    there = service("web")
    there["metadata"]["labels"] = {"team": "blue"}
    fleet.write("east", there)
    fleet.pump()

    assert (made(east), outcome(fleet)) == (["made-for-web"], ("Provisioned", "", ""))


def test_two_profiles_that_want_one_object_conflict_until_one_goes(
    fleet: Fleet, east: FakeKube
) -> None:
    """The first keeps it, the second says who has it, and gets it when the first is gone."""
    same = CONFIG_MAP.replace("made-for", "shared-by")
    fleet.apply(source(MATCHES), trigger("first", same))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    fleet.apply(trigger("second", same.replace("data: {", 'data: {second: "1", ')))
    fleet.pump()
    failed = [each for each in fleet.records.outcomes.of("fleet/east") if each.reason == "Conflict"]
    assert [each.trigger for each in failed] == ["second"]
    assert "of tier 100 has it" in failed[0].message

    fleet.declare.delete([("EventTrigger", "", "first")])
    fleet.pump()

    assert made(east) == ["shared-by-web"]
    assert "second" in east.objects(CONFIG)[0]["data"]
    assert [each.phase for each in fleet.records.outcomes.of("fleet/east")] == ["Provisioned"]


def test_a_lower_tier_takes_an_object_over(fleet: Fleet, east: FakeKube) -> None:
    """The profile of the lower tier wins; the loser says so and removes nothing."""
    same = CONFIG_MAP.replace("made-for", "shared-by")
    fleet.apply(source(MATCHES), trigger("first", same))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()

    winner = same.replace("data: {", 'data: {winner: "1", ')
    fleet.apply(trigger("second", winner, extra="tier: 50"))
    fleet.pump()

    assert "winner" in east.objects(CONFIG)[0]["data"]
    reasons = {each.trigger: each.reason for each in fleet.records.outcomes.of("fleet/east")}
    assert reasons == {"first": "Conflict", "second": ""}

    fleet.declare.delete([("EventTrigger", "", "first")])
    fleet.pump()
    assert made(east) == ["shared-by-web"]


def test_says_why_an_object_may_not_be_removed(fleet: Fleet, east: FakeKube) -> None:
    """In the API server's words, where no Secret was in reach; it is tried again."""
    fleet.apply(source(MATCHES), trigger("made", CONFIG_MAP))
    fleet.pump()
    stored = fleet.write("east", service("web"))
    fleet.pump()
    denial = "admission webhook 'keeper' denied the request: it is protected"
    call = Call("fleet/east", "remove ConfigMap 'default/made-for-web'")
    east.fail_with(refusal_error(Refusal(403, "Forbidden", denial), call), "remove")

    fleet.drop("east", stored)
    fleet.pump()

    for _ in range(2):
        assert denial in outcome(fleet)[2]
        fleet.clock.advance(fleet.settings.retry_longest)
        fleet.pump()
    east.fail_with(None)
    fleet.clock.advance(fleet.settings.retry_longest)
    fleet.pump()
    assert made(east) == []


def test_leaves_policies_when_told_so(fleet: Fleet, east: FakeKube) -> None:
    """With stopMatchingBehavior LeavePolicies the objects stay, and are nobody's."""
    fleet.apply(
        source(MATCHES),
        trigger("made", CONFIG_MAP, extra="stopMatchingBehavior: LeavePolicies"),
    )
    fleet.pump()
    stored = fleet.write("east", service("web"))
    fleet.pump()

    fleet.drop("east", stored)
    fleet.pump()

    assert made(east) == ["made-for-web"]
    assert "projectsveltos.io" not in str(east.objects(CONFIG))
    assert list(fleet.records.inventories.of("fleet/east")) == []


FIRST_ERA = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventSource
metadata: {name: scripted}
spec: {group: "", version: v1, kind: Service, collectResources: true}
---
apiVersion: lib.projectsveltos.io/v1alpha1
kind: %s
metadata: {name: made}
spec:
  sourceClusterSelector: env=production
  eventSourceName: scripted
  oneForEvent: %s
  stopMatchingBehavior: LeavePolicies
  policyRefs: [{kind: ConfigMap, name: made, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: made, namespace: default}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "made", namespace: default}
    data: {of: "%s"}
"""
ENDS: dict[str, Callable[[Fleet, dict[str, Any]], object]] = {
    "it is deleted": lambda fleet, stored: fleet.drop("east", stored),
    "its trigger is": lambda fleet, _: fleet.declare.delete(
        [(fleet.catalogs.current().triggers["made"].kind, "", "made")]
    ),
    "its source is": lambda fleet, _: fleet.declare.delete([("EventSource", "", "scripted")]),
    "its cluster is selected no more": lambda fleet, _: fleet.declare.label(
        "fleet/east", {"env": "test"}
    ),
}


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("kind", ["EventTrigger", "EventBasedAddOn"])
@pytest.mark.parametrize(
    ("one", "said"),
    [
        ("true", "{{ .Resource.metadata.name }}"),
        ("false", "{{ range .Resources }}{{ .metadata.name }}{{ end }}"),
    ],
)
def test_the_first_era_leaves_policies_too(
    fleet: Fleet, east: FakeKube, ends: str, kind: str, one: str, said: str
) -> None:
    """Whatever ends the event, and however its trigger was called: the object stays as it is."""
    fleet.apply(FIRST_ERA % (kind, one, said))
    stored = fleet.write("east", service("web"))
    fleet.pump()
    ENDS[ends](fleet, stored)
    fleet.pump()

    assert [each["data"] for each in east.objects(CONFIG)] == [{"of": "web"}]
    assert list(fleet.records.inventories.of("fleet/east")) == []


def test_what_is_rendered_no_more_goes_with_leave_policies_too(
    fleet: Fleet, east: FakeKube
) -> None:
    """As in Sveltos: one profile for all that matches is left once nothing matches any more."""
    one_each = FIRST_ERA.replace('"made", namespace', '"for-{{ .metadata.name }}", namespace')
    body = one_each % ("EventTrigger", "false", "{{ .metadata.name }}")
    begin = "    apiVersion: v1\n    kind: ConfigMap\n"
    body = body.replace(begin, "    {{ range .Resources }}\n    ---\n" + begin) + "    {{ end }}\n"
    fleet.apply(body)
    stored = [fleet.write("east", service(name)) for name in "ab"]
    fleet.pump()
    assert made(east) == ["for-a", "for-b"]

    fleet.drop("east", stored[0])
    fleet.pump()
    assert made(east) == ["for-b"]

    fleet.drop("east", stored[1])
    fleet.pump()
    assert made(east) == ["for-b"]


def test_refuses_to_change_one_for_event(fleet: Fleet, east: FakeKube) -> None:
    """OneForEvent cannot be changed, as in Sveltos; nothing of the same apply is stored."""
    del east
    fleet.apply(trigger("made", CONFIG_MAP))
    changed = trigger("made", CONFIG_MAP).replace("oneForEvent: true", "oneForEvent: false")

    with pytest.raises(InvalidError, match="Value is immutable"):
        fleet.apply(source(MATCHES), changed)

    assert fleet.records.manifests.get("EventSource", "", "scripted") is None


def test_refuses_two_triggers_of_one_name(fleet: Fleet) -> None:
    """EventTrigger and EventBasedAddOn are one kind under two names."""
    fleet.apply(trigger("made", CONFIG_MAP))
    twin = trigger("made", CONFIG_MAP).replace("EventTrigger", "EventBasedAddOn")

    with pytest.raises(InvalidError, match="`bellhop delete eventtrigger made`"):
        fleet.apply(twin)


def test_deletes_nothing_when_one_is_missing(fleet: Fleet) -> None:
    """A deletion of something that is not there deletes nothing else either."""
    fleet.apply(source(MATCHES))

    with pytest.raises(MissingError, match="cannot delete EventSource 'other': there is none"):
        fleet.declare.delete([("EventSource", "", "scripted"), ("EventSource", "", "other")])

    assert value_of(fleet.records.manifests.get("EventSource", "", "scripted"))


def test_a_profile_with_one_object_in_two_forms_is_a_conflict(fleet: Fleet, east: FakeKube) -> None:
    """What holds both is named, and the first is applied."""
    fleet.apply(
        source(MATCHES), trigger("made", CONFIG_MAP + "\n---\n" + CONFIG_MAP + "\nimmutable: true")
    )
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()

    phase, reason, message = outcome(fleet)
    assert (phase, reason) == ("FailedNonRetriable", ConflictError.code)
    assert "in two forms" in message
    assert made(east) == ["made-for-web"]


def test_resumes_a_change_that_was_abandoned(fleet: Fleet, east: FakeKube) -> None:
    """An apply killed between storing and telling is finished by the schedule."""
    from datetime import timedelta  # noqa: PLC0415 - one test's wait

    publish = fleet.queues["sweep"].publish

    def crash(_: object) -> None:
        raise SystemExit(9)

    east.put(service("web"))
    fleet.queues["sweep"].publish = crash  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        fleet.apply(source(MATCHES), trigger("made", CONFIG_MAP))
    fleet.queues["sweep"].publish = publish  # type: ignore[method-assign]
    assert fleet.declare.resume() == 0
    fleet.clock.advance(timedelta(minutes=1))

    assert fleet.declare.resume() == 1

    fleet.pump()
    assert made(east) == ["made-for-web"]
    assert fleet.declare.resume() == 0


def test_forgets_a_cluster_and_what_others_got_from_it(fleet: Fleet, east: FakeKube) -> None:
    """Deregistering withdraws what the cluster's events brought to others, and keeps no record."""
    west = fleet.register("west", dep="eng")
    both = trigger(
        "made", CONFIG_MAP, extra="destinationClusterSelector: {matchLabels: {dep: eng}}"
    )
    fleet.apply(source(MATCHES), both)
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert made(west) == ["made-for-web"]

    fleet.declare.deregister("fleet/east")
    fleet.pump()

    assert made(west) == []
    assert fleet.records.gates.get("fleet/east") is None
    assert list(fleet.records.matches.of("fleet/east")) == []
    assert fleet.send("east", {"object": service("web")}).status == 401
    del east


def test_a_script_that_says_too_much_is_cut_short(fleet: Fleet, east: FakeKube) -> None:
    """A message of a megabyte is no reason not to record a match."""
    endless = (
        "function evaluate()\n  return {matching = true, message = string.rep('x', 2^20)}\nend"
    )
    fleet.apply(source(endless), trigger("made", CONFIG_MAP))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()

    match = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert match
    assert match.message == "x" * 1024
    assert made(east) == ["made-for-web"]


def test_a_profile_of_very_many_objects_is_recorded(fleet: Fleet, east: FakeKube) -> None:
    """The ledger names the first ones.

    It takes seconds: 1500 objects are rendered and applied.
    """
    many = "{{ range $i := until 1500 }}---\n" + CONFIG_MAP.replace(
        "made-for-{{ .Resource.metadata.name }}", "a-rather-long-name-of-a-config-map-{{ $i }}"
    ).replace("{{ (index .Resource.spec.ports 0).port }}", "1")
    fleet.apply(source(MATCHES), trigger("made", many + "\n{{ end }}"))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()

    assert len(made(east)) == 1500
    assert outcome(fleet) == ("Provisioned", "", "")
    applied = [entry for entry in fleet.ledger() if entry.what == "applied"]
    assert [len(entry.detail) for entry in applied] == [2050]


def test_a_match_says_since_when_its_script_fails(fleet: Fleet) -> None:
    """Not since when its object matched, nor since it changed last; and no more once it works."""
    script = """
function evaluate()
  if obj.odd then error("odd " .. obj.odd) end
  return {matching = true}
end"""
    fleet.register("east", env="production")
    fleet.apply(source(script), trigger("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()

    def seen(**fields: str) -> Match:
        fleet.clock.advance(timedelta(minutes=1))
        fleet.write("east", service("web", **fields))
        fleet.pump()
        return value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))

    first, again, mended = seen(odd="1"), seen(odd="2"), seen()

    assert (first.matching, first.failed_at) == (True, first.since + timedelta(minutes=1))
    assert ("odd 2" in again.error, again.failed_at) == (True, first.failed_at)
    assert (mended.error, mended.failed_at, mended.since) == ("", None, first.since)


# In several clusters ------------------------------------------------------------------------------


def told(fleet: Fleet) -> list[tuple[str, int, str]]:
    found = list_failures(fleet.installation())
    return [(each.what, each.several, each.sentence) for each in found if each.what != "serve"]


def test_a_bad_template_in_several_clusters_is_one_failure(fleet: Fleet) -> None:
    """The trigger's, with its clusters counted, though each event has its own profile."""
    broken = CONFIG_MAP.replace("{{ .Resource", "{{ fail .Resource.metadata.name }}{{ .Resource")
    fleet.apply(source(MATCHES), trigger("made", broken))
    for name in ("east", "west", "south"):
        fleet.register(name, env="production")
        fleet.write(name, service(f"web-{name}"))
    fleet.pump()
    begun = fleet.clock.now()
    [(what, several, sentence)] = told(fleet)

    assert (what, several) == ("trigger", 3)
    fleet.clock.advance(timedelta(hours=2))
    [row] = [each for each in list_failures(fleet.installation()) if each.what == "trigger"]
    assert row.which.startswith("made for Service default/web-")
    assert row.at == begun
    assert "it fails in 3 clusters: fleet/" in sentence


def test_a_manifest_that_clusters_refuse_is_one_failure(fleet: Fleet) -> None:
    """A cluster that refuses it for another reason is another failure."""
    for name, said in (("east", "no: {}"), ("west", "no: {}"), ("south", "never")):
        refused = InvalidError(said.format(f"cluster 'fleet/{name}'"))
        fleet.register(name, env="production").fail_with(refused, "apply")
    fleet.apply(join(profile(), holder("own", config("a"))))
    fleet.pump()
    both, other = sorted(told(fleet), key=lambda each: -each[1])

    assert both[:2] == ("deployment", 2)
    assert "it fails in 2 clusters: fleet/east, fleet/west" in both[2]
    assert other[:2] == ("deployment", 1)
    assert "never" in other[2]
