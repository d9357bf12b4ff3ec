"""Why something was deployed or was not, of every object and trigger: each cause has its cure."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.diagnosis import object_view, source_status
from bellhop.diagnosis.explain.object import explain_object
from bellhop.diagnosis.explain.result import MAX_LINKS, Explanation
from bellhop.diagnosis.explain.trigger import explain_trigger
from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.ports.queue import GivenUp, Message
from bellhop.state.content import NO_OBJECT
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger

SERVICE = GVK("", "v1", "Service")
MADE = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
DECLARED = join(source("Service"), trigger("made"), MADE)
ENG = "destinationClusterSelector: {matchLabels: {dep: eng}}"
MANY = list(range(150))
LUA = "function evaluate()\\n  %s\\nend"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation over fakes, with one cluster in production."""
    one = Fleet(tmp_path)
    one.register("east", env="production")
    yield one
    one.close()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """That cluster."""
    return fleet.access.clusters["fleet/east"]


def settle(fleet: Fleet, *texts: str) -> None:
    """Declare, have a Service there, and work until nothing is left to do."""
    fleet.apply(*texts)
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()


def about(
    fleet: Fleet, kind: str = "service", name: str = "web", *, serves: bool = True, **more: str
) -> Explanation:
    place = {"cluster": "fleet/east", "namespace": "default", **more}
    return explain_object(
        fleet.installation(), place["cluster"], kind, place["namespace"], name, lambda: serves
    )


def of_trigger(fleet: Fleet, name: str = "made", *, serves: bool = True) -> Explanation:
    return explain_trigger(fleet.installation(), name, lambda: serves)


def list_links(found: Explanation) -> list[tuple[str, str, str]]:
    return [(link.type, link.about, link.status) for link in found.links]


def said(found: Explanation, step: str) -> str:
    return " | ".join(link.message for link in found.links if link.type == step)


def ruled(*rules: str, kind: str = "Service") -> str:
    asked = [{"name": f"rule-{number}", "rule": rule} for number, rule in enumerate(rules)]
    return source(kind, more=f", evaluateCEL: {json.dumps(asked)}")


def scripted(line: str) -> str:
    return source("Service", more=f', evaluate: "{LUA % line}"')


def test_reports_that_nothing_is_written_yet(fleet: Fleet) -> None:
    """Everything is healthy, and the explanation says why there is no object."""
    silent = holder("made", "{{ if false }}a{{ end }}", annotations=INSTANTIATE)
    settle(fleet, join(source(), trigger(), silent))

    assert said(about(fleet), "destination").endswith(f" is applied; {NO_OBJECT}")


def test_shows_the_whole_chain_of_a_healthy_object(fleet: Fleet) -> None:
    """From the observation to the cluster, each link says yes, and nothing is left to do."""
    settle(fleet, DECLARED)
    profile = next(iter(fleet.records.profiles.of("made"))).name

    assert list_links(about(fleet)) == [
        ("object", "Service default/web", "yes"),
        ("source", "watched", "yes"),
        ("trigger", "made", "yes"),
        ("profile", profile, "yes"),
        ("destination", "fleet/east", "yes"),
    ]
    assert about(fleet).next == "nothing to do: everything is deployed"
    assert [each[0] for each in list_links(of_trigger(fleet))] == [
        *("trigger", "cluster", "source", "profile", "destination")
    ]
    assert of_trigger(fleet).next == about(fleet).next


CHECKED = "preDeployChecks: [{name: ground, featureID: Resources, version: v1, kind: Pod}]"

