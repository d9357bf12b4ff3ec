"""The one rule about Secrets: of what was made with their values in reach, only our own words.

An API server quotes the label that it refuses, Lua's `error` and a template's `fail` say what
they are given, a parser shows the line. Where a Secret's values were in reach (it is the object of
the event, or holds the contents) such words are withheld, whatever their source: what failed, where
and of which temperament is said in ours. Names are shown to everybody and are keys of records, so
none may be made of a value: an object that has such a name is refused.
"""

from __future__ import annotations

import base64
import json
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.sveltos_annotations import LAST_APPLIED, WITHHELD
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    ConflictError,
    DeniedError,
    InvalidError,
    MissingError,
    PermanentError,
    ScriptError,
    StaleError,
    TemplateError,
    TemporaryError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)

KIND = "Secret"
LOCALLY = (
    "the rest is withheld, for it may quote a Secret: `bellhop render --show-secrets` shows it"
)
_REMOTELY = (
    "the rest is withheld, for it may quote a Secret: `kubectl apply --dry-run=server` of what"
    " `bellhop render` prints shows it"
)

# Most specific first: the class that an error keeps, and its sentence without its own words.
_KINDS: tuple[tuple[type[PermanentError | TemporaryError], str], ...] = (
    (TooLargeError, "it is larger than is taken"),
    (InvalidError, "it is refused"),
    (TemplateError, "a template fails"),
    (ScriptError, "a script fails"),
    (UnauthorizedError, "the credentials are not accepted"),
    (DeniedError, "credentials or a right are missing"),
    (ConflictError, "another has it"),
    (MissingError, "something that it needs is not there"),
    (UnreachableError, "no useful answer comes"),
    (ThrottledError, "it is asked to slow down"),
    (StaleError, "it was changed meanwhile"),
    (CloudDeniedError, "the cloud denies credentials or a right"),
    (TemporaryError, "it did not work this time"),
    (PermanentError, "it did not work"),
)

_SHORTEST = 4
"""Letters and digits of a value below which a name may have them by chance."""
_RUN = 6
_LONG_VALUE = 4096
_LONG_RUN = 12
"""Of a long value a longer run must be met: it has so many that a digest meets a short one."""
_SQUASHED = re.compile(r"[^a-z0-9]+")


def holds_values(manifest: Any) -> bool:
    """Say whether an object has values that nobody may quote."""
    # Called for thousands of objects: isinstance is fast for a dict, and slow for a Mapping.
    return isinstance(manifest, (dict, Mapping)) and manifest.get("kind") == KIND


