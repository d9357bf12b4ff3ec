"""The ConfigMaps, Secrets and files that a profile is rendered from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from bellhop.api.kinds import ConfigMap, Declaration, Secret
from bellhop.core.digest import digest
from bellhop.core.sveltos_annotations import WITHHELD
from bellhop.errors import InvalidError, MissingError
from bellhop.rendering.origin_labels import GENERATED
from bellhop.state.content import PLAIN, Handling, ref_name

_LENGTH = 16

INSTANTIATE = "projectsveltos.io/instantiate"
TEMPLATE = "projectsveltos.io/template"
_MAY_BE_OPTIONAL = ("policyRefs", "kustomizationRefs", "patchesFrom", "valuesFrom")
SECRET_TYPE = "addons.projectsveltos.io/cluster-profile"  # noqa: S105 - a Secret's type, not one


class MissingInputError(MissingError):
    """An object that a profile is rendered from does not exist; its appearance is a new try."""


class Files(NamedTuple):
    """Texts that are read as the entries of a ConfigMap are."""

    kind: str
    place: str
    texts: Mapping[str, str]
    annotations: Mapping[str, str]


class Ref(Struct, frozen=True):
    """A ConfigMap or Secret that a profile takes its manifests from, with its final name."""

    kind: str
    namespace: str
    name: str
    optional: bool
    how: Handling = PLAIN

    def __hash__(self) -> int:
        return hash((self.kind, self.namespace, self.name, self.optional))

    def __str__(self) -> str:
        return ref_name(self.kind, self.namespace, self.name)


def entries_of(holder: ConfigMap | Secret | Files, field: str = "policyRefs") -> dict[str, str]:
    """Return the entries of a ConfigMap or Secret that a field names, or the files.

    Raises:
        InvalidError: a Secret has a wrong type, or an entry is no text.
    """
    if isinstance(holder, Files):
        return dict(holder.texts)
    if isinstance(holder, ConfigMap):
        return dict(holder.data)
    refuse_type(holder, field)
    try:
        return {entry: value.decode() for entry, value in holder.decoded().items()}
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"cannot use Secret '{holder.namespace}/{holder.name}' in {field}: an entry is not"
            " UTF-8 text"
        ) from error


def refuse_type(secret: Secret, field: str) -> None:
    """Refuse a Secret of another type than add-ons have, as Sveltos does.

    Raises:
        InvalidError: it has another type.
    """
    if secret.type != SECRET_TYPE:
        raise InvalidError(
            f"cannot use Secret '{secret.namespace}/{secret.name}' in {field}: unsupported"
            f" secret type '{secret.type}'; it must be '{SECRET_TYPE}'"
        )


def missing(ref: Ref, field: str = "policyRefs") -> str:
    """Return the error that the object of a ref in a field does not exist, with its cure."""
    cure = "apply it, or mark the ref optional" if field.endswith(_MAY_BE_OPTIONAL) else "apply it"
    return f"cannot find {ref} that {field} names; {cure}"


def is_secret(holder: ConfigMap | Secret | Files) -> bool:
    """Return whether no error may quote the values of an object."""
    return isinstance(holder, Secret) or WITHHELD in holder.annotations


Find = Callable[[Ref], ConfigMap | Secret | None]
"""Looks up a ConfigMap or Secret; None where it does not exist."""


class Inputs:
    """Looks up the inputs of a profile, and notes those that were declared.

    Objects that a generator wrote are not noted: they change with events.
    """

    def __init__(self, find: Find, *rules: Declaration) -> None:
        self._find = find
        self.noted = {f"{each.kind} {each.place}": _mark(each) for each in rules}

    def find(self, ref: Ref) -> ConfigMap | Secret | None:
        """Look up what a ref names, and note it."""
        found = self._find(ref)
        if found and not GENERATED.items() <= found.metadata.labels.items():
            self.noted[str(ref)] = _mark(found)
        return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences of two declarations: `ConfigMap default/web changed`."""
    for name in sorted({*before, *after}):
        if name not in before:
            yield f"{name} added"
        elif name not in after:
            yield f"{name} removed"
        elif before[name] != after[name]:
            yield f"{name} changed"


def written_mark(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a manifest among the inputs, as it was written."""
    return digest(manifest)[:_LENGTH]


def _mark(declared: Declaration) -> str:
    return written_mark(declared.written)
