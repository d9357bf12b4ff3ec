"""Hints on common mistakes in templates, and none on correct ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bellhop.api.kinds import ConfigMap, EventSource, EventTrigger, Secret, of
from bellhop.diagnosis.template_hints import (
    list_content_hints,
    list_profile_hints,
    list_trigger_hints,
)
from bellhop.rendering.inputs import Ref
from bellhop.state.content import Content

LIB = "lib.projectsveltos.io"
INSTANTIATE = "projectsveltos.io/instantiate"
TEMPLATE = "projectsveltos.io/template"
NAMED = "name: {{ .Resource.metadata.name }}"
REF = Ref("ConfigMap", "default", "c", optional=False)


def rule(kind: str = "EventTrigger", version: str = "v1beta1", **spec: Any) -> EventTrigger:
    spec = {"sourceClusterSelector": {}, "eventSourceName": "s", "oneForEvent": True, **spec}
    manifest = {"apiVersion": f"{LIB}/{version}", "kind": kind, "metadata": {"name": "t"}}
    found = of({**manifest, "spec": spec})
    assert isinstance(found, EventTrigger)
    return found


def source(*, collect: bool) -> EventSource:
    manifest = {"apiVersion": f"{LIB}/v1beta1", "kind": "EventSource", "metadata": {"name": "s"}}
    found = of({**manifest, "spec": {"collectResources": collect}})
    assert isinstance(found, EventSource)
    return found


def holder(text: str, *annotations: str, kind: str = "ConfigMap") -> ConfigMap | Secret:
    metadata = {"name": "c", "annotations": dict.fromkeys(annotations, "ok")}
    data = {"data": {"a": text}}
    if kind == "Secret":
        data = {"stringData": {"a": text}, "type": "addons.projectsveltos.io/cluster-profile"}  # type: ignore[dict-item]
    found = of({"apiVersion": "v1", "kind": kind, "metadata": metadata, **data})
    assert isinstance(found, ConfigMap | Secret)
    return found


def said(
    held: ConfigMap | Secret, trigger: EventTrigger | None = None, *, collect: bool = True
) -> list[str]:
    return list(list_trigger_hints(trigger or rule(), source(collect=collect), [(REF, held)]))


@pytest.mark.parametrize(
    ("held", "hint"),
    [
        pytest.param(
            holder(NAMED),
            "ConfigMap default/c says '{{ .Resource.metadata.name }}', which is deployed as it"
            f" is; if a template is meant, add the annotation {INSTANTIATE}",
            id="not instantiated",
        ),
        pytest.param(
            holder(NAMED, TEMPLATE),
            "ConfigMap default/c reads .Resource, which is not there at deploy time, when"
            f" {TEMPLATE} has it rendered; add the annotation {INSTANTIATE}",
            id="rendered too late",
        ),
        pytest.param(
            holder("a: '{{ serviceAccountName }}'"),
            "ConfigMap default/c says '{{ serviceAccountName }}', which is deployed as it is; if"
            f" a template is meant, add the annotation {INSTANTIATE}",
            id="a literal",
        ),
        pytest.param(
            holder("{{ range .Resources }}{{ .metadata.name }}{{ end }}", INSTANTIATE),
            "ConfigMap default/c reads .Resources, which only exists with oneForEvent: false",
            id="the variable of all for one",
        ),
        pytest.param(
            holder("pass: {{ .Resource.x }}", kind="Secret"),
            "ConfigMap default/c has an action, which is deployed as it is; if a template is meant,"
            f" add the annotation {INSTANTIATE}",
            id="a Secret is not quoted",
        ),
    ],
)
def test_names_what_is_forgotten(held: ConfigMap | Secret, hint: str) -> None:
    """The ConfigMap, what it says, and what to write."""
    assert said(held) == [hint]


BROKEN = "a: {{ .Cluster.kind | qoute }}"
WHY = 'cannot be rendered: template: default/c/a:1: function "qoute" not defined'


@pytest.mark.parametrize(
    ("held", "trigger", "hints"),
    [
        pytest.param(holder(BROKEN, INSTANTIATE), rule(), [WHY], id="for an event"),
        pytest.param(holder(BROKEN, TEMPLATE), rule(), [WHY], id="at deploy time"),
        pytest.param(holder(BROKEN), rule("EventTrigger", "v1alpha1"), [WHY], id="always"),
        pytest.param(holder(BROKEN, TEMPLATE), None, [WHY], id="of a profile"),
        pytest.param(
            holder('a: {{ getResource "x" }}', TEMPLATE), None, [], id="a function of deploy time"
        ),
        pytest.param(
            holder("a: {{ if }}", INSTANTIATE, kind="Secret"),
            rule(),
            ["the template fails here"],
            id="a Secret is not quoted",
        ),
        pytest.param(holder(BROKEN, TEMPLATE, "bellhop.dev/template"), None, [], id="Jinja2"),
        pytest.param(holder(BROKEN, "bellhop.dev/template"), rule(), [], id="Jinja2 of an event"),
    ],
)
def test_reports_templates_that_cannot_be_parsed(
    held: ConfigMap | Secret, trigger: EventTrigger | None, hints: list[str]
) -> None:
    """Before an event comes, with the line; of a profile where there is no trigger."""
    found = said(held, trigger) if trigger else list(list_profile_hints([(REF, held)]))

    assert [hint in each for hint, each in zip(hints, found, strict=True)] == [True] * len(hints)


def test_reports_that_the_source_collects_nothing() -> None:
    """Without collectResources there is no `.Resource`, whatever the annotations."""
    hint = (
        "ConfigMap default/c reads .Resource, and EventSource 's' collects no objects; give it"
        " collectResources: true"
    )
    old = rule("EventBasedAddOn")

    assert said(holder(NAMED, INSTANTIATE), collect=False) == [hint]
    assert said(holder(NAMED), old, collect=False) == [hint]
    assert said(holder("{{ .MatchingResource.Name }}", INSTANTIATE), collect=False) == []


@pytest.mark.parametrize(
    ("held", "trigger"),
    [
        pytest.param(holder(NAMED, INSTANTIATE), rule(), id="instantiated"),
        pytest.param(holder(NAMED), rule("EventTrigger", "v1alpha1"), id="always rendered"),
        pytest.param(holder("{{ .Cluster.metadata.name }}", TEMPLATE), rule(), id="deploy time"),
        pytest.param(
            holder("{{`{{ .Resource }}`}} {{ .Cluster.kind }}", INSTANTIATE), rule(), id="escaped"
        ),
        pytest.param(holder("{{/* .Resources */}} a: b", INSTANTIATE), rule(), id="a comment"),
        pytest.param(holder("{{ x.Resource }}", "bellhop.dev/template"), rule(), id="Jinja2"),
        pytest.param(holder("a: b"), rule(), id="no template"),
        pytest.param(
            holder("{{ range .Resources }}{{ end }}", INSTANTIATE),
            rule(oneForEvent=False),
            id="all",
        ),
    ],
)
def test_correct_templates_get_no_hint(held: ConfigMap | Secret, trigger: EventTrigger) -> None:
    """A hint that comes without need is not read when it is needed."""
    assert said(held, trigger) == []


def test_reports_users_own_profiles() -> None:
    """There is no event: they are rendered for each cluster."""
    (hint,) = list_profile_hints([(REF, holder("{{ .Cluster.kind }}"))])

    assert hint.endswith(f"if a template is meant, add the annotation {TEMPLATE}")
    assert list(list_profile_hints([(REF, holder("{{ .Cluster.kind }}", TEMPLATE))])) == []


def test_reports_what_was_rendered_and_is_still_a_template() -> None:
    """An action that was kept for deploy time needs the annotation that has it rendered then."""
    left = Content("ConfigMap default/c", "a", ({"data": [{"x": "{{ .Cluster.kind }}"}]},))
    (hint,) = list_content_hints([left, Content("ConfigMap default/d", "b", ({"x": "{ { }}"},))])

    assert hint == (
        "ConfigMap default/c, entry a, deploys '{{' as it is; if a template is meant, add the"
        f" annotation {TEMPLATE}"
    )


@pytest.mark.clocked
@pytest.mark.parametrize(
    "text", ["{{" * 200_000, "{{" + " " * 200_000, '{{ "' + '\\"' * 99_999 + " }}"]
)
def test_hints_take_time_in_proportion_to_a_text(text: str) -> None:
    """Braces that never close, and blanks without end, are read once."""
    start = time.process_time()
    said(holder(text))
    list(list_content_hints([Content("ConfigMap default/c", "a", ({"x": text},))]))

    assert time.process_time() - start < 5
