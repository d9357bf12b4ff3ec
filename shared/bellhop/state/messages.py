"""Messages between the stages: small typed values that carry identity, never content.

A handler reads the current state, so that a message which comes twice, late, out of order or from
the dead letters does no harm. The order of a group saves work and guarantees nothing: one object's
evaluations, one profile's rendering, one profile's deployments in one cluster, one cluster's
resyncs. By its share one cluster's flood delays no other's event.

    stage       inboxes
    evaluate    evaluate  events             review  objects of a resync, after all events
                                             patient slow scripts, and work on a whole report
    deploy      deploy    profiles rendered  apply   deployed in one cluster, which may not answer
                                             charts  the same, by workers that have Helm
                                             status  written to the configuration cluster
    sweep       sweep     clusters listed    confirm hints read back, and labels that follow
                probe     clusters that are silent or unhealthy
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from msgspec import ValidationError

from bellhop.core.structs import read_struct
from bellhop.errors import InvalidError, TemporaryError
from bellhop.ports.queue import Message, Queue
from bellhop.state.envelope import BACKGROUND, FIRST, Envelope, name_sender, put_after_events

INBOXES: Mapping[str, str] = {
    "evaluate": "evaluate",
    "review": "evaluate",
    "patient": "evaluate",
    "deploy": "deploy",
    "apply": "deploy",
    "status": "deploy",
    "sweep": "sweep",
    "confirm": "sweep",
    "probe": "sweep",
}
"""Each inbox, and its stage. Those of one stage may share a queue, which has the first's name."""

CHARTS = "charts"
"""One more inbox of the deploy stage; an installation without charts need not have it."""


class Evaluate(Envelope, frozen=True):
    """Evaluate the sources for the newest observation of an object.

    `event_at` is the time of the event in the cluster, in ISO 8601, for the total in the event log.
    With a `source` only that one is evaluated, and its script gets all its time. One that was
    `asked` for follows an access review of the cluster.
    """

    do: ClassVar[str] = "evaluate"
    usual: ClassVar[str] = "evaluate"
    cluster: str
    object: str
    trace: str = ""
    event_at: str = ""
    source: str = ""
    asked: bool = False

    @property
    def inbox(self) -> str:
        """Events come before objects that a resync found; slow scripts delay neither."""
        if self.source:
            return "patient"
        return self.usual if self.event_at else "review"

    @property
    def group(self) -> str:
        """One object, for one source or for all."""
        name = f"{self.cluster}/{self.object}"
        return f"{self.source}/{name}" if self.source else name

    @property
    def share(self) -> str:
        """The cluster that sent the event, or its CloudEvents, or the source of a slow script."""
        return self.source or name_sender(self.cluster, self.object)


class Aggregate(Envelope, frozen=True):
    """Run a source's aggregatedSelection over its matches in a cluster, if any of them changed."""

    do: ClassVar[str] = "aggregate"
    usual: ClassVar[str] = "patient"
    ordering: ClassVar[str] = "{0.source}/{0.cluster}"
    fairness: ClassVar[str] = "{0.source}"
    cluster: str
    source: str
    trace: str = ""
    event_at: str = ""


class CheckDeletionGuard(Envelope, frozen=True):
    """Count how much of a report ended at once, and hold it or release it."""

    do: ClassVar[str] = "weigh"
    usual: ClassVar[str] = "patient"
    ordering: ClassVar[str] = "{0.source}/{0.cluster}/held"
    cluster: str
    source: str


class Instantiate(Envelope, frozen=True):
    """Render a trigger's profile in a source cluster, for one object or, with none, for all."""

    do: ClassVar[str] = "instantiate"
    usual: ClassVar[str] = "deploy"
    ordering: ClassVar[str] = "{0.trigger}/{0.cluster}/{0.object}"
    trigger: str
    cluster: str
    object: str = ""
    trace: str = ""
    event_at: str = ""

    @property
    def share(self) -> str:
        """The cluster of the event, or its CloudEvents."""
        return put_after_events(name_sender(self.cluster, self.object), self.event_at)


