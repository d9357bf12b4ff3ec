"""A server without a recent answer is greeted first, with a short timeout, for all that wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bellhop.adapters.kube import transport
from bellhop.adapters.kube.reachability import QUIET_SECONDS, Greeting
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import UnreachableError
from tests.fakes.clock import Hand
from tests.fakes.silent import Silent
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

GET = Request("GET", "/x")
CALL = Call("prod/eu-1", "read ConfigMap 'web/a'")
UNREACHABLE = UnreachableError("it does not answer")


def counted(error: UnreachableError | None = None) -> tuple[list[int], Callable[[], None]]:
    """Return a greeting that counts, and fails if it is to."""
    made: list[int] = []

    def greet() -> None:
        made.append(1)
        if error:
            raise error

    return made, greet


def test_greets_only_after_a_silence() -> None:
    """Who has answered lately is not asked whether it does."""
    hand = Hand()
    greeting, (made, greet) = Greeting(hand), counted()
    for wait in (0.0, QUIET_SECONDS / 2, QUIET_SECONDS / 2, 1.0, QUIET_SECONDS):
        hand.at += wait
        greeting.exchange(greet, lambda: UNREACHABLE)

    assert len(made) == 3


def test_greets_again_after_a_call_that_was_not_answered() -> None:
    """Its last answer before that says nothing any more."""
    greeting, (made, greet) = Greeting(Hand()), counted()
    greeting.exchange(greet, lambda: UNREACHABLE)
    greeting.missed()
    greeting.exchange(greet, lambda: UNREACHABLE)
    greeting.answered()
    greeting.exchange(greet, lambda: UNREACHABLE)

    assert len(made) == 2


def test_one_greeting_that_fails_stands_for_those_that_come_with_it() -> None:
    """And not for those that come later."""
    hand = Hand()
    greeting, (made, greet) = Greeting(hand), counted(UNREACHABLE)
    for wait in (0.0, 0.1, 0.2, 1.0):
        hand.at += wait
        with pytest.raises(UnreachableError):
            greeting.exchange(greet, lambda: UNREACHABLE)

    assert len(made) == 2


@pytest.fixture(params=[False, True], ids=["takes connections", "shakes hands"])
def silent(request: pytest.FixtureRequest) -> Iterator[Silent]:
    """Serve a cluster that never says a word."""
    server = Silent(tls=request.param)
    yield server
    server.close()


@pytest.mark.clocked
def test_many_threads_wait_for_one_greeting(
    silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen threads that call a server which hangs know so together, after one short time."""
    monkeypatch.setattr(transport, "GREETING_SECONDS", 0.5)
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.5)
    sender = Transport("a/b", sanitise(silent.kubeconfig(), reach=LOCAL), reach=LOCAL)
    failed: list[str] = []

    def ask() -> None:
        with pytest.raises(UnreachableError) as caught:
            sender.send(GET, CALL)
        failed.append(str(caught.value))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert time.monotonic() - begun < transport.READ_SECONDS / 2
    assert len(failed) == 16
    assert all("ConfigMap 'web/a'" in each for each in failed)
    assert silent.taken <= 2


def test_a_server_that_answers_may_take_its_time(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The little patience is for the greeting only."""
    monkeypatch.setattr(transport, "GREETING_SECONDS", 0.2)

    def slow(_: object) -> Answer:
        time.sleep(0.6)
        return Answer(body={"kind": "ConfigMap"})

    api.script = [slow]

    assert Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL) == {"kind": "ConfigMap"}
    assert api.greetings == 1
