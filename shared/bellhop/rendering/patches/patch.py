"""Patches as users write them, and objects with them applied, one patch after the other.

A patch without a target names its object itself: by kind, name and, where it says one, namespace.
One that fits no object has no effect, since a profile's patches are for all that it deploys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from bellhop.api.patches import Patch as Written
from bellhop.documents.document import Bounds, read_documents, spell
from bellhop.errors import InvalidError
from bellhop.rendering.patches import json_patch, strategic
from bellhop.rendering.patches.target import admits
from bellhop.rendering.secrecy import LOCALLY
from bellhop.state.content import Target

Manifest = Mapping[str, Any]

_BOUNDS = Bounds(nodes=20_000, documents=100)
_KEPT = ("apiVersion", "kind")
_KEPT_METADATA = ("name", "namespace")
_EMPTY_METADATA = ("labels", "annotations")


class Patch(NamedTuple):
    """One patch: a mapping is a strategic merge, a list the operations of a JSON patch.

    `source` is what errors call it; of a `secret` one they quote nothing.
    """

    content: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    target: Target | None
    source: str
    secret: bool = False

    def fits(self, manifest: Manifest) -> bool:
        """Say whether an object is one that it is for."""
        if self.target is not None:
            return admits(self.target, manifest)
        assert isinstance(self.content, Mapping)
        return _is_named(self.content, manifest)

    def applied(self, manifest: Manifest) -> Manifest | None:
        """Return an object with the patch applied; None if the patch deletes it.

        Raises:
            InvalidError: it does not fit the object.
        """
        try:
            if isinstance(self.content, Mapping):
                made = strategic.merged(manifest, self.content)
                return None if made is strategic.DELETED else _same_object(made, manifest)
            return _same_object(json_patch.patched(manifest, self.content), manifest)
        except InvalidError as error:
            said = f"cannot patch {_shown(manifest)}"
            if self.secret:
                raise type(error)(
                    f"{said}: it does not fit; {LOCALLY}", where=self.source
                ) from None
            raise type(error)(f"{said}: {error}", where=self.source) from error


def read_patches(text: str, target: Target | None, *, source: str) -> tuple[Patch, ...]:
    """Read the patches of a text: a list of operations, or one or more documents to merge.

    Without a target a document may also be a patch with its target, as `patches` has them.

    Raises:
        InvalidError: it is neither, or it has no target and names no object itself.
    """
    documents = read_documents(text, source=source, expand_lists=False, bounds=_BOUNDS)
    if not documents:
        raise InvalidError("the patch is empty", where=source)
    return tuple(patch for each in documents for patch in _read(each.data, target, source))


def _read(content: Any, target: Target | None, source: str) -> Iterator[Patch]:
    if (
        target is None
        and isinstance(content, dict)
        and "patch" in content
        and "kind" not in content
    ):
        yield from _read_written(content, source)
        return
    yield _read_one(content, target, source)


def _read_written(content: dict[str, Any], source: str) -> tuple[Patch, ...]:
    """Read a patch that is written with its target, as `patches` has them."""
    try:
        written = Written.model_validate(content)
    except ValidationError as error:
        where = spell(error.errors()[0]["loc"])
        raise InvalidError(
            f"it is not a patch with a target: {where}: {error.errors()[0]['msg']}", where=source
        ) from None
    target = written.target.record() if written.target else None
    return read_patches(written.patch, target, source=source)


def _read_one(content: Any, target: Target | None, source: str) -> Patch:
    if isinstance(content, list):
        if target is None:
            raise InvalidError(
                "a JSON patch needs a target that says for which objects", where=source
            )
        try:
            json_patch.check(content)
        except InvalidError as error:
            raise InvalidError(str(error), where=source) from error
    elif not isinstance(content, dict):
        raise InvalidError("a patch is a mapping to merge, or a list of operations", where=source)
    elif target is None and not all(_read_kind_and_name(content)):
        raise InvalidError(
            "a patch without a target must say the kind and metadata.name of its object",
            where=source,
        )
    return Patch(content, target, source)


def patched(manifests: Iterable[Manifest], patches: Sequence[Patch]) -> tuple[Manifest, ...]:
    """Return objects with patches applied, in their order; those that a patch deletes are left out.

    Raises:
        InvalidError: a patch does not fit an object that it is for.
    """
    return tuple(each for each in map(_all(patches), manifests) if each is not None)


def _all(patches: Sequence[Patch]) -> Any:
    def apply(manifest: Manifest | None) -> Manifest | None:
        for patch in patches:
            if manifest is not None and patch.fits(manifest):
                manifest = patch.applied(manifest)
        return manifest

    return apply


def _read_kind_and_name(manifest: Manifest) -> tuple[str, str]:
    """Return the kind and name of an object."""
    return str(manifest.get("kind") or ""), str(_metadata(manifest).get("name") or "")


def _is_named(patch: Manifest, manifest: Manifest) -> bool:
    """Say whether a patch names an object: in any version, and any namespace if it says none."""
    namespace = _metadata(patch).get("namespace")
    return (
        _read_kind_and_name(patch) == _read_kind_and_name(manifest)
        and _group(patch) == _group(manifest)
        and namespace in (None, _metadata(manifest).get("namespace"))
    )


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _group(manifest: Manifest) -> str:
    return str(manifest.get("apiVersion") or "").rpartition("/")[0]


def _same_object(made: dict[str, Any], was: Manifest) -> Manifest:
    """Return a patched object under the name of the former: no patch makes another of it."""
    metadata = made.get("metadata")
    kept = {each: _metadata(was)[each] for each in _KEPT_METADATA if each in _metadata(was)}
    others = metadata if isinstance(metadata, dict) else {}
    free = {
        name: value
        for name, value in others.items()
        if name not in _KEPT_METADATA and (value or name not in _EMPTY_METADATA)
    }
    return {**made, **{each: was[each] for each in _KEPT}, "metadata": {**kept, **free}}


def _shown(manifest: Manifest) -> str:
    kind, name = _read_kind_and_name(manifest)
    return f"{kind} '{name}'"
