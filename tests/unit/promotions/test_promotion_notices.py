"""Notifications of promotions, sent to real servers of chats, programs and incident managers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.adapters.notices import Sender
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.api.kinds import parse_all, read_documents
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.declarations.references import is_referenced
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import InvalidError, UnreachableError
from bellhop.extras.promotions.notifier import PromotionNotifier, Send
from bellhop.logs import Log
from bellhop.operations import promotions
from bellhop.promotions import outbox
from bellhop.promotions.outbox import MOST_EVENTS
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.state.messages import NotifyPromotion, Promote
from bellhop.state.promotion import PromotionState, StageEvent
from tests.fakes.chat import Chat, chat
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet
from tests.fakes.incidents import GENIE_KEY, ROUTING_KEY, Incidents, incident_managers
from tests.fakes.kube import FakeKube
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version

HOUR = timedelta(hours=1)
LAST = {"name": "production"}
TO_TEAM = {"bellhop.dev/notify": "default/team"}
SLACK = {"SLACK_TOKEN": "xoxb-hidden", "SLACK_CHANNEL_ID": "C1"}


def secret(**values: str) -> str:
    metadata = {"name": "team", "namespace": "default"}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}
    return yaml.safe_dump(document)


@pytest.fixture
def slack() -> Iterator[Chat]:
    with chat() as found:
        yield found


@pytest.fixture
def managers() -> Iterator[Incidents]:
    with incident_managers() as found:
        yield found


def notify(staged: Fleet3, url: str) -> Send:
    """Have a fleet notify servers on this machine, as the compositions have it notify people."""
    send = Sender(LOCAL, {kind: f"{url}/{kind}" for kind in ENDPOINTS}).send
    use(staged.fleet, send)
    return send


def use(fleet: Fleet, send: Send) -> None:
    handler = PromotionNotifier(fleet.installation(), Log(fleet.output), send=send).handle
    fleet.handlers[NotifyPromotion] = handler


def first_lines(slack: Chat) -> list[str]:
    return [each.partition("\n")[0] for each in slack.texts]


def failures(staged: Fleet3) -> list[str]:
    found = list_failures(staged.fleet.installation())
    return [each.message for each in found if each.about == "notifications of 'agent'"]


def test_all_compositions_have_the_handler(staged: Fleet3) -> None:
    table = make_sweep_table(staged.fleet.installation(), Log(staged.fleet.output))
    assert NotifyPromotion in table


def test_each_stage_that_is_passed_is_notified_of_once_and_in_order(
    staged: Fleet3, slack: Chat
) -> None:
    notify(staged, slack.url)
    quick = promotion(auto("staging"), auto("canary"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), quick)
    assert first_lines(slack) == [
        "Release 1 of promotion agent has passed stage 'staging'",
        "Release 1 of promotion agent has passed stage 'canary'",
        "Release 1 of promotion agent has passed stage 'production'",
    ]
    assert slack.texts[0].endswith("\nAt 2026-01-01 12:00 UTC.")
    assert {body["channel"] for _, _, body in slack.taken} == {"C1"}
    assert (staged.state.events, staged.state.deliveries) == ((), ())

    for _ in range(3):
        staged.fleet.publisher.publish([Promote("agent"), NotifyPromotion("agent")])
        staged.fleet.pump()
    assert len(slack.texts) == 3, "repeated messages send nothing"
    assert "hidden" not in staged.fleet.output.getvalue()


def test_a_stage_that_stops_is_notified_of_with_its_cause(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    staged.kubes["staging2"].fail_with(UnreachableError("cannot reach it"))
    staged.apply(
        secret(**SLACK), version("1"), promotion(auto("staging"), LAST, annotations=TO_TEAM)
    )
    [text] = slack.texts
    assert text.startswith(
        "Release 1 of promotion agent is stopped at stage 'staging'\nfleet/staging2: "
    )


def test_an_approval_says_who_approved_and_why(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    waits = promotion(manual("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), waits)
    assert slack.texts == [], "waiting for a person is no step"
    promotions.approve(staged.fleet.installation(), "agent", by="ann", reason="CHG-1")
    staged.settle()
    assert slack.texts[0].startswith(
        "Release 1 of promotion agent was approved at stage 'staging'\nby ann: CHG-1\n"
    )
    assert first_lines(slack)[1:] == [
        "Release 1 of promotion agent has passed stage 'staging'",
        "Release 1 of promotion agent has passed stage 'production'",
    ]


def test_rollbacks_are_notified_of_with_their_cause(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    annotations = {**TO_TEAM, "bellhop.dev/on-failure": "rollback"}
    back = promotion(auto("staging"), LAST, annotations=annotations)
    staged.apply(secret(**SLACK), version("1"), back)
    refuse = staged.kubes["staging2"].refuse("agent", InvalidError("its webhook refuses it"))
    staged.apply(version("2"))
    refuse()
    staged.settle(400)
    line, cause, _ = slack.texts[-1].split("\n")
    assert line == "Stage 'staging' of promotion agent has release 1 again"
    assert cause.startswith("release 2 was rolled back: fleet/staging2: ")

    staged.apply(version("3"))
    promotions.roll_back(staged.fleet.installation(), "agent", stage="production", by="ann")
    staged.settle()
    assert slack.texts[-1].startswith(
        "Stage 'production' of promotion agent has release 1 again\nby ann\n"
    )


def test_a_forced_release_is_notified_of_once_it_is_deployed(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    waits = promotion(manual("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), waits)
    promotions.force(staged.fleet.installation(), "agent", stage="production", by="ann")
    assert slack.texts == []
    staged.settle()
    [text] = slack.texts
    assert text.startswith("Release 1 of promotion agent has passed stage 'production'\nby ann, ")


def test_a_promotion_without_a_receiver_keeps_no_events(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    assert (staged.state.events, staged.state.event_count, slack.taken) == ((), 0, [])


def test_events_of_a_receiver_that_was_taken_out_are_dropped(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    slack.status = 500
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), spec)
    assert staged.state.events
    staged.apply(promotion(auto("staging"), LAST))
    assert staged.state.events == ()
    assert failures(staged) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "there is no Secret 'default/team', which its annotation bellhop.dev/notify names"),
        ((secret(SLACK_CHANNEL_ID="C1"),), "the Secret 'default/team' has none of the keys SLACK_"),
        ((secret(SLACK_TOKEN="xoxb-hidden"),), "its Secret has no SLACK_CHANNEL_ID; put it in"),
    ],
)
def test_a_wrong_secret_is_a_failure_and_the_promotion_goes_on(
    staged: Fleet3, slack: Chat, given: tuple[str, ...], said: str
) -> None:
    notify(staged, slack.url)
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(*given, version("1"), spec)
    assert staged.has("production") == {"1"}
    [message] = failures(staged)
    assert said in message
    assert "hidden" not in message + staged.fleet.output.getvalue()
    assert slack.taken == []

    staged.apply(secret(**SLACK))
    staged.fleet.wait(HOUR, times=2)
    assert len(slack.texts) == 2, "nothing is lost meanwhile"
    assert failures(staged) == []


def test_a_server_that_fails_gets_each_event_once_later(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    slack.status = 503
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), spec)
    assert staged.has("production") == {"1"}
    [message] = failures(staged)
    assert message.startswith("cannot send a notice to '127.0.0.1': it answers 503")
    staged.fleet.wait(HOUR, times=3)
    tried = len(slack.taken)
    assert tried < 12, "pauses grow"

    slack.status = 200
    staged.fleet.wait(HOUR, times=2)
    assert first_lines(slack)[tried:] == [
        "Release 1 of promotion agent has passed stage 'staging'",
        "Release 1 of promotion agent has passed stage 'production'",
    ]
    assert failures(staged) == []


def test_what_cannot_be_sent_for_a_day_is_dropped(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    slack.status = 503
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), spec)
    staged.fleet.wait(HOUR, times=30)
    assert staged.state.events == ()


def test_events_of_a_receiver_that_is_down_are_bounded(staged: Fleet3, slack: Chat) -> None:
    notify(staged, slack.url)
    slack.status = 503
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("0"), spec)
    for number in range(1, 13):
        staged.apply(version(str(number)))
    assert len(staged.state.events) == MOST_EVENTS
    assert staged.state.events[-1].release == 13


def test_a_receiver_that_is_down_holds_no_other(staged: Fleet3, slack: Chat) -> None:
    """A Secret may have the keys of several types."""
    notify(staged, slack.url)
    down = {"TEAMS_WEBHOOK_URL": "http://127.0.0.1:9/of-a-workflow"}
    hook = {"WEBHOOK_URL": f"{slack.url}/hook", "WEBHOOK_TOKEN": "hook-hidden"}
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK, **down, **hook), version("1"), spec)
    paths = [path for path, _, _ in slack.taken]
    assert (paths.count("/Slack"), paths.count("/hook")) == (2, 2)
    [message] = failures(staged)
    assert message.startswith("cannot send a notice to '127.0.0.1'")
    assert "workflow" not in message


def test_a_program_gets_facts_and_the_same_id_again(staged: Fleet3, slack: Chat) -> None:
    send = notify(staged, slack.url)
    sent: list[Any] = []

    def send_twice(*given: Any) -> None:
        sent.append(given)
        send(*given)
        send(*given)

    use(staged.fleet, send_twice)
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(WEBHOOK_URL=f"{slack.url}/hook"), version("1"), spec)
    first, again, second, _ = [body for _, _, body in slack.taken]
    assert first == again
    assert first["id"] != second["id"]
    facts = ("promotion", "stage", "release", "event", "healthy")
    assert [first[each] for each in facts] == ["agent", "staging", 1, "promoted", True]


def test_incidents_open_with_a_stage_that_stops_and_close_as_it_passes(
    staged: Fleet3, managers: Incidents
) -> None:
    send = Sender(
        LOCAL,
        {"PagerDuty": f"{managers.url}/v2/enqueue", "Opsgenie": managers.url},
    ).send
    use(staged.fleet, send)
    keys = {
        "PAGERDUTY_ROUTING_KEY": ROUTING_KEY,
        "OPSGENIE_API_KEY": GENIE_KEY,
        "ALERTMANAGER_URL": f"{managers.url}/am",
    }
    broken = staged.kubes["staging2"]
    broken.fail_with(UnreachableError("cannot reach it"))
    waits = promotion(manual("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**keys), version("1"), waits)
    assert len(managers.opened) == 3

    broken.fail_with(None)
    for _ in range(3):
        staged.fleet.wait(HOUR)
        staged.settle()
    assert staged.phases()[0] == "AwaitingApproval"
    assert len(managers.opened) == 3
    promotions.approve(staged.fleet.installation(), "agent", by="ann")
    staged.settle()
    assert managers.opened == {}
    assert {each // 100 for each in managers.statuses} == {2}


def test_an_event_of_kubernetes_is_written_to_the_management_cluster(staged: Fleet3) -> None:
    spec = promotion(auto("staging"), LAST, annotations={"bellhop.dev/notify": "KubernetesEvent"})
    use(staged.fleet, Sender(LOCAL).send)
    staged.apply(version("1"), spec)
    [message] = failures(staged)
    assert "Events are written to the cluster 'mgmt/mgmt', which is not registered" in message

    mgmt = staged.fleet.access.clusters["mgmt/mgmt"] = FakeKube("mgmt/mgmt")
    kept = staged.fleet.catalogs.current().clusters["fleet/staging1"]
    staged.fleet.declare.register(replace(kept, namespace="mgmt", name="mgmt", labels={}))
    staged.fleet.wait(HOUR, times=2)
    events = mgmt.objects(GVK("", "v1", "Event"))
    assert [each["involvedObject"]["kind"] for each in events] == ["ClusterPromotion"] * 2
    assert {each["type"] for each in events} == {"Normal"}
    assert failures(staged) == []


@pytest.mark.parametrize("text", ["team", "/team", "default/", "a/b/c", "default/team x", ""])
def test_an_annotation_that_names_no_secret_is_refused(text: str) -> None:
    spec = promotion(auto("staging"), LAST, annotations={"bellhop.dev/notify": text})
    with pytest.raises(InvalidError, match="NAMESPACE/SECRET"):
        parse_all(read_documents(spec, source="promotion.yaml"))


def test_the_secret_is_read_where_a_cluster_holds_the_configuration(staged: Fleet3) -> None:
    staged.apply(promotion(auto("staging"), LAST, annotations=TO_TEAM))
    catalog = staged.fleet.catalogs.current()
    assert is_referenced(catalog, ("Secret", "default", "team"))
    assert not is_referenced(catalog, ("Secret", "default", "other"))


def test_a_second_worker_sends_nothing_while_the_first_one_sends(
    staged: Fleet3, slack: Chat
) -> None:
    send = notify(staged, slack.url)

    def send_slowly(*given: Any) -> None:
        staged.fleet.handlers[NotifyPromotion](NotifyPromotion("agent"))
        send(*given)

    use(staged.fleet, send_slowly)
    spec = promotion(auto("staging"), LAST, annotations=TO_TEAM)
    staged.apply(secret(**SLACK), version("1"), spec)
    assert len(slack.texts) == 2


@pytest.mark.parametrize("ahead", [timedelta(seconds=30), timedelta(days=3)])
def test_a_claim_of_a_clock_that_was_ahead_ends(ahead: timedelta) -> None:
    """One within the longest pause is obeyed, and any later one is none."""
    event = StageEvent("promoted", "staging", 1, START)
    state = outbox.add(PromotionState("agent"), [event])
    claimed = outbox.claim(state, "Slack", ["Slack"], START + ahead)
    assert claimed.event
    found = outbox.claim(claimed.state, "Slack", ["Slack"], START)
    assert (found.event is None) == (ahead < timedelta(hours=1))


def test_a_worker_that_was_stopped_records_nothing_about_later_events() -> None:
    """Its claim is over, another one has sent its event, and there is a new one."""
    types = ["Slack"]
    state = outbox.add(PromotionState("agent"), [StageEvent("promoted", "staging", 1, START)])
    slow = outbox.claim(state, "Slack", types, START)
    assert slow.event
    state = outbox.record_sent(slow.state, "Slack", slow.event, types)
    state = outbox.add(state, [StageEvent("promoted", "staging", 2, START)])
    state = outbox.record_sent(state, "Slack", slow.event, types)
    assert [each.release for each in state.events] == [2]
    assert outbox.claim(state, "Slack", types, START).event


STEPS = 78


@pytest.mark.parametrize("step", range(1, STEPS, 3))
def test_a_worker_that_dies_loses_no_notification(tmp_path: Path, step: int) -> None:
    """It dies before or after one of its accesses to the state, or around a request."""
    fate, sent = Fate(), list[str]()
    fleet = Fleet(tmp_path)
    staged = Fleet3(fleet, clusters=("1",))
    staged.apply(secret(**SLACK), version("1"))
    receiver = Mortal("receiver", _Receiver(sent), fate)
    use(fleet, receiver.send)
    records: Any = fleet.records
    records.promotions = Mortal("state", records.promotions, fate)
    fate.doom(step)
    with suppress(Killed):  # The last steps are not taken where a promotion takes fewer.
        staged.apply(promotion(auto("staging"), LAST, annotations=TO_TEAM))
    fate.revive()
    for _ in range(3):
        fleet.wait(HOUR)
        staged.settle()
    fleet.close()

    passed = [
        f"Release 1 of promotion agent has passed stage '{x}'" for x in ("staging", "production")
    ]
    assert list(dict.fromkeys(sent)) == passed
    assert len(sent) <= 3, "only the one whose worker died may come twice"


class _Receiver:
    def __init__(self, sent: list[str]) -> None:
        self._sent = sent

    def send(self, _: str, __: Any, subject: str, *___: Any) -> None:
        self._sent.append(subject)
