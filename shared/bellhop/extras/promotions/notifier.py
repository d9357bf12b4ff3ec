"""Sends the notifications of promotions, as their outbox says.

One message sends each receiver its next event, and asks for another message if more are left: so
one receiver that does not answer delays no other for longer than its time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Literal

from bellhop.adapters import notices
from bellhop.api.promotion import ClusterPromotion
from bellhop.api.promotion_annotations import KUBERNETES_EVENT
from bellhop.errors import BellhopError, MissingError
from bellhop.extras.promotions import texts
from bellhop.extras.promotions.receivers import Receivers, read_receivers
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.promotions import outbox
from bellhop.promotions.outbox import Claim
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.concurrency import until_written
from bellhop.state.delays import promotion_notice_timer
from bellhop.state.messages import NotifyPromotion
from bellhop.state.promotion import PromotionState, StageEvent

Send = Callable[[str, Mapping[str, str], str, str, Mapping[str, Any]], None]
"""Sends a notice of a type, by what its Secret says, with a subject, a text and the facts."""

_NOBODY = ""
"""The receiver of a promotion whose Secret has none: its error is shown."""


class PromotionNotifier:
    """Handles `NotifyPromotion`."""

    def __init__(self, here: Installation, log: Log, *, send: Send | None = None) -> None:
        self._here = here
        self._log = log
        self._send = send or notices.Sender(here.reach).send

    def handle(self, message: NotifyPromotion) -> None:
        """Send the next event to each receiver that is due."""
        try:
            promotion = self._here.catalogs.current().promotions.get(message.promotion)
        except MissingError:
            # A catalog that is lost is written again, and the promotion asks again.
            return
        kept = self._here.records.promotions.get(message.promotion)
        if promotion is None or not promotion.notify or kept is None or not kept.value.events:
            return
        send = self._make_sender(promotion)
        types = send.keys()
        results = [self._notify(message.promotion, each, types, send[each]) for each in types]
        if waiting := [each for each in results if isinstance(each, datetime)]:
            name, now = promotion_notice_timer(message.promotion), self._here.records.clock.now()
            self._here.records.timers.set_by(name, min(waiting), message.message().body, now=now)
        if "sent" in results and self._has_more(message.promotion):
            self._here.publisher.publish([message])

    def _has_more(self, name: str) -> bool:
        kept = self._here.records.promotions.get(name)
        return kept is not None and bool(kept.value.events)

    def _make_sender(
        self, promotion: ClusterPromotion
    ) -> Mapping[str, Callable[[StageEvent], None]]:
        """Return by receiver how an event is sent; a Secret without any raises its error then."""
        try:
            found = read_receivers(self._here.catalogs, promotion)
        except BellhopError as error:
            problem = error

            def refuse(_: StageEvent) -> None:
                raise problem

            return {_NOBODY: refuse}

        def send_to(to: str) -> Callable[[StageEvent], None]:
            return lambda event: self._send_event(promotion, found, to, event)

        return {to: send_to(to) for to in found.types}

    def _send_event(
        self, promotion: ClusterPromotion, found: Receivers, to: str, event: StageEvent
    ) -> None:
        """Send one event; what opens and closes no incident is nothing for their managers.

        Raises:
            BellhopError: it cannot be sent.
        """
        if to in texts.INCIDENT_MANAGERS and not texts.concerns_incidents(event):
            return
        if to == KUBERNETES_EVENT:
            self._write_event(promotion, event)
            return
        name = promotion.name
        subject, text = texts.write_subject(name, event), texts.write_text(name, event)
        self._send(to, found.secret, subject, text, texts.list_facts(name, event))

    def _write_event(self, promotion: ClusterPromotion, event: StageEvent) -> None:
        """Write a Kubernetes Event to the cluster that manages others.

        Raises:
            BellhopError: there is no such cluster, or it cannot be called.
        """
        management = self._here.records.clusters.get(MANAGEMENT)
        if management is None:
            raise MissingError(
                f"cannot notify of promotion '{promotion.name}': Events are written to the cluster"
                f" '{MANAGEMENT}', which is not registered; register it, or name a Secret"
            )
        home = management.value
        kube = self._here.access.open(home.key, version=home.credentials)
        kube.apply(texts.make_event(promotion, event))

    def _notify(
        self, name: str, to: str, types: Collection[str], send: Callable[[StageEvent], None]
    ) -> datetime | Literal["sent"] | None:
        """Send a receiver its next event; return when it may be sent if not now, None for none."""
        _, event, until = self._claim(name, to, types)
        if event is None:
            return until
        about = {"promotion": name, "notice": to}
        try:
            send(event)
        except BellhopError as error:
            said, now = str(error), self._here.records.clock.now()
            self._log.warning("Cannot send a notice", error=said, **about)
            self._change(name, lambda old: outbox.record_failure(old, to, event, types, said, now))
            return until
        self._log.info("Sent a notice", **about)
        self._change(name, lambda old: outbox.record_sent(old, to, event, types))
        return "sent"

    @until_written("claim a notice of promotion '{name}'")
    def _claim(self, name: str, to: str, types: Collection[str]) -> Claim:
        promotions = self._here.records.promotions
        kept = promotions.get(name)
        if kept is None:
            return Claim(PromotionState(name))
        found = outbox.claim(kept.value, to, types, self._here.records.clock.now())
        if found.state != kept.value:
            promotions.put(found.state, expect=kept.token)
        return found

    @until_written("record a notice of promotion '{name}'")
    def _change(self, name: str, change: Callable[[PromotionState], PromotionState]) -> None:
        promotions = self._here.records.promotions
        kept = promotions.get(name)
        if kept and (new := change(kept.value)) != kept.value:
            promotions.put(new, expect=kept.token)
