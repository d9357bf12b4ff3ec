"""The cost of evaluation: `python -m tests.benchmarks.evaluate SOURCES OBJECTS BURST`.

SOURCES of one kind by Lua, as many by CEL and by labels; OBJECTS, of which ten or all match one
trigger for all; and a BURST of changes of them at once, with how often they were rendered. The
floors are bare lupa and CEL's bare library, and ten objects that match where there are no others.
As peers a Lua state is made for each object, bare and with the box, which reads its script. It
takes `ROUNDS LARGEST` as well: a trigger for each of LARGEST objects that match, of a tenth and of
a thousandth, one of which changes. It answers 1 where the box of CEL costs more than it may beside
its library.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bellhop.api.kinds import EventSource, of
from bellhop.celbox import Rule
from bellhop.core.gvk import ObjectKey
from bellhop.events.rules_match import Candidate, evaluate_rules
from bellhop.luabox import Limits, Script, Subject, evaluate
from bellhop.luabox.convert import Given
from bellhop.luabox.state import State
from bellhop.rendering.observation import observe
from bellhop.state.match import Match
from bellhop.state.messages import Evaluate
from tests.benchmarks.figures import Rounds, in_turns, run, spread, table
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger

HERE = "fleet/east"
SMALLEST = (2, 20, 10, 1, 20)
_CHANGED = 10
"""Objects that change in turn."""

WORKERS = ("evaluate", "evaluate", "deploy", "deploy", "apply")
SILENCE = 2.0
"""Seconds without a message after which all that follows from a burst is done."""

SCRIPT = """function evaluate()
  local hs = {matching = false}
  for _, port in ipairs(obj.spec.ports or {}) do
    if port.port == 8443 then hs.matching = true end
  end
  return hs
end
"""
RULE = (
    "resource.metadata.namespace == 'default' && 'ring' in resource.metadata.labels"
    " && resource.spec.ports.exists(p, p.port == 8443)"
)
MOST = 1.3
"""How many times its library's time a rule may take in its box."""

VERSION = "v: '{{ .Resource.metadata.labels.v }}'"
LIST = "all: '{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}'"


def service(name: str, v: str = "0", ring: str = "no") -> dict[str, Any]:
    """Return a Service as an API server has it."""
    labels = {"app": name, "tier": "front", "env": "prod", "v": v, "ring": ring}
    ports = [{"name": p, "port": n, "targetPort": n + 8000, "protocol": "TCP"} for p, n in PORTS]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": ports},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}},
    }


class Clock(FakeClock):
    """The machine's clock once it ticks: until then nothing is throttled."""

    ticks = False

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC) if self.ticks else super().now()


PORTS = (("http", 80), ("https", 443))


def sources(count: int, by: str) -> list[EventSource]:
    """Return sources of Services: by a script each, by a rule, or by a label."""
    found = []
    for number in range(count):
        asked = {"group": "", "version": "v1", "kind": "Service"}
        label = {"key": "ring", "operation": "Equal", "value": str(number)}
        more: dict[str, Any] = {
            "lua": {"evaluate": f"{SCRIPT}-- {number}"},
            "cel": {"evaluateCEL": [{"name": "rule", "rule": f"{RULE} // {number}"}]},
            "labels": {"labelFilters": [label]},
        }[by]
        declared = {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventSource",
            "metadata": {"name": f"s{number}"},
            "spec": {"resourceSelectors": [asked | more]},
        }
        kind = of(declared)
        assert isinstance(kind, EventSource)
        found.append(kind)
    return found


def bare() -> Callable[[], Any]:
    """Return a function that evaluates one object with bare lupa: no sandbox, no limit."""
    from lupa import lua51  # noqa: PLC0415 - so that importing this module loads no Lua

    runtime = lua51.LuaRuntime(register_eval=False)
    runtime.execute(SCRIPT)
    names, manifest = runtime.globals(), service("web")

    def once() -> Any:
        names.obj = runtime.table_from(manifest, recursive=True)
        return names.evaluate().matching

    return once


def restart() -> Callable[[], Any]:
    """Return a function that evaluates one object in a Lua state of its own, reading the script."""
    from lupa import lua51  # noqa: PLC0415 - so that importing this module loads no Lua

    manifest = service("web")

    def once() -> Any:
        runtime = lua51.LuaRuntime(register_eval=False)
        runtime.execute(SCRIPT)
        names = runtime.globals()
        names.obj = runtime.table_from(manifest, recursive=True)
        return names.evaluate().matching

    return once


