"""Rendering to manifests, in both dialects, with errors that show what was written."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.api.kinds import ConfigMap, EventTrigger, Secret, of
from bellhop.core.gvk import ObjectKey
from bellhop.errors import BellhopError, InvalidError, TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering.deploy_contents import deploy_time
from bellhop.rendering.event_contents import contents
from bellhop.rendering.event_fields import Fields, resolve, variables
from bellhop.rendering.inputs import Ref
from bellhop.rendering.manifests import read_manifests
from bellhop.rendering.templates import RenderContext, dialect_of

LIMITS = Limits()
CLUSTER = {"metadata": {"namespace": "prod", "name": "eu-1", "labels": {"env": "production"}}}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a", "app": "web"}},
    "spec": {
        "selector": {"app": "web", "tier": "front"},
        "ports": [
            {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443},
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web"},
        ],
    },
}
OTHER: dict[str, Any] = {**SERVICE, "metadata": {"name": "db", "namespace": "shop"}}


def trigger(*, one: bool = True, **annotations: str) -> EventTrigger:
    manifest = {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "EventTrigger",
        "metadata": {"name": "t", "annotations": annotations},
        "spec": {
            "sourceClusterSelector": {"matchLabels": {"env": "production"}},
            "eventSourceName": "s",
            "oneForEvent": one,
        },
    }
    found = of(manifest)
    assert isinstance(found, EventTrigger)
    return found


def config_map(text: str, **annotations: str) -> ConfigMap:
    found = of(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "n", "annotations": annotations},
            "data": {"e.yaml": text},
        }
    )
    assert isinstance(found, ConfigMap)
    return found


def secret(text: str, **annotations: str) -> Secret:
    found = of(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "c", "namespace": "n", "annotations": annotations},
            "type": "addons.projectsveltos.io/cluster-profile",
            "stringData": {"e.yaml": text},
        }
    )
    assert isinstance(found, Secret)
    return found


def root(*, one: bool = True) -> dict[str, Any]:
    objects = [SERVICE] if one else [OTHER, SERVICE]
    matched = [(ObjectKey.of(each), each) for each in objects]
    return variables(trigger(one=one), CLUSTER, matched, collect=True)


def instantiated(
    holder: ConfigMap | Secret,
    *,
    one: bool = True,
    always: bool = True,
    data: dict[str, Any] | None = None,
    **annotations: str,
) -> list[Any]:
    ref = Ref(holder.kind, "n", "c", optional=False)
    found = contents(
        [(ref, holder)],
        Fields(data or root(one=one), LIMITS, annotations),
        always=always,
    )
    return [dict(manifest) for each in found for manifest in each.manifests]


JINJA = {"bellhop.dev/template": "jinja2"}
ROLLED = {"projectsveltos.io/template": "ok"}

PAIRS = {
    "a network policy for one Service": (
        """
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata:
          name: front-{{ .Resource.metadata.name }}
          namespace: {{ .MatchingResource.Namespace }}
          labels:
            {{- range $key, $value := .Resource.metadata.labels }}
            {{ $key }}: {{ $value | quote }}
            {{- end }}
        spec:
          podSelector:
            matchLabels:
              {{- toYaml .Resource.spec.selector | nindent 14 }}
          ingress:
            - ports:
              {{- range .Resource.spec.ports }}
              {{- if or (eq .port 443) (eq .port 8443) }}
                - port: {{ .port }}
                  protocol: {{ default "TCP" .protocol }}
              {{- end }}
              {{- end }}
        """,
        """
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata:
          name: front-{{ Resource.metadata.name }}
          namespace: {{ MatchingResource.Namespace }}
          labels:
            {%- for key, value in Resource.metadata.labels.items() %}
            {{ key }}: {{ value | quote }}
            {%- endfor %}
        spec:
          podSelector:
            matchLabels:
              {{- Resource.spec.selector | to_yaml | nindent(14) }}
          ingress:
            - ports:
              {%- for port in Resource.spec.ports %}
              {%- if port.port in [443, 8443] %}
                - port: {{ port.port }}
                  protocol: {{ port.protocol | default("TCP") }}
              {%- endif %}
              {%- endfor %}
        """,
        True,
    ),
    "one ConfigMap of all Services": (
        """
        {{- range .MatchingResources }}
        {{- if eq .Kind "Pod" }}{{ fail "no pods" }}{{ end }}
        {{- end }}
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: all-{{ len .Resources }}, namespace: {{ .Cluster.metadata.namespace }}}
        data:
          names: {{ range $i, $r := .Resources }}{{ if $i }},{{ end -}}
            {{ $r.metadata.name }}{{ end }}
          first.json: '{{ (index .Resources 0).spec.ports | toJson }}'
          digest: {{ (index .MatchingResources 0).Name | sha256sum }}
          coded: {{ .Cluster.metadata.name | b64enc }}
        """,
        """
        {%- for each in MatchingResources %}
        {%- if each.Kind == "Pod" %}{{ fail("no pods") }}{% endif %}
        {%- endfor %}
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: all-{{ Resources | length }}, namespace: {{ Cluster.metadata.namespace }}}
        data:
          names: {{ Resources | map(attribute="metadata.name") | join(",") }}
          first.json: '{{ Resources[0].spec.ports | to_json }}'
          digest: {{ MatchingResources[0].Name | sha256 }}
          coded: {{ Cluster.metadata.name | b64encode }}
        """,
        False,
    ),
    "a document for each port": (
        """
        {{- range .Resource.spec.ports }}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: "{{ $.Resource.metadata.name }}-{{ .name }}"}
        spec:
          ports:
            - {{ . | toJson }}
        {{- end }}
        """,
        """
        {%- for port in Resource.spec.ports %}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: "{{ Resource.metadata.name }}-{{ port.name }}"}
        spec:
          ports:
            - {{ port | to_json }}
        {%- endfor %}
        """,
        True,
    ),
    "nothing at all": (
        '{{ if eq .MatchingResource.Kind "Pod" }}a: 1{{ end }}\n---\n# nothing\n',
        "{% if MatchingResource.Kind == 'Pod' %}a: 1{% endif %}\n---\n# nothing\n",
        True,
    ),
}


def flush(text: str) -> str:
    """Take the indentation of this file off, so that documents begin at the margin."""
    return "\n".join(line.removeprefix("        ") for line in text.split("\n"))


@pytest.mark.parametrize("name", PAIRS)
def test_both_dialects_write_the_same_manifests(name: str) -> None:
    """One add-on written in Go's language and in Jinja2 gives equal objects."""
    go, jinja, one = PAIRS[name]

    written = instantiated(config_map(flush(go)), one=one)

    assert instantiated(config_map(flush(jinja), **JINJA), one=one) == written
    assert bool(written) == (name != "nothing at all")


