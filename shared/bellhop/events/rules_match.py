"""Match rules: a source's selectors in turn, each with its script and CEL rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from bellhop import celbox, luabox
from bellhop.api.kinds import EventSource
from bellhop.api.source import LabelFilter, MessageSelector, ResourceSelector
from bellhop.core.digest import content, digest
from bellhop.core.gvk import CLOUD_EVENT, GVK
from bellhop.errors import ScriptError
from bellhop.rendering import secrecy
from bellhop.rendering.cloud_event_filters import refused, takes
from bellhop.rendering.cloud_events import ACCEPTED, event_of

if TYPE_CHECKING:
    from bellhop.api.rules import CelRule

_Selector = ResourceSelector | MessageSelector

REFERENCE = "reference"
"""The digest of an object of which templates see only the name."""


class Declined(NamedTuple):
    """A selector that does not take an object.

    `said` is its script's message, if that ran, `ruled` what became of its CEL rules, and `lacks`
    says that the script returned no `matching`.
    """

    selector: _Selector
    said: str | None = None
    ruled: str = ""
    lacks: str = ""


class Ruling(Struct, frozen=True):
    """Result of a source for an object, with the message of the script that was `run` last.

    `declined` has the selectors that did not select it, and `taken` the one that did, by its CEL
    `rule` if that has a name.
    """

    matching: bool
    message: str = ""
    run: bool = False
    rule: str = ""
    declined: Sequence[Declined] = ()
    taken: _Selector | None = None


class SlowScriptError(ScriptError):
    """A script did not end in its time, or was given none."""


class Traits(NamedTuple):
    """The fields of an object that selectors read."""

    gvk: GVK
    namespace: Any
    name: Any
    labels: Mapping[str, Any]
    deleted: bool

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Traits:
        """Read the fields; a field of a wrong type counts as missing."""
        metadata = _mapping(obj.get("metadata"))
        return cls(
            GVK.of(obj),
            metadata.get("namespace"),
            metadata.get("name"),
            _mapping(metadata.get("labels")),
            bool(metadata.get("deletionTimestamp")),
        )


class Candidate:
    """An object that sources evaluate one after the other, with the values that all of them need.

    Scripts and rules get the event itself of a CloudEvent.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.secret = secrecy.holds_values(manifest)
        self.traits = Traits.of(manifest)
        self.is_event = self.traits.gvk == CLOUD_EVENT
        self.accepted = self.is_event and manifest.get(ACCEPTED) is True
        self.seen = dict(event_of(manifest) if self.is_event else manifest)

    @cached_property
    def subject(self) -> luabox.Subject:
        """Return the object as scripts get it."""
        return luabox.Subject(self.seen)

    @cached_property
    def digest(self) -> str:
        """Digest the object without what every write moves."""
        return digest(content(self.manifest))


def evaluate_rules(
    source: EventSource,
    candidate: Candidate | None,
    limits: luabox.Limits | None,
    *,
    quoting: bool = False,
) -> Ruling:
    """Evaluate a source's selectors in turn, until one selects the object; None is a deleted one.

    Without limits no script is run: the first that would run counts as slow. No message of a script
    that had a Secret is shown, unless by `quoting`, for a user who has the Secret's file.

    Raises:
        SlowScriptError: a script exceeds its time.
        ScriptError: a script fails, or exceeds its other limits.
        TemporaryError: internal error while a Secret was readable.
    """
    if candidate is None:
        return Ruling(matching=False)
    if not candidate.secret or quoting:
        return _ask(source, candidate, limits, secret=False)
    with secrecy.withhold_unforeseen(f"cannot evaluate source '{source.name}'", secret=True):
        return _ask(source, candidate, limits, secret=True)


