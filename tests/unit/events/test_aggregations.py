"""A source with aggregatedSelection: what its script returns of all that matches is the report."""

from __future__ import annotations

import os
import textwrap
from datetime import timedelta
from functools import reduce
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import MissingError
from bellhop.events import aggregator as stages
from bellhop.luabox import Limits
from bellhop.state.match import Selection
from bellhop.state.messages import Aggregate
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.hooks import before_each, before_next
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

CHEAPEST = """
function evaluate()
  local best = nil
  for _, each in ipairs(resources) do
    local price = tonumber(each.metadata.labels.price)
    if best == nil or price < tonumber(best.metadata.labels.price) then best = each end
  end
  if best == nil then return {} end
  best.metadata.labels.seen = tostring(#resources)
  return {resources = {best}, message = best.metadata.name .. " is the cheapest"}
end
"""
NAMES = "{{ range .Resources }}{{ .metadata.name }} {{ end }}"


def aggregating(script: str, *, collect: str = "true", kinds: str = "Service") -> str:
    """Return a source that selects what is labelled, and has a script choose among it."""
    priced = ", selector: {matchExpressions: [{key: price, operator: Exists}]}"
    selecting = source(*kinds.split(), more=priced)
    selecting = selecting.replace("collectResources: true", f"collectResources: {collect}")
    return f"{selecting}  aggregatedSelection: |\n{textwrap.indent(script.strip(), '    ')}\n"


def declared(script: str = CHEAPEST, *, one: str = "false", text: str = NAMES, **how: str) -> str:
    body = config("all" if one == "false" else "{{ .MatchingResource.Name }}", f"all: '{text}'")
    return join(
        aggregating(script, **how), trigger(one=one), holder("made", body, annotations=INSTANTIATE)
    )


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.register("east", env="production")
    return fleet


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters[EAST]


def write(fleet: Fleet, name: str, price: int, **labels: str) -> dict[str, Any]:
    made = service(name)
    made["metadata"]["labels"] = {"price": str(price), **labels}
    return fleet.write("east", made)


def selection(fleet: Fleet) -> Selection:
    kept = fleet.records.selections.get(EAST, "watched")
    assert kept
    return kept.value


def names(fleet: Fleet) -> list[str]:
    return [each.key.name for each in selection(fleet).selected]


def made(east: FakeKube) -> list[str]:
    return [str(each["data"]["all"]) for each in east.objects(CONFIG)]


def test_the_script_returns_the_report(fleet: Fleet, east: FakeKube) -> None:
    """Of two matches the script returns one, changed, and templates see only that one."""
    fleet.apply(declared(text="{{ range .Resources }}{{ .metadata.labels.seen }}{{ end }}"))
    for name, price in (("dear", 9), ("cheap", 2)):
        write(fleet, name, price)
    fleet.pump()

    assert names(fleet) == ["cheap"]
    assert selection(fleet).message == "cheap is the cheapest"
    assert made(east) == ["2"]


def test_one_that_changes_changes_the_choice(fleet: Fleet, east: FakeKube) -> None:
    """With oneForEvent what is chosen no more is withdrawn, and what is chosen now is made."""
    fleet.apply(declared(one="true", text="x"))
    write(fleet, "dear", 9)
    write(fleet, "cheap", 2)
    fleet.pump()
    assert east.names() == ["cheap"]

    write(fleet, "dear", 1)
    fleet.pump()

    assert east.names() == ["dear"]


def test_the_script_runs_for_no_objects(fleet: Fleet, east: FakeKube) -> None:
    """The add-ons of the last object are withdrawn with it."""
    fleet.apply(declared())
    cheap = write(fleet, "cheap", 2)
    fleet.pump()
    assert len(made(east)) == 1

    fleet.drop("east", cheap)
    fleet.pump()

    assert made(east) == []


def test_a_burst_is_aggregated_once(fleet: Fleet) -> None:
    """However many objects change at once: who finds nothing new runs no script."""
    fleet.deploy(declared())
    runs = before_each(fleet.stages["evaluate"]._aggregate, "_given")
    for number in range(50):
        write(fleet, f"s{number}", number + 5)
    fleet.drain("evaluate")

    fleet.pump()

    assert len(runs) == 1
    assert names(fleet) == ["s0"]


