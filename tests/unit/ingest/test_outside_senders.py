"""Senders from outside a cluster: their rights, refusals, and that no answer gives the reason."""

from __future__ import annotations

import dataclasses
import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.errors import TemporaryError, ThrottledError
from bellhop.ingest import signatures
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request, Response, caller, share_of
from bellhop.ingest.senders import Visitor
from bellhop.rendering.cloud_events import STRUCTURED
from tests.fakes.fleet import Fleet, cloud_event, service
from tests.fakes.hooks import failing
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.outsider import EAST, KEY, OTHER_KEY, PATH, TOKEN, Outsider, hashed, known
from tests.unit.ingest.test_cloud_events import EACH, SOURCE, held

MINUTE = timedelta(minutes=1)
ONE = {"taken": 1, "dropped": 0}


@pytest.fixture
def listening(fleet: Fleet) -> Fleet:
    """Two clusters for which a CI's events count."""
    fleet.register("east", env="production")
    fleet.register("west", env="production")
    fleet.deploy(SOURCE, EACH)
    return fleet


def by(fleet: Fleet, *, signs: bool) -> Outsider:
    """Return the sender, as it is after it was added."""
    known(fleet, signs=signs)
    return Outsider(fleet, key=KEY) if signs else Outsider(fleet, token=TOKEN)


def said(reply: Response) -> str:
    return str(reply.body["error"]["message"])


# Rights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("signs", [False, True], ids=["by a token", "by signatures"])
def test_a_sender_sends_cloud_events(listening: Fleet, signs: bool) -> None:  # noqa: FBT001 - a case
    """Its events count like those of the cluster's own sender."""
    ci = by(listening, signs=signs)

    assert ci.send(cloud_event("web"), cloud_event("db")).body == {"taken": 2, "dropped": 0}
    listening.pump()
    assert set(held(listening)) == {"web", "db"}
    assert listening.records.hearings.get(EAST) is None


@pytest.mark.parametrize("signs", [False, True], ids=["by a token", "by signatures"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            {
                "apiVersion": "bellhop.dev/v1",
                "kind": "Observations",
                "items": [{"object": service("web")}],
            },
            id="objects",
        ),
        pytest.param({"apiVersion": "bellhop.dev/v1", "kind": "Alive"}, id="alive"),
        pytest.param({"apiVersion": "bellhop.dev/v1", "kind": "Missed"}, id="missed"),
        pytest.param(
            {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": []}, id="audit"
        ),
        pytest.param(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": {"uid": "u"},
            },
            id="admission",
        ),
    ],
)
def test_a_sender_sends_nothing_else(listening: Fleet, body: Any, signs: bool) -> None:  # noqa: FBT001 - a case
    """It sends neither objects nor audit logs, and is no heartbeat of the cluster's forwarder."""
    ci = by(listening, signs=signs)
    text = json.dumps(body).encode()
    listening.store.counts.clear()

    reply = ci.post(text, ci.headers(text), "application/json")

    assert (reply.status, "CloudEvents, and nothing else" in said(reply)) == (403, True)
    assert listening.store.counts["put"] == int(signs)
    assert listening.store.counts["delete"] == int(signs)
    assert listening.records.hearings.get(EAST) is None


def test_its_token_counts_only_at_its_own_address(listening: Fleet) -> None:
    """Neither for another cluster, nor under another name, nor as the cluster's own."""
    ci = by(listening, signs=False)
    for path in (
        "/clusters/fleet/west/senders/ci",
        "/clusters/fleet/east/senders/other",
        "/clusters/fleet/east",
        "/clusters/fleet/west",
    ):
        assert dataclasses.replace(ci, path=path).send(cloud_event("web")).status == 401
    assert Outsider(listening, token="east").send(cloud_event("web")).status == 401
    assert listening.tell("east", cloud_event("web"), token=TOKEN).status == 401
    assert ci.send(cloud_event("web")).body == ONE


# Refusals ---------------------------------------------------------------------------------------


