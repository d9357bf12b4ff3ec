"""Aggregation: run a source's aggregatedSelection over the objects that match it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from bellhop import luabox
from bellhop.api.kinds import EventSource
from bellhop.api.names import classifier_of
from bellhop.core.digest import content, digest
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import ScriptError
from bellhop.rendering import secrecy

_Said = TypeVar("_Said", luabox.Selection, luabox.Verdict, list[luabox.Assessed])

SELECTION = "aggregatedSelection"
HEALTH = "evaluateHealth"
_CLASSIFICATION = "aggregatedClassification"

_SHARE = 1000
"""So many matches have as much time, and as many steps, as one object has."""

_LONGEST = 253
"""Characters of a name, or of another part of an object's identity."""


class Resource(NamedTuple):
    """One of the resources that a script chose or made, and a digest of its state."""

    key: ObjectKey
    digest: str
    manifest: dict[str, Any]


class Aggregate(NamedTuple):
    """Result of a script: its resources, in its order, each once."""

    resources: tuple[Resource, ...]
    message: str


def aggregate(
    source: EventSource,
    matching: Sequence[Mapping[str, Any]],
    limits: luabox.Limits,
    *,
    quoting: bool = False,
) -> Aggregate:
    """Run a source's aggregatedSelection over objects, which may be none.

    If a Secret is among them, no message of the script is shown, unless by `quoting`, and the
    objects are returned as they were: any part that the script made could quote a value.

    For a classifier's script, which returns whether a cluster satisfies it, the one resource is the
    classifier, if it does.

    Raises:
        ScriptError: the script fails, exceeds its limits, or returns something else than resources.
        TemporaryError: internal error while a Secret was readable.
    """
    secret = any(map(secrecy.holds_values, matching))
    with secrecy.withhold_unforeseen(f"cannot evaluate source '{source.name}'", secret=secret):
        limits = for_many(limits, len(matching))
        hidden = secret and not quoting
        resources: tuple[Resource, ...]
        if classifier := classifier_of(source.name):
            verdict = run(luabox.classify, source, _CLASSIFICATION, matching, limits, secret=hidden)
            resources = (_satisfied(classifier),) if verdict.matching else ()
            said = filter(None, (str(verdict.lacks or ""), verdict.message))
            return Aggregate(resources, "" if hidden else ": ".join(said))
        chosen = run(luabox.select, source, SELECTION, matching, limits, secret=hidden)
        resources = _resources(source.name, chosen.resources)
        if secret:
            _refuse_made(source.name, resources, matching)
    return Aggregate(resources, "" if hidden else chosen.message)


def for_many(limits: luabox.Limits, count: int) -> luabox.Limits:
    """Give a script as much time and as many steps as so many objects need."""
    # By the thousand begun: a compiled script is kept for its limits.
    factor = max(1, -(-count // _SHARE))
    return limits._replace(seconds=limits.seconds * factor, steps=limits.steps * factor)


def _satisfied(classifier: str) -> Resource:
    """Return what stands for it that a cluster satisfies a classifier."""
    gvk = GVK("lib.projectsveltos.io", "v1beta1", "Classifier")
    return Resource(ObjectKey(gvk, "", classifier), "satisfied", {})


def run(
    ask: Callable[[luabox.Script, list[dict[str, Any]]], _Said],
    source: EventSource,
    field: str,
    matching: Sequence[Mapping[str, Any]],
    limits: luabox.Limits,
    *,
    secret: bool,
) -> _Said:
    """Ask the script of a source, which stands in a field, about objects.

    Raises:
        ScriptError: it fails, or breaks out of its limits; of a Secret it quotes nothing.
    """
    name = f"{source.name}, {field}"
    try:
        return ask(_compile(source.aggregation, name, limits), list(map(dict, matching)))
    except luabox.LuaError as error:
        words = f"{error.plain}; {secrecy.LOCALLY}" if secret else str(error)
        raise ScriptError(words, name=name) from None if secret else error


@lru_cache(maxsize=256)
def _compile(text: str, name: str, limits: luabox.Limits) -> luabox.Script:
    return luabox.Script(text, name=name, limits=limits)


def _resources(name: str, returned: Sequence[dict[str, Any]]) -> tuple[Resource, ...]:
    """Read what a script returned; one that is there twice counts once.

    Raises:
        ScriptError: one of them has no identity, or two have the same and are not alike.
    """
    found: dict[ObjectKey, Resource] = {}
    for number, manifest in enumerate(returned, start=1):
        refuse_nameless(name, SELECTION, number, manifest)
        each = Resource(ObjectKey.of(manifest), digest(content(manifest)), manifest)
        if found.setdefault(each.key, each).digest != each.digest:
            raise unfit(
                name, SELECTION, number, "is there twice, and not alike; return one of the two"
            )
    return tuple(found.values())


def refuse_nameless(name: str, field: str, number: int, manifest: Mapping[str, Any]) -> None:
    """Refuse what no object of a cluster could be called.

    Raises:
        ScriptError: a part of its identity is missing, or is none.
    """
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    parts = {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace") or "default",
    }
    for part, text in parts.items():
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or not text.isprintable():
            said = f"has no {part} of 1 to {_LONGEST} printable characters; give it one"
            raise unfit(name, field, number, said)
        if text.count("/") > (part == "apiVersion"):
            said = f"has a '/' in its {part} that may not be there; fix it"
            raise unfit(name, field, number, said)


def _refuse_made(
    name: str, resources: Sequence[Resource], matching: Sequence[Mapping[str, Any]]
) -> None:
    given = {ObjectKey.of(each): digest(content(each)) for each in matching}
    for number, each in enumerate(resources, start=1):
        if given.get(each.key) != each.digest:
            said = (
                "is not as it was given, and may quote a Secret, for there are Secrets among what"
                " matches; return objects unchanged, or leave the Secrets out"
            )
            raise unfit(name, SELECTION, number, said)


def unfit(name: str, field: str, number: int, said: str) -> ScriptError:
    """Make the error of a resource that a script returned, and that is none."""
    return ScriptError(f"{name}, {field}: resources[{number}] {said}", name=name)