def test_a_match_without_aggregation_costs_nothing(fleet: Fleet) -> None:
    """An object that does not match has nothing aggregated, nor one that changes nothing."""
    fleet.apply(declared())
    write(fleet, "cheap", 2)
    fleet.pump()
    runs = before_each(fleet.stages["evaluate"]._aggregate, "handle")

    fleet.write("east", service("other"))
    write(fleet, "cheap", 2)
    fleet.drain("evaluate", "review", "patient")

    assert runs == []


def test_a_resource_may_be_made(fleet: Fleet, east: FakeKube) -> None:
    """A script may return what no cluster has, and templates see it under its name."""
    script = """
    function evaluate()
      local names = {}
      for _, each in ipairs(resources) do table.insert(names, each.metadata.name) end
      return {resources = {{apiVersion = "example.com/v1", kind = "Sum", metadata = {name = "sum"},
        names = table.concat(names, ",")}}}
    end"""
    text = "{{ .MatchingResource.Kind }} {{ .Resource.names }}"
    fleet.apply(declared(script, one="true", text=text))
    write(fleet, "a", 1)
    write(fleet, "b", 1)
    fleet.pump()

    assert made(east) == ["Sum a,b"]
    assert str(selection(fleet).selected[0].key) == "example.com/v1/Sum//sum"


def test_resources_keep_the_order_of_the_script(fleet: Fleet, east: FakeKube) -> None:
    """Templates see them as they were returned, and one whose place changes is news to them."""
    script = """
    function evaluate()
      table.sort(resources, function(a, b)
        return tonumber(a.metadata.labels.price) < tonumber(b.metadata.labels.price) end)
      for _, each in ipairs(resources) do each.metadata.labels = nil end
      return {resources = resources}
    end"""
    fleet.apply(declared(script))
    for name, price in (("a", 3), ("b", 1), ("c", 2)):
        write(fleet, name, price)
    fleet.pump()
    assert made(east) == ["b c a "]

    write(fleet, "a", 0)
    fleet.pump()

    assert made(east) == ["a b c "]


def test_without_collect_resources_only_names_are_shown(fleet: Fleet, east: FakeKube) -> None:
    """The script sees the objects; templates see which they are."""
    text = "{{ range .MatchingResources }}{{ .Name }}{{ end }}"
    fleet.apply(declared(collect="false", text=text))
    write(fleet, "dear", 9)
    write(fleet, "cheap", 2)
    fleet.pump()
    assert made(east) == ["cheap"]

    write(fleet, "dear", 1)
    fleet.pump()

    assert made(east) == ["dear"]
    assert selection(fleet).selected[0].manifest == {}


def test_a_failing_script_leaves_the_report_as_it_was(fleet: Fleet, east: FakeKube) -> None:
    """An error is never an empty answer: it is shown until the script succeeds again."""
    script = """
    function evaluate()
      for _, each in ipairs(resources) do
        if each.metadata.labels.price == "13" then error("unlucky") end
      end
      return {resources = resources}
    end"""
    fleet.apply(declared(script))
    write(fleet, "a", 1)
    fleet.pump()

    write(fleet, "b", 13)
    fleet.pump()

    failing = selection(fleet)
    assert "unlucky" in failing.error
    assert failing.failed_at == fleet.clock.now()
    assert made(east) == ["a "]
    assert any(each.what == "failed" and "unlucky" in each.detail for each in fleet.ledger())

    write(fleet, "b", 12)
    fleet.pump()

    assert (selection(fleet).error, selection(fleet).failed_at) == ("", None)
    assert made(east) == ["a b "]