def is_withheld(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object has such values, or was generated from some."""
    marks = (manifest.get("metadata") or {}).get("annotations") or {}
    return holds_values(manifest) or WITHHELD in marks


def has_values(root: Mapping[str, Any]) -> bool:
    """Say whether a template with these root variables can write the values of a Secret."""
    return any(map(holds_values, _objects(root)))


@contextmanager
def withhold_unforeseen(doing: str, *, secret: bool) -> Iterator[None]:
    """Say of an exception that nobody foresaw only which it was and where, if a Secret is near.

    Raises:
        TemporaryError: in place of such an exception.
    """
    try:
        yield
    except BellhopError:
        raise
    except Exception as error:
        if not secret:
            raise
        frames = traceback.extract_tb(error.__traceback__)
        place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
        raise TemporaryError(
            f"{doing}: internal error{place}; its text is withheld, since it may quote a Secret"
        ) from None


@contextmanager
def withhold_quotes(doing: str, *, secret: bool) -> Iterator[None]:
    """Return an API server's error on an object made with a Secret, only in our own words.

    Raises:
        BellhopError: of the same temperament, without a word of who was asked.
    """
    try:
        with withhold_unforeseen(doing, secret=secret):
            yield
    except BellhopError as error:
        if not secret:
            raise
        raise _reworded(error, doing) from None


def _reworded(error: BellhopError, doing: str) -> BellhopError:
    kind, what = next(each for each in _KINDS if isinstance(error, each[0]))
    plain = error.context.get("plain") or f"{doing}: {what}"
    message = f"{plain}; {_REMOTELY}"
    if issubclass(kind, TemporaryError):
        return kind(message, delay=getattr(error, "delay", None))
    return kind(message)


# Names ----------------------------------------------------------------------------------------


class Withheld(Struct, frozen=True):
    """Values that no name may be made of; a part of them may be `known` from other texts.

    Both have only lower-case letters and digits, as a name may have been made to have.
    """

    values: tuple[str, ...] = ()
    known: str = ""

    @classmethod
    def of(cls, root: Mapping[str, Any]) -> Withheld:
        """Collect the values of the Secrets among root variables.

        Text of their metadata may be in a name even if a value has it too. Values are taken as
        written, decoded and in hexadecimal.
        """
        secrets = [each for each in _objects(root) if holds_values(each)]
        if not secrets:
            return cls()
        forms = {form for each in secrets for value in _values(each) for form in _forms(value)}
        return cls(tuple(sorted(forms)), "/".join(map(_squashed, _harmless(root))))

    def knowing(self, text: str) -> Withheld:
        """Return the same with another text that is known, such as the template's own."""
        return replace(self, known=f"{self.known}/{_squashed(text)}") if self.values else self

    def parts(self) -> tuple[str, ...]:
        """Return the values without what is known: what is kept for deploy time."""
        familiar = _met(self.known, _runs(self.values))
        return tuple(part for value in self.values for part in _unfamiliar(value, familiar))

    def refuse_names(self, fields: Iterable[tuple[str, str]], where: str) -> None:
        """Refuse names, each given with its field, that are made of a value.

        Raises:
            InvalidError: it says which field and never which value.
        """
        names = [(field, _squashed(text)) for field, text in fields] if self.values else []
        suspect = _shared(self.values, [name for _, name in names])
        suspect -= _met(self.known, suspect)
        for field, name in names if suspect else ():
            if any(run in name for run in suspect):
                raise InvalidError(
                    f"'{field}' is made of a value of a Secret, and names are shown to everybody;"
                    " make it of the Secret's metadata, or of a digest",
                    where=where,
                )


def names(objects: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what objects are known by to everybody, each with its field."""
    for each in objects:
        yield "apiVersion", each["apiVersion"]
        yield "kind", each["kind"]
        yield "metadata.namespace", each["metadata"].get("namespace") or ""
        yield "metadata.name", each["metadata"]["name"]


def replace_values(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return root variables whose Secrets have other values, as long as theirs.

    Text that a template writes alike with both depends on no value.
    """
    changed = dict(root)
    if holds_values(root.get("Resource")):
        changed["Resource"] = _filled(root["Resource"])
    if root.get("Resources"):
        changed["Resources"] = [
            _filled(each) if holds_values(each) else each for each in root["Resources"]
        ]
    return changed


def _filled(secret: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(secret)
    for part in ("data", "stringData"):
        if isinstance(secret.get(part), Mapping):
            changed[part] = {key: _filler(value) for key, value in secret[part].items()}
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(metadata, Mapping) and isinstance(annotations, Mapping):
        kept_ = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
        changed["metadata"] = {**metadata, "annotations": kept_}
    return changed


def _filler(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        size = len(base64.b64decode(value, validate=True))
    except ValueError:
        return "q" * len(value)
    return base64.b64encode(b"q" * size).decode()


def kept(parts: Sequence[str], *known: str) -> Withheld:
    """Return what was kept for deploy time, with what is known there."""
    return Withheld(tuple(parts), "/".join(map(_squashed, known)) if parts else "")


def _objects(root: Mapping[str, Any]) -> list[Any]:
    return [root.get("Resource"), *(root.get("Resources") or ())]


def _values(secret: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of a Secret, also of the copy of it that kubectl keeps in an annotation."""
    for part in ("data", "stringData"):
        held = secret.get(part)
        for value in held.values() if isinstance(held, Mapping) else ():
            if isinstance(value, str):
                yield value
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    kept = annotations.get(LAST_APPLIED) if isinstance(annotations, Mapping) else None
    if isinstance(kept, str):
        try:
            copy = json.loads(kept)
        except (ValueError, RecursionError):
            yield kept
            return
        if isinstance(copy, Mapping):
            without = {key: copy.get(key) for key in ("data", "stringData")}
            yield from _values(without)


def _harmless(root: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of the root variables that are no values of Secrets."""
    for each in _objects(root):
        if not holds_values(each):
            yield from _texts(each)
            continue
        metadata = each.get("metadata")
        for key, value in metadata.items() if isinstance(metadata, Mapping) else ():
            if key == "annotations" and isinstance(value, Mapping):
                yield from _texts({k: v for k, v in value.items() if k != LAST_APPLIED})
            elif key != "managedFields":
                yield from _texts(value)
        yield from (str(each.get(key) or "") for key in ("kind", "apiVersion", "type"))
    yield from _texts(root.get("Cluster"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _forms(value: str) -> Iterator[str]:
    """Yield how a value may turn up: as it is, decoded, and the bytes in hexadecimal."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except ValueError:
        decoded = b""
    texts = [value, decoded.decode("utf-8", "ignore")]
    if len(value) <= _LONG_VALUE:
        encoded = value.encode("utf-8", "replace")
        texts += [base64.b64encode(encoded).decode(), encoded.hex(), decoded.hex()]
    yield from (form for form in map(_squashed, texts) if len(form) >= _SHORTEST)


def _squashed(text: str) -> str:
    return _SQUASHED.sub("", text.lower())


def _run(value: str) -> int:
    """Return how many letters of a value make a name suspect."""
    return _LONG_RUN if len(value) > _LONG_VALUE else min(_RUN, len(value))


def _cut(text: str, run: int) -> Iterator[str]:
    return (text[at : at + run] for at in range(len(text) - run + 1))


def _runs(values: Iterable[str]) -> set[str]:
    return {part for value in values for part in _cut(value, _run(value))}


def _met(text: str, runs: set[str]) -> set[str]:
    """Return the runs that a text has; each length costs one way through the text."""
    lengths = {len(each) for each in runs}
    return {part for run in lengths for part in _cut(text, run) if part in runs}


def _shared(values: Iterable[str], texts: Sequence[str]) -> set[str]:
    """Return the runs of values that texts have; texts are short, and values may be many."""
    cuts = {
        run: {part for text in texts for part in _cut(text, run)}
        for run in (*range(_SHORTEST, _RUN + 1), _LONG_RUN)
    }
    return {
        part
        for value in (values if texts else ())
        for part in _cut(value, _run(value))
        if part in cuts[_run(value)]
    }


def _unfamiliar(value: str, familiar: set[str]) -> Iterator[str]:
    """Yield the parts of a value that are known from nowhere else."""
    run, begin = _run(value), None
    for at, part in enumerate(_cut(value, run)):
        if part not in familiar:
            begin = at if begin is None else begin
        elif begin is not None:
            yield value[begin : at + run - 1]
            begin = None
    if begin is not None:
        yield value[begin:]