MISTAKES = [
    pytest.param(
        join(source("Service"), trigger("made").replace("production", "prod"), MADE),
        "its sourceClusterSelector asks for env=prod, and 'fleet/east' has env=production",
        "correct the sourceClusterSelector, or `bellhop label cluster fleet/east env=prod"
        " --overwrite`",
        id="label missing on the source cluster",
    ),
    pytest.param(
        join(source("Service"), trigger("made", more=ENG), MADE),
        "its destinationClusterSelector asks for dep=eng, and 'fleet/east' has no label dep",
        "`bellhop label cluster fleet/east dep=eng`, or correct the destinationClusterSelector",
        id="label missing on the destination",
    ),
    pytest.param(
        join(source("Service", more=", selector: {matchLabels: {sveltos: vf}}"), trigger(), MADE),
        "its labels are not what the selector asks for: sveltos=vf",
        "change Service default/web, or EventSource 'watched': its labels are not what the"
        " selector asks for: sveltos=vf",
        id="wrong selector",
    ),
    pytest.param(
        join(source("Service"), trigger(more=CHECKED), MADE),
        "waits for check 'ground': there is no Pod; next try at",
        "it goes on by itself once that is so",
        id="check that does not pass",
    ),
    pytest.param(
        join(scripted("return obj.x.y"), trigger(), MADE),
        "watched:2: attempt to index field 'x' (a nil value)",
        "correct the script of EventSource 'watched', and apply it: ",
        id="Lua error",
    ),
    pytest.param(
        join(ruled("resource.spec.type == 'NodePort'", "false"), trigger(), MADE),
        "no CEL rule holds; rule 'rule-0' fails: Key not found in map : \"type\"",
        "change Service default/web, or EventSource 'watched': no CEL rule holds; rule 'rule-0'",
        id="no CEL rule holds, and one fails",
    ),
    pytest.param(
        join(ruled(f"{MANY}.all(x, {MANY}.all(y, x == y || true))"), trigger(), MADE),
        "its CEL rule failed: watched, rule 'rule-0': its loops took more than 10000 rounds",
        "correct the rule of EventSource 'watched', and apply it: its CEL rule failed: watched,",
        id="CEL rule beyond its limits",
    ),
    pytest.param(
        join(source(), trigger(), holder("made", config("{{ .Nope }}"), annotations=INSTANTIATE)),
        'at <.Nope>: map has no entry for key "Nope"',
        "fix what EventTrigger 'made' renders, and apply it again: template: ",
        id="template error",
    ),
    pytest.param(
        join(source(), trigger(ref="maed"), MADE),
        "it names ConfigMap 'default/maed', which is not there yet (did you mean 'default/made'?)",
        "apply it with `bellhop apply -f FILE`, or correct the name 'maed'",
        id="missing ConfigMap",
    ),
    pytest.param(
        join(source(), trigger(origin="wacthed"), MADE),
        "it names EventSource 'wacthed', which is not there yet (did you mean 'watched'?)",
        "apply it with `bellhop apply -f FILE`, or correct the name 'wacthed'",
        id="missing EventSource",
    ),
]


@pytest.mark.parametrize(("text", "cause", "cure"), MISTAKES)
def test_one_question_names_cause_and_cure(fleet: Fleet, text: str, cause: str, cure: str) -> None:
    """The explanations of the object and of the trigger both do."""
    settle(fleet, text)
    for found in (about(fleet), of_trigger(fleet)):
        assert cause in " ".join(link.message for link in found.links)
        assert found.next.startswith(cure)


def test_names_the_rule_that_holds(fleet: Fleet) -> None:
    """Of several rules, and beside a selector that does not take the object."""
    settle(fleet, join(ruled("false", "has(resource.spec.ports)"), trigger(), MADE))
    found = about(fleet)

    assert said(found, "source") == "its CEL rule 'rule-1' holds"
    assert found.next == "nothing to do: everything is deployed"


def test_a_rule_that_holds_now_is_still_to_be_evaluated(fleet: Fleet, east: FakeKube) -> None:
    """The object changed without an event: rules are evaluated on its present state."""
    settle(fleet, join(ruled("resource.metadata.labels.sveltos == 'vf'"), trigger(), MADE))
    assert said(about(fleet), "source") == "no CEL rule holds"
    web = service("web")
    east.put({**web, "metadata": {**web["metadata"], "labels": {"sveltos": "vf"}}})

    assert said(about(fleet), "source") == (
        "it matches now (its CEL rule 'rule-0' holds), and is not evaluated yet"
    )


def test_names_the_line_of_the_script(fleet: Fleet) -> None:
    settle(fleet, join(scripted("return obj.x.y"), trigger(), MADE))

    assert "the line is `return obj.x.y`" in said(about(fleet), "source")
    assert "the line is `return obj.x.y`" in said(of_trigger(fleet), "object")


def test_a_match_before_an_error_is_said_to_stand(fleet: Fleet) -> None:
    """An error is no empty answer."""
    settle(fleet, DECLARED)
    settle(fleet, scripted("error('no idea')"))

    assert "that it matched before stands" in said(about(fleet), "source")


