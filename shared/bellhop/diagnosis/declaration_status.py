"""Status of manifests: names and selectors without a match, classifiers, notices, loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bellhop.api.classifier import Classifier
from bellhop.api.names import DECLARED
from bellhop.api.trigger import EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.core.identity import set_kind
from bellhop.diagnosis.condition import Condition, count_alike, failure, group
from bellhop.diagnosis.source_status import read_report
from bellhop.extras.classifiers.records import Classification
from bellhop.installation import Installation, InstallationView
from bellhop.profiles import loops


class ClassifierSummary(Struct, frozen=True):
    """The clusters of one classifier; `lacks` has reasons by (cluster, label not set)."""

    matching: Sequence[str]
    open: Sequence[str] = ()
    leaving: Sequence[str] = ()
    lacks: Mapping[tuple[str, str], str] = {}


def read_classifications(here: InstallationView) -> Mapping[str, Classification]:
    """Return the results of classifiers by cluster; nothing if there are no classifiers."""
    if not here.catalogs.known().classifiers:
        return {}
    return dict(here.records.classified.all())


def summarize_classifier(found: Mapping[str, Classification], name: str) -> ClassifierSummary:
    lacks = {
        (cluster, label): why
        for cluster, each in found.items()
        for classifier, label, why in _split_lacks(each)
        if classifier == name
    }
    return ClassifierSummary(
        [cluster for cluster, each in found.items() if name in each.matching],
        [cluster for cluster, each in found.items() if name in each.open],
        [cluster for cluster, each in found.items() if name in each.leaving],
        lacks,
    )


def list_refused_labels(here: Installation) -> Iterator[tuple[str, str, str, str]]:
    """Yield (classifier, label, cluster, why) of each label that a classifier cannot give."""
    there = here.catalogs.known().classifiers
    for cluster, each in read_classifications(here).items():
        for classifier, label, why in _split_lacks(each):
            if classifier in there:
                yield classifier, label, cluster, why


def list_classifier_results(
    here: Installation, cluster: str, classifier: Classifier
) -> Iterator[tuple[str, str]]:
    """Yield (selector, result or error) of a classifier in a cluster."""
    for source in classifier.sources:
        what = "all" if source.aggregation else f"{source.selectors[0].gvk.kind}"
        found = read_report(here, cluster, source.name)
        yield from ((what, said) for said in found.messages)
        if source.aggregation:
            said = f"{found.given} objects" + (f": {found.message}" if found.message else "")
            yield what, said
        else:
            yield what, f"{len(found.matching)} objects"


def _split_lacks(found: Classification) -> Iterator[tuple[str, str, str]]:
    for place, why in found.lacks.items():
        classifier, _, label = place.partition(" ")
        yield classifier, label, why


def list_lost(here: Installation) -> Iterator[Condition]:
    """Yield the manifests of which the contents are lost."""
    for kind in DECLARED:
        for name, manifest in here.records.manifests.listed(kind):
            if manifest is None:
                said = "what was declared is lost; apply it again, or delete it"
                yield failure("manifest", f"{kind} {name.removeprefix('/')}", said)


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield the names and selectors without a match, and labels that classifiers cannot give."""
    catalog = here.catalogs.known()
    for trigger in catalog.triggers.values():
        source = trigger.event_source_name
        if "{{" not in source and source not in catalog.sources:
            said = f"there is no EventSource '{source}', which it names"
            yield failure("trigger", trigger.name, said)
        yield from _check_selectors(trigger, catalog)
    for check in catalog.checks.values():
        for name in check.health_checks:
            if name not in catalog.health_checks:
                said = f"there is no HealthCheck '{name}', which it names; apply it"
                yield failure("clusterhealthcheck", check.name, said)
    yield from _check_sets(catalog)
    yield from _check_labels(here)


def _check_selectors(trigger: EventTrigger, catalog: Catalog) -> Iterator[Condition]:
    source, destination = trigger.source_selector, trigger.destination_selector
    asked = {"sourceClusterSelector": source, "destinationClusterSelector": destination}
    labels = [each.labels for each in catalog.clusters.values()]
    for field, selector in asked.items():
        if selector is None or (selector.empty and selector is not source) or not labels:
            continue
        if selector.empty and trigger.cluster_sets:
            continue
        if not any(map(selector.matches, labels)):
            said = (
                f"its {field} '{selector}' selects none of the {len(labels)} clusters: compare it"
                " with their labels (`bellhop get clusters`), and set them with `bellhop label"
                " cluster`"
            )
            yield failure("trigger", trigger.name, said)


def _check_sets(catalog: Catalog) -> Iterator[Condition]:
    """Yield the sets that are missing, and those with clusters that cannot be replaced."""
    named = [("trigger", each.name, each.cluster_sets) for each in catalog.triggers.values()]
    named += [("profile", each.rule, each.cluster_sets) for each in catalog.profiles.values()]
    for kind, name, places in named:
        for place in places:
            if place not in catalog.sets:
                said = f"there is no {set_kind(place)} '{place}', which it names"
                yield failure(kind, name, said)
    for place, choice in catalog.choices.items():
        if choice.failing:
            said = (
                f"{', '.join(choice.failing)} of its clusters do not answer, and no other cluster"
                " can take their place: fix them, or have it select more clusters"
            )
            yield failure(set_kind(place).lower(), place, said)


def _check_labels(here: Installation) -> Iterator[Condition]:
    found = group(((each[0], each[1], each[3]), each) for each in list_refused_labels(here))
    for refused in found:
        classifier, label, cluster, why = refused[0]
        alike = count_alike(len(refused), "clusters")
        said = f"it cannot give cluster '{cluster}' the label '{label}': {why}{alike}"
        yield failure("classifier", classifier, said, count=len(refused))


def list_notices(here: Installation) -> Iterator[Condition]:
    """Yield the notices that could not be sent, each once for all clusters."""
    catalog = here.catalogs.known()
    if not catalog.checks:
        return
    failed = (
        (check, each.name, each.error, cluster)
        for cluster, check, found in here.records.conditions.checked(iter(catalog.clusters))
        for each in found.notices
        if each.error and each.told != found.healthy
    )
    for alike in group((each[:3], each) for each in failed):
        check, name, error, cluster = alike[0]
        said = f"{error}{count_alike(len(alike), 'clusters')}"
        yield failure("notice", f"{name} of {check} about {cluster}", said, count=len(alike))


def list_loops(here: Installation) -> Iterator[Condition]:
    """Yield the triggers that feed themselves, each once for all its profiles."""
    catalog, now = here.catalogs.known(), here.records.clock.now()
    for name, trigger in catalog.triggers.items():
        profiles = here.records.profiles.heads(name)
        found = [each for each in profiles if loops.is_slowed(each, catalog.declared, now)]
        if not found:
            continue
        worst = max(found, key=lambda each: each.turns)
        source = catalog.source_of(trigger, worst.cluster)
        turns = loops.count_turns([worst], catalog.declared, now)
        said = loops.describe_loop(name, source.name if source else "", turns, now)
        about, number = f"{name} for {worst.object or 'all'} in {worst.cluster}", len(found)
        said += count_alike(number, "profiles")
        yield failure("loop", about, said, since=worst.turning, count=number)
