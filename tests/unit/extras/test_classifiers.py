"""Classifiers: which clusters get their labels, when they lose them, and whose a label is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from typing import Any

import pytest

from bellhop.diagnosis.failures import list_failures
from bellhop.errors import UnreachableError
from bellhop.extras.classifiers.classifier import GRACE
from bellhop.extras.classifiers.records import Classification
from bellhop.state.messages import Resync, UpdateLabels
from tests.fakes import interrupted as interruptions
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.mortal import Fate, Killed, Mortal

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
    kept = require_value(fleet.records.clusters.get(f"fleet/{cluster}"))
    return dict(kept.labels)


def given(fleet: Fleet, cluster: str = "east") -> dict[str, str]:
    kept = require_value(fleet.records.clusters.get(f"fleet/{cluster}"))
    return dict(kept.given)


def noted(fleet: Fleet, cluster: str = "east") -> Classification:
    return fleet.records.classified.get(f"fleet/{cluster}").value


def later(fleet: Fleet) -> None:
    """Let the grace pass."""
    fleet.wait(GRACE + timedelta(seconds=1))


def test_gives_its_labels_to_clusters_of_a_version(fleet: Fleet) -> None:
    """Those of another version get none."""
    fleet.register("east")
    west = fleet.register("west")
    west.kubernetes = "v1.19.3+k3s1"
    fleet.pump()
    fleet.deploy(classifier(versions="{comparison: GreaterThanOrEqualTo, version: 1.20.0}"))

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert labels(fleet, "west") == {}
    assert noted(fleet) == Classification(("gpu",))


def test_follows_a_cluster_that_is_upgraded(fleet: Fleet) -> None:
    """The resync that sees the new version has it classified again."""
    east = fleet.register("east")
    fleet.deploy(classifier(versions="{comparison: GreaterThan, version: '1.20'}"))
    assert labels(fleet) == {}

    east.kubernetes = "v1.21.0"
    fleet.resync()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_asks_for_something_by_each_selector(fleet: Fleet) -> None:
    """One object of two that are asked for is not enough, as in Sveltos."""
    east = fleet.register("east")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    fleet.deploy(classifier(selectors=f"{WEB}, {CACHE}"))
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("cache", "shop"))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_events_change_labels_and_add_ons(fleet: Fleet) -> None:
    """A new object deploys what its cluster's new label selects, without a resync."""
    east = fleet.register("east")
    fleet.deploy(classifier(selectors=WEB), SELECTED)
    assert east.objects(CONFIG) == []

    web = fleet.write("east", service("web"))
    fleet.pump()
    assert east.names() == ["own"]

    fleet.drop("east", web)
    fleet.pump()
    assert labels(fleet) == {"accelerator": "nvidia"}
    later(fleet)
    assert labels(fleet) == {}
    assert east.objects(CONFIG) == []


def test_an_object_created_again_within_the_grace_moves_nothing(fleet: Fleet) -> None:
    """An object that is replaced keeps the label; it goes a grace after the object went again."""
    fleet.register("east")
    fleet.deploy(classifier(selectors=WEB))
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
    fleet.wait(GRACE / 2)
    assert labels(fleet) == {"accelerator": "nvidia"}
    later(fleet)
    assert labels(fleet) == {}


ENOUGH = """function evaluate()
  local hs = {}
  hs.matching = #resources >= 2
  hs.message = #resources .. " of them"
  return hs
end"""


def test_a_script_evaluates_all_resources_together(fleet: Fleet) -> None:
    """It gets the objects of all selectors, and decides for all."""
    fleet.register("east")
    fleet.deploy(classifier(selectors=f"{WEB}, {CACHE}", script=ENOUGH))
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("other"))
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}