def selects(selector: ResourceSelector, traits: Traits) -> bool:
    """Return whether a selector's kind, namespace, name and labels select an object.

    An object that is being deleted is selected only with `includeDeletingResources`. The script is
    not run; an empty namespace, name or label selector selects all.
    """
    if traits.gvk != selector.gvk or (traits.deleted and not selector.deleting):
        return False
    if selector.namespace and traits.namespace != selector.namespace:
        return False
    if selector.name and traits.name != selector.name:
        return False
    if selector.selector is not None and not selector.selector.admits(traits.labels):
        return False
    return not selector.label_filters or passes(selector.label_filters, traits.labels)


def passes(filters: Iterable[LabelFilter], labels: Mapping[str, Any]) -> bool:
    """Return whether labels pass every filter; a missing label passes Different, as with `!=`."""
    return all(_passes(entry, labels) for entry in filters)


def _passes(entry: LabelFilter, labels: Mapping[str, Any]) -> bool:
    match entry.operation:
        case "Equal":
            return labels.get(entry.key) == entry.value
        case "Different":
            return labels.get(entry.key) != entry.value
        case "Has":
            return entry.key in labels
        case "DoesNotHave":
            return entry.key not in labels


def state_digest(source: EventSource, candidate: Candidate) -> str:
    """Digest the state of a matching object; without collectResources templates see none of it.

    An aggregatedSelection sees all of it, and of a CloudEvent templates do.
    """
    whole = source.collect_resources or source.aggregation or candidate.is_event
    return candidate.digest if whole else REFERENCE


def why(ruling: Ruling) -> str:
    """Say in words what made a source take an object."""
    selector = ruling.taken
    assert selector
    if ruling.rule:
        return f"its {ruling.message}"
    if selector.script:
        return "its script says yes" + (f": {ruling.message}" if ruling.message else "")
    if isinstance(selector, MessageSelector):
        return "its attributes match"
    asked = selector.label_filters or not (selector.selector is None or selector.selector.empty)
    return "its labels match" if asked else "its kind matches"


def why_not(declined: Declined, manifest: Mapping[str, Any]) -> str:
    """Say in words what keeps a selector from an object that it does not take."""
    if declined.said is not None or declined.ruled:
        said = [declined.ruled] if declined.ruled else []
        if declined.said is not None:
            no = declined.lacks or "its script says no"
            said.append(no + (f": {declined.said}" if declined.said else ""))
        return "; ".join(said)
    if isinstance(declined.selector, MessageSelector):
        return refused(declined.selector.criterion, event_of(manifest))
    return _unselected(declined.selector, manifest)


def _unselected(selector: ResourceSelector, manifest: Mapping[str, Any]) -> str:
    gvk, metadata = GVK.of(manifest), manifest["metadata"]
    labels = metadata.get("labels") or {}
    if gvk != selector.gvk:
        return f"it is a {gvk}, not {selector.gvk}"
    if metadata.get("deletionTimestamp") and not selector.deleting:
        return "it is being deleted, and includeDeletingResources does not ask for that"
    for word, asked in (("namespace", selector.namespace), ("name", selector.name)):
        if asked and metadata.get(word) != asked:
            return f"its {word} is '{metadata.get(word) or ''}', not '{asked}'"
    if selector.selector is not None and not selector.selector.admits(labels):
        return f"its labels are not what the selector asks for: {selector.selector}"
    for each in selector.label_filters:
        if not passes([each], labels):
            there = f"is '{labels[each.key]}'" if each.key in labels else "is not there"
            asked = f" '{each.value}'" if each.operation in {"Equal", "Different"} else ""
            return f"its label '{each.key}' {there}, and the filter asks {each.operation}{asked}"
    return "it is not selected"


