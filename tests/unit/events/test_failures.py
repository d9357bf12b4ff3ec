"""Scripts, templates and objects that are wrong: each has its sentence, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.state.content import NO_OBJECT
from bellhop.state.match import Match
from bellhop.state.messages import Instantiate
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.hooks import failing
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

WEB = ObjectKey(SERVICE, "default", "web")


def scripted(script: str) -> str:
    """Return a source of Services whose script decides."""
    return source(name="scripted", more=f", evaluate: {json.dumps(script)}")


def rule(name: str, template: str, *, more: str = "") -> str:
    """Return a trigger of the scripted source, and its manifest."""
    return join(
        trigger(name, origin="scripted", more=more),
        holder(name, template, annotations=INSTANTIATE),
    )


MATCHES = "function evaluate()\n  return {matching = true}\nend"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: made-for-{{ .Resource.metadata.name }}
  namespace: default
data: {port: "{{ (index .Resource.spec.ports 0).port }}"}"""


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
    """The match from before the script broke stays deployed; the error is stored with the match."""
    fleet.deploy(scripted(MATCHES), rule("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()
    assert east.names() == ["made-for-web"]

    fleet.deploy(scripted(script))

    match = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert match
    assert match.matching
    assert expected in match.error
    assert east.names() == ["made-for-web"]

    fleet.deploy(scripted(MATCHES))
    healed = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert healed
    assert healed.error == ""


def test_an_object_that_a_script_fails_on_deploys_nothing(fleet: Fleet, east: FakeKube) -> None:
    """An object that could not be evaluated yet does not match, whichever profile is asked for."""
    fleet.apply(scripted("function evaluate()\n  return obj.a.b\nend"), rule("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()

    fleet.stages["deploy"].handle(Instantiate("made", "fleet/east", str(WEB)))
    fleet.pump()

    assert value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert east.names() == []


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
    """The last good contents stay deployed; the status has the error."""
    fleet.deploy(scripted(MATCHES), rule("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()

    fleet.deploy(rule("made", template))

    phase, reason, message = outcome(fleet)
    assert (phase, reason) == ("FailedNonRetriable", code)
    assert expected in message
    assert east.names() == ["made-for-web"]

    fleet.deploy(rule("made", CONFIG_MAP))
    assert outcome(fleet) == ("Provisioned", "", "")


def test_a_template_that_renders_to_nothing_is_fine(fleet: Fleet, east: FakeKube) -> None:
    """No document at all withdraws what was there, without an error, and that is said."""
    fleet.apply(scripted(MATCHES), rule("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()
    fleet.deploy(rule("made", "{{ if false }}x{{ end }}\n---\n---\n"))

    assert east.names() == []
    assert outcome(fleet) == ("Provisioned", "", NO_OBJECT)


def test_a_missing_config_map_is_named_and_taken_when_it_comes(
    fleet: Fleet, east: FakeKube
) -> None:
    """A ref to nothing fails with its name; applying the object later deploys it."""
    documents = rule("made", CONFIG_MAP).split("---\n")
    fleet.deploy(scripted(MATCHES), documents[0])
    fleet.write("east", service("web"))
    fleet.pump()
    assert outcome(fleet)[2] == (
        "cannot find ConfigMap default/made that policyRefs names; apply it, or mark the ref"
        " optional"
    )

    fleet.deploy(documents[1])
    assert east.names() == ["made-for-web"]


def test_an_optional_ref_whose_name_is_rendered_to_nothing_is_skipped(
    fleet: Fleet, east: FakeKube
) -> None:
    """A label that the object lacks makes no name, so no ConfigMap can have it."""
    name = "'in-{{ index .Resource.metadata.labels \"region\" }}'"
    ref = f"{{kind: ConfigMap, name: {name}, namespace: default, optional: true}}"
    declared = rule("made", CONFIG_MAP).replace("policyRefs: [", f"policyRefs: [{ref}, ")
    fleet.apply(scripted(MATCHES), declared)
    there = service("web")
    there["metadata"]["labels"] = {"team": "blue"}
    fleet.write("east", there)
    fleet.pump()

    assert (east.names(), outcome(fleet)) == (["made-for-web"], ("Provisioned", "", ""))


def test_two_profiles_of_one_object_conflict_until_one_is_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """The first keeps it, the second names the owner, and gets it when the first is deleted."""
    same = CONFIG_MAP.replace("made-for", "shared-by")
    fleet.deploy(scripted(MATCHES), rule("first", same))
    fleet.write("east", service("web"))
    fleet.pump()
    fleet.deploy(rule("second", same.replace("data: {", 'data: {second: "1", ')))
    failed = [each for each in fleet.records.outcomes.of("fleet/east") if each.reason == "Conflict"]
    assert [each.trigger for each in failed] == ["second"]
    assert "of tier 100 has it" in failed[0].message

    fleet.delete("EventTrigger", "first")

    assert east.names() == ["shared-by-web"]
    assert "second" in east.objects(CONFIG)[0]["data"]
    assert [each.phase for each in fleet.records.outcomes.of("fleet/east")] == ["Provisioned"]


def test_a_lower_tier_takes_an_object_over(fleet: Fleet, east: FakeKube) -> None:
    """The profile of the lower tier wins; the loser says so and removes nothing."""
    same = CONFIG_MAP.replace("made-for", "shared-by")
    fleet.deploy(scripted(MATCHES), rule("first", same))
    fleet.write("east", service("web"))
    fleet.pump()

    winner = same.replace("data: {", 'data: {winner: "1", ')
    fleet.deploy(rule("second", winner, more="tier: 50"))

    assert "winner" in east.objects(CONFIG)[0]["data"]
    reasons = {each.trigger: each.reason for each in fleet.records.outcomes.of("fleet/east")}
    assert reasons == {"first": "Conflict", "second": ""}

    fleet.delete("EventTrigger", "first")
    assert east.names() == ["shared-by-web"]


def test_says_why_an_object_may_not_be_removed(fleet: Fleet, east: FakeKube) -> None:
    """In the API server's words, where no Secret was in reach; it is tried again."""
    fleet.deploy(scripted(MATCHES), rule("made", CONFIG_MAP))
    stored = fleet.write("east", service("web"))
    fleet.pump()
    denial = "admission webhook 'keeper' denied the request: it is protected"
    call = Call("fleet/east", "remove ConfigMap 'default/made-for-web'")
    east.fail_with(refusal_error(Refusal(403, "Forbidden", denial), call), "remove")

    fleet.drop("east", stored)
    fleet.pump()

    for _ in range(2):
        assert denial in outcome(fleet)[2]
        fleet.wait(fleet.settings.retry_longest)
    east.fail_with(None)
    fleet.wait(fleet.settings.retry_longest)
    assert east.names() == []


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
    assert "projectsveltos.io" not in str(east.objects(CONFIG))
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
    assert east.names() == ["for-a", "for-b"]

    fleet.drop("east", stored[0])
    fleet.pump()
    assert east.names() == ["for-b"]

    fleet.drop("east", stored[1])
    fleet.pump()
    assert east.names() == ["for-b"]


def test_refuses_to_change_one_for_event(fleet: Fleet, east: FakeKube) -> None:
    """OneForEvent cannot be changed, as in Sveltos; nothing of the same apply is stored."""
    del east
    fleet.apply(rule("made", CONFIG_MAP))
    changed = rule("made", CONFIG_MAP).replace("oneForEvent: true", "oneForEvent: false")

    with pytest.raises(InvalidError, match="Value is immutable"):
        fleet.apply(scripted(MATCHES), changed)

    assert fleet.records.manifests.get("EventSource", "", "scripted") is None


def test_refuses_two_triggers_of_one_name(fleet: Fleet) -> None:
    """EventTrigger and EventBasedAddOn are one kind under two names."""
    fleet.apply(rule("made", CONFIG_MAP))
    twin = rule("made", CONFIG_MAP).replace("EventTrigger", "EventBasedAddOn")

    with pytest.raises(InvalidError, match="`bellhop delete eventtrigger made`"):
        fleet.apply(twin)


def test_deletes_nothing_when_one_is_missing(fleet: Fleet) -> None:
    """A deletion of something that is not there deletes nothing else either."""
    fleet.apply(scripted(MATCHES))

    with pytest.raises(MissingError, match="cannot delete EventSource 'other': there is none"):
        fleet.declare.delete([("EventSource", "", "scripted"), ("EventSource", "", "other")])

    assert value_of(fleet.records.manifests.get("EventSource", "", "scripted"))


def test_a_profile_with_one_object_in_two_forms_is_a_conflict(fleet: Fleet, east: FakeKube) -> None:
    """The manifests of both are named, and the first is applied."""
    fleet.deploy(
        scripted(MATCHES), rule("made", CONFIG_MAP + "\n---\n" + CONFIG_MAP + "\nimmutable: true")
    )
    fleet.write("east", service("web"))
    fleet.pump()

    phase, reason, message = outcome(fleet)
    assert (phase, reason) == ("FailedNonRetriable", ConflictError.code)
    assert "in two forms" in message
    assert east.names() == ["made-for-web"]


def test_resumes_a_change_that_was_abandoned(fleet: Fleet, east: FakeKube) -> None:
    """An apply killed between storing and publishing is finished by the schedule."""
    east.put(service("web"))
    with failing(fleet.queues["sweep"], "publish", SystemExit(9)), pytest.raises(SystemExit):
        fleet.apply(scripted(MATCHES), rule("made", CONFIG_MAP))
    assert fleet.declare.resume() == 0
    fleet.clock.advance(timedelta(minutes=1))

    assert fleet.declare.resume() == 1

    fleet.pump()
    assert east.names() == ["made-for-web"]
    assert fleet.declare.resume() == 0


def test_forgets_a_cluster_and_what_others_got_from_it(fleet: Fleet, east: FakeKube) -> None:
    """Deregistering withdraws what the cluster's events deployed, and keeps no record."""
    west = fleet.register("west", dep="eng")
    both = rule("made", CONFIG_MAP, more="destinationClusterSelector: {matchLabels: {dep: eng}}")
    fleet.deploy(scripted(MATCHES), both)
    fleet.write("east", service("web"))
    fleet.pump()
    assert west.names() == ["made-for-web"]

    fleet.declare.deregister("fleet/east")
    fleet.pump()

    assert west.names() == []
    assert fleet.records.gates.get("fleet/east") is None
    assert list(fleet.records.matches.of("fleet/east")) == []
    assert fleet.send("east", {"object": service("web")}).status == 401
    del east


def test_a_script_that_says_too_much_is_cut_short(fleet: Fleet, east: FakeKube) -> None:
    """A message of a megabyte is no reason not to record a match."""
    endless = (
        "function evaluate()\n  return {matching = true, message = string.rep('x', 2^20)}\nend"
    )
    fleet.deploy(scripted(endless), rule("made", CONFIG_MAP))
    fleet.write("east", service("web"))
    fleet.pump()

    match = value_of(fleet.records.matches.get("fleet/east", "scripted", WEB))
    assert match
    assert match.message == "x" * 1024
    assert east.names() == ["made-for-web"]


def test_a_profile_of_very_many_objects_is_recorded(fleet: Fleet, east: FakeKube) -> None:
    """The event log names the first ones."""
    many = "{{ range $i := until 1500 }}---\n" + CONFIG_MAP.replace(
        "made-for-{{ .Resource.metadata.name }}", "a-rather-long-name-of-a-config-map-{{ $i }}"
    ).replace("{{ (index .Resource.spec.ports 0).port }}", "1")
    fleet.deploy(scripted(MATCHES), rule("made", many + "\n{{ end }}"))
    fleet.write("east", service("web"))
    fleet.pump()

    assert len(east.names()) == 1500
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
    fleet.apply(scripted(script), rule("made", CONFIG_MAP))
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


def read_failures(fleet: Fleet) -> list[tuple[str, int, str]]:
    found = list_failures(fleet.installation())
    return [(each.type, each.count, each.message) for each in found if each.type != "serve"]


def test_a_bad_template_in_several_clusters_is_one_failure(fleet: Fleet) -> None:
    """The trigger's, with its clusters counted, though each event has its own profile."""
    broken = CONFIG_MAP.replace("{{ .Resource", "{{ fail .Resource.metadata.name }}{{ .Resource")
    fleet.apply(scripted(MATCHES), rule("made", broken))
    for name in ("east", "west", "south"):
        fleet.register(name, env="production")
        fleet.write(name, service(f"web-{name}"))
    fleet.pump()
    begun = fleet.clock.now()
    [(what, several, sentence)] = read_failures(fleet)

    assert (what, several) == ("trigger", 3)
    fleet.clock.advance(timedelta(hours=2))
    [row] = [each for each in list_failures(fleet.installation()) if each.type == "trigger"]
    assert row.about.startswith("made for Service default/web-")
    assert row.since == begun
    assert "it fails in 3 clusters: fleet/" in sentence


def test_a_manifest_that_clusters_refuse_is_one_failure(fleet: Fleet) -> None:
    """A cluster that refuses it for another reason is another failure."""
    for name, said in (("east", "no: {}"), ("west", "no: {}"), ("south", "never")):
        refused = InvalidError(said.format(f"cluster 'fleet/{name}'"))
        fleet.register(name, env="production").fail_with(refused, "apply")
    fleet.deploy(join(profile(), holder("own", config("a"))))
    both, other = sorted(read_failures(fleet), key=lambda each: -each[1])

    assert both[:2] == ("deployment", 2)
    assert "it fails in 2 clusters: fleet/east, fleet/west" in both[2]
    assert other[:2] == ("deployment", 1)
    assert "never" in other[2]
