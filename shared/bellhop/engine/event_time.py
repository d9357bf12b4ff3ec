"""What the charts and kustomizations of a trigger are rendered with, and what their fields name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bellhop.engine.instantiate import (
    INSTANTIATE,
    TEMPLATE,
    Fields,
    Instance,
    Ref,
    entries_of,
    instance,
    missing,
    resolve,
)
from bellhop.errors import InvalidError, MissingError
from bellhop.gotemplate import Limits
from bellhop.gotemplate.lexer import RAW_STRING, STRING, tokenize
from bellhop.model.addon import PolicyRef
from bellhop.model.held_text import HeldText
from bellhop.model.kinds import ConfigMap, EventTrigger, Secret

Holder = ConfigMap | Secret | None
Find = Callable[[Ref], Holder]
"""Looks up what a ref names; None where it is not there."""

Read = Callable[[Ref, Holder], Iterable[HeldText]]

_RAW = re.compile(r"\{%-?\s*raw\b")


class Event(Struct, frozen=True):
    """What the fields of a trigger are rendered with."""

    trigger: EventTrigger
    root: Mapping[str, Any]
    fields: Fields
    namespace: str
    find: Find
    limits: Limits
    quoting: bool = False

    def refs(self, refs: Sequence[PolicyRef], field: str) -> tuple[Ref, ...]:
        """Return refs as they are rendered; `field` is where one was written, but for its number.

        Raises:
            PermanentError: a name is a template that fails, or made of a Secret's value.
        """
        return resolve(refs, self.fields, namespace=self.namespace, field=f"{field}[{{}}]")

    def held(self, refs: Sequence[PolicyRef], field: str, read: Read) -> Iterator[HeldText]:
        """Yield what refs of a field hold.

        Raises:
            PermanentError: something is missing, or a template fails.
        """
        for ref in self.refs(refs, field):
            yield from read(ref, self.find(ref))

    def writes_actions(self, template: str) -> bool:
        """Say whether a template writes an action out as text, for deploy time.

        Nothing else is rendered again: what an event says must not be read as a template.
        """
        if self.fields.dialect == "jinja2":
            return _RAW.search(template) is not None
        return any(
            each.kind in (STRING, RAW_STRING) and "{{" in each.text for each in tokenize(template)
        )

    def are_plain(self, texts: Iterable[tuple[str, str]], field: str) -> bool:
        """Say whether none of some texts, each given with what was made of it, is for deploy time.

        If one is, all are rendered then: the rest may have no action, be it an event's.

        Raises:
            InvalidError: one has.
        """
        pairs = [(self.writes_actions(written), made) for written, made in texts]
        if not any(writes for writes, _ in pairs):
            return True
        if any("{{" in made for writes, made in pairs if not writes):
            raise InvalidError(
                "an event's value has '{{', and would be read as a template when it is deployed;"
                " make no name of it",
                where=field,
            )
        return False

    def values(self, ref: Ref, holder: Holder, *, field: str) -> Iterator[HeldText]:
        """Yield what a ConfigMap or Secret holds; with the event where its annotations say so.

        Raises:
            PermanentError: it is missing, or a template fails.
        """
        made = self._instance(ref, holder) if holder else None
        if made is None:
            yield from held_values(ref, holder, field=field)
            return
        secret = isinstance(holder, Secret) or self.fields.secret
        for entry, text in made.texts.items():
            source = f"{ref.namespace}/{ref.name}/{entry}"
            yield HeldText(text, source, plain=TEMPLATE not in made.annotations, secret=secret)

    def _instance(self, ref: Ref, holder: ConfigMap | Secret) -> Instance | None:
        return instance(
            ref,
            holder,
            self.root,
            always=self.trigger.era_always_renders,
            limits=self.limits,
            annotations=self.trigger.annotations,
            quoting=self.quoting,
        )


def held_values(ref: Ref, holder: Holder, *, field: str) -> Iterator[HeldText]:
    """Yield the entries of a ConfigMap or Secret as values, by the names of the entries.

    Raises:
        MissingError: it is not there, and not optional.
        InvalidError: a Secret has a wrong type, or an entry is no text.
    """
    if holder is None:
        if ref.optional:
            return
        raise MissingError(missing(ref, field))
    plain = not {TEMPLATE, INSTANTIATE} & holder.annotations.keys()
    for entry, text in sorted(entries_of(holder, field).items()):
        source = f"{ref.namespace}/{ref.name}/{entry}"
        yield HeldText(text, source, plain=plain, secret=isinstance(holder, Secret))
