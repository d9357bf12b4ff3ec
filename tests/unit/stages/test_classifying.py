"""Classifiers: which clusters get their labels, when they lose them, and whose a label is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.errors import UnreachableError
from bellhop.extras.classifiers.classifier import GRACE
from bellhop.state.classification import Classification
from bellhop.state.messages import Resync, UpdateLabels
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.mortal import Fate, Killed, Mortal

CONFIG = GVK("", "v1", "ConfigMap")
FILTERS = "[{key: sveltos, operation: Equal, value: fv}]"
WEB = f"{{group: '', version: v1, kind: Service, namespace: default, labelFilters: {FILTERS}}}"
CACHE = "{group: '', version: v1, kind: Service, name: cache}"


def classifier(
    name: str = "gpu",
    label: str = "accelerator: nvidia",
    *,
    versions: str = "",
    selectors: str = "",
    script: str = "",
) -> str:
    """Return a Classifier that gives a label."""
    key, value = label.split(": ")
    lines = [
        "apiVersion: lib.projectsveltos.io/v1beta1",
        "kind: Classifier",
        f"metadata: {{name: {name}}}",
        "spec:",
        f"  classifierLabels: [{{key: {key}, value: {value}}}]",
    ]
    if versions:
        lines.append(f"  kubernetesVersionConstraints: [{versions}]")
    if selectors:
        lines.append("  deployedResourceConstraint:")
        lines.append(f"    resourceSelectors: [{selectors}]")
    if script:
        lines.append("    aggregatedClassification: |")
        lines += [f"      {each}" for each in script.splitlines()]
    return "\n".join((*lines, ""))


SELECTED = join(
    profile("clusterSelector: {matchLabels: {accelerator: nvidia}}"),
    holder("own", config("own")),
)


def labels(fleet: Fleet, cluster: str = "east") -> dict[str, str]:
    kept = fleet.records.clusters.get(f"fleet/{cluster}")
    assert kept
    return dict(kept.value.labels)


def given(fleet: Fleet, cluster: str = "east") -> dict[str, str]:
    kept = fleet.records.clusters.get(f"fleet/{cluster}")
    assert kept
    return dict(kept.value.given)


def noted(fleet: Fleet, cluster: str = "east") -> Classification:
    return fleet.records.classified.get(f"fleet/{cluster}").value


def later(fleet: Fleet) -> None:
    """Let the grace pass."""
    fleet.clock.advance(GRACE + timedelta(seconds=1))
    fleet.pump()


def test_gives_its_labels_to_clusters_of_a_version(fleet: Fleet) -> None:
    """Those of another version get none."""
    fleet.register("east")
    west = fleet.register("west")
    west.kubernetes = "v1.19.3+k3s1"
    fleet.pump()
    fleet.apply(classifier(versions="{comparison: GreaterThanOrEqualTo, version: 1.20.0}"))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert labels(fleet, "west") == {}
    assert noted(fleet) == Classification(("gpu",))


def test_follows_a_cluster_that_is_upgraded(fleet: Fleet) -> None:
    """The sweep that sees the new version has it classified anew."""
    east = fleet.register("east")
    fleet.apply(classifier(versions="{comparison: GreaterThan, version: '1.20'}"))
    fleet.pump()
    assert labels(fleet) == {}

    east.kubernetes = "v1.21.0"
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_asks_for_something_by_each_selector(fleet: Fleet) -> None:
    """One object of two that are asked for is not enough, as in Sveltos."""
    east = fleet.register("east")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    fleet.apply(classifier(selectors=f"{WEB}, {CACHE}"))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("cache", "shop"))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_rings_bring_labels_and_add_ons(fleet: Fleet) -> None:
    """An object that comes brings what its cluster's new label selects, without a sweep."""
    east = fleet.register("east")
    fleet.apply(classifier(selectors=WEB), SELECTED)
    fleet.pump()
    assert east.objects(CONFIG) == []

    web = fleet.write("east", service("web"))
    fleet.pump()
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["own"]

    fleet.drop("east", web)
    fleet.pump()
    assert labels(fleet) == {"accelerator": "nvidia"}
    later(fleet)
    assert labels(fleet) == {}
    assert east.objects(CONFIG) == []


def test_what_comes_again_within_the_grace_moves_nothing(fleet: Fleet) -> None:
    """An object that is replaced keeps the label; it goes a grace after the object went again."""
    fleet.register("east")
    fleet.apply(classifier(selectors=WEB))
    fleet.pump()
    web = fleet.write("east", service("web"))
    fleet.pump()
    fleet.drop("east", web)
    fleet.pump()
    assert noted(fleet).leaving == {"gpu": fleet.clock.now()}
    fleet.clock.advance(GRACE / 2)
    web = fleet.write("east", service("web"))
    fleet.pump()
    assert noted(fleet) == Classification(("gpu",))

    later(fleet)
    assert labels(fleet) == {"accelerator": "nvidia"}
    fleet.drop("east", web)
    fleet.pump()
    fleet.clock.advance(GRACE / 2)
    fleet.pump()
    assert labels(fleet) == {"accelerator": "nvidia"}
    later(fleet)
    assert labels(fleet) == {}