def test_a_script_that_fails_from_the_start_withdraws_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Add-ons from before the script stay until it has returned something."""
    plain = aggregating("function evaluate() return {} end")
    plain = plain[: plain.index("  aggregatedSelection")]
    fleet.apply(declared(), plain)
    write(fleet, "a", 1)
    fleet.pump()
    assert made(east) == ["a "]

    fleet.deploy(aggregating("function evaluate() error('never') end"))

    assert "never" in selection(fleet).error
    assert made(east) == ["a "]


def test_a_source_without_its_former_aggregation_reports_matches(
    fleet: Fleet, east: FakeKube
) -> None:
    """The selection goes, and with it what only the script had made."""
    fleet.apply(declared())
    write(fleet, "dear", 9)
    write(fleet, "cheap", 2)
    fleet.pump()
    assert made(east) == ["cheap "]

    text = aggregating(CHEAPEST)
    fleet.deploy(text[: text.index("  aggregatedSelection")])

    assert made(east) == ["cheap dear "]
    assert fleet.records.selections.get(EAST, "watched") is None


def test_a_new_script_is_run_though_nothing_else_changed(fleet: Fleet, east: FakeKube) -> None:
    """Applying another script needs no event."""
    fleet.apply(declared())
    write(fleet, "dear", 9)
    write(fleet, "cheap", 2)
    fleet.pump()

    fleet.deploy(aggregating(CHEAPEST.replace("price < tonumber", "price > tonumber")))

    assert made(east) == ["dear "]


def test_a_script_sees_all_objects_or_does_not_run(fleet: Fleet) -> None:
    """Before a resync has listed all objects, missing ones are unknown."""
    fleet.apply(declared())
    write(fleet, "a", 1)
    fleet.drain("evaluate", "patient")
    assert fleet.records.selections.get(EAST, "watched") is None

    fleet.pump()

    assert names(fleet) == ["a"]


def test_a_script_may_answer_that_nothing_is_there(fleet: Fleet, east: FakeKube) -> None:
    """It is asked of a cluster where nothing matches, too, as in Sveltos."""
    script = """
    function evaluate()
      if #resources > 0 then return {} end
      return {resources = {{apiVersion = "v1", kind = "Note", metadata = {name = "nothing"}}}}
    end"""
    fleet.deploy(declared(script))
    assert made(east) == ["nothing "]

    write(fleet, "a", 1)
    fleet.pump()

    assert made(east) == []


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        pytest.param("{{kind = 'X', metadata = {name = 'a'}}}", "no apiVersion", id="no version"),
        pytest.param("{{apiVersion = 'v1', metadata = {name = 'a'}}}", "no kind", id="no kind"),
        pytest.param("{{apiVersion = 'v1', kind = 'X'}}", "no metadata.name", id="no name"),
        pytest.param(
            "{{apiVersion = 'v1', kind = 'X', metadata = {name = 7}}}", "metadata.name", id="number"
        ),
        pytest.param(
            "{{apiVersion = 'v1', kind = 'X', metadata = {name = string.rep('a', 254)}}}",
            "metadata.name of 1 to 253",
            id="long name",
        ),
        pytest.param(
            "{{apiVersion = 'v1', kind = 'X', metadata = {name = 'a', namespace = 'b/c'}}}",
            "'/' in its metadata.namespace",
            id="slash",
        ),
        pytest.param(
            "{{apiVersion = 'a/b/c', kind = 'X', metadata = {name = 'a'}}}",
            "'/' in its apiVersion",
            id="slashes",
        ),
        pytest.param(
            "{{apiVersion = 'v1', kind = 'X', metadata = {name = 'a'}, n = 1},"
            " {apiVersion = 'v1', kind = 'X', metadata = {name = 'a'}, n = 2}}",
            "resources[2] is there twice",
            id="twice",
        ),
        pytest.param("7", "must be a list", id="no list"),
        pytest.param("{'a'}", "must be a table", id="no table"),
    ],
)
def test_a_result_that_is_no_resource_is_an_error(fleet: Fleet, returned: str, said: str) -> None:
    """A report with something nameless in it would be of no use to anybody."""
    fleet.apply(declared(f"function evaluate() return {{resources = {returned}}} end"))
    write(fleet, "a", 1)
    fleet.pump()

    assert said in selection(fleet).error
    assert selection(fleet).error.startswith("watched, aggregatedSelection: ")
    assert not selection(fleet).made


def test_the_same_resource_twice_counts_once(fleet: Fleet) -> None:
    """A script that collects by several roads may meet one object twice."""
    fleet.apply(
        declared("function evaluate() return {resources = {resources[1], resources[1]}} end")
    )
    write(fleet, "a", 1)
    fleet.pump()

    assert names(fleet) == ["a"]


def secret(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"price": "1"}}
    data = {"password": "aHVudGVyMmh1bnRlcjI="}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


PASSWORD = "base64Decode(resources[1].data.password)"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"error({PASSWORD})", id="error"),
        pytest.param(
            "return {resources = {{apiVersion = 'v1', kind = 'X',"
            f" metadata = {{name = {PASSWORD}}}}}}}}}",
            id="name",
        ),
        pytest.param(
            f"resources[1].metadata.name = {PASSWORD} return {{resources = resources}}", id="change"
        ),
        pytest.param(f"return {{resources = resources, message = {PASSWORD}}}", id="message"),
    ],
)
def test_with_a_secret_no_message_of_the_script_is_shown(fleet: Fleet, body: str) -> None:
    """Neither an error, nor a message, nor a name of what is made may quote it."""
    fleet.apply(declared(f"function evaluate() {body} end", kinds="Secret"))
    fleet.write("east", secret("mine"))
    fleet.pump()
    kept = selection(fleet)
    texts = [kept.error, kept.message, *map(str, fleet.ledger()), fleet.output.getvalue()]
    texts += [str(each.key) for each in kept.selected]

    assert "hunter2" not in "".join(texts)
    assert "aHVudGVyMmh1" not in "".join(texts)


def test_secrets_may_be_chosen(fleet: Fleet) -> None:
    """Unchanged they go into the report, sealed like everything else."""
    fleet.apply(declared("function evaluate() return {resources = resources} end", kinds="Secret"))
    fleet.write("east", secret("mine"))
    fleet.pump()

    assert names(fleet) == ["mine"]
    raw = "".join(str(item.value) for item in fleet.store.query(f"selection/{EAST}"))
    assert "aHVudGVyMmh1" not in raw


def test_too_many_objects_for_a_script_are_an_error(fleet: Fleet) -> None:
    """The matches are together larger than a script's limit: the error says how to correct it."""
    stage = stages.Aggregator(
        fleet.records, fleet.catalogs, fleet.publisher, Limits(), most_given=1024**2
    )
    fleet.stages["evaluate"]._aggregate = stage
    fleet.apply(declared())
    for number in range(5):
        write(fleet, f"s{number}", number, **{f"k{n}": "x" * 60 for n in range(3000)})
    fleet.pump()

    assert "5 objects that match are together larger than 1 MiB" in selection(fleet).error