def reloaded_script() -> Callable[[], Any]:
    """Return a function that evaluates one object in the shared sandbox, re-reading the script."""
    manifest, limits = service("web"), Limits()
    return lambda: evaluate(Script(SCRIPT, limits=limits), Subject(manifest))


def new_sandbox() -> Callable[[], Any]:
    """Return a function that evaluates one object in a new Lua state, with sandbox and script."""
    manifest, limits = service("web"), Limits()

    def once() -> Any:
        state = State()
        state.compile(1, SCRIPT)
        given = Given({"obj": manifest}, [manifest], depth=limits.depth, name="script")
        return state.call(1, "evaluate", given, limits)

    return once


def bare_cel() -> Callable[[], Any]:
    """Return a function that evaluates one object with CEL's bare library, as a careful caller."""
    from cel_expr_python import cel  # noqa: PLC0415 - so that importing this module loads no CEL

    rule = cel.NewEnv(variables={"resource": cel.Type.DYN}).compile(RULE)
    manifest = service("web")

    def once() -> Any:
        value = rule.eval(data={"resource": manifest})
        return value.type() == cel.Type.BOOL and value.value()

    return once


def boxed_cel() -> Callable[[], Any]:
    """Return a function that evaluates one object by the same rule in its sandbox."""
    rule, manifest = Rule(RULE), service("web")
    return lambda: rule.holds(manifest)


def evaluation(found: list[EventSource]) -> Callable[[], Any]:
    """Return a function that evaluates one object by sources."""
    manifest, limits = service("web"), Limits()

    def once() -> None:
        candidate = Candidate(manifest)
        for each in found:
            evaluate_rules(each, candidate, limits)

    return once


def block(act: Callable[[], Any], times: int) -> Callable[[], list[float]]:
    """Return what measures the µs of something, some times a block, after a first use."""

    def measure() -> list[float]:
        gc.collect()
        act()
        begun = time.perf_counter()
        for _ in range(times):
            act()
        return [(time.perf_counter() - begun) / times * 1e6]

    return measure


def beside(head: str, measured: Rounds, floor: str, unit: str) -> None:
    """Print the median of each, and how many times the floor's of its round."""
    rows = {}
    for name, rounds in measured.items():
        ratios = [each / under for [each], [under] in zip(rounds, measured[floor], strict=True)]
        rows[name] = [spread([each for [each] in rounds]), spread(ratios, 2)]
    table(head, rows, unit, "ratio")


# A trigger for all ----------------------------------------------------------------------------


@contextmanager
def gathering(folder: Path, objects: int, matching: int, *, each: bool = False) -> Iterator[Fleet]:
    """Open a fleet of one cluster, in which some objects match: a trigger for all, or `each`."""
    folder.mkdir()
    fleet = Fleet(folder, clock=Clock())
    fleet.register("east", env="production")
    watched = source(more=", selector: {matchLabels: {ring: 'yes'}}")
    text = config(FOR_EACH, VERSION) if each else config("all", LIST)
    made = holder("made", text, annotations=INSTANTIATE)
    fleet.apply(join(watched, trigger(one=str(each).lower()), made))
    fleet.pump()
    now = fleet.clock.now()
    for number in range(objects):
        manifest = service(f"s-{number}", ring="yes" if number < matching else "no")
        manifest["metadata"]["resourceVersion"] = "1"
        seen = observe(HERE, manifest, now)
        fleet.records.observations.put(seen)
        if number < matching:
            digest = Candidate(manifest).digest
            match = Match(HERE, "watched", seen.key, True, digest, now, told=True)  # noqa: FBT003
            fleet.records.trails.name(fleet.records.trails.get(HERE, seen.key), ["watched"])
            fleet.records.matches.put(match)
    try:
        yield fleet
    finally:
        fleet.close()


def change(fleet: Fleet, number: int, v: str) -> None:
    """Have an object that matches change, as far as its observation and its message."""
    manifest = service(f"s-{number}", v, "yes")
    manifest["metadata"]["resourceVersion"] = str(int(v) + 1)
    now = fleet.clock.now()
    fleet.records.observations.put(observe(HERE, manifest, now))
    key = str(ObjectKey.of(manifest))
    fleet.publisher.publish([Evaluate(HERE, key, event_at=now.isoformat())])


def event(fleet: Fleet) -> Callable[[], list[float]]:
    """Return what measures the ms from a change to the end of all that follows."""
    turns = iter(range(1, 1_000_000))

    def measure() -> list[float]:
        gc.collect()
        turn = next(turns)
        begun = time.perf_counter()
        change(fleet, turn % _CHANGED, str(turn))
        fleet.pump()
        return [(time.perf_counter() - begun) * 1000]

    for _ in range(_CHANGED):
        measure()
    return measure


