"""Reasons why triggers, profiles and sets select nothing, each with its cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from bellhop.api.addon import ContentKind
from bellhop.api.kinds import ClusterProfile, ClusterSet, EventTrigger, PolicyRef, Selector
from bellhop.api.profile import ClusterProfileSpec
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.nearest_cluster import Near, mending, near, nearest
from bellhop.core.identity import GENERATED_NAMESPACE, set_kind
from bellhop.core.names import is_template
from bellhop.diagnosis.names import find_nearest
from bellhop.installation import Installation
from bellhop.state.cluster import MANAGEMENT, Cluster

Declared = EventTrigger | ClusterProfile

_REGISTER = "register one with `bellhop register cluster`"


class Gap(NamedTuple):
    """A reason why something is not selected, as the end of a sentence, and the cure."""

    message: str
    cure: str


def find_cluster_gap(trigger: EventTrigger, cluster: Cluster, catalog: Catalog) -> Gap | None:
    """Return why a trigger does not select a cluster as a source cluster."""
    selector = trigger.source_selector
    if catalog.watches(trigger, cluster.key):
        return None
    if selector.empty and trigger.cluster_sets:
        return _describe_sets(trigger.cluster_sets, cluster, catalog)
    found = near(selector, cluster)
    return (
        _describe_mismatch("sourceClusterSelector", selector, found)
        if found
        else _describe_empty(selector)
    )


def find_name_gap(trigger: EventTrigger, cluster: str, catalog: Catalog) -> Gap | None:
    """Return why the name of a trigger's source cannot be rendered for a cluster."""
    problem = catalog.problems_in(cluster).get(trigger.name)
    if problem is None:
        return None
    return Gap(
        f"its eventSourceName cannot be rendered: {problem}",
        f"correct the eventSourceName of {trigger.kind} '{trigger.name}': {problem}",
    )


def find_source_cluster_gap(trigger: EventTrigger, catalog: Catalog) -> Gap | None:
    """Return why a trigger selects no source cluster."""
    lack = _find_missing_set("clusterSetRefs", trigger.cluster_sets, catalog)
    if lack or any(catalog.watches(trigger, cluster) for cluster in catalog.clusters):
        return lack
    if trigger.source_selector.empty and trigger.cluster_sets:
        return _describe_empty_sets("clusterSetRefs", trigger.cluster_sets)
    return _find_selector_gap(
        "sourceClusterSelector", trigger.source_selector, catalog.clusters.values()
    )


def find_destination_gap(trigger: EventTrigger, catalog: Catalog) -> Gap | None:
    """Return why the profiles of a trigger have no destination."""
    selector = trigger.destination_selector
    if selector is None:
        return None
    return _find_selector_gap("destinationClusterSelector", selector, catalog.clusters.values())


def find_profile_gap(profile: ClusterProfile, catalog: Catalog) -> Gap | None:
    """Return why a user's own profile selects no cluster, or names one that does not exist."""
    for ref in profile.cluster_refs:
        key = f"{ref.namespace}/{ref.name}"
        if key not in catalog.clusters:
            hint = _suggest(key, catalog.clusters)
            return Gap(f"it names cluster '{key}', which is not registered{hint}", _REGISTER)
    lack = _find_missing_set("setRefs", profile.cluster_sets, catalog)
    if lack or any(catalog.selects(profile, cluster) for cluster in catalog.clusters):
        return lack
    if profile.cluster_selector.empty and profile.cluster_sets:
        return _describe_empty_sets("setRefs", profile.cluster_sets)
    return _find_selector_gap(
        "clusterSelector",
        profile.cluster_selector,
        _list_clusters(profile.namespace, catalog),
        profile.namespace,
    )