def nested(name: str, levels: int, **labels: str) -> dict[str, Any]:
    """Return a Service whose spec has so many levels, less four around it."""
    made = service(name)
    made["metadata"]["labels"] = labels
    made["spec"]["deep"] = reduce(lambda inner, _: {"a": inner}, range(levels), {})
    return made


def test_an_object_nested_too_deep_is_left_out(fleet: Fleet, east: FakeKube) -> None:
    """The other objects are selected or withdrawn, and it is named."""
    every = "function evaluate() return {resources = resources} end"
    fleet.apply(declared(every, one="true", text="x"))
    old = write(fleet, "old", 1)
    known = write(fleet, "known", 1)
    fleet.pump()

    fleet.write("east", nested("evil", 150, price="2"))
    fleet.write("east", {**nested("known", 150, price="2"), "metadata": known["metadata"]})
    write(fleet, "new", 3)
    fleet.drop("east", old)
    fleet.pump()

    assert sorted(names(fleet)) == ["known", "new"]
    assert sorted(each["metadata"]["name"] for each in east.objects(CONFIG)) == ["known", "new"]
    assert selection(fleet).error == ""
    assert "not given Service 'default/evil' and 1 more objects" in selection(fleet).left_out
    assert [each.message for each in list_failures(fleet.installation())] == [
        selection(fleet).left_out
    ]

    fleet.write("east", nested("evil", 90, price="2"))
    fleet.write("east", nested("known", 90, price="2"))
    fleet.pump()

    assert (sorted(names(fleet)), selection(fleet).left_out) == (["evil", "known", "new"], "")


def test_an_endless_script_is_stopped_and_shown(fleet: Fleet) -> None:
    """It costs its time, and its report says so."""
    fleet.apply(declared("function evaluate() while true do end end"))
    write(fleet, "a", 1)
    fleet.pump()

    assert "took more than" in selection(fleet).error


