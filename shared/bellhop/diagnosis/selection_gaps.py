"""What triggers and profiles reach nothing by, each with what to do: told at `apply`, and later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from bellhop.api.addon import ContentKind
from bellhop.api.kinds import ClusterProfile, ClusterSet, EventTrigger, PolicyRef, Selector
from bellhop.api.profile import ClusterProfileSpec
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.nearest_cluster import Near, mending, near, nearest
from bellhop.core.generated_names import GENERATED_NAMESPACE, set_kind
from bellhop.core.names import is_template
from bellhop.diagnosis.object_names import meant
from bellhop.installation.installation import Installation
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.record import Cluster

Declared = EventTrigger | ClusterProfile

_REGISTER = "register one with `bellhop register cluster`"


class Lack(NamedTuple):
    """Why something is not reached, as the end of a sentence, and what to do."""

    said: str
    cure: str


def miss(trigger: EventTrigger, cluster: Cluster, catalog: Catalog) -> Lack | None:
    """Say why a trigger does not select a cluster as one where its source counts."""
    selector = trigger.source_selector
    if catalog.watches(trigger, cluster.key):
        return None
    if selector.empty and trigger.cluster_sets:
        return _outside(trigger.cluster_sets, cluster, catalog)
    found = near(selector, cluster)
    return _apart("sourceClusterSelector", selector, found) if found else _empty(selector)


def no_source_cluster(trigger: EventTrigger, catalog: Catalog) -> Lack | None:
    """Say why a trigger selects no cluster at all to look for its source."""
    lack = _no_set("clusterSetRefs", trigger.cluster_sets, catalog)
    if lack or any(catalog.watches(trigger, cluster) for cluster in catalog.clusters):
        return lack
    if trigger.source_selector.empty and trigger.cluster_sets:
        return _no_member("clusterSetRefs", trigger.cluster_sets)
    return _nowhere("sourceClusterSelector", trigger.source_selector, catalog.clusters.values())


def no_destination(trigger: EventTrigger, catalog: Catalog) -> Lack | None:
    """Say why what a trigger makes goes to no cluster."""
    selector = trigger.destination_selector
    if selector is None:
        return None
    return _nowhere("destinationClusterSelector", selector, catalog.clusters.values())


def no_cluster(profile: ClusterProfile, catalog: Catalog) -> Lack | None:
    """Say why a user's own profile goes to no cluster, or names one that is not there."""
    for ref in profile.cluster_refs:
        key = f"{ref.namespace}/{ref.name}"
        if key not in catalog.clusters:
            hint = _hint(key, catalog.clusters)
            return Lack(f"it names cluster '{key}', which is not registered{hint}", _REGISTER)
    lack = _no_set("setRefs", profile.cluster_sets, catalog)
    if lack or any(catalog.selects(profile, cluster) for cluster in catalog.clusters):
        return lack
    if profile.cluster_selector.empty and profile.cluster_sets:
        return _no_member("setRefs", profile.cluster_sets)
    return _nowhere(
        "clusterSelector",
        profile.cluster_selector,
        _within(profile.namespace, catalog),
        profile.namespace,
    )


def elsewhere(declared: ClusterProfile | ClusterSet) -> Iterator[str]:
    """Yield what something in a namespace names in another one, and has in its own instead."""
    own = declared.namespace
    spec = declared.asked if isinstance(declared, ClusterProfile) else declared.spec
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


def no_member(declared: ClusterSet, catalog: Catalog) -> Lack | None:
    """Say why a set has no cluster, or names one that is not there."""
    for ref in declared.cluster_refs:
        key = f"{ref.namespace}/{ref.name}"
        if key not in catalog.clusters:
            hint = _hint(key, catalog.clusters)
            return Lack(f"it names cluster '{key}', which is not registered{hint}", _REGISTER)
    if declared.most == 0:
        return Lack("its maxReplicas is 0", "raise it, or leave it out to have all clusters")
    if any(map(declared.takes, catalog.clusters.values())):
        return None
    return _nowhere(
        "clusterSelector",
        declared.cluster_selector,
        _within(declared.namespace, catalog),
        declared.namespace,
    )


def _within(namespace: str, catalog: Catalog) -> Iterator[Cluster]:
    """Yield the clusters that something in a namespace can have; without one, all."""
    return (each for each in catalog.clusters.values() if namespace in ("", each.namespace))


def _no_set(field: str, places: Iterable[str], catalog: Catalog) -> Lack | None:
    """Say that one of some sets is not there."""
    for place in places:
        if place not in catalog.sets:
            hint = _hint(place, catalog.sets)
            kind = set_kind(place)
            said = f"its {field} name {kind} '{place}', which is not there yet{hint}"
            return Lack(said, _apply(place))
    return None


def _no_member(field: str, places: Sequence[str]) -> Lack:
    told = ", ".join(f"'{place}'" for place in places)
    said = f"its {field} name {told}, which {'has' if len(places) == 1 else 'have'} no cluster"
    return Lack(said, f"`bellhop describe {set_kind(places[0]).lower()} {places[0]}` says why")