@pytest.mark.parametrize(
    ("holder", "outer", "expected"),
    [
        pytest.param({}, {}, "go", id="Go where nobody chooses"),
        pytest.param(JINJA, {}, "jinja2", id="by the holder"),
        pytest.param({}, JINJA, "jinja2", id="by the trigger"),
        pytest.param(
            {"bellhop.dev/template": "go"}, JINJA, "go", id="the holder before the trigger"
        ),
    ],
)
def test_an_annotation_chooses_the_dialect(
    holder: dict[str, str], outer: dict[str, str], expected: str
) -> None:
    """The holder's annotation counts first, then the trigger's."""
    text = "apiVersion: v1\nkind: X\nmetadata: {name: '{{ PLACE }}'}\n".replace(
        "PLACE", "Resource.metadata.name" if expected == "jinja2" else ".Resource.metadata.name"
    )

    assert dialect_of(holder, outer) == expected
    assert instantiated(config_map(text, **holder), **outer)[0]["metadata"]["name"] == "web"


def test_a_dialect_that_is_not_there_is_refused() -> None:
    """The error names the annotation and what it takes."""
    with pytest.raises(InvalidError) as caught:
        instantiated(config_map("", **{"bellhop.dev/template": "jinja"}))

    assert str(caught.value) == (
        "the annotation bellhop.dev/template is 'jinja'; it takes go or jinja2"
    )


def test_a_trigger_names_its_refs_in_its_dialect() -> None:
    """Names in policyRefs are rendered as the trigger's annotation says."""
    manifest = trigger(**JINJA).manifest()
    manifest["spec"]["policyRefs"] = [
        {
            "kind": "ConfigMap",
            "namespace": "{{ Cluster.metadata.namespace }}",
            "name": "p-{{ Resource.metadata.name | lower }}",
        }
    ]
    one = of(manifest)
    assert isinstance(one, EventTrigger)

    (ref,) = resolve(one.policy_refs, Fields(root(), LIMITS, one.annotations), namespace="x")

    assert str(ref) == "ConfigMap prod/p-web"


def test_what_chooses_a_dialect_is_a_template() -> None:
    """In the v1beta1 era only the annotation makes a text a template of the event."""
    text = "apiVersion: v1\nkind: X\nmetadata: {name: '{{ Resource.metadata.name }}'}\n"

    (written,) = instantiated(config_map(text, **JINJA), always=False)

    assert written["metadata"]["name"] == "web"


