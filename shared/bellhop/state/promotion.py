"""A ClusterPromotion at work: its releases, and the stages that they have reached."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

StagePhase = Literal[
    "Waiting",
    "Empty",
    "Deploying",
    "Soaking",
    "Verifying",
    "AwaitingApproval",
    "WindowClosed",
    "Promoted",
    "Rejected",
    "Stalled",
    "RolledBack",
]
"""The state of a stage. Only a Promoted one has passed its release on to the next stage."""


class Approval(Struct, frozen=True):
    """The approval of a release at a stage."""

    release: int
    by: str
    """The caller's identity, or `manifest`."""
    at: datetime
    reason: str = ""


class Visit(Struct, frozen=True):
    """A release at a stage, for the history."""

    release: int
    begun_at: datetime
    passed_at: datetime | None = None
    approval: Approval | None = None
    rolled_back: bool = False
    """The stage returned to it."""
    by: str = ""
    """The user who forced it here, or rolled the stage back to it, and the reason."""


MOST_VISITS = 20
"""Visits that a stage remembers."""


class StageState(Struct, frozen=True):
    """One stage of a promotion."""

    name: str
    release: int = 0
    """The release that its clusters get; 0 before the first."""
    phase: StagePhase = "Waiting"
    since: datetime | None = None
    """The time since when it has this phase."""
    message: str = ""
    """The reason of the phase, if there is more to say than its name."""
    begun_at: datetime | None = None
    """The time at which the release was deployed here; the progress deadline counts from it."""
    whole_at: datetime | None = None
    """The time since when its clusters have the release without interruption."""
    deployed_at: datetime | None = None
    """The last time at which all its clusters became provisioned."""
    passed: int = 0
    """The newest release that has left this stage."""
    skipped: int = 0
    """The release that it was rolled back from: it takes only newer ones."""
    rejected: int = 0
    """The newest release that goes no further."""
    rejection: str = ""
    """The user who rejected it, and the reason."""
    approval: Approval | None = None
    """The last approval, which counts for its release only."""
    witness: str = ""
    """A cluster that does not have the release yet, or is not verified, behind its profile's name.

    Its deployment has the stage counted again: counting after each one would take the square of
    the clusters.
    """
    was_approved: bool = False
    """The manifest approved it when it was read last; each change to that approves once."""
    visits: tuple[Visit, ...] = ()

    @property
    def stopped(self) -> bool:
        """Return whether its release stopped here by itself, and needs a user to go on."""
        by_user = self.phase == "RolledBack" and self.visits and self.visits[-1].by
        return self.phase in ("Stalled", "Empty", "RolledBack") and not by_user

    @property
    def is_settled(self) -> bool:
        """Return whether no step depends on its clusters, until it gets another release."""
        return self.phase in ("Promoted", "RolledBack")


def make_witness(profile: str, cluster: str) -> str:
    """Return how a stage names the cluster whose deployment it waits for."""
    return f"{profile} {cluster}"


StageStep = Literal[
    "begins", "promoted", "approved", "rejected", "stalled", "rolled back", "rollback ended"
]


class StageEvent(Struct, frozen=True):
    """A step of a release at a stage, for the event log and for notifications."""

    what: StageStep
    stage: str
    release: int
    at: datetime
    reason: str = ""
    """The cause, or who did it: `by ann: CHG-4711`."""
    seconds: float | None = None
    """The time from the beginning of the stage until the release had passed it."""
    number: int = 0
    """Its place among the events of the promotion that are sent, from 1."""

    @property
    def detail(self) -> str:
        """Return the sentence for the event log."""
        place = f"release {self.release} at stage '{self.stage}'"
        between = " " if self.reason.startswith("by ") else ": "
        return between.join(filter(None, (place, self.reason)))


class Delivery(Struct, frozen=True):
    """How far one receiver has got the events of a promotion."""

    to: str
    """The type of notifications; empty while there is none, for the reason."""
    sent: int = 0
    """The number of the last event that was sent."""
    until: datetime | None = None
    """Nothing is sent before then."""
    failures: int = 0
    """Failures in a row, the last one with this error."""
    error: str = ""


class PromotionState(Struct, frozen=True):
    """All stages of a promotion."""

    name: str
    latest: int = 0
    """The number of the newest release."""
    stages: tuple[StageState, ...] = ()
    promoted_at: datetime | None = None
    """The time at which the last stage was provisioned with a newer release."""
    unpublished: tuple[str, ...] = ()
    """Profiles of stages that are still to be rendered again."""
    event_count: int = 0
    """The number of the last event that was to be sent."""
    events: tuple[StageEvent, ...] = ()
    """Those that a receiver has not got yet, by number."""
    deliveries: tuple[Delivery, ...] = ()
    """The receivers, as long as there are events."""
    missing: str = ""
    """The reason why there is no newer release yet: what the first stage needs is missing."""

    def stage(self, name: str) -> StageState:
        """Return a stage, as it is before its first release if it is not known."""
        return next((each for each in self.stages if each.name == name), StageState(name))

    def is_witness(self, profile: str, cluster: str) -> bool:
        """Return whether a stage is to be counted once a profile is deployed in a cluster."""
        return any(each.witness == make_witness(profile, cluster) for each in self.stages)

    @property
    def stopped(self) -> tuple[str, ...]:
        """Return the stages at which a release stopped by itself."""
        return tuple(each.name for each in self.stages if each.stopped)

    @property
    def held(self) -> frozenset[int]:
        """Return the releases that a stage deploys, or may return to."""
        found = (each for stage in self.stages for each in (stage.release, stage.passed))
        return frozenset(filter(None, found))


class Release(Struct, frozen=True):
    """A profileSpec and the contents of all that it names, as one version."""

    promotion: str
    number: int
    digest: str
    """Of all of it."""
    made_at: datetime
    recipe: Mapping[str, str] = {}
    """Its inputs, each with a digest."""
    spec: Mapping[str, Any] = {}
    """The profileSpec as it was written."""
    inputs: Mapping[str, Mapping[str, Any]] = {}
    """The ConfigMaps and Secrets that it names, as manifests."""


MOVED = 0
"""The release of pins that no release has yet: charts and files that have become other ones."""


def place_of(mark: str) -> str:
    """Return the key under which the content of a digest is stored."""
    return hashlib.sha256(mark.encode()).hexdigest()


class Pin(Struct, frozen=True):
    """A chart, artifact or file as a release has it."""

    promotion: str
    release: int
    key: str
    """A digest of the name by which the profile knows it."""
    description: Mapping[str, Any] = {}
    """Its name, its digest, and what else is needed to use it."""


class FrozenContent(Struct, frozen=True):
    """The content of a chart, artifact or file that a release has."""

    promotion: str
    key: str
    """A digest of its digest."""
    content: str = ""
    """In base64."""
