"""Deployment of refs: tiers among themselves, namespaces, recreation, added metadata."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.cli.views.profiles import VIEWS
from bellhop.cli.views.view import Query
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError
from bellhop.state.content import NO_OBJECT
from bellhop.state.messages import Apply
from tests.fakes import rig
from tests.fakes.fleet import SERVICE, Fleet, service, with_address
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

NAMESPACE = GVK("", "v1", "Namespace")


def with_refs(text: str, *more: str) -> str:
    """Give the refs of a profile or trigger more fields each, in their order."""
    begin = text.index("policyRefs: [")
    end = text.index("]\n", begin)
    refs = ", ".join(
        f"{{kind: ConfigMap, name: own{number or ''}, namespace: default, {each}}}"
        for number, each in enumerate(more)
    )
    return f"{text[:begin]}policyRefs: [{refs}{text[end:]}"


def said(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def failure(fleet: Fleet) -> str:
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    return outcome.message


def two(first: str, second: str) -> str:
    """Return a profile whose two refs have one object in two forms."""
    return join(
        with_refs(profile(), first, second),
        holder("own", config("a", "v: first")),
        holder("own1", config("a", "v: second"), config("b", "v: second")),
    )


def test_the_ref_of_the_lower_tier_has_what_two_refs_want(fleet: Fleet, east: FakeKube) -> None:
    """Their order does not matter; the object follows their tiers; all others come from both."""
    fleet.deploy(two("tier: 100", "tier: 50"))
    assert said(east) == {"a": "second", "b": "second"}
    marks = east.objects(CONFIG)[0]["metadata"]["annotations"]
    assert marks["projectsveltos.io/reference-tier"] == "50"

    fleet.deploy(two("tier: 10", "tier: 50"))
    assert said(east) == {"a": "first", "b": "second"}


def test_of_two_refs_of_one_tier_the_first_has_what_both_want(fleet: Fleet, east: FakeKube) -> None:
    """The conflict names both and says what ends it; the profile goes no further, unless it may."""
    fleet.deploy(two("tier: 50", "tier: 50"))
    assert said(east) == {"a": "first"}
    assert "ConfigMap default/own and ConfigMap default/own1" in failure(fleet)
    assert failure(fleet).endswith("give the ref that is to win a lower tier")

    fleet.deploy(with_refs(profile(more="continueOnConflict: true"), "tier: 50", "tier: 50"))
    assert said(east) == {"a": "first", "b": "second"}
    assert "in two forms, of which the first is deployed" in failure(fleet)

    fleet.deploy(holder("own1", config("b", "v: third")))
    assert said(east) == {"a": "first", "b": "third"}
    assert failure(fleet) == ""


def test_a_conflict_between_refs_takes_nothing_away(fleet: Fleet, east: FakeKube) -> None:
    """A profile that is not applied as a whole keeps what it has."""
    fleet.deploy(join(profile(), holder("own", config("old", "v: '1'"))))
    fleet.deploy(two("tier: 50", "tier: 50"))
    assert said(east) == {"a": "first", "old": "1"}

    fleet.deploy(two("tier: 50", "tier: 60"))
    assert said(east) == {"a": "first", "b": "second"}


def test_what_stands_before_a_refused_object_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """In the order of the documents, whatever their kinds; nothing that stands behind it is."""
    apply = east.apply

    def refusing(manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["kind"] == "Secret":
            raise InvalidError("cannot apply the Secret")
        return apply(manifest, **how)

    east.apply = refusing  # type: ignore[method-assign]
    bad = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n"
    texts = config("z", "v: '1'", namespace="late"), bad, config("a", "v: '1'"), space("late")
    fleet.deploy(with_refs(profile(), "skipNamespaceCreation: true"), holder("own", *texts))

    assert said(east) == {"z": "1"}
    assert "cannot apply Secret 'default/s'" in failure(fleet)


def space(name: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def test_one_ref_may_not_hold_an_object_in_two_forms(fleet: Fleet, east: FakeKube) -> None:
    """No tier can help there; the sentence says what can."""
    fleet.deploy(profile(), holder("own", config("a", "v: '1'"), config("a", "v: '2'")))

    assert said(east) == {"a": "1"}
    assert failure(fleet) == (
        "cannot apply ConfigMap 'default/a': ConfigMap default/own holds it twice, in two forms,"
        " of which the first is deployed; take one of them out"
    )


def test_makes_no_namespace_where_none_is_to_be_made(fleet: Fleet, east: FakeKube) -> None:
    """It fails with the API server's words, and goes on once the namespace is there."""
    bare = with_refs(profile(), "skipNamespaceCreation: true")
    fleet.deploy(join(bare, holder("own", config("a", "v: '1'", namespace="shop"))))
    assert said(east) == {}
    assert "namespace" in failure(fleet)
    assert [each["metadata"]["name"] for each in east.objects(NAMESPACE)] == [
        "default",
        "kube-system",
    ]

    fleet.apply(with_refs(profile(), "skipNamespaceCreation: false"))
    fleet.wait(timedelta(minutes=1))
    assert said(east) == {"a": "1"}