class Resolve(Envelope, frozen=True):
    """Render a user's own profile for the clusters that it selects."""

    do: ClassVar[str] = "resolve"
    usual: ClassVar[str] = "deploy"
    ordering: ClassVar[str] = "profile/{0.profile}"
    fairness: ClassVar[str] = "profiles"
    profile: str
    trace: str = ""
    event_at: str = ""


class Promote(Envelope, frozen=True):
    """Compute the stages of a promotion again."""

    do: ClassVar[str] = "promote"
    usual: ClassVar[str] = "deploy"
    ordering: ClassVar[str] = "promotion/{0.promotion}"
    fairness: ClassVar[str] = "promotions"
    schema: ClassVar[int] = 2
    promotion: str


class NotifyPromotion(Envelope, frozen=True):
    """Send the next notifications of a promotion."""

    do: ClassVar[str] = "notify"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "promotion/{0.promotion}/notices"
    fairness: ClassVar[str] = "promotions" + BACKGROUND
    schema: ClassVar[int] = 2
    promotion: str


class Apply(Envelope, frozen=True):
    """Deploy a profile in one cluster, or withdraw it from there.

    `contested` is an object that changed its owner, or may, and `touched` one that somebody else
    wrote or deleted: each makes this another piece of work. One that is handed over names in `of`
    the inbox of the workers.
    """

    do: ClassVar[str] = "apply"
    usual: ClassVar[str] = "apply"
    ordering: ClassVar[str] = "{0.destination}/{0.profile}"
    trigger: str
    cluster: str
    profile: str
    destination: str
    contested: str = ""
    touched: str = ""
    trace: str = ""
    event_at: str = ""
    of: str = ""

    @property
    def inbox(self) -> str:
        """The inbox that the message names, or the usual one."""
        return self.of or self.usual

    @property
    def share(self) -> str:
        """The cluster that is called, for the one of the event."""
        return put_after_events(f"{self.destination}<{self.cluster}", self.event_at)


class Resync(Envelope, frozen=True):
    """List a cluster; `full` evaluates all objects, not only those that changed.

    With a `walk` it goes on with that resync, by its record, and does nothing if it has ended.
    """

    do: ClassVar[str] = "sweep"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "{0.cluster}"
    cluster: str
    full: bool = False
    walk: str = ""


class ScanDrift(Envelope, frozen=True):
    """List the objects of profiles in a cluster; `full` also kinds of which they own none.

    Where it is `held`, some of them are to stay as they were applied. `kind` (GROUP/KIND), `after`
    and `last` are its progress: where a list goes on, and beyond which place; `restarts` counts how
    often it began a kind again.
    """

    do: ClassVar[str] = "survey"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "{0.cluster}/survey"
    cluster: str
    full: bool = False
    kind: str = ""
    after: str = ""
    last: str = ""
    restarts: int = 0
    held: bool = False


class ReadBack(Envelope, frozen=True):
    """Read one object back, after a hint that it is about to change.

    `before` is its resource version as the hint had it: if it is read again, the change is not
    stored yet, or never will be. By one that may `drift` the object may belong to a profile that is
    to correct it. One that `creates` proves nothing of its uid: it may never be stored.
    """

    do: ClassVar[str] = "confirm"
    usual: ClassVar[str] = "confirm"
    ordering: ClassVar[str] = "{0.cluster}/{0.object}"
    cluster: str
    object: str
    uid: str
    before: int
    drift: bool = False
    trace: str = ""
    event_at: str = ""
    creates: bool = False


class ReviewAccess(Envelope, frozen=True):
    """Ask a cluster whether an account may see a kind, in a namespace or, by an empty one, in all.

    An `object` that waits for the answer is evaluated then.
    """

    do: ClassVar[str] = "ask-rights"
    usual: ClassVar[str] = "confirm"
    ordering: ClassVar[str] = "{0.cluster}/{0.account}/{0.kind}/{0.namespace}"
    cluster: str
    account: str
    kind: str
    namespace: str = ""
    object: str = ""
    trace: str = ""
    event_at: str = ""

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return put_after_events(self.cluster, self.event_at)


class UpdateLabels(Envelope, frozen=True):
    """Give a cluster the labels of the classifiers that it satisfies, and no others."""

    do: ClassVar[str] = "classify"
    usual: ClassVar[str] = "confirm"
    ordering: ClassVar[str] = "{0.cluster}/labels"
    fairness: ClassVar[str] = "{0.cluster}" + BACKGROUND
    cluster: str