def test_a_template_of_deploy_time_keeps_its_dialect() -> None:
    """A text that waits for its cluster is rendered there in the dialect chosen here."""
    text = "apiVersion: v1\nkind: X\nmetadata: {name: '{{ Cluster.metadata.name }}'}\n"
    ref = Ref("ConfigMap", "n", "c", optional=False)
    holder = config_map(text, **JINJA, **ROLLED)

    (waiting,) = contents([(ref, holder)], Fields(root(), LIMITS, {}))
    there = deploy_time(waiting, RenderContext(CLUSTER, LIMITS))

    assert waiting.manifests == ()
    assert [each["metadata"]["name"] for each in there.manifests] == ["eu-1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: 1\n{{ range .Resource.spec.ports }}\n- port: {{ .port }}\n{{ end }}\n",
            "n/c/e.yaml, rendered line 3: this is not YAML: did not find expected key; look at the"
            " indentation of this line and of the one before; the template wrote '- port: 443',"
            " from its line 3, '- port: {{ .port }}'",
            id="no YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: X\nmetadata:\n  name: a\n"
            "  labels: {{ toYaml .Resource.spec.selector }}",
            "the template wrote '  labels: app: web' after '  name: a', from its line 5, 'labels:"
            " {{ toYaml .Resource.spec.selector }}'",
            id="a value of many lines",
        ),
        pytest.param(
            "# {{ 1 }}\n---\nkind: X\n",
            "rendered line 3: the object has no 'apiVersion'; the template wrote 'kind: X'"
            " after '---'",
            id="no apiVersion",
        ),
        pytest.param(
            "- {{ 1 }}\n",
            "rendered line 1: not a Kubernetes object but a list; the template wrote '- 1', from"
            " its line 1, '- {{ 1 }}'",
            id="a list",
        ),
        pytest.param(
            "apiVersion: v1\nkind: X\nmetadata: {name: '{{ \"\" }}'}",
            "the X has an empty 'metadata.name'",
            id="no name",
        ),
        pytest.param(
            "{{ 1 }}",
            "rendered line 1: not a Kubernetes object but a scalar",
            id="a scalar",
        ),
        pytest.param(
            'apiVersion: v1\nkind: ConfigMapList\nitems:\n- kind: {{ "A" }}\n',
            "the object has no 'apiVersion'",
            id="an item of a list",
        ),
    ],
)
def test_shows_what_a_template_wrote(text: str, expected: str) -> None:
    """The rendered line stands beside the template's line it comes from."""
    with pytest.raises(InvalidError) as caught:
        instantiated(config_map(text))

    assert expected in str(caught.value)


def test_shows_what_a_jinja2_template_wrote() -> None:
    """Lines are traced through Jinja2's loops too."""
    text = "a: 1\n{% for p in Resource.spec.ports %}\n- port: {{ p.port }}\n{% endfor %}\n"
    with pytest.raises(InvalidError) as caught:
        instantiated(config_map(text, **JINJA))

    assert "rendered line 3" in str(caught.value)
    assert "wrote '- port: 443', from its line 3, '- port: {{ p.port }}'" in str(caught.value)


@pytest.mark.parametrize(
    ("holder", "data"),
    [
        pytest.param(secret("hunter2: [{{ 1 }}"), None, id="no YAML in a Secret"),
        pytest.param(secret("hunter2"), None, id="no object in a Secret"),
        pytest.param(secret("{{ 'hunter2' ~ nope }}", **JINJA), None, id="a failing Jinja2 line"),
        pytest.param(
            config_map("{{ .Resource.data.key }}"),
            {"Resource": {"kind": "Secret", "data": {"key": "hunter2"}}},
            id="rendered from a Secret",
        ),
        pytest.param(
            config_map("{{ Resources[0].data.key }}: [", **JINJA),
            {"Resources": [{"kind": "Secret", "data": {"key": "hunter2"}}]},
            id="rendered from Secrets by Jinja2",
        ),
    ],
)
def test_an_error_never_quotes_a_secret(
    holder: ConfigMap | Secret, data: dict[str, Any] | None
) -> None:
    """What stands in a Secret, or was written from one, is in no error."""
    with pytest.raises(BellhopError) as caught:
        instantiated(holder, data=data)

    assert "hunter2" not in str(caught.value)
    assert "n/c/e.yaml" in str(caught.value)


def test_a_template_error_has_the_line_that_failed() -> None:
    """Jinja2's sentence comes with the template's name, its line and the line itself."""
    with pytest.raises(TemplateError) as caught:
        instantiated(config_map("a: 1\nb: {{ Resource.nope }}\n", **JINJA))

    assert str(caught.value) == (
        "template: n/c/e.yaml:2: 'dict object' has no attribute 'nope', in 'b: {{ Resource.nope }}'"
    )
    assert caught.value.context == {"name": "n/c/e.yaml", "line": 2}


def test_a_text_that_is_no_template_has_plain_lines() -> None:
    """What was not rendered is shown as it stands."""
    with pytest.raises(InvalidError) as caught:
        read_manifests("a: 1\n---\nx: {{ y }}: z\n", source="n/c/e")

    assert str(caught.value) == (
        "n/c/e, line 3: this is not YAML: mapping values are not allowed in this context; quote a"
        " text that holds ': ', or put the key at its parents' indentation; the line is"
        " 'x: {{ y }}: z'"
    )


def test_lists_are_taken_apart() -> None:
    """A List, and a list of one kind, are the objects in them."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    text = f"{{apiVersion: v1, kind: List, items: [{item}]}}\n---\n"
    text += f"{{apiVersion: v1, kind: ConfigMapList, items: [{item}]}}\n---\nkind: List\nitems:\n"

    assert read_manifests(text.removesuffix("---\nkind: List\nitems:\n"), source="x") == (
        item,
        item,
    )