ENOUGH = """function evaluate()
  local hs = {}
  hs.matching = #resources >= 2
  hs.message = #resources .. " of them"
  return hs
end"""


def test_a_script_judges_all_resources_together(fleet: Fleet) -> None:
    """It is given what any selector takes, and decides alone."""
    fleet.register("east")
    fleet.apply(classifier(selectors=f"{WEB}, {CACHE}", script=ENOUGH))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("other"))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_a_script_may_ask_that_nothing_is_there(fleet: Fleet) -> None:
    """It is run over no resources, too, once a sweep has looked at all."""
    fleet.register("east")
    script = "function evaluate()\n  return {matching = #resources == 0}\nend"
    fleet.apply(classifier(selectors=WEB, script=script))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


ONE = """function evaluate()
  if #resources > 1 then error('many') end
  return {matching = #resources == 1}
end"""


def test_a_script_that_fails_changes_nothing(fleet: Fleet) -> None:
    """An error is no answer: the label stays, and the failure is told."""
    fleet.register("east")
    fleet.apply(classifier(selectors=WEB, script=ONE))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {"accelerator": "nvidia"}

    fleet.write("east", service("other"))
    fleet.pump()
    later(fleet)

    assert labels(fleet) == {"accelerator": "nvidia"}
    kept = fleet.records.selections.head("fleet/east", "classifier:gpu")
    assert kept
    assert "many" in kept.value.error


GOOD = """function evaluate()
  for _, each in ipairs(resources) do
    if each.metadata.name == 'good' then return {matching = true} end
  end
  return {matching = false}
end"""
NAMED_GOOD = (
    "{group: '', version: v1, kind: Service, evaluate: \"function evaluate() return {matching ="
    " obj.metadata.name == 'good'} end\"}"
)


def test_one_object_nested_too_deep_is_left_out_alone(fleet: Fleet) -> None:
    """A script over all resources judges the others, and names it; a selector's is as before."""
    fleet.register("east")
    services = "{group: '', version: v1, kind: Service}"
    fleet.apply(classifier("each", "each: good", selectors=NAMED_GOOD))
    fleet.apply(classifier("all", "all: good", selectors=services, script=GOOD))
    fleet.pump()
    deep = service("deep")
    deep["spec"]["deep"] = reduce(lambda inner, _: {"a": inner}, range(150), {})
    fleet.write("east", deep)
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("good"))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()
    later(fleet)

    assert labels(fleet) == {"all": "good", "each": "good"}
    [told] = failures(fleet.installation())
    assert (told.what, told.which) == ("evaluation", "classifier:all in fleet/east")
    assert told.sentence.startswith("the script is not given Service 'default/deep': nested deeper")


def test_the_first_classifier_has_a_label(fleet: Fleet) -> None:
    """Another that wants it is told who has it, and gets it when that one goes."""
    fleet.register("east")
    fleet.apply(classifier("second", "tier: two"))
    fleet.pump()
    fleet.apply(classifier("first", "tier: one"))
    fleet.pump()

    assert labels(fleet) == {"tier": "two"}
    assert noted(fleet).lacks == {"first tier": "classifier 'second' gives it"}
    fleet.declare.delete([("Classifier", "", "second")])
    fleet.pump()
    assert labels(fleet) == {"tier": "one"}
    assert given(fleet) == {"tier": "first"}
    assert noted(fleet) == Classification(("first",))


def test_what_somebody_has_set_stays(fleet: Fleet) -> None:
    """A classifier takes no label over, until it is taken away."""
    fleet.register("east", tier="mine")
    fleet.apply(classifier("first", "tier: one"))
    fleet.pump()
    assert labels(fleet) == {"tier": "mine"}
    assert noted(fleet).lacks == {"first tier": "somebody has set it, and it stays"}

    fleet.declare.label("fleet/east", {"tier": None})
    fleet.pump()

    assert labels(fleet) == {"tier": "one"}


def test_what_somebody_sets_is_no_classifiers_any_more(fleet: Fleet) -> None:
    """It stays when the classifier goes."""
    fleet.register("east")
    fleet.apply(classifier("first", "tier: one"))
    fleet.pump()
    fleet.declare.label("fleet/east", {"tier": "mine"})
    fleet.pump()
    fleet.declare.delete([("Classifier", "", "first")])
    fleet.pump()

    assert labels(fleet) == {"tier": "mine"}