def test_a_script_may_require_that_no_object_exists(fleet: Fleet) -> None:
    """It runs over no resources, too, once a resync has listed all objects."""
    fleet.register("east")
    script = "function evaluate()\n  return {matching = #resources == 0}\nend"
    fleet.deploy(classifier(selectors=WEB, script=script))

    assert labels(fleet) == {"accelerator": "nvidia"}


ONE = """function evaluate()
  if #resources > 1 then error('many') end
  return {matching = #resources == 1}
end"""


def test_a_script_that_fails_changes_nothing(fleet: Fleet) -> None:
    """An error is no answer: the label stays, and the failure is shown."""
    fleet.register("east")
    fleet.deploy(classifier(selectors=WEB, script=ONE))
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {"accelerator": "nvidia"}

    fleet.write("east", service("other"))
    fleet.pump()
    later(fleet)

    assert labels(fleet) == {"accelerator": "nvidia"}
    kept = require_value(fleet.records.selections.head("fleet/east", "classifier:gpu"))
    assert "many" in kept.error


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


def test_an_object_nested_too_deep_is_left_out(fleet: Fleet) -> None:
    """A script over all resources evaluates the others, and names it; a selector's is as before."""
    fleet.register("east")
    services = "{group: '', version: v1, kind: Service}"
    fleet.apply(classifier("each", "each: good", selectors=NAMED_GOOD))
    fleet.deploy(classifier("all", "all: good", selectors=services, script=GOOD))
    deep = service("deep")
    deep["spec"]["deep"] = reduce(lambda inner, _: {"a": inner}, range(150), {})
    fleet.write("east", deep)
    fleet.pump()
    assert labels(fleet) == {}

    fleet.write("east", service("good"))
    fleet.resync()
    later(fleet)

    assert labels(fleet) == {"all": "good", "each": "good"}
    [failure] = list_failures(fleet.installation())
    assert (failure.type, failure.about) == ("evaluation", "classifier:all in fleet/east")
    assert failure.message.startswith(
        "the script is not given Service 'default/deep': nested deeper"
    )


def test_the_first_classifier_has_a_label(fleet: Fleet) -> None:
    """Another classifier with the label shows the first, and gets it when that is deleted."""
    fleet.register("east")
    fleet.deploy(classifier("second", "tier: two"))
    fleet.deploy(classifier("first", "tier: one"))

    assert labels(fleet) == {"tier": "two"}
    assert noted(fleet).lacks == {"first tier": "classifier 'second' gives it"}
    fleet.delete("Classifier", "second")
    assert labels(fleet) == {"tier": "one"}
    assert given(fleet) == {"tier": "first"}
    assert noted(fleet) == Classification(("first",))


def test_a_label_of_a_user_stays(fleet: Fleet) -> None:
    """A classifier takes no label over, until it is taken away."""
    fleet.register("east", tier="mine")
    fleet.deploy(classifier("first", "tier: one"))
    assert labels(fleet) == {"tier": "mine"}
    assert noted(fleet).lacks == {"first tier": "somebody has set it, and it stays"}

    fleet.declare.label("fleet/east", {"tier": None})
    fleet.pump()

    assert labels(fleet) == {"tier": "one"}


def test_a_label_that_a_user_sets_is_no_classifiers_any_more(fleet: Fleet) -> None:
    """It stays when the classifier goes."""
    fleet.register("east")
    fleet.deploy(classifier("first", "tier: one"))
    fleet.declare.label("fleet/east", {"tier": "mine"})
    fleet.pump()
    fleet.delete("Classifier", "first")

    assert labels(fleet) == {"tier": "mine"}