@pytest.mark.parametrize(("force", "value"), [("true", "2"), ("false", "1")])
def test_an_immutable_object_is_recreated_on_request(
    fleet: Fleet, east: FakeKube, force: str, value: str
) -> None:
    """As the annotation on the object does, for all objects of a ref."""
    fleet.apply(with_refs(profile(), f"force: {force}"))
    for number in "12":
        fixed = config("a", f"v: '{number}'") + "immutable: true\n"
        fleet.deploy(holder("own", fixed))

    assert said(east) == {"a": value}


EXTRA = "extraLabels: {team: red, app: all}, extraAnnotations: {why: asked}"


@pytest.mark.parametrize("later", ["", "projectsveltos.io/template: ok"])
def test_gives_every_object_of_a_profile_what_is_added(
    fleet: Fleet, east: FakeKube, later: str
) -> None:
    """Written or rendered for the cluster; what is added wins; taken back, it goes."""
    labelled = config("a", "v: '1'").replace("{name: 'a'", "{labels: {app: own, x: z}, name: 'a'")
    extra = EXTRA.replace(", extraA", "\n  extraA")
    fleet.deploy(join(profile(more=extra), holder("own", labelled, annotations=later)))
    (found,) = east.objects(CONFIG)
    labels = {k: v for k, v in found["metadata"]["labels"].items() if "/" not in k}
    assert labels == {"team": "red", "app": "all", "x": "z"}
    assert found["metadata"]["annotations"]["why"] == "asked"

    fleet.deploy(profile())
    (found,) = east.objects(CONFIG)
    assert {k: v for k, v in found["metadata"]["labels"].items() if "/" not in k} == {
        "app": "own",
        "x": "z",
    }
    assert "why" not in found["metadata"]["annotations"]


def test_fields_of_refs_count_for_triggers(fleet: Fleet, east: FakeKube) -> None:
    """Sveltos loses the fields of a trigger's refs on the way."""
    fleet.apply(
        join(
            source(),
            with_refs(
                trigger(more="extraLabels: {team: red}"), "tier: 100", "tier: 50, optional: true"
            ),
            holder("own", config("a", "v: first")),
            holder(
                "own1", config("a", "v: '{{ .Resource.metadata.name }}'"), annotations=INSTANTIATE
            ),
        )
    )
    fleet.write("east", service("shop"))
    fleet.pump()

    (found,) = east.objects(CONFIG)
    assert found["data"] == {"v": "shop"}
    assert found["metadata"]["labels"]["team"] == "red"


def test_a_profile_whose_template_writes_nothing_yet_says_so(fleet: Fleet, east: FakeKube) -> None:
    """The list and the event log have it, and the next event deploys its objects."""
    text = "{{ if .Resource.status.loadBalancer }}" + config("a") + "{{ end }}"
    fleet.apply(join(source(), trigger(), holder("made", text, annotations=INSTANTIATE)))
    fleet.write("east", service("shop"))
    fleet.pump()

    (row,) = VIEWS["clusterprofile"].rows(fleet.installation(), Query())
    assert (row["provisioned"], row["message"]) == ("1/1", NO_OBJECT)
    assert [each.detail for each in fleet.ledger() if each.what == "rendered"] == [NO_OBJECT]
    fleet.write("east", with_address(service("shop")))
    fleet.pump()
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["a"]