def _ask(
    source: EventSource, candidate: Candidate, limits: luabox.Limits | None, *, secret: bool
) -> Ruling:
    message, run, declined = "", False, []
    name = source.name
    for selector in source.messages if candidate.is_event else source.selectors:
        if not _is_asked(selector, candidate):
            declined.append(Declined(selector))
            continue
        if not selector.script and not selector.rules:
            return Ruling(matching=True, run=run, declined=declined, taken=selector)
        run = True
        # Of rules and a script either is enough, and rules are the cheaper ones.
        ruled = _UNRULED
        if selector.rules:
            ruled = _by_rules(selector.rules, name, candidate, limits, secret=secret)
        if ruled.holds:
            return Ruling(True, ruled.said, run, ruled.holds, declined, selector)  # noqa: FBT003
        message, said, lacks = ruled.said, None, ""
        if selector.script:
            verdict = _run(selector.script, name, candidate, limits, secret=secret)
            message = said = "" if secret else verdict.message
            if verdict.matching:
                return Ruling(True, message, run, "", declined, selector)  # noqa: FBT003
            lacks = _lacking(verdict.lacks, secret=secret)
        declined.append(Declined(selector, said, ruled.said, lacks))
    return Ruling(matching=False, message=message, run=run, declined=declined)


def _lacking(lacks: luabox.Lacking | None, *, secret: bool) -> str:
    """Say that a script returned no `matching`; of a Secret without what it returned."""
    if lacks is None:
        return ""
    return lacks.plain if secret else str(lacks)


def _is_asked(selector: _Selector, candidate: Candidate) -> bool:
    """Return whether a selector takes an object before its script and rules are asked."""
    if isinstance(selector, MessageSelector):
        return candidate.accepted or takes(selector.criterion, candidate.seen)
    return selects(selector, candidate.traits)


class _Ruled(NamedTuple):
    """Result of CEL rules: the one that `holds`, if any, and a message."""

    holds: str
    said: str


_UNRULED = _Ruled("", "")


def _by_rules(
    rules: Sequence[CelRule],
    name: str,
    candidate: Candidate,
    limits: luabox.Limits | None,
    *,
    secret: bool,
) -> _Ruled:
    """Evaluate rules in turn until one holds; one that fails does not, and is reported."""
    if limits is None:
        raise SlowScriptError("the rules take long", name=name)
    failed = []
    for rule in rules:
        try:
            if _compile_rule(rule.rule, rule.name, name, limits).holds(candidate.seen):
                return _Ruled(rule.name, f"CEL rule '{rule.name}' holds")
        except celbox.CelRuntimeError as error:
            said = f": {error.wording}" if not secret else ""
            failed.append(f"; rule '{rule.name}' fails{said}")
        except celbox.CelError as error:
            slow = isinstance(error, celbox.CelLimitError) and error.kind == "time"
            raise (SlowScriptError if slow else ScriptError)(str(error), name=name) from error
    withheld = f"; {secrecy.LOCALLY}" if failed and secret else ""
    return _Ruled("", "".join(("no CEL rule holds", *failed, withheld)))


@lru_cache(maxsize=4096)
def _compile_rule(text: str, rule: str, name: str, limits: luabox.Limits) -> celbox.Rule:
    bounds = celbox.Limits(seconds=limits.seconds, memory=limits.memory)
    return celbox.Rule(text, name=f"{name}, rule '{rule}'", limits=bounds)


def _run(
    text: str, name: str, candidate: Candidate, limits: luabox.Limits | None, *, secret: bool
) -> luabox.Verdict:
    if limits is None:
        raise SlowScriptError("the script takes long", name=name)
    try:
        return luabox.evaluate(_compile(text, name, limits), candidate.subject)
    except luabox.LuaError as error:
        words = f"{error.plain}; {secrecy.LOCALLY}" if secret else str(error)
        slow = isinstance(error, luabox.LuaLimitError) and error.kind == "time"
        kind = SlowScriptError if slow else ScriptError
        raise kind(words, name=name) from None if secret else error


@lru_cache(maxsize=4096)
def _compile(text: str, name: str, limits: luabox.Limits) -> luabox.Script:
    return luabox.Script(text, name=name, limits=limits)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