@pytest.mark.parametrize("selectors", ["", WEB], ids=["of versions", "of resources"])
def test_a_classifier_that_is_deleted_takes_its_labels_along(fleet: Fleet, selectors: str) -> None:
    """At once, and no others; nothing is noted of it any more, and its kinds count no more."""
    fleet.register("east", env="test")
    fleet.deploy(classifier(selectors=selectors))
    fleet.write("east", service("web"))
    fleet.pump()
    assert labels(fleet) == {"env": "test", "accelerator": "nvidia"}

    fleet.delete("Classifier", "gpu")

    assert labels(fleet) == {"env": "test"}
    assert noted(fleet) == Classification()
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_a_label_that_changes_is_changed(fleet: Fleet) -> None:
    """Of a classifier that gives other labels than before the former ones go at once."""
    fleet.register("east")
    fleet.deploy(classifier(label="tier: one"))
    fleet.deploy(classifier(label="tier: two"))
    assert labels(fleet) == {"tier": "two"}

    fleet.deploy(classifier(label="level: two"))
    assert labels(fleet) == {"level": "two"}


def test_a_cluster_that_was_not_listed_keeps_its_labels(fleet: Fleet) -> None:
    """If a cluster does not answer, neither an old rule nor a new one is evaluated."""
    east = fleet.register("east")
    fleet.deploy(classifier(selectors=WEB))
    fleet.write("east", service("web"))
    fleet.pump()
    east.fail_with(UnreachableError("cannot reach 'fleet/east'"))
    fleet.deploy(classifier(selectors=CACHE))
    later(fleet)

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert noted(fleet).open == ("gpu",)


def test_costs_nothing_without_a_classifier(fleet: Fleet) -> None:
    """A resync requests no classification, and a late message writes nothing."""
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
    fleet.deploy(classifier())
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


def test_a_label_that_a_user_sets_meanwhile_stays(fleet: Fleet) -> None:
    """The label that was about to be written is written over no other."""
    fleet.register("east")
    fleet.pump()
    fleet.apply(classifier(label="tier: one"))

    def label() -> None:
        fleet.declare.label("fleet/east", {"tier": "mine"})

    interrupted(fleet, label)
    fleet.pump()

    assert labels(fleet) == {"tier": "mine"}
    assert noted(fleet).lacks == {"gpu tier": "somebody has set it, and it stays"}


@pytest.mark.parametrize("number", range(3))
def test_a_label_that_a_user_removes_meanwhile_comes_back_with_its_add_ons(
    fleet: Fleet, number: int
) -> None:
    """Another worker has removed them, whatever the classifier had read by then."""
    east = fleet.register("east")
    fleet.deploy(classifier(), SELECTED)

    def remove() -> None:
        other = rig.process(fleet)
        other.declare.label("fleet/east", {"accelerator": None})
        for name in ("deploy", "apply"):
            other.work(name, other.queues[name].receive(10, wait=timedelta(0)))
        assert east.objects(CONFIG) == []

    with interruptions.interrupted(fleet.records, number, remove) as found:
        fleet.stages["sweep"].handle(UpdateLabels("fleet/east"))
    assert found.met
    fleet.pump()

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert east.names() == ["own"]


def test_an_object_created_while_a_label_is_removed_restores_it(fleet: Fleet) -> None:
    """The worker that removes it reads again: one that found it there wrote nothing."""
    fleet.register("east")
    fleet.deploy(classifier(selectors=WEB))
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
def test_a_death_at_any_step_is_corrected(open_fleet: OpenFleet, steps: int) -> None:
    """The next worker gives the labels, and deploys what they select."""
    fate = Fate()
    fleet = open_fleet()
    east = fleet.register("east")
    fleet.apply(classifier(label="accelerator: nvidia"), SELECTED)
    stage = fleet.stages["sweep"]
    for name in ("clusters", "pending", "catalog", "classified", "timers"):
        setattr(fleet.records, name, Mortal(name, getattr(fleet.records, name), fate))
    fate.doom(steps)
    with suppress(Killed):
        stage.handle(UpdateLabels("fleet/east"))
    fate.revive()
    fleet.wait(timedelta(minutes=5))

    assert labels(fleet) == {"accelerator": "nvidia"}
    assert given(fleet) == {"accelerator": "gpu"}
    assert east.names() == ["own"]