def list_foreign_namespaces(declared: ClusterProfile | ClusterSet) -> Iterator[str]:
    """Yield what something in a namespace names in another one, and gets from its own."""
    own = declared.namespace
    spec = declared.addons if isinstance(declared, ClusterProfile) else declared.spec
    named = [("clusterRefs", each.namespace, each.name) for each in spec.cluster_refs]
    if isinstance(spec, ClusterProfileSpec):
        named += [("policyRefs", each.namespace, each.name) for each in spec.policy_refs]
        built = spec.kustomization_refs
        named += [("kustomizationRefs", each.namespace, each.name) for each in built]
        named += [("patchesFrom", each.namespace, each.name) for each in spec.patches_from]
        charts = [ref for each in spec.charts() for ref in each.refs]
        named += [("helmCharts", each.namespace, each.name) for each in charts]
        sources = [each for each in spec.readings() if each.field.startswith("helmCharts")]
        named += [("helmCharts", each.namespace, each.name) for each in sources]
        named += [("remoteURL", each.namespace, each.name) for each in spec.login_refs()]
        named += [("checks", each.namespace, each.name) for each in spec.check_refs()]
        refs = (each.resource for each in spec.template_resource_refs)
        named += [("templateResourceRefs", each.namespace, each.name) for each in refs]
    for field, namespace, name in named if own else ():
        if namespace not in ("", own) and not is_template(namespace):
            yield f"its {field} name '{namespace}/{name}', for which '{own}/{name}' is taken"


def find_set_gap(declared: ClusterSet, catalog: Catalog) -> Gap | None:
    """Return why a set has no cluster, or names one that does not exist."""
    for ref in declared.cluster_refs:
        key = f"{ref.namespace}/{ref.name}"
        if key not in catalog.clusters:
            hint = _suggest(key, catalog.clusters)
            return Gap(f"it names cluster '{key}', which is not registered{hint}", _REGISTER)
    if declared.most == 0:
        return Gap("its maxReplicas is 0", "raise it, or leave it out to have all clusters")
    if any(map(declared.takes, catalog.clusters.values())):
        return None
    return _find_selector_gap(
        "clusterSelector",
        declared.cluster_selector,
        _list_clusters(declared.namespace, catalog),
        declared.namespace,
    )


def _list_clusters(namespace: str, catalog: Catalog) -> Iterator[Cluster]:
    return (each for each in catalog.clusters.values() if namespace in ("", each.namespace))


def _find_missing_set(field: str, places: Iterable[str], catalog: Catalog) -> Gap | None:
    for place in places:
        if place not in catalog.sets:
            hint = _suggest(place, catalog.sets)
            kind = set_kind(place)
            said = f"its {field} name {kind} '{place}', which is not there yet{hint}"
            return Gap(said, _advise_apply(place))
    return None


def _describe_empty_sets(field: str, places: Sequence[str]) -> Gap:
    named = ", ".join(f"'{place}'" for place in places)
    said = f"its {field} name {named}, which {'has' if len(places) == 1 else 'have'} no cluster"
    return Gap(said, f"`bellhop describe {set_kind(places[0]).lower()} {places[0]}` says why")


def _describe_sets(places: Sequence[str], cluster: Cluster, catalog: Catalog) -> Gap:
    for place in places:
        if place in catalog.sets and catalog.sets[place].takes(cluster):
            said = f"ClusterSet '{place}' has other clusters, as many as its maxReplicas says"
            return Gap(said, "raise its maxReplicas")
    named = ", ".join(f"'{place}'" for place in places)
    said = f"its clusterSetRefs name {named}, of which none selects the cluster"
    return Gap(said, f"have ClusterSet '{places[0]}' select the cluster")


