"""The objects that templates of deploy time read, as templateResourceRefs name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from bellhop.api.kinds import KINDS, ConfigMap, Secret
from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.core.identity import check_key
from bellhop.errors import InvalidError, PermanentError
from bellhop.gotemplate import Limits
from bellhop.rendering.event_fields import Fields
from bellhop.rendering.inputs import MissingInputError
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.content import Address, Reading, shown_url

Read = Callable[[Reading], Mapping[str, Any] | None]
"""Reads an object whose names are no templates any more; None where it is not there."""

CLUSTER = "SveltosCluster"
"""The kind as which a template reads a cluster."""

_HOLDERS = frozenset({"ConfigMap", "Secret"})


def render_readings(readings: Iterable[Reading], fields: Fields) -> tuple[Reading, ...]:
    """Render the names of objects with an event.

    Raises:
        TemplateError: a name is a template that fails.
        InvalidError: a name is made of a Secret's value.
    """
    return tuple(
        _rendered(each, fields, each.field or f"templateResourceRefs[{number}].resource")
        for number, each in enumerate(readings)
    )


def _rendered(each: Reading, fields: Fields, where: str) -> Reading:
    if each.plain:
        return each
    if each.address:
        address = _address(each.address, fields, f"{where}.remoteURL")
        # Its name is a part of the URL, and half a template is none.
        return replace(each, name=shown_url(address.url), address=address)
    return replace(
        each,
        namespace=fields.text(each.namespace, f"{where}.namespace"),
        name=fields.text(each.name, f"{where}.name"),
    )


def _address(each: Address, fields: Fields, where: str) -> Address:
    return replace(
        each,
        url=fields.text(each.url, f"{where}.url"),
        secret=fields.text(each.secret, f"{where}.secretRef.name"),
        namespace=fields.text(each.namespace, f"{where}.secretRef.namespace"),
    )


def read_referred(
    readings: Iterable[Reading], cluster: Mapping[str, Any], read: Read, limits: Limits
) -> dict[str, dict[str, Any]]:
    """Return objects by identifier for a destination; what is optional may be missing.

    Raises:
        TemplateError: a name is a template that fails.
        MissingInputError: an object is not there, and is not optional.
    """
    found: dict[str, dict[str, Any]] = {}
    for each in place_readings(readings, cluster, limits):
        manifest = read(each)
        if manifest is not None:
            found[each.identifier] = dict(manifest)
        elif not each.optional:
            raise MissingInputError(_missing(each))
    return found


def _missing(each: Reading) -> str:
    what = f"cannot find {each.kind} '{each.namespace}/{each.name}'"
    if each.field:
        where = f"apply it in cluster '{MANAGEMENT}', or mark the ref optional"
        return f"{what} that {each.field} names; {where}"
    # Not where the event was, which people try first.
    where = f"among what is applied to Bellhop or in cluster '{MANAGEMENT}'"
    named = f"templateResourceRefs names it as '{each.identifier}'"
    return f"{what} {where}; {named}: apply it, or mark it optional"


def place_readings(
    readings: Iterable[Reading], cluster: Mapping[str, Any], limits: Limits
) -> list[Reading]:
    """Render the names of objects for a destination; an empty namespace is that of it.

    Raises:
        TemplateError: a name is a template that fails.
    """
    here = cluster["metadata"]["namespace"]
    found = render_readings(readings, Fields({"Cluster": cluster}, limits, {}))
    return [default_namespace(each, here) for each in found]


def default_namespace(each: Reading, namespace: str) -> Reading:
    """Return a reading that names a namespace, which is this one where it named none."""
    address = each.address
    if address:
        place = address.namespace or namespace
        return replace(each, address=replace(address, namespace=place))
    return replace(each, namespace=each.namespace or namespace)


def format_holder(holder: ConfigMap | Secret) -> dict[str, Any]:
    """Return a ConfigMap or Secret as an API server would show it: a Secret's data in base64."""
    manifest = holder.manifest()
    manifest.pop("stringData", None)
    if isinstance(holder, Secret):
        manifest["data"] = dict(holder.data)
        manifest["type"] = holder.type
    manifest["metadata"] = {**manifest["metadata"], "namespace": holder.namespace}
    return manifest


def is_in_management(reading: Reading) -> bool:
    """Return whether an object is read in `mgmt/mgmt`, and never from the records."""
    kind = reading.kind
    if reading.address:
        return False
    return kind != CLUSTER and (kind not in KINDS or reading.api_version not in KINDS[kind][1])


def may_be_in_management(reading: Reading) -> bool:
    """Return whether an object is read in `mgmt/mgmt`, if only where none is declared.

    A ConfigMap or Secret that nobody applied here and no trigger generated is looked up there.
    """
    return reading.kind in _HOLDERS or is_in_management(reading)


def read_from_management(
    readings: Iterable[Reading],
    cluster: Mapping[str, Any],
    limits: Limits,
    is_declared: Callable[[Reading], bool],
) -> set[Identity]:
    """Return the objects of `mgmt/mgmt` that templates read for a destination.

    `is_declared` says of a ConfigMap or Secret whether it is read from the records. A ref that
    cannot be named, or has an invalid name, is left out: its reader reports the error.
    """
    try:
        found = place_readings(filter(may_be_in_management, readings), cluster, limits)
    except PermanentError:
        return set()
    keys = set()
    for each in found:
        if not is_in_management(each) and is_declared(each):
            continue
        key = ObjectKey(GVK.parse(each.api_version, each.kind), each.namespace, each.name)
        with suppress(InvalidError):
            check_key(key)
            keys.add(key.identity)
    return keys