def test_every_refusal_says_the_same(listening: Fleet) -> None:
    """A guess shows neither the names of senders, nor how they prove themselves."""
    known(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    ci = Outsider(listening, key=KEY)
    once = ci.headers(body)
    assert ci.post(body, once).status == 200
    early, late = ci.headers(body, ago=-301), ci.headers(body, ago=301)
    other_sender = Outsider(listening, key=OTHER_KEY)
    refusals = [
        ci.post(body, once),
        ci.post(body, early),
        ci.post(body, late),
        ci.post(body, {}),
        ci.post(body, {**ci.headers(body), "webhook-id": "another"}),
        ci.post(body + b" ", ci.headers(body)),
        ci.post(body, {**ci.headers(body), "webhook-signature": "v1,é"}),
        ci.post(body, {**ci.headers(body), "webhook-timestamp": "now"}),
        other_sender.send(cloud_event("web")),
        Outsider(listening, token=KEY).send(cloud_event("web")),
        Outsider(listening, token="nobody").send(cloud_event("web")),
        Outsider(listening, token=hashed(KEY)).send(cloud_event("web")),
    ]
    listening.records.senders.delete(EAST, "ci")
    refusals += [ci.send(cloud_event("web")), Outsider(listening, token=TOKEN).send()]
    known(listening)
    refusals += [ci.send(cloud_event("web")), Outsider(listening, token=KEY).send()]
    listening.declare.deregister(EAST)
    refusals += [ci.send(cloud_event("web")), Outsider(listening, token=TOKEN).send()]

    assert {each.status for each in refusals} == {401}
    assert len({said(each) for each in refusals}) == 1
    assert "'ci' of cluster 'fleet/east'" in said(refusals[0])
    for secret in (KEY, TOKEN, OTHER_KEY):
        assert secret not in said(refusals[0])
        assert secret not in listening.output.getvalue()


def test_unknown_names_are_verified_like_any(listening: Fleet) -> None:
    """A signed request of any name is accepted with its body, and compared with dummy keys."""
    known(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    ci = Outsider(listening, key=KEY)
    for path in (PATH, PATH[:-2] + "nobody", "/clusters/fleet/none/senders/ci"):
        found = caller("POST", path, ci.headers(body))
        assert not isinstance(found, Response)
        visitor = listening.ingest.admit(found)
        assert isinstance(visitor, Visitor)
        assert len(visitor.keys) == 2
    assert isinstance(visitor, Visitor)
    forged = Outsider(listening, key=visitor.keys[0], path=path)

    assert (visitor.share, visitor.sender) == ("senders", None)
    assert forged.send(cloud_event("web")).status == 401


def test_the_dummy_key_authenticates_no_sender(listening: Fleet) -> None:
    """Nor that of a sender by token, whose name is known: who has drawn it may not come in."""
    known(listening)
    body = json.dumps([cloud_event("web")]).encode()
    found = caller("POST", PATH, Outsider(listening, key=KEY).headers(body))
    assert not isinstance(found, Response)
    visitor = listening.ingest.admit(found)
    assert isinstance(visitor, Visitor)

    forged = Outsider(listening, key=visitor.keys[0]).send(cloud_event("web"))

    assert forged.status == 401
    assert (
        listening.ingest._outside._nobody
        != Ingest(
            listening.records,
            listening.publisher,
            listening.settings,
            None,  # type: ignore[arg-type]
        )._outside._nobody
    )


def test_refusals_are_counted_for_known_senders_only(listening: Fleet) -> None:
    """In its own name, once a minute, and not in its cluster's; an unknown name is not counted."""
    known(listening)
    listening.store.counts.clear()
    for _ in range(50):
        assert Outsider(listening, token="x").send().status == 401
        assert Outsider(listening, token="x", path=PATH[:-2] + "nobody").send().status == 401

    share = share_of(EAST, "ci")
    assert [name for name, _ in listening.records.refusals.all()] == [share]
    assert listening.store.counts["put"] == 1
    assert listening.records.refusals.get(EAST) is None


@pytest.mark.parametrize("signs", [False, True], ids=["by a token", "by signatures"])
def test_a_sender_of_an_unknown_cluster_has_no_record(listening: Fleet, signs: bool) -> None:  # noqa: FBT001 - a case
    """As one that an earlier version left behind, which knew of none: nothing is noted of it."""
    ci = by(listening, signs=signs)
    left = value_of(listening.records.senders.get(EAST, "ci"))
    listening.records.senders.put(replace(left, cluster="fleet/none"))
    gone = dataclasses.replace(ci, path=PATH.replace("east", "none"))

    assert (ci.send().status, gone.send().status) == (200, 401)
    assert list(listening.records.refusals.all()) == []


def test_a_request_that_its_signature_does_not_cover_is_refused(listening: Fleet) -> None:
    """Attributes in headers anybody on the way could change; by a token they are taken."""
    ci = by(listening, signs=True)
    event = cloud_event("web")
    body = json.dumps(event.pop("data")).encode()
    attributes = {f"ce-{name}": value for name, value in event.items()}
    refused = ci.post(body, {**ci.headers(body), **attributes}, "application/json")

    assert refused.status == 400
    assert f"send the event as {STRUCTURED}" in said(refused)
    whole = json.dumps(cloud_event("web")).encode()
    assert ci.post(whole, {**ci.headers(whole), **attributes}, STRUCTURED).body == ONE
    ci = by(listening, signs=False)
    assert ci.post(body, {**ci.headers(body), **attributes}, "application/json").status == 200


# Replays ----------------------------------------------------------------------------------------


def test_a_request_is_accepted_once_and_a_new_attempt_again(listening: Fleet) -> None:
    """The same bytes are a replay; a message signed again is its sender's retry."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    first = ci.headers(body)
    assert ci.post(body, first).body == ONE
    assert ci.post(body, first).status == 401
    at = int(first["webhook-timestamp"]) + 60
    listening.clock.advance(MINUTE)
    again = {
        "webhook-id": first["webhook-id"],
        "webhook-timestamp": str(at),
        "webhook-signature": signatures.sign(KEY, first["webhook-id"], at, body),
    }

    assert ci.post(body, again).body == ONE
    assert len(list(listening.records.arrivals._store.query(f"arrival/{EAST}"))) == 1


def test_a_request_refused_for_our_own_clock_is_accepted_later(listening: Fleet) -> None:
    """The answer is neither 2xx nor 410, so that the sender retries."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    head = ci.headers(body)
    with listening.clock.behind(20 * MINUTE):
        assert ci.post(body, head).status == 401

    assert ci.post(body, head).body == ONE


def test_a_request_is_remembered_no_longer_than_it_counts(listening: Fleet) -> None:
    """One of five minutes from now, until it is too old: then its time refuses it."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    ahead = ci.headers(body, ago=-300)
    assert ci.post(body, ahead).status == 200
    for _ in range(10):
        assert ci.post(body, ahead).status == 401
        assert len(list(listening.store.query(f"receipt/{EAST}"))) == 1
        listening.clock.advance(MINUTE)
    listening.clock.advance(MINUTE)

    assert ci.post(body, ahead).status == 401
    assert list(listening.store.query(f"receipt/{EAST}")) == []


def test_a_request_of_which_nothing_was_accepted_may_be_repeated(listening: Fleet) -> None:
    """Its sender got a retryable answer, or an error to correct, and may not sign it again."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    head = ci.headers(body)
    with failing(listening.publisher, "publish", ThrottledError("the queue is full")):
        assert ci.post(body, head).status == 503
    assert ci.post(body, head).body == ONE
    bent = b'[{"specversion": "1.0"}]'
    head = ci.headers(bent)

    assert [ci.post(bent, head).status for _ in range(2)] == [400, 400]


def test_of_one_request_that_comes_to_two_processes_at_once_one_is_taken(listening: Fleet) -> None:
    """Each has looked at it before either has noted it."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    head = ci.headers(body)
    both = threading.Barrier(2)
    receipts = listening.records.receipts
    claim = receipts.claim

    def together(*place: Any) -> bool:
        both.wait(10)
        return claim(*place)

    receipts.claim = together  # type: ignore[method-assign]
    found: list[int] = []

    def send() -> None:
        found.append(ci.post(body, head).status)

    threads = [threading.Thread(target=send) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(found) == [200, 401]


def test_a_replay_before_its_request_is_accepted_once(listening: Fleet) -> None:
    """Before each call of the store the same request comes to another process, and is answered."""
    ci = by(listening, signs=True)
    body = json.dumps([cloud_event("web")]).encode()
    number, met = 0, True
    while met:
        head, replayed = ci.headers(body), []
        with interrupted(
            listening.records,
            number,
            lambda: replayed.append(ci.post(body, head).status),  # noqa: B023 - of this turn
        ) as store:
            statuses = [ci.post(body, head).status, *replayed]
        met = store.met
        if met:
            assert sorted(statuses) == [200, 401], f"before call {number}"
            number += 1

    assert number >= 4


@pytest.mark.parametrize("signs", [False, True], ids=["tokens", "keys"])
def test_a_rotation_during_a_request_refuses_no_sender(listening: Fleet, signs: bool) -> None:  # noqa: FBT001 - a case
    """Before each call of the store the sender's secret becomes the former one."""
    number, met = 0, True
    while met:
        ci = by(listening, signs=signs)
        ci.message = number
        kept = value_of(listening.records.senders.get(EAST, "ci"))
        until = listening.clock.now() + MINUTE
        new = replace(kept, proof=OTHER_KEY, former=kept.proof, former_until=until)
        with interrupted(
            listening.records,
            number,
            lambda: listening.records.senders.put(new),  # noqa: B023
        ) as store:
            assert ci.send(cloud_event("web")).status == 200, f"before call {number}"
        met = store.met
        number += 1

    assert number >= 3


def test_a_store_that_fails_sends_the_sender_away_for_now(listening: Fleet) -> None:
    """Nothing is said of who it is: it comes again."""
    ci = by(listening, signs=False)
    with failing(listening.records.senders, "get", TemporaryError("the disk is full")):
        assert ci.send(cloud_event("web")).status == 503


# Changing secrets -------------------------------------------------------------------------------


@pytest.mark.parametrize("signs", [False, True], ids=["tokens", "keys"])
def test_two_secrets_count_together_for_a_while(listening: Fleet, signs: bool) -> None:  # noqa: FBT001 - a case
    """The former one until its time, to the second, and the present one from the first on."""
    until = listening.clock.now() + 2 * MINUTE
    old, new = (KEY, OTHER_KEY) if signs else (hashed(TOKEN), hashed("new"))
    known(listening, signs=signs, proof=new, former=old, former_until=until)
    former = Outsider(listening, key=KEY) if signs else Outsider(listening, token=TOKEN)
    present = Outsider(listening, key=OTHER_KEY) if signs else Outsider(listening, token="new")
    present.message = 100
    assert (former.send().status, present.send().status) == (200, 200)

    listening.clock.advance(2 * MINUTE - timedelta(seconds=1))
    assert (former.send().status, present.send().status) == (200, 200)
    listening.clock.advance(timedelta(seconds=1))

    assert (former.send().status, present.send().status) == (401, 200)


def test_a_removed_sender_is_refused_from_then_on(listening: Fleet) -> None:
    """Each request reads the record; one that was accepted before may send its body."""
    ci = by(listening, signs=False)
    assert ci.send(cloud_event("web")).status == 200
    listening.records.senders.delete(EAST, "ci")

    assert ci.send(cloud_event("web")).status == 401


# Costs ------------------------------------------------------------------------------------------


def test_a_cluster_s_own_sender_costs_no_more(listening: Fleet) -> None:
    """One read for its gate, however many senders there are beside it; for those one more."""
    for number in range(20):
        listening.records.senders.put(replace(known(listening), name=f"ci-{number}"))
    listening.store.counts.clear()
    assert (
        listening.ingest.respond(
            Request(
                "fleet/east",
                "east",
                b'{"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}',
            )
        ).status
        == 200
    )
    own = listening.store.counts["get"]
    # The ingest policy, and once a minute and process the heartbeat.
    assert own == 2
    listening.store.counts.clear()

    assert Outsider(listening, token=TOKEN).send().status == 200
    assert listening.store.counts == {"get": 2}
    known(listening, signs=True)
    listening.store.counts.clear()
    assert Outsider(listening, key=KEY).send().status == 200
    assert (listening.store.counts["get"], listening.store.counts["put"]) == (2, 1)
    assert value_of(listening.records.senders.get(EAST, "ci")).signs