class KnownRefs:
    """The names of ConfigMaps and Secrets that exist, read once for any number of refs."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._known: dict[str, set[str]] = {}

    def names(self, kind: str) -> set[str]:
        """Return the existing names of a kind, as NAMESPACE/NAME."""
        if kind not in self._known:
            self._known[kind] = set(self._here.records.manifests.names(kind))
        return self._known[kind]

    @cached_property
    def reads_management(self) -> bool:
        """Whether templates may read from `mgmt/mgmt`, which is not called here."""
        return self._here.records.clusters.get(MANAGEMENT) is not None


def lacks_source(trigger: EventTrigger, catalog: Catalog) -> bool:
    """Return whether the source that a trigger names is missing; a template names one a cluster."""
    name = trigger.event_source_name
    return "{{" not in name and name not in catalog.sources


def list_missing_refs(holders: KnownRefs, declared: Declared) -> Iterator[PolicyRef]:
    """Yield refs to what does not exist; not templates, nor what events generate."""
    read = () if holders.reads_management else _list_readings(declared)
    for ref in (*declared.holder_refs, *read):
        named = ref.namespace and "{{" not in ref.namespace + ref.name and not ref.optional
        if ref.namespace == GENERATED_NAMESPACE:
            continue
        if named and f"{ref.namespace}/{ref.name}" not in holders.names(ref.kind):
            yield ref


def _list_readings(declared: Declared) -> Iterator[PolicyRef]:
    kinds: tuple[ContentKind, ...] = ("ConfigMap", "Secret")
    for each in declared.readings:
        for kind in kinds:
            if each.kind == kind:
                yield PolicyRef(each.namespace, each.name, kind, each.optional)


def find_source_gap(trigger: EventTrigger, catalog: Catalog) -> Gap | None:
    if not lacks_source(trigger, catalog):
        return None
    name = trigger.event_source_name
    hint = _suggest(name, catalog.sources)
    return Gap(f"it names EventSource '{name}', which is not there yet{hint}", _advise_apply(name))


def describe_missing_ref(holders: KnownRefs, ref: PolicyRef) -> Gap:
    place = f"{ref.namespace}/{ref.name}"
    hint = _suggest(place, sorted(holders.names(ref.kind)))
    said = f"it names {ref.kind} '{place}', which is not there yet{hint}"
    return Gap(said, _advise_apply(ref.name))


def _find_selector_gap(
    field: str, selector: Selector, clusters: Iterable[Cluster], namespace: str = ""
) -> Gap | None:
    """Return why a selector takes none of some clusters, or of a namespace's."""
    there: Sequence[Cluster] = list(clusters)
    if any(selector.matches(each.labels) for each in there):
        return None
    if selector.empty:
        return _describe_empty(selector, field)
    if not there:
        where = f" in namespace '{namespace}'" if namespace else ""
        return Gap(f"no cluster is registered{where} yet", _REGISTER)
    found = nearest(selector, there)
    if found is None:
        said = f"its {field} asks for {selector}, and none of {len(there)} clusters has that"
        command = f"`bellhop label cluster NAMESPACE/NAME {mending(selector)}`"
        return Gap(said, f"{command} where it is meant, or correct the {field}")
    return _describe_mismatch(field, selector, found, many=len(there))


def _describe_mismatch(field: str, selector: Selector, found: Near, many: int = 1) -> Gap:
    which = f"'{found.cluster.key}'" + (f", the nearest of {many} clusters," if many > 1 else "")
    said = f"its {field} asks for {selector}, and {which} {found.lacking}"
    cures = (f"correct the {field}", found.command)
    return Gap(said, ", or ".join(cures if found.misspelt else reversed(cures)))


def _describe_empty(selector: Selector, field: str = "sourceClusterSelector") -> Gap:
    assert selector.empty
    said = f"its {field} asks for nothing, which selects no cluster"
    return Gap(said, f"have its {field} ask for labels, as in matchLabels: {{env: prod}}")


def _suggest(word: str, known: Iterable[str]) -> str:
    near = find_nearest(word, known)
    return f" (did you mean '{near}'?)" if near else ""


def _advise_apply(name: str) -> str:
    return f"apply it with `bellhop apply -f FILE`, or correct the name '{name}'"
