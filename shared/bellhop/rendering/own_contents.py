"""The contents of a profile that users wrote: what each of its refs is to each of its clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap, PolicyRef, Secret
from bellhop.core.names import name_problem, namespace_problem
from bellhop.errors import InvalidError, MissingError, PermanentError
from bellhop.gotemplate import Limits
from bellhop.rendering.event_contents import contents
from bellhop.rendering.event_fields import Fields, resolve
from bellhop.rendering.inputs import Find, Ref, missing
from bellhop.rendering.patches.sources import FIELD, held_patches
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content, PatchText

_WHERE = "{}[{}]"

Read = Callable[[Ref, ConfigMap | Secret | None], tuple[Content, ...]]
"""Reads what a ref names; what is optional may be missing."""

T = TypeVar("T", bound=HeldText)


class OwnRefs(NamedTuple):
    """Refs of a user's own profile are for its destinations, and are looked up by `find`.

    `clusters` are the destinations as templates see them.
    """

    clusters: Sequence[Mapping[str, Any]]
    find: Find
    limits: Limits


class _Part(Struct, frozen=True):
    """A ref as some clusters have it: all, those of a namespace, or some by their keys.

    `wrong` says why these clusters cannot have it.
    """

    ref: Ref
    namespace: str = ""
    clusters: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def for_all(self) -> bool:
        return not self.namespace and not self.clusters

    def limited(self, content: Content) -> Content:
        return replace(content, namespace=self.namespace, clusters=self.clusters)

    def text(self, text: T) -> T:
        return replace(text, namespace=self.namespace, clusters=self.clusters)


def own_contents(
    refs: Sequence[PolicyRef], own: OwnRefs, field: str = "policyRefs"
) -> tuple[Content, ...]:
    """Return the contents of a user's own profile, in the order of its refs, which a field names.

    A ref without a namespace means that of each cluster. A ref with a template in its name or
    namespace is rendered for each cluster. A content that is missing to some clusters, or fails for
    them, is missing only to them.

    Raises:
        PermanentError: as `contents` does, for what is for all clusters or those of a namespace.
    """

    def read(ref: Ref, holder: ConfigMap | Secret | None) -> tuple[Content, ...]:
        return contents([(ref, holder)])

    found: list[Content] = []
    for number, each in enumerate(refs):
        if each.files:
            found.append(Content(str(each), each.files.path, how=each.how, files=each.files))
            continue
        where = _WHERE.format(field, number)
        found += ref_contents(each, own, where, read)
    return tuple(found)


def ref_contents(ref: PolicyRef, own: OwnRefs, where: str, read: Read) -> Iterator[Content]:
    """Yield what one ref is to each of its clusters, as `own_contents` does.

    `where` is where it was written, as `policyRefs[2]`.

    Raises:
        PermanentError: it cannot be had, and is for all clusters or those of a namespace.
    """
    for part in _parts(ref, own, where):
        for content in _contents(part, own.find, where.partition("[")[0], read):
            yield part.limited(content)


def own_patches(refs: Sequence[PolicyRef], own: OwnRefs) -> tuple[PatchText, ...]:
    """Return the patches that `patchesFrom` of a user's own profile names, in their order.

    Raises:
        PermanentError: as `held_patches` does, for what is for all clusters.
    """
    return tuple(own_texts(PatchText, refs, own, FIELD, held_patches))


def own_texts(
    kind: type[T],
    refs: Sequence[PolicyRef],
    own: OwnRefs,
    field: str,
    read: Callable[[Ref, ConfigMap | Secret | None], Iterable[T]],
) -> Iterator[T]:
    """Yield what refs of a field hold, each for its clusters, as texts of a kind.

    A text that cannot be read for some clusters is missing only to them.

    Raises:
        PermanentError: it cannot be had, and is for all clusters.
    """
    for number, ref in enumerate(refs):
        for part in _parts(ref, own, _WHERE.format(field, number)):
            try:
                if part.wrong:
                    raise InvalidError(part.wrong)
                yield from [part.text(each) for each in read(part.ref, own.find(part.ref))]
            except PermanentError as error:
                if part.for_all:
                    raise
                yield part.text(kind("", field, missing=str(error)))


def _parts(ref: PolicyRef, own: OwnRefs, where: str) -> Iterable[_Part]:
    if ref.templated:
        return _for_each(ref, own, where)
    if ref.namespace:
        return [_Part(_make_ref(ref, ref.namespace))]
    namespaces = sorted({each["metadata"]["namespace"] for each in own.clusters})
    return [_Part(_make_ref(ref, namespace), namespace) for namespace in namespaces]


def _make_ref(ref: PolicyRef, namespace: str) -> Ref:
    return Ref(ref.kind, namespace, ref.name, ref.optional, ref.how)


def _for_each(ref: PolicyRef, own: OwnRefs, where: str) -> Iterator[_Part]:
    """Yield a ref as it is rendered, with the clusters for which it is the same."""
    found: dict[tuple[Ref, str], list[str]] = {}
    for cluster in own.clusters:
        namespace = cluster["metadata"]["namespace"]
        try:
            rendered, wrong = _rendered(ref, cluster, own.limits, where), ""
            if rendered is None:
                continue
            each = rendered
        except PermanentError as error:
            each, wrong = _make_ref(ref, ref.namespace or namespace), str(error)
        key = f"{namespace}/{cluster['metadata']['name']}"
        found.setdefault((each, wrong), []).append(key)
    for (each, wrong), keys in found.items():
        yield _Part(each, clusters=tuple(keys), wrong=wrong)


def _rendered(ref: PolicyRef, cluster: Mapping[str, Any], limits: Limits, where: str) -> Ref | None:
    """Return a ref as it is for a cluster; None if it is optional, and no object has such a name.

    Raises:
        TemplateError: its name or namespace is a template that fails.
        InvalidError: what was rendered is no name.
    """
    fields = Fields({"Cluster": cluster}, limits, {})
    (each,) = resolve([ref], fields, namespace=cluster["metadata"]["namespace"], field=where)
    for part, problem in (
        ("namespace", namespace_problem(each.namespace)),
        ("name", name_problem(each.name)),
    ):
        if problem and ref.optional:
            return None
        if problem:
            raise InvalidError(
                f"cannot determine which {ref.kind} is meant: {problem}", where=f"{where}.{part}"
            )
    return each


def _contents(part: _Part, find: Find, field: str, read: Read) -> tuple[Content, ...]:
    """Return the contents of a part; for single clusters, the reason why these have none.

    Raises:
        PermanentError: it cannot be had, and is for all clusters.
    """
    ref = part.ref
    try:
        if part.wrong:
            return (Content(str(ref), "", missing=part.wrong),)
        holder = find(ref)
        if holder or ref.optional:
            return read(ref, holder)
        if part.for_all:
            raise MissingError(missing(ref, field))
        return (Content(str(ref), "", missing=missing(ref, field)),)
    except PermanentError as error:
        if not part.clusters:
            raise
        return (Content(str(ref), "", missing=str(error)),)
