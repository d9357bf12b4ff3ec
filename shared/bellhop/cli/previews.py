"""What profiles would change in clusters, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bellhop.cli.output import Column, Row
from bellhop.core.gvk import Identity
from bellhop.deploy import object_diff
from bellhop.diagnosis.names import Titled
from bellhop.operations.previews import Previewed
from bellhop.state.chart import RELEASE_KEY
from bellhop.state.record import Change, Profile

COLUMNS = (
    Column("CLUSTER", "cluster"),
    Column("RESOURCE TYPE", "resourceType"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("ACTION", "action"),
    Column("MESSAGE", "message", prose=True),
    Column("PROFILE", "profile"),
)


_NAMED = 3

SAME, NOT_COMPARED, DIFFERS, REFUSED = "same", "not compared", "differs", "refused"


def sort_of(change: Change) -> str:
    """Say whether an object is the same, was not compared, differs, or was refused."""
    if change.action == "No Action":
        return NOT_COMPARED if change.message == object_diff.NOT_COMPARED else SAME
    return REFUSED if change.action == "Error" else DIFFERS


def nothing(tried: Sequence[Profile], titled: Titled) -> str:
    """Say why nothing is shown: no profile is in DryRun, or these would change nothing so far."""
    if not tried:
        return "No profile is in DryRun."
    names = ", ".join(f"'{titled.shown(each.name)}'" for each in tried[:_NAMED])
    more = f" and {len(tried) - _NAMED} more" if len(tried) > _NAMED else ""
    return (
        f"No change is known of {names}{more} in DryRun: nothing would change, or the dry run has"
        " failed or not run yet; `bellhop get clusterprofiles -o wide` shows which"
    )


def rows(found: Iterable[Previewed], titled: Titled) -> Iterator[Row]:
    """Yield one row for each change; its diff is not in the table."""
    for cluster, profile, change in found:
        yield {
            "cluster": cluster,
            "resourceType": _type(change.key),
            "namespace": change.key.namespace,
            "name": change.key.name,
            "action": change.action,
            "message": change.message,
            "profile": titled.with_kind(profile),
            "diff": change.diff,
        }


def _type(key: Identity) -> str:
    """Return the type of an object; of a release it is sveltosctl's word here."""
    return "helm release" if key[:2] == RELEASE_KEY[:2] else f"{key.group}:{key.kind}"


def texts(found: Iterable[Previewed], titled: Titled) -> Iterator[str]:
    """Yield what would change as text: a line for each object, and its diff."""
    for cluster, profile, change in found:
        if change.action == "No Action":
            continue
        place = "/".join(filter(None, (change.key.namespace, change.key.name)))
        said = f": {change.message}" if change.message else ""
        of = f"of '{titled.shown(profile)}'"
        yield f"{cluster}: {change.action} {change.key.kind} '{place}' {of}{said}"
        yield from change.diff.splitlines()
