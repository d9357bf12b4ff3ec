"""A source that watches what its own trigger applies, on a real API server with a forwarder."""

from __future__ import annotations

from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.manifests import feeding, join, seed, watching
from tests.flow.conftest import Flow
from tests.waiting import eventually

ONE = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "one")


def test_a_loop_is_named_and_slowed_and_nothing_else_is(flow: Flow) -> None:
    """It turns sixteen times and then waits for minutes, while other events go through.

    It takes seconds: sixteen turns of a loop go through all stages.
    """
    loop = join(watching("watched", "seed"), feeding("grow", "watched", "one", "seed"))
    flow.stand.do("apply", "-f", "-", stdin=loop)
    flow.apply("welcome")
    flow.source.create(seed("seed"))

    def count() -> int:
        found = flow.source.get(ONE)
        return int(found["data"]["count"]) if found else 0

    eventually("it has had its turns", lambda: count() >= 16)
    eventually("it is named", lambda: "trigger 'grow' feeds itself" in flow.failures())
    team = {"name": "team-a", "labels": {"team": "a"}}
    flow.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": team})
    closed = GVK("networking.k8s.io", "v1", "NetworkPolicy")
    eventually("another is served", lambda: flow.source.names(closed, "team-a") == ["closed"])
    # Each minute that this took is a turn.
    assert count() < 20
    eventually("it is told of", lambda: "slowed" in flow.stand.do("show", "events"))
