"""What the stages tell each other: small typed values that carry identity, never content.

Whoever handles one reads the current state, so that a message which comes twice, late, out of
order or from the dead letters does no harm. A group says what had better wait for what: one
object's evaluations, one profile's placing, one profile's applications in one cluster, one
cluster's sweeps. It saves work and guarantees nothing. A share says for whom it is done, so that
one cluster's flood delays no other's event: inboxes serve shares in turn.

    stage       inboxes
    evaluate    evaluate  what rang          review  what a sweep found: rings overtake it
                                             patient scripts that take long, and all that sees
                                                     a whole report
    deploy      deploy    profiles made      apply   carried to one cluster, which may not answer
                                             charts  the same, by who has Helm
    sweep       sweep     clusters walked    confirm hints read back, and labels that follow
                probe     who is silent, or not well
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from msgspec import Struct, ValidationError, to_builtins

from bellhop.core.gvk import CLOUD_EVENT
from bellhop.core.structs import read_struct
from bellhop.errors import InvalidError, TemporaryError
from bellhop.ports.queue import GROUP_LIMIT, Message, Queue

INBOXES: Mapping[str, str] = {
    "evaluate": "evaluate",
    "review": "evaluate",
    "patient": "evaluate",
    "deploy": "deploy",
    "apply": "deploy",
    "sweep": "sweep",
    "confirm": "sweep",
    "probe": "sweep",
}
"""Each inbox, and the stage that works on it. Inboxes of one stage may share a queue, which has the
name of the first."""

CHARTS = "charts"
"""One more inbox of the deploy stage; who has no charts need not have it."""

_BACKGROUND = "~"
"""Ends the name of a share of what no ring caused: rings take turns with it, and do not wait."""

_EVENTS = "!"
"""Ends that of a cluster's CloudEvents: who floods it from outside delays no object's event."""

_FIRST = 1

_UNLIKE = ("trace", "rang")
"""Fields in which two messages may differ and still ask for the same work."""

_READABLE = 80
"""Characters of a long group's name that stay readable before its digest."""


class Envelope(Struct, frozen=True, omit_defaults=True):
    """What all messages have: an inbox, a group, a share, and a body that reads back."""

    do: ClassVar[str]
    usual: ClassVar[str]
    """The inbox that it goes to, where it does not say otherwise."""

    schema: ClassVar[int] = 1
    """Raised where the version before would do something else, and is 2 where it knows no such
    message: it leaves it to the new one."""

    @property
    def inbox(self) -> str:
        """Say which inbox it goes to."""
        return self.usual

    @property
    @abstractmethod
    def group(self) -> str:
        """Say which messages had better come one after the other."""

    @property
    @abstractmethod
    def share(self) -> str:
        """Say for whom it is done, and at whose cost."""

    def message(self) -> Message:
        """Return what goes into the queue; fields with their default are left out."""
        body = {"do": self.do, **to_builtins(self)}
        if self.schema != _FIRST:
            body["schema"] = self.schema
        return Message(body, group_name(self.group), group_name(self.share))

    @property
    def work(self) -> tuple[Any, ...]:
        """Return what is asked for: equal for two messages of which one is enough."""
        names = (name for name in self.__struct_fields__ if name not in _UNLIKE)
        return (self.do, *(getattr(self, name) for name in names))


class Evaluate(Envelope, frozen=True):
    """Run the sources over an object's newest observation.

    `rang` is when the cluster noticed, in ISO 8601, for the ledger's total. With a `source` it is
    that one alone, whose script gets all its time. One that was `asked` for comes after the
    cluster has said what accounts may see there.
    """

    do: ClassVar[str] = "evaluate"
    usual: ClassVar[str] = "evaluate"
    cluster: str
    object: str
    trace: str = ""
    rang: str = ""
    source: str = ""
    asked: bool = False

    @property
    def inbox(self) -> str:
        """What rang overtakes what a sweep found; scripts that take long delay neither."""
        if self.source:
            return "patient"
        return self.usual if self.rang else "review"

    @property
    def group(self) -> str:
        """One object after the other's own changes, for one source or for all."""
        name = f"{self.cluster}/{self.object}"
        return f"{self.source}/{name}" if self.source else name

    @property
    def share(self) -> str:
        """The cluster that sent it, or its CloudEvents, or the source whose script takes long."""
        return self.source or _told_in(self.cluster, self.object)


class Aggregate(Envelope, frozen=True):
    """Run a source's aggregatedSelection over what matches in a cluster, if any of it changed."""

    do: ClassVar[str] = "aggregate"
    usual: ClassVar[str] = "patient"
    cluster: str
    source: str
    trace: str = ""
    rang: str = ""

    @property
    def group(self) -> str:
        """One source in one cluster."""
        return f"{self.source}/{self.cluster}"

    @property
    def share(self) -> str:
        """The source, whose script may take long."""
        return self.source


