"""Who is told that a cluster is not well, and when; what he is told goes to a real chat."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.notices import Sender
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.engine.liveness import PAUSE
from bellhop.errors import DeniedError
from bellhop.fleet.failures import failures
from bellhop.fleet.noticing import Noticing
from bellhop.logs import Log
from bellhop.messages import Examine, Sweep
from bellhop.model.condition import Condition
from bellhop.model.reach import HERE
from bellhop.stages.inbox import Inbox
from tests.fakes.chat import Chat, chat
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CHECK = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {name: production}
spec:
  clusterSelector: {matchLabels: {env: production}}
  livenessChecks: [{name: deployment, type: Addons}]
  notifications:
  - name: slack
    type: Slack
    notificationRef: {apiVersion: v1, kind: Secret, namespace: default, name: slack}
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: slack, namespace: default}
stringData: {SLACK_TOKEN: xoxb-hidden, SLACK_CHANNEL_ID: C1}
"""
OWN = join(profile(), holder("own", config("own")))


@pytest.fixture
def here() -> Iterator[Chat]:
    with chat() as found:
        yield found


@pytest.fixture
def fleet(tmp_path: Path, here: Chat) -> Iterator[Fleet]:
    one = Fleet(tmp_path)
    _notice(one, here)
    yield one
    one.close()


def _notice(fleet: Fleet, here: Chat) -> None:
    """Have a fleet tell a chat, as the compositions have it tell the world."""
    send = Sender(HERE, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS}).send
    log = Log(fleet.output)
    stage = Noticing(fleet.installation(), fleet.stages["sweep"], log, send=send)
    fleet.stages["sweep"] = stage
    for name in ("confirm", "sweep", "probe"):
        fleet.inboxes[name] = Inbox(name, stage, fleet.settings, log)


def deny(kube: FakeKube) -> None:
    kube.fail_with(DeniedError("may not apply"), "apply")


def swept(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Sweep("fleet/east")])
    fleet.pump()


def found(fleet: Fleet) -> Condition:
    return fleet.records.conditions.of("fleet/east")["production"].value


def unwell(fleet: Fleet) -> FakeKube:
    """Return a cluster of which somebody was told that it is not well."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(CHECK, SECRET, OWN)
    fleet.pump()
    swept(fleet)
    return east


def test_tells_once_that_a_cluster_is_not_well_and_once_that_it_is(
    fleet: Fleet, here: Chat
) -> None:
    """With the profile and the reason, and without a word of the Secret."""
    east = unwell(fleet)
    [text] = here.texts
    assert text.startswith("Cluster fleet/east is not well (production)\nClusterProfile/own: ")
    assert "may not apply" in text
    swept(fleet)
    assert len(here.texts) == 1

    east.fail_with(None)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    swept(fleet)
    swept(fleet)
    assert [each.partition("\n")[0] for each in here.texts[1:]] == [
        "Cluster fleet/east is well again (production)"
    ]
    assert "hidden" not in fleet.output.getvalue()


def test_tells_nothing_of_a_cluster_that_was_always_well(fleet: Fleet, here: Chat) -> None:
    """Nor of one that the check does not select."""
    fleet.register("east", env="production")
    west = fleet.register("west", env="test")
    deny(west)
    fleet.apply(CHECK, SECRET, OWN)
    fleet.pump()
    swept(fleet)

    assert here.texts == []
    assert found(fleet).healthy
    assert fleet.records.conditions.of("fleet/west") == {}


def test_tries_again_with_pauses_and_says_so(fleet: Fleet, here: Chat) -> None:
    """A notice that fails is told by `show failures`, and is sent when it can be."""
    here.status = 503
    unwell(fleet)
    told = [each for each in failures(fleet.installation()) if each.what == "notice"]
    assert [each.which for each in told] == ["slack of production about fleet/east"]
    assert "it answers 503" in told[0].sentence
    assert len(here.taken) >= 1

    here.status = 200
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert found(fleet).notices[0].told is False
    assert [each for each in failures(fleet.installation()) if each.what == "notice"] == []


def test_a_message_that_comes_twice_tells_once(fleet: Fleet, here: Chat) -> None:
    """Whatever became of the first: what is being sent is claimed."""
    here.status = 503
    unwell(fleet)
    before = len(here.taken)
    fleet.stages["sweep"].handle(Examine("fleet/east"))
    fleet.stages["sweep"].handle(Examine("fleet/east"))

    assert len(here.taken) == before


def test_a_cluster_that_changes_all_the_time_is_told_of_once_a_minute(
    fleet: Fleet, here: Chat
) -> None:
    """What was so in between is not told; what is so in the end is."""
    east = unwell(fleet)
    fleet.clock.advance(PAUSE)
    for _ in range(3):
        for error in (None, DeniedError("may not apply")):
            east.fail_with(error, "apply")
            fleet.apply(holder("own", config("own", f"n: '{len(here.taken)}{error}{_}'")))
            fleet.pump()
            fleet.stages["sweep"].handle(Examine("fleet/east"))
    assert len(here.texts) == 2
    fleet.clock.advance(PAUSE)
    fleet.pump()

    assert "is not well" in here.texts[-1]
    assert len(here.texts) == 3


def test_who_dies_before_it_is_sent_has_it_sent_later(fleet: Fleet, here: Chat) -> None:
    """What is owed is on record, and when its claim ends somebody sends it."""
    sent: list[str] = []

    def dies(*told: object) -> None:
        sent.append(str(told[0]))
        raise KeyboardInterrupt

    stage = fleet.stages["sweep"]
    assert isinstance(stage, Noticing)
    send, stage._send = stage._send, dies
    fleet.register("east", env="production")
    deny(fleet.access.clusters["fleet/east"])
    fleet.apply(SECRET, OWN)
    fleet.pump()
    fleet.apply(CHECK)
    with pytest.raises(KeyboardInterrupt):
        stage.handle(Examine("fleet/east"))
    stage._send = send
    assert sent == ["Slack"]
    assert here.texts == []

    fleet.clock.advance(PAUSE)
    fleet.pump()
    assert len(here.texts) == 1


def test_a_check_that_goes_leaves_nothing(fleet: Fleet, here: Chat) -> None:
    """One that comes back tells anew."""
    unwell(fleet)
    fleet.declare.delete([("ClusterHealthCheck", "", "production")])
    fleet.pump()
    swept(fleet)
    assert fleet.records.conditions.of("fleet/east") == {}

    fleet.apply(CHECK)
    fleet.pump()
    assert len(here.texts) == 2


def test_says_which_secret_is_missing(fleet: Fleet, here: Chat) -> None:
    """And sends when it is there."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(CHECK, OWN)
    fleet.pump()
    swept(fleet)
    assert "there is no Secret 'default/slack', which it names; apply it" in (
        found(fleet).notices[0].error
    )

    fleet.apply(SECRET)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert len(here.texts) == 1


def test_two_at_once_tell_once(fleet: Fleet, here: Chat) -> None:
    """Who comes while another sends finds it claimed."""
    stage = fleet.stages["sweep"]
    assert isinstance(stage, Noticing)
    send = stage._send

    def slow(*told: Any) -> None:
        stage.handle(Examine("fleet/east"))
        send(*told)

    stage._send = slow
    unwell(fleet)

    assert len(here.texts) == 1
    assert found(fleet).notices[0].told is False