class CheckHealth(Envelope, frozen=True):
    """Evaluate the ClusterHealthChecks of a cluster, and notify people of what changed."""

    do: ClassVar[str] = "examine"
    usual: ClassVar[str] = "probe"
    ordering: ClassVar[str] = "{0.cluster}/examine"
    fairness: ClassVar[str] = "{0.cluster}" + BACKGROUND
    cluster: str


class Probe(Envelope, frozen=True):
    """Ask a cluster that did not answer whether it does, for all messages that wait for it."""

    do: ClassVar[str] = "probe"
    usual: ClassVar[str] = "probe"
    ordering: ClassVar[str] = "{0.cluster}/probe"
    cluster: str


class Renew(Envelope, frozen=True):
    """Renew what a cluster needs to go on sending events, by its record."""

    do: ClassVar[str] = "renew"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "{0.cluster}/renew"
    cluster: str


class RefreshTokenKeys(Envelope, frozen=True):
    """Read again the keys that sign the tokens of a cluster's service accounts."""

    do: ClassVar[str] = "read-keys"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "{0.cluster}/keys"
    cluster: str


class PurgeCluster(Envelope, frozen=True):
    """Delete the records of a forgotten cluster, once no worker is at work on it any more."""

    do: ClassVar[str] = "tidy"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "{0.cluster}/tidy"
    cluster: str


class CollectGarbage(Envelope, frozen=True):
    """Delete blobs that no record names, and set the timers that are missing."""

    do: ClassVar[str] = "keep"
    usual: ClassVar[str] = "sweep"
    ordering: ClassVar[str] = "keep"
    fairness: ClassVar[str] = "keep"


class WriteStatus(Envelope, frozen=True):
    """Write the status of an object, and its mirrors, into the configuration cluster.

    With a `cluster` only its mirrors of this cluster. A generated profile has its stored name, and
    names its `trigger` and `source` cluster. One that is `gathered` was published by a timer, for
    all changes of a moment.
    """

    do: ClassVar[str] = "write-status"
    usual: ClassVar[str] = "status"
    ordering: ClassVar[str] = "configuration/{0.kind}/{0.namespace}/{0.name}/{0.cluster}"
    fairness: ClassVar[str] = "configuration" + BACKGROUND
    schema: ClassVar[int] = 2
    kind: str
    namespace: str
    name: str
    cluster: str = ""
    trigger: str = ""
    source: str = ""
    gathered: bool = False


_BY_NAME = {kind.do: kind for kind in Envelope.__subclasses__()}


def read(body: Mapping[str, Any]) -> Envelope:
    """Read the body of a message; a field of a later version is ignored.

    Raises:
        InvalidError: there is no such message, or a field is missing.
        TemporaryError: a newer version sent it.
    """
    kind = _BY_NAME.get(str(body.get("do")))
    schema = body.get("schema", FIRST)
    if isinstance(schema, int) and schema > (kind.schema if kind else FIRST):
        raise TemporaryError(
            f"cannot do '{str(body.get('do'))[:64]}': a newer Bellhop asks for it; update this one"
        )
    if kind is None:
        raise InvalidError(f"cannot do '{str(body.get('do'))[:64]}': there is no such message")
    try:
        return read_struct(body, kind)
    except ValidationError as error:
        raise InvalidError(f"cannot read a message to {kind.do}: {error}") from error


class Publisher:
    """Publishes messages to the queues of their inboxes."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def reaches(self, inbox: str) -> bool:
        """Return whether there is an inbox of that name here."""
        return inbox in self._queues

    def publish(self, messages: Iterable[Envelope]) -> None:
        """Publish messages, in order for each inbox; after an error some may be out.

        Of messages that ask for the same work, one is enough. One for an inbox that is not here
        goes to its usual one, whose workers report what is missing.
        """
        batches: dict[str, dict[tuple[Any, ...], Message]] = {}
        for each in messages:
            inbox = each.inbox if self.reaches(each.inbox) else each.usual
            batches.setdefault(inbox, {}).setdefault(each.work, each.message())
        for inbox, batch in batches.items():
            self._queues[inbox].publish(list(batch.values()))