class CheckDeletionGuard(Envelope, frozen=True):
    """See how much of a report ended at once, and hold it or let it go."""

    do: ClassVar[str] = "weigh"
    usual: ClassVar[str] = "patient"
    cluster: str
    source: str

    @property
    def group(self) -> str:
        """One report."""
        return f"{self.source}/{self.cluster}/held"

    @property
    def share(self) -> str:
        """The cluster in which it ended."""
        return self.cluster


class Instantiate(Envelope, frozen=True):
    """Make a trigger's profile in a source cluster, for one object or, with none, for all."""

    do: ClassVar[str] = "instantiate"
    usual: ClassVar[str] = "deploy"
    trigger: str
    cluster: str
    object: str = ""
    trace: str = ""
    rang: str = ""

    @property
    def group(self) -> str:
        """One profile."""
        return f"{self.trigger}/{self.cluster}/{self.object}"

    @property
    def share(self) -> str:
        """The cluster in which it happened, or its CloudEvents."""
        return _in_turn(_told_in(self.cluster, self.object), self.rang)


class Resolve(Envelope, frozen=True):
    """Take a user's own profile to the clusters that it selects."""

    do: ClassVar[str] = "resolve"
    usual: ClassVar[str] = "deploy"
    profile: str
    trace: str = ""
    rang: str = ""

    @property
    def group(self) -> str:
        """One profile."""
        return f"profile/{self.profile}"

    @property
    def share(self) -> str:
        """What users declared."""
        return "profiles"


class Apply(Envelope, frozen=True):
    """Bring one cluster to what a profile wants there, or withdraw the profile from it.

    `contested` is an object that changed hands, or may, and `touched` one that somebody else wrote
    to, or deleted: each makes this another piece of work. One that is handed over says to the
    workers `of` which inbox.
    """

    do: ClassVar[str] = "apply"
    usual: ClassVar[str] = "apply"
    trigger: str
    cluster: str
    profile: str
    destination: str
    contested: str = ""
    touched: str = ""
    trace: str = ""
    rang: str = ""
    of: str = ""

    @property
    def inbox(self) -> str:
        """Say which inbox it goes to."""
        return self.of or self.usual

    @property
    def group(self) -> str:
        """One profile in one cluster."""
        return f"{self.destination}/{self.profile}"

    @property
    def share(self) -> str:
        """The cluster that is called, for the one in which it happened."""
        return _in_turn(f"{self.destination}<{self.cluster}", self.rang)


class Resync(Envelope, frozen=True):
    """List a cluster; `full` evaluates all objects, not only those that changed.

    With a `walk` it goes on with that one, whose record says where, and otherwise nothing.
    """

    do: ClassVar[str] = "sweep"
    usual: ClassVar[str] = "sweep"
    cluster: str
    full: bool = False
    walk: str = ""

    @property
    def group(self) -> str:
        """One cluster."""
        return self.cluster

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return self.cluster


class ScanDrift(Envelope, frozen=True):
    """Look at what profiles hold in a cluster; `full` also at kinds of which they hold nothing.

    Where it is `held`, some of it is to stay as it was applied.

    `kind` (GROUP/KIND), `after` and `last` say how far it has come: where a list goes on, and
    beyond which place; `restarts` how often it began a kind anew.
    """

    do: ClassVar[str] = "survey"
    usual: ClassVar[str] = "sweep"
    cluster: str
    full: bool = False
    kind: str = ""
    after: str = ""
    last: str = ""
    restarts: int = 0
    held: bool = False

    @property
    def group(self) -> str:
        """One cluster's holdings."""
        return f"{self.cluster}/survey"

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return self.cluster


class ReadBack(Envelope, frozen=True):
    """Read one object back, after a hint that it is about to change.

    `before` is its resource version as the hint had it: seeing it again says that the change
    is not stored yet, or never will be. By one that may `drift` it may belong to a profile that is
    to hear of it. One that `creates` proves nothing of its uid: it may never be stored.
    """

    do: ClassVar[str] = "confirm"
    usual: ClassVar[str] = "confirm"
    cluster: str
    object: str
    uid: str
    before: int
    drift: bool = False
    trace: str = ""
    rang: str = ""
    creates: bool = False

    @property
    def group(self) -> str:
        """One object."""
        return f"{self.cluster}/{self.object}"

    @property
    def share(self) -> str:
        """The cluster that sent it."""
        return self.cluster


