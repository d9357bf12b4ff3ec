"""The kustomizations of triggers and profiles, with what their references hold, as contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap
from bellhop.api.policy_ref import KustomizationSource, PolicyRef
from bellhop.errors import InvalidError, MissingError, PermanentError
from bellhop.rendering.event_fields import resolve
from bellhop.rendering.event_variables import Event, Holder, held_values
from bellhop.rendering.files import ref_of
from bellhop.rendering.inputs import Ref, missing, refuse_type
from bellhop.rendering.own_contents import OwnRefs, own_texts, ref_contents
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import ENTRY, Content, Kustomization, Substitute

_FIELD = "kustomizationRefs"


def own_kustomizations(sources: Sequence[KustomizationSource], own: OwnRefs) -> Iterator[Content]:
    """Yield the kustomizations of a user's own profile, whose texts are for deploy time.

    A kustomization that lacks something says so when it is deployed: the profile's manifests and
    charts do not depend on it.
    """
    for each in sources:
        try:
            yield from list(_own(each, own))
        except PermanentError as error:
            lacking = Content(str(each.ref), "", missing=str(error), how=each.ref.how)
            yield replace(lacking, kustomization=each.kustomization)


def _own(source: KustomizationSource, own: OwnRefs) -> Iterator[Content]:
    """Yield what one kustomization is to each of its clusters.

    Raises:
        PermanentError: as `own_contents` does.
    """
    field = f"{source.kustomization.field}.valuesFrom"
    read = partial(_held_substitutes, field=field)
    values = own_texts(Substitute, source.values, own, field, read)
    whole = _with_values(source.kustomization, values)
    if source.ref.files:
        yield _unread(whole, str(source.ref), source.ref)
        return
    packed = partial(_packed, whole)
    for content in ref_contents(source.ref, own, whole.field, packed):
        # One that is missing to some clusters is a kustomization, too.
        yield content if content.kustomization else replace(content, kustomization=whole)


def event_kustomizations(event: Event) -> Iterator[Content]:
    """Yield the kustomizations of a trigger, rendered with the event.

    Raises:
        PermanentError: something is missing, or a template fails.
    """
    for each in event.trigger.kustomizations:
        field = f"{each.kustomization.field}.valuesFrom"
        values = (
            _substitute(text)
            for ref in event.refs(each.values, field)
            for text in event.values(ref, event.find(ref), field=field)
        )
        whole = _with_values(_rendered(each.kustomization, event), values)
        if each.ref.files:
            yield _unread(whole, ref_of(event, each.ref), each.ref)
            continue
        (ref,) = resolve([each.ref], event.fields, namespace=event.namespace, field=whole.field)
        holder = event.find(ref)
        if holder is None and not ref.optional:
            raise MissingError(missing(ref, _FIELD))
        yield from _packed(whole, ref, holder)


def _unread(kustomization: Kustomization, name: str, ref: PolicyRef) -> Content:
    """Return a kustomization whose files are read when it is deployed."""
    return Content(name, "", how=ref.how, kustomization=kustomization, files=ref.files)


def _rendered(kustomization: Kustomization, event: Event) -> Kustomization:
    field = kustomization.field
    texts = {"path": kustomization.path, "targetNamespace": kustomization.namespace} | {
        f"components[{number}]": each for number, each in enumerate(kustomization.components)
    }
    made = {name: event.fields.text(text, f"{field}.{name}") for name, text in texts.items()}
    plain = event.are_plain({f"{field}.{name}": text for name, text in texts.items()})
    values = tuple(
        replace(
            each,
            text=event.fields.values(each.text, each.source),
            plain=event.are_plain({each.source: each.text}),
            secret=event.fields.secret,
        )
        for each in kustomization.values
    )
    return replace(
        kustomization,
        path=made.pop("path"),
        namespace=made.pop("targetNamespace"),
        components=tuple(made.values()),
        values=values,
        plain=plain,
    )


def _packed(kustomization: Kustomization, ref: Ref, holder: Holder) -> tuple[Content, ...]:
    """Return a kustomization with the tarball of a ConfigMap or Secret; nothing of none.

    Raises:
        InvalidError: it holds no tarball, or a Secret has a wrong type.
    """
    if holder is None:
        return ()
    secret = not isinstance(holder, ConfigMap)
    if isinstance(holder, ConfigMap):
        tarball = holder.binary_data.get(ENTRY)
    else:
        refuse_type(holder, _FIELD)
        tarball = holder.data.get(ENTRY)
    if not tarball:
        raise InvalidError(
            f"cannot use {ref} in {_FIELD}: it has no entry '{ENTRY}'; make one with `tar -czf"
            f" {ENTRY} -C FOLDER .` and `kubectl create {holder.kind.lower()}"
            f"{' generic' if secret else ''} NAME --from-file={ENTRY}`"
        )
    whole = replace(kustomization, tarball=tarball)
    return (Content(str(ref), ENTRY, secret=secret, how=ref.how, kustomization=whole),)


def _with_values(kustomization: Kustomization, held: Iterable[Substitute]) -> Kustomization:
    """Add values in the order in which Sveltos takes them: those that are no templates win."""
    values = sorted(held, key=lambda each: each.plain)
    return replace(kustomization, values=(*kustomization.values, *values))


def _held_substitutes(ref: Ref, holder: Holder, *, field: str) -> Iterator[Substitute]:
    return map(_substitute, held_values(ref, holder, field=field))


def _substitute(text: HeldText) -> Substitute:
    key = text.source.rpartition("/")[2]
    return Substitute(text.text, text.source, text.plain, text.secret, key=key)
