"""Objects that an API server behind an APIService keeps, by a real aggregator in front of it.

What such servers do with the conditions of an apply is not the same: some refuse them for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.errors import BellhopError, InvalidError, StaleError
from bellhop.ports.kube import Manifest
from tests.contract.real_cluster import EAST
from tests.fakes.aggregated import PARCEL, Aggregated
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import holder, join, profile
from tests.waiting import eventually

Make = Callable[..., Aggregated]
CODES = (400, 404, 409, 422, 500)


@pytest.fixture
def make(kube: KubeClient, tmp_path: Path) -> Iterator[Make]:
    """Start one that refuses the given requests, and register it."""
    running: list[Aggregated] = []

    def started(refuses: str = "", code: int = 500) -> Aggregated:
        server = Aggregated(tmp_path, refuses=refuses, code=code)
        running.append(server.__enter__())
        for path, body in server.registration().items():
            kube._transport.send(Request("POST", path, body=body), Call(EAST, "register it"))
        eventually("_answers(kube)", lambda: _answers(kube))
        server.calls.clear()
        return server

    yield started
    for each in running:
        each.__exit__(None, None, None)


def _answers(kube: KubeClient) -> bool:
    try:
        return kube.get(PARCEL, "default", "none") is None
    except BellhopError:
        return False


def parcel(name: str = "p", to: str = "ours") -> Manifest:
    """Return an object of its kind."""
    head = {"name": name, "namespace": "default"}
    kind = {"apiVersion": PARCEL.api_version, "kind": PARCEL.kind}
    return {**kind, "metadata": head, "spec": to}


def test_one_that_takes_conditions_is_asked_once(make: Make, kube: KubeClient) -> None:
    """As any API server is: a new object costs one request, and so does a changed one."""
    server = make()

    made = kube.apply(parcel(), uid="")
    kube.apply(parcel(to="new"), uid=made["metadata"]["uid"])

    assert server.calls == ["PATCH", "PATCH"]


def test_what_is_new_is_made_where_no_version_is_taken(make: Make, kube: KubeClient) -> None:
    """With one look, and once more without the version, whatever it is refused with."""
    server = make("resourceVersion")
    for code in CODES:
        server.code = code
        server.calls.clear()

        made = kube.apply(parcel(f"p{code}"), uid="")

        assert server.there(f"p{code}") == made
        assert server.calls == ["PATCH", "GET", "PATCH"]


def test_what_others_made_there_is_not_written_over(make: Make, kube: KubeClient) -> None:
    """A look that finds an object is an answer, however the server said it."""
    server = make("resourceVersion")
    before = server.put("p", "courier", "theirs")
    for code in CODES:
        server.code = code
        server.calls.clear()

        with pytest.raises(StaleError):
            kube.apply(parcel(), uid="")

        assert server.there("p") == before
        assert server.calls == ["PATCH", "GET"]


def test_what_is_there_is_changed_where_no_uid_is_taken(make: Make, kube: KubeClient) -> None:
    """Once a look has found just the life that is meant; any other stays as it is."""
    server = make("uid")
    before = server.put("p", "courier", "theirs")
    for code in CODES:
        server.code = code
        for name in ("p", "none"):
            with pytest.raises(StaleError):
                kube.apply(parcel(name), uid="another")
        assert (server.there("p"), server.there("none")) == (before, None)

        before = kube.apply(parcel(to=f"ours {code}"), uid=before["metadata"]["uid"])

        assert before["spec"] == f"ours {code}"


def test_what_it_will_not_have_is_refused_in_its_words(make: Make, kube: KubeClient) -> None:
    """A second try that is refused as well says why."""
    server = make("name", 422)

    with pytest.raises(InvalidError, match="it is not taken"):
        kube.apply(parcel(), uid="")

    assert server.calls == ["PATCH", "GET", "PATCH"]


def test_a_profile_deploys_adopts_and_leaves_objects(
    make: Make,
    fleet: Fleet,
) -> None:
    """New objects are made, others' refused until it is asked for, and left in the end."""
    server = make("resourceVersion", 500)
    server.put("theirs", "courier", "theirs")
    text = (
        "apiVersion: {}\nkind: Parcel\nmetadata: {{name: {}, namespace: default{}}}\nspec: ours\n"
    )
    marks = ", annotations: {bellhop.dev/adopt: 'true'}"
    new, plain, asked = (
        text.format(PARCEL.api_version, *each)
        for each in (("new", ""), ("theirs", ""), ("theirs", marks))
    )

    fleet.apply(join(profile(), holder("own", new, plain)))
    fleet.pump()
    outcome = fleet.records.outcomes.get(EAST, "own")
    assert outcome
    assert "created by field manager 'courier' and not by" in outcome.value.message
    assert (server.there("new") or {})["spec"] == "ours"
    assert (server.there("theirs") or {})["spec"] == "theirs"

    fleet.apply(holder("own", new, asked))
    fleet.pump()
    assert (server.there("theirs") or {})["spec"] == "ours"

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert server.there("new") is None
    assert server.there("theirs")
