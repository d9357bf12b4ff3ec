"""From a trigger and what matches to contents: when what is rendered, and what is refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bellhop.api.kinds import ConfigMap, EventTrigger, PolicyRef, Secret, of
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import InvalidError, MissingError, TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering.deploy_contents import deploy_time
from bellhop.rendering.event_contents import contents
from bellhop.rendering.event_fields import Fields, resolve, variables
from bellhop.rendering.inputs import SECRET_TYPE, Ref
from bellhop.rendering.templates import RenderContext

LIMITS = Limits()
KEY = ObjectKey(GVK("apps", "v1", "Deployment"), "shop", "web")
OBJECT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
CLUSTER = {"metadata": {"name": "east", "namespace": "fleet", "labels": {}}}
REF = Ref("ConfigMap", "default", "c", optional=False)
NOW = {"projectsveltos.io/instantiate": "ok"}
LATER = {"projectsveltos.io/template": "ok"}


def trigger(*, one: bool) -> EventTrigger:
    found = of(
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventTrigger",
            "metadata": {"name": "t"},
            "spec": {
                "sourceClusterSelector": {"matchLabels": {"a": "b"}},
                "eventSourceName": "s",
                "oneForEvent": one,
                "policyRefs": [{"kind": "ConfigMap", "name": "c"}],
            },
        }
    )
    assert isinstance(found, EventTrigger)
    return found


def config(text: str, **annotations: str) -> ConfigMap:
    metadata = {"name": "c", "namespace": "default", "annotations": annotations}
    found = of(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"main.yaml": text}}
    )
    assert isinstance(found, ConfigMap)
    return found


def secret(text: bytes, kind: str = SECRET_TYPE) -> Secret:
    data = {"main.yaml": base64.b64encode(text).decode()}
    metadata = {"name": "c", "namespace": "default"}
    found = of(
        {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data}
    )
    assert isinstance(found, Secret)
    return found


def pod(name: str) -> str:
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: '{name}'}}}}"


def test_one_for_event_has_one_object() -> None:
    """The reference always, the object only if the source collects."""
    root = variables(trigger(one=True), CLUSTER, [(KEY, OBJECT)], collect=True)
    bare = variables(trigger(one=True), CLUSTER, [(KEY, OBJECT)], collect=False)

    assert root["Resource"] == OBJECT
    assert root["Cluster"] == CLUSTER
    assert bare["Resource"] is None
    for each in (root, bare):
        text = render(each, "{{ .MatchingResource.Kind }} {{ .MatchingResource.Name }}")
        assert text == "Deployment web"


def test_all_together_have_lists() -> None:
    """In the order in which they were given."""
    other = KEY._replace(name="db")
    root = variables(trigger(one=False), CLUSTER, [(other, {}), (KEY, OBJECT)], collect=True)
    bare = variables(trigger(one=False), CLUSTER, [(other, {}), (KEY, OBJECT)], collect=False)

    assert root["Resources"] == [{}, OBJECT]
    assert bare["Resources"] == []
    text = render(bare, "{{ range .MatchingResources }}{{ .APIVersion }}/{{ .Name }} {{ end }}")
    assert text.strip() == "apps/v1/db apps/v1/web"


def render(root: dict[str, Any], text: str) -> str:
    (ref,) = resolve([PolicyRef("", text, "ConfigMap")], Fields(root, LIMITS, {}), namespace="")
    return ref.name


def test_names_of_refs_are_templates() -> None:
    """An empty namespace is the source cluster's."""
    refs = [
        PolicyRef("", "c", "ConfigMap"),
        PolicyRef("{{ .Cluster.metadata.name }}", "c-{{ .X }}", "Secret", optional=True),
    ]

    assert resolve(refs, Fields({"Cluster": CLUSTER, "X": 1}, LIMITS, {}), namespace="fleet") == (
        Ref("ConfigMap", "fleet", "c", optional=False),
        Ref("Secret", "east", "c-1", optional=True),
    )


@pytest.mark.parametrize(
    ("annotations", "always", "expected"),
    [
        pytest.param({}, False, "{{ .A }}{{ .Cluster.metadata.name }}", id="as it stands"),
        pytest.param({}, True, "1{{ .B }}", id="the first era renders always"),
        pytest.param(NOW, False, "1{{ .B }}", id="at event time"),
        pytest.param(LATER, True, "1{{ .B }}", id="the first era knows no later"),
    ],
)
def test_contents_are_rendered_when_it_is_due(
    annotations: dict[str, str], expected: str, *, always: bool
) -> None:
    """What is not due keeps its braces, as a name that only the API server will check."""
    text = expected if not (always or annotations) else '{{ .A }}{{ "{{ .B }}" }}'
    (content,) = contents(
        [(REF, config(pod(text), **annotations))], Fields({"A": 1}, LIMITS, {}), always=always
    )

    assert content.manifests[0]["metadata"]["name"] == expected
    assert content.template == ""


def test_what_is_rendered_twice_sees_the_event_and_then_the_destination() -> None:
    """The first rendering writes the second's template."""
    text = pod('{{ .A }}-{{ "{{ .Cluster.metadata.name }}" }}')
    (content,) = contents([(REF, config(text, **NOW, **LATER))], Fields({"A": 1}, LIMITS, {}))

    assert content.manifests == ()
    done = deploy_time(content, RenderContext(CLUSTER, LIMITS))
    assert done.manifests[0]["metadata"]["name"] == "1-east"
    assert deploy_time(done, RenderContext({}, LIMITS)) == done


def test_entries_come_by_name() -> None:
    """So that a profile is the same each time."""
    holder = config("")
    holder.data.update({"b.yaml": pod("b"), "a.yaml": pod("a")})

    found = contents([(REF, holder)])

    assert [each.entry for each in found] == ["a.yaml", "b.yaml", "main.yaml"]


def test_a_ref_to_nothing_is_an_error_unless_it_is_optional() -> None:
    """The sentence says what to do."""
    optional = Ref("ConfigMap", "default", "c", optional=True)

    assert contents([(optional, None)], Fields({}, LIMITS, {})) == ()
    with pytest.raises(MissingError, match="cannot find ConfigMap default/c that policyRefs names"):
        contents([(REF, None)], Fields({}, LIMITS, {}))


def test_secrets_hold_contents_too() -> None:
    """If they are of the type that says so."""
    found = contents([(REF, secret(pod("a").encode()))], Fields({}, LIMITS, {}))

    assert found[0].manifests[0]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        pytest.param(secret(b"x", "Opaque"), "unsupported secret type 'Opaque'", id="its type"),
        pytest.param(secret(b"\xff\xfe"), "an entry is not UTF-8 text", id="its bytes"),
    ],
)
def test_other_secrets_are_refused(holder: Secret, expected: str) -> None:
    """Without a word of what is in them."""
    with pytest.raises(InvalidError, match=expected):
        contents([(REF, holder)], Fields({}, LIMITS, {}))


def test_a_template_that_fails_says_where() -> None:
    """The ConfigMap, the entry and the line."""
    with pytest.raises(TemplateError, match=r"default/c/main\.yaml"):
        contents([(REF, config("{{ .A.b.c }}", **NOW))], Fields({"A": {}}, LIMITS, {}))