class ReviewAccess(Envelope, frozen=True):
    """Ask a cluster whether an account may see a kind, in a namespace or, by an empty one, in all.

    Then the `object` is evaluated that waits for it, if there is one.
    """

    do: ClassVar[str] = "ask-rights"
    usual: ClassVar[str] = "confirm"
    cluster: str
    account: str
    kind: str
    namespace: str = ""
    object: str = ""
    trace: str = ""
    rang: str = ""

    @property
    def group(self) -> str:
        """One account's rights over one kind in one namespace."""
        return f"{self.cluster}/{self.account}/{self.kind}/{self.namespace}"

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return _in_turn(self.cluster, self.rang)


class UpdateLabels(Envelope, frozen=True):
    """Give a cluster the labels of the classifiers that it satisfies by now, and no others."""

    do: ClassVar[str] = "classify"
    usual: ClassVar[str] = "confirm"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster's labels."""
        return f"{self.cluster}/labels"

    @property
    def share(self) -> str:
        """The cluster, as of what no ring waits for."""
        return self.cluster + _BACKGROUND


class CheckHealth(Envelope, frozen=True):
    """See whether a cluster is well, as ClusterHealthChecks ask, and tell who is to know."""

    do: ClassVar[str] = "examine"
    usual: ClassVar[str] = "probe"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster's conditions."""
        return f"{self.cluster}/examine"

    @property
    def share(self) -> str:
        """The cluster, as of what no ring waits for."""
        return self.cluster + _BACKGROUND


class Probe(Envelope, frozen=True):
    """Ask a cluster that did not answer whether it does, for all who wait for it."""

    do: ClassVar[str] = "probe"
    usual: ClassVar[str] = "probe"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster."""
        return f"{self.cluster}/probe"

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return self.cluster


class Renew(Envelope, frozen=True):
    """Do what is due by now so that a cluster goes on ringing; its record says what that is."""

    do: ClassVar[str] = "renew"
    usual: ClassVar[str] = "sweep"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster's registration."""
        return f"{self.cluster}/renew"

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return self.cluster


class RefreshTokenKeys(Envelope, frozen=True):
    """Read anew with which keys the tokens of a cluster's service accounts are signed."""

    do: ClassVar[str] = "read-keys"
    usual: ClassVar[str] = "sweep"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster's keys."""
        return f"{self.cluster}/keys"

    @property
    def share(self) -> str:
        """The cluster that is called."""
        return self.cluster


class PurgeCluster(Envelope, frozen=True):
    """Delete the traces of a forgotten cluster, once nobody is at work on it any more."""

    do: ClassVar[str] = "tidy"
    usual: ClassVar[str] = "sweep"
    cluster: str

    @property
    def group(self) -> str:
        """One cluster's end."""
        return f"{self.cluster}/tidy"

    @property
    def share(self) -> str:
        """The cluster that was."""
        return self.cluster


class CollectGarbage(Envelope, frozen=True):
    """Keep the house: collect blobs nobody names, and set the timers that are missing."""

    do: ClassVar[str] = "keep"
    usual: ClassVar[str] = "sweep"

    @property
    def group(self) -> str:
        """The house."""
        return "keep"

    @property
    def share(self) -> str:
        """Nobody's."""
        return "keep"


_KINDS: tuple[type[Envelope], ...] = (
    Evaluate,
    Aggregate,
    CheckDeletionGuard,
    Instantiate,
    Resolve,
    Apply,
    Resync,
    ScanDrift,
    ReadBack,
    ReviewAccess,
    UpdateLabels,
    CheckHealth,
    Probe,
    Renew,
    RefreshTokenKeys,
    PurgeCluster,
    CollectGarbage,
)
_BY_NAME = {kind.do: kind for kind in _KINDS}


def read(body: Mapping[str, Any]) -> Envelope:
    """Read back what a queue delivers; a field of a later version is passed over.

    Raises:
        InvalidError: it is of a kind nobody sends, or is not whole.
        TemporaryError: a newer version sent it.
    """
    kind = _BY_NAME.get(str(body.get("do")))
    schema = body.get("schema", _FIRST)
    if isinstance(schema, int) and schema > (kind.schema if kind else _FIRST):
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
    """Puts messages into the queues of the inboxes that they are for."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def reaches(self, inbox: str) -> bool:
        """Say whether there is an inbox of that name here."""
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


def _told_in(cluster: str, key: str) -> str:
    return cluster + _EVENTS if key.startswith("/".join(CLOUD_EVENT) + "/") else cluster


def _in_turn(share: str, rang: str) -> str:
    return share if rang else share + _BACKGROUND


def group_name(text: str) -> str:
    """Return a group's name as every provider takes it: short, printable ASCII, still distinct."""
    if 0 < len(text) <= GROUP_LIMIT and text.isascii() and text.isprintable() and " " not in text:
        return text
    readable = "".join(each if "!" <= each <= "~" else "?" for each in text[:_READABLE])
    return f"{readable}#{hashlib.sha256(text.encode()).hexdigest()[:32]}"
