"""What the users of a World may declare, each in its variants."""

from __future__ import annotations

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def _source(name: str, kind: str, more: str, group: str = "") -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec:
  collectResources: true
  resourceSelectors: [{{group: "{group}", version: v1, kind: {kind}{more}}}]
"""


def _trigger(name: str, source: str, one: str, more: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: '{source}'
  oneForEvent: {one}
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
{more}"""


def _profile(tier: int, chosen: str) -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: own}}
spec:
  tier: {tier}
  {chosen}
  policyRefs: [{{kind: ConfigMap, name: own, namespace: default}}]
"""


def _holder(name: str, content: str, annotations: str = "projectsveltos.io/instantiate: ok") -> str:
    body = "\n".join("    " + line for line in content.strip().splitlines())
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
data:
  main.yaml: |
{body}
"""


def _made(name: str, value: str) -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: '{name}', namespace: made}}
data: {{v: '{value}'}}
"""


def _also(api_version: str, kind: str) -> str:
    return f"""
---
apiVersion: {api_version}
kind: {kind}
metadata: {{name: also, namespace: made}}
"""


_RING = ", selector: {matchLabels: {ring: 'yes'}}"
_ENG = "  destinationClusterSelector: {matchLabels: {dep: eng}}\n"
_EACH = "each-{{ .Cluster.metadata.name }}-{{ lower .Resource.kind }}-{{ .Resource.metadata.name }}"
_V = "{{ .Resource.metadata.labels.v }}"
_ALL = "{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}"
_LATER = '{{ "{{ len .Cluster.metadata.labels }}" }}'
_BOTH = "projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok"
_FLIP = 'flip-{{ .Cluster.metadata.name }}{{ with get . "Resource" }}-{{ .metadata.name }}{{ end }}'

WATCHED: Key = ("EventSource", "", "watched")
OF_EAST: Key = ("EventSource", "", "of-east")
EACH: Key = ("EventTrigger", "", "each")
ALL: Key = ("EventTrigger", "", "all")
FLIP: Key = ("EventTrigger", "", "flip")
EACH_TEXT: Key = ("ConfigMap", "default", "each")
ALL_TEXT: Key = ("ConfigMap", "default", "all")
FLIP_TEXT: Key = ("ConfigMap", "default", "flip")
OWN: Key = ("ClusterProfile", "", "own")
OWN_TEXT: Key = ("ConfigMap", "default", "own")

DECLARED: dict[Key, tuple[str, ...]] = {
    WATCHED: (
        _source("watched", "Service", _RING),
        _source("watched", "Service", ""),
        _source("watched", "ServiceAccount", _RING),
        _source("watched", "Widget", _RING, "shop.io"),
    ),
    OF_EAST: (_source("of-east", "Service", _RING),),
    EACH: (
        _trigger("each", "watched", "true", ""),
        _trigger("each", "watched", "true", _ENG),
        _trigger("each", "watched", "true", "  tier: 70\n"),
    ),
    ALL: (
        _trigger("all", "watched", "false", ""),
        _trigger("all", "watched", "false", _ENG),
        _trigger("all", "of-{{ .Cluster.metadata.name }}", "false", "  tier: 70\n"),
    ),
    FLIP: (
        _trigger("flip", "watched", "true", ""),
        _trigger("flip", "watched", "false", ""),
    ),
    EACH_TEXT: (
        _holder("each", _made(_EACH, f"v{_V}")),
        _holder("each", _made(_EACH, f"w{_V}")),
        _holder("each", _made(_EACH, f"{_LATER}-{_V}"), _BOTH),
    ),
    ALL_TEXT: (_holder("all", _made("all-{{ .Cluster.metadata.name }}", _ALL)),),
    FLIP_TEXT: (_holder("flip", _made(_FLIP, "1")),),
    OWN: (
        _profile(50, "clusterSelector: {matchLabels: {dep: eng}}"),
        _profile(200, "clusterSelector: {matchLabels: {dep: eng}}"),
        _profile(50, "clusterRefs: [{namespace: fleet, name: east, kind: SveltosCluster}]"),
    ),
    OWN_TEXT: (
        _holder("own", _made("own", "1"), ""),
        _holder("own", _made("own", "2") + "---" + _made("all-east", "mine"), ""),
        _holder("own", _made("own", "1") + _also("policy/v1beta1", "PodDisruptionBudget"), ""),
        _holder("own", _made("own", "1") + _also("policy/v1", "PodDisruptionBudget"), ""),
        _holder("own", _made("own", "1") + _also("shop.io/v1", "Gadget"), ""),
    ),
}
"""What users may declare, each in its variants; `own` and `all` may want the same object."""

KEYS = sorted(DECLARED)

PLAIN = {OWN_TEXT: 3}
"""How many variants are chosen at random, where it is not all: steps of their own take the rest."""