SUBRESOURCES = "projectsveltos.io/subresources"
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}


def balanced(port: int = 80, more: str = "") -> str:
    return f"""apiVersion: v1
kind: Service
metadata: {{name: a, namespace: default}}
spec: {{ports: [{{port: {port}, protocol: TCP}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.7}}]}}{more}}}
"""


def status(kube: FakeKube) -> Any:
    (found,) = kube.objects(SERVICE)
    return found.get("status")


@pytest.mark.parametrize(
    ("asked", "written"),
    [("status", True), ("status, scale", True), ("scale", False), ("", False)],
)
def test_writes_the_status_that_is_asked_for(
    fleet: Fleet, east: FakeKube, asked: str, *, written: bool
) -> None:
    """Once for each change of what is declared; what its makers write of it stays till then."""
    fleet.deploy(profile(), holder("own", balanced(), annotations=f"{SUBRESOURCES}: '{asked}'"))
    assert status(east) == (ADDRESS if written else None)
    if not written:
        return

    theirs = {**east.objects(SERVICE)[0], "status": {"loadBalancer": {}}}
    east.put(theirs)
    fleet.publisher.publish([Apply("", "", "own", "fleet/east")])
    fleet.pump()
    assert status(east) == {"loadBalancer": {}}

    fleet.deploy(holder("own", balanced(81), annotations=f"{SUBRESOURCES}: '{asked}'"))
    assert status(east) == ADDRESS
    writes = [call for call in east.calls if call.verb == "merge status"]
    assert len(writes) == 2


def test_a_refused_status_is_reported_and_tried_again(fleet: Fleet, east: FakeKube) -> None:
    """The object is owned, and removed with its profile; other objects do not wait for it."""
    east.fail_with(InvalidError("the API server refuses it"), "merge status")
    asking = f"{SUBRESOURCES}: status"
    fleet.deploy(
        profile(more="continueOnError: true"),
        holder("own", balanced(), config("b", "v: '1'"), annotations=asking),
    )
    assert "refuses it" in failure(fleet)
    assert said(east) == {"b": "1"}
    assert status(east) is None

    east.fail_with(None)
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Apply("", "", "own", "fleet/east")])
    fleet.pump()
    assert status(east) == ADDRESS
    assert failure(fleet) == ""

    east.fail_with(InvalidError("the API server refuses it"), "merge status")
    fleet.deploy(holder("own", balanced(82), config("b", "v: '1'"), annotations=asking))
    rig.delete(fleet, ("ClusterProfile", "", "own"))
    fleet.wait(timedelta(minutes=1))
    assert east.objects(SERVICE) == []


def test_a_kind_without_a_status_is_reported(fleet: Fleet, east: FakeKube) -> None:
    """An object that has no status to write is applied as usual."""
    text = config("a", "v: '1'") + "status: {phase: x}\n"
    asking = f"{SUBRESOURCES}: status"
    fleet.deploy(profile(), holder("own", text, annotations=asking))
    assert "has no status of its own; leave it out" in failure(fleet)

    fleet.apply(holder("own", config("a", "v: '1'"), annotations=asking))
    fleet.wait(timedelta(minutes=1))
    assert failure(fleet) == ""
    assert said(east) == {"a": "1"}


def test_no_other_subresource_is_written(fleet: Fleet, east: FakeKube) -> None:
    """A name that cannot be written so is refused, and nothing is applied."""
    fleet.deploy(
        profile(), holder("own", config("a"), annotations=f"{SUBRESOURCES}: 'status,binding'")
    )

    (made,) = fleet.records.profiles.of("")
    assert made.error == (
        "cannot use ConfigMap 'default/own': its annotation projectsveltos.io/subresources names"
        " 'binding'; it takes status and scale"
    )
    assert east.objects(CONFIG) == []