@pytest.mark.parametrize(
    ("asked", "kind", "sentence"),
    [
        pytest.param(
            {"cluster": "fleet/est"},
            MissingError,
            "there is no cluster 'fleet/est'; did you mean 'fleet/east'?",
            id="cluster",
        ),
        pytest.param({"kind": "servcie"}, MissingError, "did you mean 'Service'?", id="kind"),
        pytest.param({"kind": "widget.example.org"}, MissingError, "no EventSource", id="group"),
        pytest.param({"kind": "ns"}, InvalidError, "are in no namespace", id="scope"),
    ],
)
def test_typing_mistakes_are_errors(
    fleet: Fleet, asked: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    settle(fleet, DECLARED)
    with pytest.raises(kind, match=sentence.replace("?", r"\?")):
        about(fleet, **asked)


def test_an_unknown_trigger_is_an_error(fleet: Fleet) -> None:
    """The nearest one is named."""
    settle(fleet, DECLARED)
    with pytest.raises(MissingError, match=r"no trigger 'mad'; did you mean 'made'\?"):
        of_trigger(fleet, "mad")


def test_a_misspelt_source_outranks_one_that_does_not_take_the_object(fleet: Fleet) -> None:
    """Another trigger that works is no reason to change the object."""
    unlike = source("Service", name="unlike", more=", labelFilters: [{key: a, operation: Has}]")
    settle(fleet, join(source("Service"), trigger("made", origin="watcehd"), MADE))
    fleet.apply(unlike, trigger("other", origin="unlike"))
    fleet.pump()

    assert about(fleet).next.endswith("or correct the name 'watcehd'")


@pytest.mark.parametrize("kind", ["pod", "po", "NetworkPolicy", "netpol", "node", "sa"])
def test_kinds_of_kubernetes_are_known_though_no_source_names_them(fleet: Fleet, kind: str) -> None:
    """They may be asked about."""
    settle(fleet, DECLARED)
    place = "" if kind == "node" else "default"

    assert (
        said(about(fleet, kind, "x", namespace=place), "object") == "there is none in the cluster"
    )


def test_the_same_name_in_another_namespace_is_named_first(fleet: Fleet, east: FakeKube) -> None:
    """Nobody misspells a whole name, and many forget the namespace."""
    settle(fleet, DECLARED)
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for name, namespace in (("mine", "shop"), ("mina", "default")):
        fleet.write("east", service(name, namespace=namespace))
    fleet.pump()

    assert about(fleet, name="mine").next == "look for it under its name 'shop/mine'"


@pytest.mark.parametrize("kind", ["Service", "services", "svc", "SERVICE", "service."])
def test_a_kind_has_several_names(fleet: Fleet, kind: str) -> None:
    """As kubectl knows them."""
    settle(fleet, DECLARED)

    assert about(fleet, kind).about == "Service default/web in fleet/east"


def test_a_kind_in_two_groups_is_asked_back(fleet: Fleet) -> None:
    """Each is named with its group."""
    settle(fleet, join(source("Service", group="serving.knative.dev", name="other"), DECLARED))
    with pytest.raises(InvalidError, match=r"write service\. or service\.serving\.knative\.dev"):
        about(fleet)


def test_an_object_that_does_not_exist(fleet: Fleet) -> None:
    """It is looked for in the cluster, and its neighbour named."""
    settle(fleet, DECLARED)
    found = about(fleet, name="wbe")

    assert said(found, "object") == "there is none in the cluster; did you mean 'default/web'?"
    assert found.next == "look for it under its name 'default/web'"


OTHERS = source("ConfigMap", name="others", more=", labelFilters: [{key: a, operation: Has}]")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="no source names the kind"),
        pytest.param(OTHERS, id="a source that is not in force"),
        pytest.param(join(OTHERS, trigger("more", origin="others")), id="a source in force"),
        pytest.param(trigger("more", origin="nope"), id="a trigger without its source"),
    ],
)
def test_an_object_that_bellhop_deployed(fleet: Fleet, east: FakeKube, more: str) -> None:
    """Its profile is named, and nothing is to be done, whatever sources say of it."""
    settle(fleet, join(DECLARED, more) if more else DECLARED)
    [profile] = fleet.records.profiles.of("made")
    name = next(iter(fleet.records.inventories.get("fleet/east", profile.name).value.held)).name
    found = about(fleet, "configmap", name)
    east.drop(GVK("", "v1", "ConfigMap"), "default", name)
    missing = about(fleet, "configmap", name)

    deployed = f"ClusterProfile/{profile.name} deploys it"
    assert said(found, "object").endswith(f"| {deployed}")
    assert found.next == f"nothing; {deployed}"
    again = f"`bellhop redeploy ClusterProfile/{profile.name} --cluster fleet/east`"
    assert missing.next == again


