"""CustomResourceDefinitions of all kinds that users write and Bellhop writes.

Group, version, plural, scope, columns and status subresource are those of Sveltos, so its clients
and tools find what they look for. The schema of a spec is made from the model that reads it, and
the one of a status from the type that is written: there is no second list of fields.

A model's JSON Schema becomes a structural one: references are resolved, null becomes `nullable`,
and no field has a default, since an API server would write it into the users' objects. Unknown
fields are not mentioned: the API server prunes them, and clients are warned of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec.json import schema_components

from bellhop.api.json_schema import json_schema
from bellhop.api.kinds import KINDS
from bellhop.api.sveltos_cluster import SveltosCluster
from bellhop.configuration import dry_run_objects as dry_runs
from bellhop.configuration import objects
from bellhop.configuration.promotions import ClusterPromotionStatus
from bellhop.core.base import Model

LIB, CONFIG = "lib.projectsveltos.io", "config.projectsveltos.io"
VERSION = "v1beta1"

_KEPT = {
    "description",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "x-kubernetes-preserve-unknown-fields",
}
"""Keywords that mean the same in both languages."""


class Rule(NamedTuple):
    """A rule in CEL that an API server of 1.25 or later checks: `path` names fields from spec."""

    path: tuple[str, ...]
    rule: str
    message: str


class Column(NamedTuple):
    """A column that `kubectl get` prints."""

    name: str
    path: str
    type: str = "string"


class KindDefinition(NamedTuple):
    """One kind of custom resources: `spec` and `status` are the types of its two parts."""

    group: str
    kind: str
    scope: Literal["Cluster", "Namespaced"]
    spec: type[Model | objects.Written] | None
    status: type[objects.Written] | None = None
    columns: tuple[Column, ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def plural(self) -> str:
        """The name of the kind in paths and on command lines."""
        singular = self.kind.lower()
        return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"

    @property
    def name(self) -> str:
        """The name of the definition."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{VERSION}"


def _feature(name: str, feature: str) -> Column:
    return Column(name, f'.status.featureSummaries[?(@.featureID=="{feature}")].status')


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_READY = (Column("Ready", '.status.conditions[?(@.type=="Ready")].status'), _AGE)
_CONNECTION = (
    Column("Ready", ".status.ready", "boolean"),
    Column("ConnectionStatus", ".status.connectionStatus"),
    Column("Version", ".status.version"),
    _AGE,
)
_FEATURES = (
    _AGE,
    _feature("HelmCharts", "Helm"),
    _feature("KustomizeRefs", "Kustomize"),
    _feature("PolicyRefs", "Resources"),
)
_IMMUTABLE = (Rule(("oneForEvent",), "self == oldSelf", "Value is immutable"),)


def _user_kinds() -> Iterator[KindDefinition]:
    """Yield the kinds that users write."""
    model = {kind: model for kind, (model, _) in KINDS.items()}
    cluster: Literal["Cluster"] = "Cluster"
    namespaced: Literal["Namespaced"] = "Namespaced"

    def lib(kind: str, status: type[objects.Written] | None = None) -> KindDefinition:
        return KindDefinition(LIB, kind, cluster, model[kind], status)

    yield lib("EventSource")
    yield lib("EventTrigger", objects.EventTriggerStatus)._replace(columns=_READY, rules=_IMMUTABLE)
    yield lib("ClusterSet", objects.ClusterSetStatus)
    yield lib("Set", objects.ClusterSetStatus)._replace(scope=namespaced)
    yield lib("Classifier", objects.ClassifierStatus)
    yield lib("ClusterHealthCheck", objects.ClusterHealthCheckStatus)
    yield lib("HealthCheck")
    yield lib("RoleRequest", objects.RoleRequestStatus)
    yield KindDefinition(
        *(LIB, "SveltosCluster", namespaced, SveltosCluster, objects.SveltosClusterStatus),
        columns=_CONNECTION,
    )
    profile = objects.ProfileStatus, _READY
    yield KindDefinition(CONFIG, "ClusterProfile", cluster, model["ClusterProfile"], *profile)
    yield KindDefinition(CONFIG, "Profile", namespaced, model["Profile"], *profile)
    yield KindDefinition(
        *(CONFIG, "ClusterPromotion", cluster, model["ClusterPromotion"], ClusterPromotionStatus),
        columns=(Column("Stage", ".status.currentStageName"), *_READY),
    )


def _report(
    group: str,
    kind: str,
    spec: type[objects.Written] | None,
    status: type[objects.Written],
    columns: tuple[Column, ...] = (),
) -> KindDefinition:
    return KindDefinition(group, kind, "Namespaced", spec, status, columns)


