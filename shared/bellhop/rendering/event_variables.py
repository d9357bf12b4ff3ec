"""The variables of a trigger's charts and kustomizations, and the objects that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import ConfigMap, EventTrigger, Secret
from bellhop.api.policy_ref import PolicyRef
from bellhop.errors import InvalidError, MissingError
from bellhop.gotemplate.lexer import RAW_STRING, STRING, tokenize
from bellhop.rendering.event_contents import instance
from bellhop.rendering.event_fields import Fields, resolve
from bellhop.rendering.inputs import INSTANTIATE, TEMPLATE, Find, Ref, entries_of, missing
from bellhop.state.cluster_text import HeldText

Holder = ConfigMap | Secret | None
Read = Callable[[Ref, Holder], Iterable[HeldText]]

_RAW = re.compile(r"\{%-?\s*raw\b")
_MARK = "\ue000\ue001"
"""Marks in place of the braces of an event's values, to see where they go."""


class Event(Struct, frozen=True):
    """The variables of the fields of a trigger."""

    trigger: EventTrigger
    fields: Fields
    namespace: str
    find: Find

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

    def are_plain(self, texts: Mapping[str, str]) -> bool:
        """Say whether no text, by its field, writes an action out as text, for deploy time.

        If one does, all are rendered again then. Text of an event must not be read as a template.

        Raises:
            InvalidError: it would be.
        """
        if not any(map(self._writes_actions, texts.values())):
            return True
        marked = _marked(self.fields.root)
        if marked != self.fields.root:
            fields = self.fields.with_root(marked)
            for field, text in texts.items():
                if _MARK in fields.values(text, field):
                    raise InvalidError(
                        "an event's value has '{{', and would be read as a template when it is"
                        " deployed; put it where no action is written out",
                        where=field,
                    )
        return False

    def _writes_actions(self, template: str) -> bool:
        if self.fields.dialect == "jinja2":
            return _RAW.search(template) is not None
        return any(
            each.kind in (STRING, RAW_STRING) and "{{" in each.text for each in tokenize(template)
        )

    def values(self, ref: Ref, holder: Holder, *, field: str) -> Iterator[HeldText]:
        """Yield what a ConfigMap or Secret holds; with the event where its annotations say so.

        Raises:
            PermanentError: it is missing, or a template fails.
        """
        always = self.trigger.instantiates_all
        made = instance(ref, holder, self.fields, always=always) if holder else None
        if made is None:
            yield from held_values(ref, holder, field=field)
            return
        secret = isinstance(holder, Secret) or self.fields.secret
        for entry, text in made.texts.items():
            source = f"{ref.namespace}/{ref.name}/{entry}"
            yield HeldText(text, source, plain=TEMPLATE not in made.annotations, secret=secret)


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


def _marked(value: Any) -> Any:
    """Return variables with marks in place of the braces of their texts."""
    if isinstance(value, str):
        return value.replace("{{", _MARK)
    if isinstance(value, Mapping):
        return {key: _marked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_marked(each) for each in value]
    return value
