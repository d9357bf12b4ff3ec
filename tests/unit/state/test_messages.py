"""What stages tell each other, as it crosses a queue."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.errors import InvalidError
from bellhop.ports.queue import GROUP_LIMIT, Message
from bellhop.rendering.cloud_events import CloudEvent
from bellhop.state import messages
from bellhop.state.envelope import Envelope, group_name
from bellhop.state.messages import (
    Aggregate,
    Apply,
    CheckDeletionGuard,
    Evaluate,
    Instantiate,
    Publisher,
    PurgeCluster,
    ReadBack,
    RefreshTokenKeys,
    Resolve,
    Resync,
    ReviewAccess,
    ScanDrift,
    WriteStatus,
)

EVENT = str(CloudEvent({"source": "ci", "subject": "web"}).key("builds"))

EVERY = [
    Evaluate("fleet/east", "/v1/Service/default/web", "trace", "2026-01-01T00:00:00+00:00"),
    Evaluate("fleet/east", "/v1/Service/default/web", source="scripted"),
    Aggregate("fleet/east", "choosing", "trace", "2026-01-01T00:00:00+00:00"),
    CheckDeletionGuard("fleet/east", "services"),
    Instantiate("made", "fleet/east"),
    Instantiate("made", "fleet/east", "/v1/Service/default/web", "trace"),
    Evaluate("fleet/east", EVENT),
    Instantiate("made", "fleet/east", EVENT),
    Resolve("own"),
    Apply("made", "fleet/east", "made-1", "fleet/west", contested="/v1/ConfigMap/default/x"),
    Resync("fleet/east", full=True),
    Resync("fleet/east", walk="w"),
    ScanDrift("fleet/east", kind="/Service", after="token", last="default/web"),
    ReadBack("fleet/east", "/v1/Service/default/web", "uid", 7),
    RefreshTokenKeys("fleet/east"),
    ReviewAccess("fleet/east", "team/ann", "v1/Service", "default", "/v1/Service/default/web"),
    PurgeCluster("fleet/east"),
    WriteStatus("EventTrigger", "", "made"),
]


class Kept:
    """A queue that shows what it was given."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def publish(self, messages: list[Message]) -> None:
        self.messages += messages


@pytest.mark.parametrize("message", EVERY, ids=lambda each: each.do)
def test_comes_back_as_it_was_sent(message: Envelope) -> None:
    """What is read from a body is the message that made it."""
    assert messages.read(message.message().body) == message


def test_the_time_of_an_event_keeps_the_key_of_older_versions() -> None:
    """A worker of the version before reads it while both run."""
    body = {"do": "evaluate", "cluster": "a/b", "object": "x", "rang": "now"}
    assert Evaluate("a/b", "x", event_at="now").message().body == body


def test_passes_over_what_a_later_version_adds() -> None:
    """A field nobody here knows does no harm while versions change."""
    assert messages.read({"do": "tidy", "cluster": "a/b", "colour": "red"}) == PurgeCluster("a/b")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param({}, "cannot do 'None': there is no such message", id="empty"),
        pytest.param({"do": "dance"}, "cannot do 'dance'", id="unknown"),
        pytest.param({"do": "tidy"}, "missing required field `cluster`", id="not whole"),
        pytest.param(
            {"do": "tidy", "cluster": 7},
            r"Expected `str`.*\.cluster`",
            id="of another type",
        ),
        pytest.param(
            {"do": "sweep", "cluster": "a/b", "full": "yes"},
            r"Expected `bool`.*\.full`",
            id="no flag",
        ),
    ],
)
def test_refuses_what_nobody_sends(body: dict[str, object], sentence: str) -> None:
    """A body that is no message is refused in a sentence."""
    with pytest.raises(InvalidError, match=sentence):
        messages.read(body)


def test_asks_for_the_same_work_whatever_event_it_comes_from() -> None:
    """Trace and ring do not tell two messages apart; everything else does."""
    first, second = (Evaluate("a/b", "x", trace, "now") for trace in ("1", "2"))

    assert first.work == second.work
    assert first.work != Evaluate("a/b", "y", "1").work
    assert Apply("t", "a/b", "p", "a/c").work != Apply("t", "a/b", "p", "a/c", contested="k").work


def test_group_names_are_short_plain_and_distinct() -> None:
    """Whatever the objects are called, a group's name is what every provider takes."""
    long = "infrastructure.cluster.x-k8s.io/v1beta1/AWSManagedControlPlane/" + "n" * 63 + "/"
    texts = [long + "a" * 253, long + "a" * 252 + "b", "fleet/ä", "fleet/ö", "with space", "", "x"]
    names = [group_name(text) for text in texts]

    assert len(set(names)) == len(texts)
    for name in names:
        assert 0 < len(name) <= GROUP_LIMIT
        assert all("!" <= each <= "~" for each in name)
    assert names[-1] == "x"


@pytest.mark.parametrize("message", EVERY, ids=lambda each: each.do)
def test_goes_to_an_inbox_of_a_share_that_every_provider_takes(message: Envelope) -> None:
    """Each message has an inbox that somebody works on, and says for whom it is done."""
    sent = message.message()

    assert message.inbox in messages.INBOXES
    assert 0 < len(sent.share) <= GROUP_LIMIT


def test_rings_never_wait_behind_sweeps() -> None:
    """An event has an inbox or a share of its own; each cluster that is called takes its turn."""
    event, swept = Evaluate("a/b", "x", event_at="now"), Evaluate("a/b", "x")
    assert (event.inbox, swept.inbox) == ("evaluate", "review")

    for kind in (Instantiate("t", "a/b", "x"), Apply("t", "a/b", "p", "a/c")):
        assert replace(kind, event_at="now").share != kind.share
    assert Apply("t", "a/b", "p", "a/c").share != Apply("t", "a/b", "p", "a/d").share
    assert Apply("t", "a/b", "p", "a/c").share != Apply("t", "a/z", "p", "a/c").share


def test_deployments_never_wait_behind_statuses() -> None:
    """A status pauses where Pub/Sub pushed it, which then pushes fewer messages of its inbox."""
    assert [each.do for each in EVERY if each.inbox == WriteStatus.usual] == [WriteStatus.do]


def test_objects_never_wait_behind_cloud_events() -> None:
    """A cluster's, of whichever sender, have a share of their own until they are rendered."""
    told = str(ObjectKey(CLOUD_EVENT, "builds", "web"))
    seen = str(ObjectKey(GVK("", "v1", "Service"), "default", "web"))
    for kind in (
        Evaluate("a/b", seen, event_at="now"),
        Instantiate("t", "a/b", seen, event_at="now"),
    ):
        of_event = replace(kind, object=told)

        assert of_event.share != kind.share
        assert of_event.share != replace(of_event, cluster="a/c").share
    assert Evaluate("a/b", told, source="s").share == "s"


def test_publishes_each_to_its_inbox_and_the_same_work_once() -> None:
    """Messages go to the queues of their inboxes in order; of two equal ones, one is enough."""
    queues = {"evaluate": Kept(), "deploy": Kept(), "sweep": Kept()}

    Publisher(queues).publish(
        [Resync("a/b"), Resolve("p"), Resync("a/b"), PurgeCluster("a/b"), Resolve("p", trace="t")]
    )

    assert [each.body["do"] for each in queues["sweep"].messages] == ["sweep", "tidy"]
    assert [each.body for each in queues["deploy"].messages] == [{"do": "resolve", "profile": "p"}]
    assert queues["evaluate"].messages == []