@pytest.mark.parametrize("selectors", ["", WEB], ids=["of versions", "of resources"])
def test_a_classifier_that_is_deleted_takes_its_labels_along(fleet: Fleet, selectors: str) -> None:
    """At once, and no others; nothing is noted of it any more, and its kinds count no more."""
    fleet.register("east", env="test")
    fleet.apply(classifier(selectors=selectors))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {"env": "test", "accelerator": "nvidia"}

    fleet.declare.delete([("Classifier", "", "gpu")])
    fleet.pump()

    assert labels(fleet) == {"env": "test"}
    assert noted(fleet) == Classification()
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_a_label_that_changes_is_changed(fleet: Fleet) -> None:
    """Of a classifier that gives other labels than before the former ones go at once."""
    fleet.register("east")
    fleet.apply(classifier(label="tier: one"))
    fleet.pump()
    fleet.apply(classifier(label="tier: two"))
    fleet.pump()
    assert labels(fleet) == {"tier": "two"}

    fleet.apply(classifier(label="level: two"))
    fleet.pump()
    assert labels(fleet) == {"level": "two"}


def test_nothing_is_said_of_what_was_not_looked_at(fleet: Fleet) -> None:
    """Of a cluster that does not answer neither an old rule nor a new one is judged anew."""
    east = fleet.register("east")
    fleet.apply(classifier(selectors=WEB))
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    east.fail_with(UnreachableError("cannot reach 'fleet/east'"))
    fleet.apply(classifier(selectors=CACHE))
    fleet.pump()
    later(fleet)

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert noted(fleet).open == ("gpu",)


def test_costs_nothing_where_no_classifier_is(fleet: Fleet) -> None:
    """A sweep asks for no classification, and one that comes late all the same writes nothing."""
    fleet.register("east")
    fleet.pump()
    fleet.stages["sweep"].handle(Resync("fleet/east"))
    assert fleet.queues["confirm"].receive(1, wait=timedelta(0)) == []

    before = Counter(fleet.store.counts)
    fleet.stages["sweep"].handle(UpdateLabels("fleet/east"))
    assert Counter(fleet.store.counts) - before == {"get": 3}


def test_a_cluster_that_is_forgotten_leaves_nothing(fleet: Fleet) -> None:
    """A message about it that comes late says nothing of it, either."""
    fleet.register("east")
    fleet.apply(classifier())
    fleet.pump()
    fleet.declare.deregister("fleet/east")
    fleet.pump()
    fleet.stages["sweep"].handle(UpdateLabels("fleet/east"))

    assert list(fleet.records.classified.all()) == []


class Late:
    """Records of clusters of which one writer is interrupted before his write."""

    def __init__(self, records: Any, meanwhile: Callable[[], None]) -> None:
        self._records = records
        self._meanwhile: Callable[[], None] | None = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def put(self, cluster: Any, *, expect: str | None) -> str:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            meanwhile()
        token: str = self._records.put(cluster, expect=expect)
        return token


def interrupted(fleet: Fleet, meanwhile: Callable[[], None]) -> None:
    """Classify a cluster, and let something happen right before its labels are written."""
    records = fleet.records.clusters
    fleet.records.clusters = Late(records, meanwhile)  # type: ignore[assignment]
    fleet.stages["sweep"].handle(UpdateLabels("fleet/east"))
    fleet.records.clusters = records


def test_what_somebody_sets_while_a_label_is_given_stays(fleet: Fleet) -> None:
    """The label that was about to be written is written over nobody's."""
    fleet.register("east")
    fleet.pump()
    fleet.apply(classifier(label="tier: one"))

    def label() -> None:
        fleet.declare.label("fleet/east", {"tier": "mine"})

    interrupted(fleet, label)
    fleet.pump()

    assert labels(fleet) == {"tier": "mine"}
    assert noted(fleet).lacks == {"gpu tier": "somebody has set it, and it stays"}


def test_what_comes_while_a_label_is_taken_brings_it_back(fleet: Fleet) -> None:
    """Whoever takes it looks again: who found it there meanwhile wrote nothing."""
    fleet.register("east")
    fleet.apply(classifier(selectors=WEB))
    fleet.pump()
    web = fleet.write("east", service("web"))
    fleet.pump()
    fleet.drop("east", web)
    fleet.pump()
    fleet.clock.advance(GRACE)

    def come() -> None:
        fleet.write("east", service("web"))
        for name in ("evaluate", "review"):
            fleet.work(name, fleet.queues[name].receive(10, wait=timedelta(0)))

    interrupted(fleet, come)

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert noted(fleet) == Classification(("gpu",))


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_a_death_at_any_step_is_made_good(tmp_path: Path, steps: int) -> None:
    """Who comes after it has the labels, and what they bring, as they are to be."""
    fate = Fate()
    fleet = Fleet(tmp_path)
    east = fleet.register("east")
    fleet.apply(classifier(label="accelerator: nvidia"), SELECTED)
    sweep = fleet.stages["sweep"]
    for name in ("clusters", "pending", "catalog", "classified", "timers"):
        setattr(fleet.records, name, Mortal(name, getattr(fleet.records, name), fate))
    fate.doom(steps)
    with suppress(Killed):
        sweep.handle(UpdateLabels("fleet/east"))
    fate.revive()
    fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert given(fleet) == {"accelerator": "gpu"}
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["own"]
    fleet.close()