def test_an_object_that_bellhop_deployed_where_nobody_can_look(
    fleet: Fleet, east: FakeKube
) -> None:
    """The advice is not to create it."""
    settle(fleet, DECLARED)
    [profile] = fleet.records.profiles.of("made")
    name = next(iter(fleet.records.inventories.get("fleet/east", profile.name).value.held)).name
    east.fail_with(UnreachableError("no answer"), "get")
    found = about(fleet, "configmap", name)

    assert found.next == f"nothing; ClusterProfile/{profile.name} deploys it"


def test_an_object_of_which_no_event_came(fleet: Fleet, east: FakeKube) -> None:
    """It is evaluated as it is in the cluster, and a resync is the cure."""
    settle(fleet, DECLARED)
    east.put(service("late"))
    found = about(fleet, name="late")

    assert list_links(found)[:2] == [
        ("object", "Service default/late", "waits"),
        ("source", "watched", "waits"),
    ]
    assert found.next == "`bellhop resync fleet/east`: it finds objects without an event"


def test_an_object_that_is_deleted_and_whose_match_is_kept(fleet: Fleet, east: FakeKube) -> None:
    """Both are said: what is there by now, and what was concluded before."""
    settle(fleet, DECLARED)
    east.drop(SERVICE, "default", "web")
    found = about(fleet)

    assert "it is gone in the cluster" in said(found, "object")
    assert "its match is kept until it is evaluated" in said(found, "source")
    assert found.next.startswith("`bellhop resync fleet/east`")


def test_an_object_whose_deletion_was_reported(fleet: Fleet, east: FakeKube) -> None:
    """It is deleted, and nothing waits."""
    settle(fleet, DECLARED)
    stored = east.get(SERVICE, "default", "web")
    assert stored
    fleet.drop("east", stored)
    fleet.pump()
    found = about(fleet)

    assert said(found, "object").startswith("it was deleted, noticed 0 s ago")
    assert found.next == "create it again, if it is to match"


def test_says_when_nobody_could_look(fleet: Fleet, east: FakeKube) -> None:
    """The last observation is explained nevertheless."""
    settle(fleet, DECLARED)
    east.fail_with(UnreachableError("cannot read it: no answer"), "get")
    found = about(fleet)

    assert said(found, "object").endswith("nobody could look at it now: cannot read it: no answer")
    assert said(found, "source") == "its kind matches"


def test_a_look_that_hangs_ends() -> None:
    """A person waits at a screen."""
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.05 s"):
        object_view.call_with_timeout(0.05, threading.Event().wait)


def test_a_cluster_that_is_away_is_not_called(fleet: Fleet, east: FakeKube) -> None:
    """The circuit keeps off who explains, too; the cluster is the first cause."""
    settle(fleet, DECLARED)
    east.fail_with(UnreachableError("no answer"))
    fleet.apply(MADE.replace("metadata: {name: 'for", "metadata: {name: 'now-for"))
    fleet.pump()
    calls = len(east.calls)
    found = about(fleet)

    assert len(east.calls) == calls
    assert list_links(found)[0] == ("cluster", "fleet/east", "failed")
    assert "waits for it" in said(found, "destination")
    assert found.next.startswith("see that cluster 'fleet/east' answers: it has not answered")


@pytest.mark.parametrize("serves", [True, False])
def test_a_waiting_profile_names_what_it_waits_for(fleet: Fleet, *, serves: bool) -> None:
    """Nothing is done while `serve` is stopped, which is then the one thing to do."""
    settle(fleet, DECLARED)
    fleet.write("east", service("more"))
    found = about(fleet, name="more", serves=serves)

    assert [link.status for link in found.links] == ["yes", "waits", "yes", "waits"]
    assert found.next.startswith("ask again in a moment" if serves else "start `bellhop serve`")


