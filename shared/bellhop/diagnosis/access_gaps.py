"""What service accounts may not see in clusters, in sentences: why a tenant's source matches less.

What a cluster said last is told, be it a minute old or an hour: sweeps ask again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.record import AccessReview
from bellhop.state.records import Records

_NAMED = 3

OFFLINE = (
    "whether service account '{}' may see these objects, or write what is made of them, only its"
    " cluster knows, and it is not asked here"
)


def lacks(records: Records, cluster: str, source: EventSource) -> Iterator[str]:
    """Yield what the account of a source may not see of the kinds that it names, once each."""
    found: dict[GVK, dict[str, AccessReview]] = {}
    for permit in records.permits.of(cluster) if source.account else ():
        if permit.account == source.account and permit.gvk in source.kinds:
            found.setdefault(permit.gvk, {})[permit.namespace] = permit
    for gvk, permits in sorted(found.items()):
        yield from _lacking(source.account, gvk, permits)


def denied(records: Records, cluster: str, account: str, key: ObjectKey) -> str:
    """Say why an account does not see an object; empty where it does."""
    known = [
        kept.value
        for namespace in dict.fromkeys(("", key.namespace))
        if (kept := records.permits.get(cluster, account, key.gvk, namespace))
    ]
    if any(each.allowed and each.at for each in known):
        return ""
    if error := next((each.error for each in known if each.error), ""):
        return _unanswered(account, key.gvk, error)
    if known and known[-1].namespace == key.namespace and known[-1].at:
        return _sentence(account, key.gvk, [key.namespace] if key.namespace else [])
    return f"its cluster has not said yet whether service account '{account}' may see it"


def offline(*rules: EventSource | EventTrigger) -> Iterator[str]:
    """Yield what nobody can know of rules with an account where no cluster is asked."""
    yield from dict.fromkeys(OFFLINE.format(each.account) for each in rules if each.account)


def _lacking(account: str, gvk: GVK, permits: Mapping[str, AccessReview]) -> Iterator[str]:
    if error := next((each.error for each in permits.values() if each.error), ""):
        yield _unanswered(account, gvk, error)
    wide = permits.get("")
    if wide and wide.allowed:
        return
    places = sorted(each for each, permit in permits.items() if each and not permit.allowed)
    if places:
        yield _sentence(account, gvk, places)


def _unanswered(account: str, gvk: GVK, error: str) -> str:
    return f"cannot find out which {gvk.kind} objects service account '{account}' may see: {error}"


def _sentence(account: str, gvk: GVK, places: list[str]) -> str:
    named = ", ".join(f"'{each}'" for each in places[:_NAMED])
    more = f" and {len(places) - _NAMED} more" if places[_NAMED:] else ""
    where = f" in namespace{'s' if places[1:] else ''} {named}{more}" if places else ""
    return (
        f"service account '{account}' may not get and list {gvk.kind} objects{where}, so that none"
        " of them matches; bind a role to it that lets it do both"
    )
