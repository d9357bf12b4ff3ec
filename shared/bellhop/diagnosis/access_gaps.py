"""Objects that service accounts may not read in clusters: reasons for missing matches.

The last answer of a cluster counts, of a minute or an hour ago: resyncs ask again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.match import AccessReview
from bellhop.state.records import Records

if TYPE_CHECKING:
    from bellhop.api.kinds import EventSource, EventTrigger

_NAMED = 3

OFFLINE = (
    "whether service account '{}' may see these objects, or write what is made of them, only its"
    " cluster knows, and it is not asked here"
)


def list_access_gaps(records: Records, cluster: str, source: EventSource) -> Iterator[str]:
    """Yield a sentence for each kind of a source that its account may not read."""
    found: dict[GVK, dict[str, AccessReview]] = {}
    for review in records.permits.of(cluster) if source.account else ():
        if review.account == source.account and review.gvk in source.kinds:
            found.setdefault(review.gvk, {})[review.namespace] = review
    for gvk, reviews in sorted(found.items()):
        yield from _describe_gaps(source.account, gvk, reviews)


def describe_denial(records: Records, cluster: str, account: str, key: ObjectKey) -> str:
    """Return why an account may not read an object; empty where it may."""
    known = [
        kept.value
        for namespace in dict.fromkeys(("", key.namespace))
        if (kept := records.permits.get(cluster, account, key.gvk, namespace))
    ]
    if any(each.allowed and each.at for each in known):
        return ""
    if error := next((each.error for each in known if each.error), ""):
        return _describe_error(account, key.gvk, error)
    if known and known[-1].namespace == key.namespace and known[-1].at:
        return _describe_missing(account, key.gvk, [key.namespace] if key.namespace else [])
    return f"its cluster has not said yet whether service account '{account}' may see it"


def list_offline_gaps(*rules: EventSource | EventTrigger) -> Iterator[str]:
    """Yield what only a cluster knows of rules with an account."""
    yield from dict.fromkeys(OFFLINE.format(each.account) for each in rules if each.account)


def _describe_gaps(account: str, gvk: GVK, reviews: Mapping[str, AccessReview]) -> Iterator[str]:
    if error := next((each.error for each in reviews.values() if each.error), ""):
        yield _describe_error(account, gvk, error)
    wide = reviews.get("")
    if wide and wide.allowed:
        return
    places = sorted(each for each, review in reviews.items() if each and not review.allowed)
    if places:
        yield _describe_missing(account, gvk, places)


def _describe_error(account: str, gvk: GVK, error: str) -> str:
    return f"cannot find out which {gvk.kind} objects service account '{account}' may see: {error}"


def _describe_missing(account: str, gvk: GVK, places: list[str]) -> str:
    named = ", ".join(f"'{each}'" for each in places[:_NAMED])
    more = f" and {len(places) - _NAMED} more" if places[_NAMED:] else ""
    where = f" in namespace{'s' if places[1:] else ''} {named}{more}" if places else ""
    return (
        f"service account '{account}' may not get and list {gvk.kind} objects{where}, so that none"
        " of them matches; bind a role to it that lets it do both"
    )