DEFINITIONS: tuple[KindDefinition, ...] = (
    *_user_kinds(),
    _report(LIB, "EventReport", objects.EventReportSpec, objects.EventReportStatus),
    _report(LIB, "HealthCheckReport", objects.HealthCheckReportSpec, objects.ReportStatus),
    _report(LIB, "ClassifierReport", objects.ClassifierReportSpec, objects.ClassifierReportStatus),
    _report(
        *(CONFIG, "ClusterSummary", objects.ClusterSummarySpec, objects.ClusterSummaryStatus),
        columns=_FEATURES,
    ),
    _report(CONFIG, "ClusterConfiguration", None, objects.ClusterConfigurationStatus),
    _report(CONFIG, "ClusterReport", dry_runs.ClusterReportSpec, dry_runs.ClusterReportStatus),
)
"""All kinds, those that users write first."""


def make_definitions(*, rules: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the CustomResourceDefinitions, by group and kind as listed.

    Without `rules` they suit an API server before 1.25, which does not know CEL.
    """
    return (_make_definition(each, rules=rules) for each in DEFINITIONS)


def _make_definition(kind: KindDefinition, *, rules: bool) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(kind, rules=rules)},
    }
    if kind.status is not None:
        version["subresources"] = {"status": {}}
    if kind.columns:
        version["additionalPrinterColumns"] = [
            {"name": each.name, "type": each.type, "jsonPath": each.path} for each in kind.columns
        ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "labels": {"app.kubernetes.io/managed-by": "bellhop"}},
        "spec": {
            "group": kind.group,
            "scope": kind.scope,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
            },
            "versions": [version],
        },
    }


def _object_schema(kind: KindDefinition, *, rules: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if kind.spec is not None:
        spec = _spec_schema(kind.spec, kind)
        for each in kind.rules if rules else ():
            _add_rule(spec, each)
        properties["spec"] = spec
        if "required" in spec:
            found["required"] = ["spec"]
    if kind.status is not None:
        properties["status"] = _struct_schema(kind.status)
    return found


def _spec_schema(spec: type[Model | objects.Written], kind: KindDefinition) -> dict[str, Any]:
    if issubclass(spec, Model):
        found = json_schema(spec, [kind.kind], kind.api_version)
        definitions = found["definitions"]
        return _structural(found["properties"]["spec"], definitions)
    schema = _struct_schema(spec)
    if spec is objects.ClusterSummarySpec:
        profile = next(each for each in DEFINITIONS if each.kind == "ClusterProfile")
        assert profile.spec is not None
        schema["properties"]["clusterProfileSpec"] = _spec_schema(profile.spec, profile)
    return schema


def _struct_schema(kind: type[objects.Written]) -> dict[str, Any]:
    [found], definitions = schema_components([kind], ref_template="#/definitions/{name}")
    return _structural(found, definitions)


def _structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema as an API server takes it."""
    schema = dict(schema)
    if reference := schema.pop("$ref", None):
        return _structural({**definitions[reference.rpartition("/")[2]], **schema}, definitions)
    if not {"type", "anyOf", "enum"} & schema.keys():
        return {"x-kubernetes-preserve-unknown-fields": True}
    if "anyOf" in schema:
        return _alternatives(schema["anyOf"], definitions)
    found = {key: value for key, value in schema.items() if key in _KEPT}
    found |= _type(schema)
    if "enum" in found:
        # API servers take a null neither among the values nor beside them.
        found["enum"] = [each for each in found["enum"] if each is not None]
        found.pop("nullable", None)
    if "properties" in schema:
        fields = schema["properties"].items()
        found["properties"] = {name: _structural(each, definitions) for name, each in fields}
    elif isinstance(entries := schema.get("additionalProperties"), dict) and entries:
        found["additionalProperties"] = _structural(entries, definitions)
    if schema.get("required"):
        found["required"] = list(schema["required"])
    if "items" in schema:
        found["items"] = _structural(schema["items"], definitions)
    return found


def _type(schema: Mapping[str, Any]) -> dict[str, Any]:
    types = schema.get("type", "string")
    names = [types] if isinstance(types, str) else list(types)
    null = {"nullable": True} if "null" in names else {}
    real = {each for each in names if each != "null"}
    if len(real) == 1:
        return {"type": real.pop(), **null}
    if real == {"integer", "string"}:
        return {"x-kubernetes-int-or-string": True, **null}
    return {"x-kubernetes-preserve-unknown-fields": True, **null}


def _alternatives(
    choices: list[Mapping[str, Any]], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of a value of several types: integer or string, or one that may be null."""
    real = [each for each in choices if each.get("type") != "null"]
    null = {"nullable": True} if len(real) < len(choices) else {}
    if {each.get("type") for each in real} == {"integer", "string"}:
        return {"x-kubernetes-int-or-string": True, **null}
    [only] = real
    return {**_structural(only, definitions), **null}


def _add_rule(spec: dict[str, Any], rule: Rule) -> None:
    place = spec
    for name in rule.path:
        place = place["properties"][name]
    validations = place.setdefault("x-kubernetes-validations", [])
    validations.append({"rule": rule.rule, "message": rule.message})