def _outside(places: Sequence[str], cluster: Cluster, catalog: Catalog) -> Lack:
    """Say why none of some sets has a cluster."""
    for place in places:
        if place in catalog.sets and catalog.sets[place].takes(cluster):
            said = f"ClusterSet '{place}' has other clusters, as many as its maxReplicas says"
            return Lack(said, "raise its maxReplicas")
    told = ", ".join(f"'{place}'" for place in places)
    said = f"its clusterSetRefs name {told}, of which none selects the cluster"
    return Lack(said, f"have ClusterSet '{places[0]}' select the cluster")


class Holders:
    """The names of the ConfigMaps and Secrets that are there, read once for any number of refs."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._known: dict[str, set[str]] = {}

    def names(self, kind: str) -> set[str]:
        """Return what is there of a kind, as NAMESPACE/NAME."""
        if kind not in self._known:
            self._known[kind] = set(self._here.records.manifests.names(kind))
        return self._known[kind]

    @cached_property
    def elsewhere(self) -> bool:
        """Say whether what templates read may lie in `mgmt/mgmt`, which nobody asks here."""
        return self._here.records.clusters.get(MANAGEMENT) is not None


def lacks_source(trigger: EventTrigger, catalog: Catalog) -> bool:
    """Say whether the source that a trigger names is not there; a template names one a cluster."""
    name = trigger.event_source_name
    return "{{" not in name and name not in catalog.sources


def lacking(holders: Holders, declared: Declared) -> Iterator[PolicyRef]:
    """Yield the refs to what is not there; a template names something for each event.

    What is generated is there when there are events.
    """
    read = () if holders.elsewhere else _read(declared)
    for ref in (*declared.holder_refs, *read):
        named = ref.namespace and "{{" not in ref.namespace + ref.name and not ref.optional
        if ref.namespace == GENERATED_NAMESPACE:
            continue
        if named and f"{ref.namespace}/{ref.name}" not in holders.names(ref.kind):
            yield ref


def _read(declared: Declared) -> Iterator[PolicyRef]:
    """Yield the ConfigMaps and Secrets that templates read."""
    kinds: tuple[ContentKind, ...] = ("ConfigMap", "Secret")
    for each in declared.readings:
        for kind in kinds:
            if each.kind == kind:
                yield PolicyRef(each.namespace, each.name, kind, each.optional)


def no_source(trigger: EventTrigger, catalog: Catalog) -> Lack | None:
    """Say that the source that a trigger names is not there."""
    if not lacks_source(trigger, catalog):
        return None
    name = trigger.event_source_name
    hint = _hint(name, catalog.sources)
    return Lack(f"it names EventSource '{name}', which is not there yet{hint}", _apply(name))


def no_holder(holders: Holders, ref: PolicyRef) -> Lack:
    """Say of a ref that what it names is not there."""
    place = f"{ref.namespace}/{ref.name}"
    hint = _hint(place, sorted(holders.names(ref.kind)))
    said = f"it names {ref.kind} '{place}', which is not there yet{hint}"
    return Lack(said, _apply(ref.name))


def _nowhere(
    field: str, selector: Selector, clusters: Iterable[Cluster], namespace: str = ""
) -> Lack | None:
    """Say why a selector takes none of some clusters, or of a namespace's; None if it takes one."""
    there: Sequence[Cluster] = list(clusters)
    if any(selector.matches(each.labels) for each in there):
        return None
    if selector.empty:
        return _empty(selector, field)
    if not there:
        where = f" in namespace '{namespace}'" if namespace else ""
        return Lack(f"no cluster is registered{where} yet", _REGISTER)
    found = nearest(selector, there)
    if found is None:
        said = f"its {field} asks for {selector}, and none of {len(there)} clusters has that"
        command = f"`bellhop label cluster NAMESPACE/NAME {mending(selector)}`"
        return Lack(said, f"{command} where it is meant, or correct the {field}")
    return _apart(field, selector, found, many=len(there))


def _apart(field: str, selector: Selector, found: Near, many: int = 1) -> Lack:
    which = f"'{found.cluster.key}'" + (f", the nearest of {many} clusters," if many > 1 else "")
    said = f"its {field} asks for {selector}, and {which} {found.lacking}"
    cures = (f"correct the {field}", found.command)
    return Lack(said, ", or ".join(cures if found.misspelt else reversed(cures)))


def _empty(selector: Selector, field: str = "sourceClusterSelector") -> Lack:
    assert selector.empty
    said = f"its {field} asks for nothing, which selects no cluster"
    return Lack(said, f"have its {field} ask for labels, as in matchLabels: {{env: prod}}")


def _hint(word: str, known: Iterable[str]) -> str:
    near = meant(word, known)
    return f" (did you mean '{near}'?)" if near else ""


def _apply(name: str) -> str:
    return f"apply it with `bellhop apply -f FILE`, or correct the name '{name}'"