def growing(folder: Path, largest: int, rounds: int) -> None:
    """Print what a change of one object costs among ever more that match, and what is read."""
    sizes = [max(_CHANGED, largest // each) for each in (1000, 10, 1)]
    with ExitStack() as end:
        fleets = {
            f"1 of {size}": end.enter_context(gathering(folder / str(size), size, size, each=True))
            for size in dict.fromkeys(sizes)
        }
        events = {name: event(fleet) for name, fleet in fleets.items()}
        took = in_turns(rounds, **events)
        beside("one of those that match changes, for each", took, f"1 of {sizes[0]}", "ms")
        read = {}
        for name, fleet in fleets.items():
            fleet.store.counts.clear()
            events[name]()
            counts = fleet.store.counts
            read[name] = [str(counts["get"]), str(counts["query"]), str(counts["item"])]
        table("what that reads", read, "reads", "queries", "rows of queries")


def burst(fleet: Fleet, size: int, v: str) -> tuple[float, int]:
    """Return the seconds that many changes at once take, and how often they were rendered."""
    stage = fleet.instantiation
    fill, renders = stage._fill, []
    done = threading.Event()
    last = [time.perf_counter()]

    def counted(*args: Any) -> Any:
        renders.append(args)
        return fill(*args)

    def work(name: str) -> None:
        while not done.is_set():
            deliveries = fleet.queues[name].receive(50, wait=timedelta(milliseconds=100))
            fleet.work(name, deliveries)
            if deliveries:
                last[0] = time.perf_counter()

    for number in range(size):
        change(fleet, number, v)
    stage._fill = counted
    threads = [threading.Thread(target=work, args=(name,)) for name in WORKERS]
    begun = last[0] = time.perf_counter()
    for thread in threads:
        thread.start()
    while time.perf_counter() - last[0] < SILENCE:
        time.sleep(0.05)
    done.set()
    for thread in threads:
        thread.join()
    stage._fill = fill
    return last[0] - begun, len(renders)


def main(
    many: int = 1000, objects: int = 5000, size: int = 100, rounds: int = 7, largest: int = 100_000
) -> int:
    """Print what each case takes; answer 1 where CEL misses its aim."""
    lua, labels, cel = (sources(many, by) for by in ("lua", "labels", "cel"))
    evaluated = in_turns(
        rounds,
        **{
            "lupa alone": block(bare(), 500),
            "lupa, a state for each": block(restart(), 100),
            "a box for each": block(new_sandbox(), 5),
            "1 source by Lua": block(evaluation(lua[:1]), 500),
        },
    )
    beside("an object judged", evaluated, "lupa alone", "µs")
    # After those, as Lua's collector looks through each script that is loaded again and again.
    tenth = max(1, many // 10)
    counted = in_turns(
        rounds,
        **{
            "the script read for each": block(reloaded_script(), 100),
            f"1 of {many} by Lua": block(evaluation(lua[:1]), 500),
            f"{tenth} of {many} by Lua": block(evaluation(lua[:tenth]), 30),
            f"{many} by Lua": block(evaluation(lua), 3),
            f"{many} by labels": block(evaluation(labels), 10),
        },
    )
    beside("an object judged by many", counted, f"1 of {many} by Lua", "µs")
    ruled = in_turns(
        rounds,
        **{
            "CEL's library alone": block(bare_cel(), 500),
            "the rule in its box": block(boxed_cel(), 500),
            "1 source by CEL": block(evaluation(cel[:1]), 500),
            f"{many} by CEL": block(evaluation(cel), 3),
        },
    )
    beside("an object judged", ruled, "CEL's library alone", "µs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growing(folder, largest, rounds)
        with (
            gathering(folder / "few", 10, 10) as few,
            gathering(folder / "among", objects, 10) as among,
            gathering(folder / "all", objects, objects) as whole,
        ):
            gathered = in_turns(
                rounds,
                **{
                    "10 objects": event(few),
                    f"10 of {objects}": event(among),
                    f"{objects} of {objects}": event(whole),
                },
            )
            beside("one of those that match changes", gathered, "10 objects", "ms")
            whole.clock.ticks = True  # type: ignore[attr-defined]
            done = [burst(whole, size, str(1000 + turn)) for turn in range(rounds)]
    row = [spread([took for took, _ in done]), spread([count for _, count in done], 0)]
    table("many of them change at once", {f"{size} of {objects}": row}, "s", "rendered")
    pairs = zip(ruled["the rule in its box"], ruled["CEL's library alone"], strict=True)
    return int(statistics.median(mine / floor for [mine], [floor] in pairs) > MOST)


if __name__ == "__main__":
    run(main)