def test_a_dead_lettered_message_is_to_be_replayed(fleet: Fleet) -> None:
    """Only a person can replay a dead letter."""
    settle(fleet, DECLARED)
    fleet.write("east", service("more"))
    key = str(ObjectKey(SERVICE, "default", "more"))
    queue = fleet.queues["evaluate"]
    queue.publish([Message({"do": "evaluate", "object": key}, "g", "s")])
    for delivery in queue.receive(10, wait=timedelta(0)):
        fleet.queues["evaluate"].settle(delivery, GivenUp("no good"))
    found = about(fleet, name="more")

    assert found.next.startswith("`bellhop dead-letters replay evaluate/")


def test_a_deployment_that_fails_says_when_it_is_tried_again(fleet: Fleet, east: FakeKube) -> None:
    """The words of the API server are the cause."""
    east.fail_with(InvalidError("cannot apply it: 'x' is no name"), "apply")
    settle(fleet, DECLARED)
    found = about(fleet)

    assert "failed: cannot apply it: 'x' is no name" in said(found, "destination")
    assert found.next.startswith("fix this in cluster 'fleet/east' or in what is applied")


def test_of_thousands_of_sources_those_of_the_kind_are_listed(fleet: Fleet) -> None:
    """The rest is counted; of those of the kind the ones that matter come first."""
    many = [source("Secret", name=f"other-{number}") for number in range(300)]
    alike = [
        source("Service", name=f"near-{number}", more=f", name: n{number}") for number in range(40)
    ]
    joined = [trigger(f"t-{number}", origin=f"near-{number}", ref="made") for number in range(40)]
    settle(fleet, *many, *alike, *joined, DECLARED)
    found = about(fleet)
    sources = [link for link in found.links if link.type == "source"]

    assert sources[0].about == "watched"
    assert len(sources) == MAX_LINKS
    assert found.rest["source"] == (
        "21 more sources name Service, and do not take it; 300 name other kinds"
    )
    assert found.next == "nothing to do: everything is deployed"


