"""The envelope of a message between stages: its inbox, its two keys, and the body that is sent."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from msgspec import Struct, to_builtins

from bellhop.core.gvk import CLOUD_EVENT
from bellhop.ports.queue import GROUP_LIMIT, Message

FIRST = 1
"""The schema of a message that says none."""

_UNLIKE = ("trace", "event_at")
"""Fields in which two messages may differ and still ask for the same work."""

_SENT_AS = {"event_at": "rang"}
"""Fields that messages in flight have under another name."""

BACKGROUND = "~"
"""Ends the share of work that no event caused: events do not wait for it."""

_EVENTS = "!"
"""Ends the share of a cluster's CloudEvents: a flood from outside delays no object's event."""

_READABLE = 80
"""Characters of a long group's name that stay readable before its digest."""


class Envelope(Struct, frozen=True, omit_defaults=True, rename=_SENT_AS):
    """A message between stages: its inbox, its two keys, and a body that reads back.

    Messages of one group, the ordering key, had better be handled one after the other. Its share is
    the fairness key: inboxes serve shares in turn. A class declares both as formats of itself.
    """

    do: ClassVar[str]
    usual: ClassVar[str]
    """The inbox, unless `inbox` names another one."""

    ordering: ClassVar[str]
    fairness: ClassVar[str] = "{0.cluster}"

    schema: ClassVar[int] = 1
    """Raised where the version before would do something else, and is 2 where it has no such
    message: it leaves it to the new one."""

    @property
    def inbox(self) -> str:
        """The inbox of the message."""
        return self.usual

    @property
    def group(self) -> str:
        """The ordering key."""
        return self.ordering.format(self)

    @property
    def share(self) -> str:
        """The fairness key."""
        return self.fairness.format(self)

    def message(self) -> Message:
        """Return the message for a queue; fields with their default are left out."""
        body = {"do": self.do, **to_builtins(self)}
        if self.schema != FIRST:
            body["schema"] = self.schema
        return Message(body, group_name(self.group), group_name(self.share))

    @property
    def work(self) -> tuple[Any, ...]:
        """The work that is asked for: equal for two messages of which one is enough."""
        names = (name for name in self.__struct_fields__ if name not in _UNLIKE)
        return (self.do, *(getattr(self, name) for name in names))


def group_name(text: str) -> str:
    """Return a key as every provider takes it: short, printable ASCII, still distinct."""
    if 0 < len(text) <= GROUP_LIMIT and text.isascii() and text.isprintable() and " " not in text:
        return text
    readable = "".join(each if "!" <= each <= "~" else "?" for each in text[:_READABLE])
    return f"{readable}#{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def name_sender(cluster: str, key: str) -> str:
    """Return the share of an object's events: its cluster, or the cluster's CloudEvents."""
    return cluster + _EVENTS if key.startswith("/".join(CLOUD_EVENT) + "/") else cluster


def put_after_events(share: str, noticed_at: str) -> str:
    """Return the share of work that comes after events, unless an event has caused it."""
    return share if noticed_at else share + BACKGROUND