def test_the_example_joins_two_kinds(fleet: Fleet, east: FakeKube) -> None:
    """A namespace is chosen for a policy that it does not have, and no more once it has one."""
    fleet.apply_example("default-deny")
    labels = {"guarded": "yes"}
    for name in ("team", "other"):
        metadata = {"name": name, "labels": labels}
        fleet.write("east", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    fleet.pump()
    policies = GVK("networking.k8s.io", "v1", "NetworkPolicy")
    assert {each["metadata"]["namespace"] for each in east.objects(policies)} == {"team", "other"}

    version = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    fleet.write("east", {**version, "metadata": {"name": "own", "namespace": "team"}})
    fleet.pump()

    names = {
        each["metadata"]["namespace"]: each["metadata"]["name"] for each in east.objects(policies)
    }
    assert names == {"team": "own", "other": "default-deny"}


# Two at once, and deaths --------------------------------------------------------------------------


def test_of_two_at_once_the_later_state_stays(fleet: Fleet) -> None:
    """A slow worker that read older matches writes nothing over what a quicker one made."""
    fleet.apply(declared())
    write(fleet, "a", 5)
    fleet.pump()

    def meanwhile() -> None:
        write(fleet, "b", 1)
        fleet.drain("evaluate", "patient")

    before_next(fleet.stages["evaluate"]._aggregate, "_put", meanwhile)
    write(fleet, "c", 3)
    fleet.pump()

    assert names(fleet) == ["b"]


def test_a_worker_with_nothing_to_write_is_not_overwritten(fleet: Fleet) -> None:
    """The older state of a slow worker is found older after its write, too."""
    fleet.apply(declared())
    write(fleet, "a", 5)
    fleet.pump()

    def meanwhile() -> None:
        # By the time the slow one writes, everything is as it was.
        write(fleet, "b", 9)
        fleet.drain("evaluate", "patient")

    write(fleet, "b", 1)
    before_next(fleet.stages["evaluate"]._aggregate, "_put", meanwhile)
    fleet.pump()

    assert names(fleet) == ["a"]


@pytest.mark.parametrize("step", ["_put", "_follow_up"])
def test_a_death_in_between_is_corrected(fleet: Fleet, east: FakeKube, step: str) -> None:
    """The redelivered message finds what was not written, or not published."""
    fleet.apply(declared())
    write(fleet, "a", 5)
    fleet.pump()
    deaths = []

    def die() -> None:
        deaths.append(step)
        raise RuntimeError("killed")

    before_next(fleet.stages["evaluate"]._aggregate, step, die)
    write(fleet, "b", 1)
    fleet.pump()
    fleet.wait(timedelta(minutes=5))

    assert deaths == [step]
    assert made(east) == ["b "]


def test_a_message_of_last_week_does_nothing(fleet: Fleet) -> None:
    """The source went since, or the cluster did."""
    for message in (Aggregate("fleet/east", "watched"), Aggregate("fleet/gone", "watched")):
        fleet.publisher.publish([message])
    fleet.pump()

    assert list(fleet.records.selections.heads(EAST)) == []


def lose(fleet: Fleet) -> None:
    """Lose what is selected, of which the head is left."""
    for shard in "0123456789abcdef":
        place = f"payload/selection/{EAST}/{shard}"
        for item in fleet.store.query(place):
            fleet.store.delete(place, item.sort)
    fleet.records.selections._read.clear()
    with pytest.raises(MissingError, match="its payload is lost"):
        fleet.records.selections.get(EAST, "watched")


ALL = "function evaluate() return {resources = resources} end"


@pytest.mark.parametrize("fails", [False, True])
def test_a_lost_selection_is_computed_again(fleet: Fleet, east: FakeKube, *, fails: bool) -> None:
    """The next resync does so; if the script fails then, nothing is withdrawn."""
    fleet.apply(declared(ALL))
    for number in range(6):
        write(fleet, f"s{number}", number, **{f"k{n}": os.urandom(30).hex() for n in range(9)})
    fleet.pump()
    before = made(east)
    lose(fleet)
    if fails:
        fleet.apply(aggregating("function evaluate() error('no') end"))
    fleet.resync()

    assert made(east) == before
    assert len(names(fleet)) == (0 if fails else 6)
    assert selection(fleet).made is not fails


def test_a_cluster_that_is_forgotten_takes_its_selections_along(fleet: Fleet) -> None:
    """Nothing is left of what was selected there."""
    fleet.apply(declared())
    write(fleet, "a", 1)
    fleet.pump()

    fleet.declare.deregister(EAST)
    fleet.pump()

    assert list(fleet.records.selections.heads(EAST)) == []


@pytest.mark.parametrize("number", [5, 50])
def test_an_event_costs_the_same_beside_aggregations(fleet: Fleet, number: int) -> None:
    """To evaluate an object of a source that aggregates costs the same however many match."""
    fleet.deploy(declared())
    for each in range(number):
        write(fleet, f"s{each:03}", each + 5)
    fleet.drain("evaluate")
    fleet.store.counts.clear()
    write(fleet, "s001", 9, v="new")
    fleet.drain("evaluate")

    assert fleet.store.counts["item"] <= 3
    assert sum(fleet.store.counts.values()) <= 20


def test_the_key_of_a_made_resource_reads_back() -> None:
    """Profiles are named by it."""
    key = ObjectKey(GVK("a.b", "v1", "X"), "", "n/a")

    assert ObjectKey.parse(str(key)) == key