def test_no_word_of_a_secret_is_shown(fleet: Fleet) -> None:
    """Neither its values nor what a script makes of them, in no form of the output."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": "default"},
        "data": {"password": "aHVudGVyMg=="},
    }
    failing = source("Secret", more=f', evaluate: "{LUA % "error(obj.data.password)"}"')
    reporting = source(
        "Secret",
        name="reporting",
        more=f', evaluate: "{LUA % "return {matching=false, message=obj.data.password}"}"',
    )
    asked = "resource.data[resource.data.password] == ''"
    rules = ruled(asked, kind="Secret").replace("watched", "ruled")
    declared = [
        trigger("t", origin="reporting", ref="made"),
        trigger("c", origin="ruled", ref="made"),
    ]
    fleet.apply(join(failing, reporting, rules, trigger(), *declared, MADE))
    fleet.pump()
    fleet.write("east", secret)
    fleet.pump()
    for found in (about(fleet, "secret", "key"), *map(partial(of_trigger, fleet), ("made", *"tc"))):
        shown = json.dumps(to_builtins(found))

        assert "aHVudGVyMg" not in shown
        assert "hunter2" not in shown
    assert "withheld" in said(about(fleet, "secret", "key"), "source")


def test_a_kind_in_two_versions_is_one_object(fleet: Fleet, east: FakeKube) -> None:
    """A source that names another version is evaluated on the observation in that one."""
    for version in ("v1", "v2"):
        gvk = GVK("example.org", version, "Widget")
        east.serve(Resource(gvk, "widgets", namespaced=True))
    v2 = source("Widget", name="second", group="example.org").replace(
        "version: v1,", "version: v2,"
    )
    fleet.apply(
        join(
            source("Widget", group="example.org"),
            v2,
            trigger(),
            trigger("other", origin="second", ref="made"),
            MADE,
        )
    )
    east.put(
        {
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default"},
        }
    )
    fleet.pump()
    found = about(fleet, "widgets", "w")

    assert ("source", "watched", "yes") in list_links(found)
    assert ("source", "second", "yes") in list_links(found)


def test_a_trigger_says_why_nothing_matches(fleet: Fleet) -> None:
    """Known objects are evaluated again, and the most frequent reason comes first."""
    fleet.apply(join(source("Service", more=", namespace: shop"), trigger(), MADE))
    fleet.pump()
    for name in ("a", "b", "c"):
        fleet.write("east", service(name))
    fleet.pump()
    found = of_trigger(fleet)

    assert said(found, "source") == "nothing matches in fleet/east, the one cluster"
    assert said(found, "object") == "its namespace is 'default', not 'shop'"
    assert "and 2 more" in next(link.about for link in found.links if link.type == "object")


def test_a_source_waits_for_its_kind(fleet: Fleet) -> None:
    """Until its CRD is served, which the next resync finds; the explanation has the cure."""
    widget = GVK("example.org", "v1", "Widget")
    fleet.apply(join(source("Widget", group="example.org"), trigger(), MADE))
    fleet.pump()
    waits = of_trigger(fleet)
    awaited = source_status.find_unserved_kinds(fleet.installation(), "watched")
    fleet.access.clusters["fleet/east"].serve(Resource(widget, "widgets", namespaced=True))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()
    there = of_trigger(fleet)

    assert awaited == {widget: ["fleet/east"]}
    assert said(waits, "object") == (
        "fleet/east does not serve example.org/v1/Widget: EventSource 'watched' waits for its CRD"
    )
    assert ("object", "-", "waits") in list_links(waits)
    assert "or at once by `bellhop resync fleet/east`" in waits.next
    assert source_status.find_unserved_kinds(fleet.installation(), "watched") == {}
    assert said(there, "object") == "no Widget is known in fleet/east"


def test_a_trigger_whose_kind_is_nowhere(fleet: Fleet) -> None:
    """Nothing can match where there is nothing."""
    fleet.apply(DECLARED)
    fleet.pump()

    assert of_trigger(fleet).next == (
        "create a Service in fleet/east that EventSource 'watched' takes"
    )


def test_a_name_that_cannot_be_rendered(fleet: Fleet) -> None:
    """The trigger is in force nowhere, and says why."""
    settle(fleet, join(source(), trigger(origin="{{ .Nope }}"), MADE))
    for found in (of_trigger(fleet), about(fleet)):
        assert found.next.startswith("correct the eventSourceName of EventTrigger 'made': ")


def aggregated(body: str) -> str:
    script = f"function evaluate()\n{body}\nend"
    return join(
        source("Service") + f"  aggregatedSelection: {json.dumps(script)}\n", trigger(), MADE
    )


def test_a_script_over_all_chooses_or_leaves_out(fleet: Fleet) -> None:
    """The result of the script follows that of the selectors, with its message."""
    settle(fleet, aggregated("return {resources = {resources[1]}, message = 'the first'}"))
    fleet.write("east", service("xl"))
    fleet.pump()
    chosen, left = about(fleet), about(fleet, name="xl")

    assert said(chosen, "source").endswith("; its aggregatedSelection chooses it: the first")
    assert ("source", "watched", "yes") in list_links(chosen)
    assert ("source", "watched", "no") in list_links(left)
    assert left.next == (
        "change Service default/xl, or the aggregatedSelection of EventSource 'watched': the first"
    )
    assert said(of_trigger(fleet), "source") == (
        "2 objects match in fleet/east; its aggregatedSelection returns 1: the first"
    )


def test_a_script_over_all_that_fails(fleet: Fleet) -> None:
    """The object and the trigger name the line, and what to mend."""
    settle(fleet, aggregated("error('oh no')"))
    for found in (about(fleet), of_trigger(fleet)):
        assert ("source", "watched", "failed") in list_links(found)
        assert "oh no; the line is `error('oh no')`" in said(found, "source")
        assert found.next.startswith("correct the aggregatedSelection of EventSource 'watched'")


def test_a_script_over_all_waits_for_a_resync(fleet: Fleet) -> None:
    """Until all objects of its source were listed the script does not run, and both say so."""
    fleet.apply(aggregated("return {resources = resources}"))
    fleet.write("east", service("web"))
    fleet.drain("evaluate", "patient")
    for found in (about(fleet), of_trigger(fleet)):
        assert ("source", "watched", "waits") in list_links(found)
        assert "waits for a resync of all its kinds" in said(found, "source")


def test_nothing_is_changed_by_asking(fleet: Fleet) -> None:
    """No record is written, and no message sent."""
    settle(fleet, DECLARED)
    fleet.store.counts.clear()
    about(fleet)
    of_trigger(fleet)

    assert not fleet.store.counts["put"] + fleet.store.counts["delete"]
    assert fleet.pump() == 0
