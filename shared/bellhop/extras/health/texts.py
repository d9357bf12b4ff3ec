"""Texts of notifications: Bellhop's own, or those of a template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.catalog.catalog import cluster_object
from bellhop.core.digest import digest
from bellhop.core.sveltos_annotations import NOTICE
from bellhop.errors import TemplateError

if TYPE_CHECKING:
    from bellhop.api.health_check import ClusterHealthCheck
    from bellhop.documents.document import Path
    from bellhop.extras.health.records import Condition
    from bellhop.gotemplate import Limits
    from bellhop.state.cluster import Cluster

_NAME = f"annotation {NOTICE}"
_LONGEST_SUBJECT = 200
_LONGEST_TEXT = 4000
"""Characters that every chat takes."""

_LONGEST_MESSAGE = 1024
"""Bytes that Kubernetes takes in the message of an Event."""

_LONGEST_NAME = 200
_NAMED = 5


class NotificationText(NamedTuple):
    """Text of a notification: a line, and the whole, which begins with it."""

    subject: str
    text: str


def words(
    check: ClusterHealthCheck,
    cluster: Cluster,
    found: Condition,
    limits: Limits,
    others: Sequence[str] = (),
) -> NotificationText:
    """Return the text for a cluster's state by a check, with the number of clusters in the same.

    If a template fails, Bellhop's own text is sent with the error.
    """
    subject, text = _of_one(check, cluster, found, limits)
    if not others:
        return NotificationText(subject, text)
    named = ", ".join([cluster.key, *others][:_NAMED])
    more = f" and {len(others) + 1 - _NAMED} more" if len(others) >= _NAMED else ""
    counted = f"It is so in {len(others) + 1} clusters: {named}{more}."
    return NotificationText(f"{subject}, and {len(others)} more", f"{text}\n{counted}")


def alike(one: Condition, of: str, other: Condition, another: str) -> bool:
    """Return whether two clusters are healthy, or unhealthy for the same reason."""
    if one.healthy or other.healthy:
        return one.healthy == other.healthy
    return one.message.replace(of, "") == other.message.replace(another, "")


def _of_one(
    check: ClusterHealthCheck, cluster: Cluster, found: Condition, limits: Limits
) -> NotificationText:
    template = check.annotations.get(NOTICE, "")
    if not template.strip():
        return _ours(check, cluster, found)
    try:
        text = _rendered(template, _variables(check, cluster, found), limits)
    except TemplateError as error:
        subject, text = _ours(check, cluster, found)
        return NotificationText(subject, f"{text}\nThe template of this notice fails: {error}")
    # The header of a mail takes nothing that moves a cursor.
    first = "".join(filter(str.isprintable, next(iter(text.splitlines()), "")))
    subject = first.strip()[:_LONGEST_SUBJECT]
    return (
        NotificationText(subject, text[:_LONGEST_TEXT]) if subject else _ours(check, cluster, found)
    )


def objections(check: ClusterHealthCheck) -> Iterator[tuple[Path, str]]:
    """Yield where the template of a check's notices stands if it is none, and why."""
    from bellhop import gotemplate  # noqa: PLC0415 - few word their notices

    try:
        gotemplate.compile_template(
            check.annotations.get(NOTICE, ""), name=_NAME, funcs=gotemplate.event_functions()
        )
    except gotemplate.GoTemplateError as error:
        said = f"the template of notices cannot be read; correct it, or leave it out: {error}"
        yield ("metadata", "annotations", NOTICE), said


def event(check: ClusterHealthCheck, cluster: str, found: Condition, text: str) -> dict[str, Any]:
    """Return the Kubernetes Event for a cluster's state; two with the same content are one.

    As in Sveltos its reason is ClusterHealthCheck, which is also its object; Events of
    cluster-scoped objects are in `default`.
    """
    since = _since(found)
    message = text.encode()[:_LONGEST_MESSAGE].decode("utf-8", "ignore")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{check.name[:_LONGEST_NAME].rstrip('.-')}.{_identity(check, cluster, found)}",
            "namespace": "default",
        },
        "involvedObject": {
            "apiVersion": check.api_version,
            "kind": check.kind,
            "name": check.name,
        },
        "type": "Normal" if found.healthy else "Warning",
        "reason": "ClusterHealthCheck",
        "message": message,
        "source": {"component": "bellhop"},
        "firstTimestamp": since,
        "lastTimestamp": since,
        "count": 1,
    }


def facts(check: ClusterHealthCheck, cluster: Cluster, found: Condition) -> dict[str, Any]:
    """Return how a cluster is for programs; two reports of one event have one id.

    That a cluster is unhealthy and that it is healthy again is one incident.
    """
    return {
        "id": _identity(check, cluster.key, found),
        "incident": digest([check.name, cluster.key])[:16],
        "cluster": cluster.key,
        "clusterHealthCheck": check.name,
        "healthy": found.healthy,
        "message": found.message,
        "since": _since(found),
    }


def _identity(check: ClusterHealthCheck, cluster: str, found: Condition) -> str:
    return digest([check.name, cluster, found.healthy, found.since.isoformat()])[:16]


def _since(found: Condition) -> str:
    return f"{found.since:%Y-%m-%dT%H:%M:%SZ}"


def _ours(check: ClusterHealthCheck, cluster: Cluster, found: Condition) -> NotificationText:
    state = "healthy again" if found.healthy else "unhealthy"
    subject = f"Cluster {cluster.key} is {state} ({check.name})"
    since = f"{found.since:%Y-%m-%d %H:%M} UTC"
    return NotificationText(subject, f"{subject}\n{found.message}\nSince {since}.")


def _variables(check: ClusterHealthCheck, cluster: Cluster, found: Condition) -> dict[str, Any]:
    return {
        "Cluster": cluster_object(cluster),
        "ClusterHealthCheck": check.manifest(),
        "Healthy": found.healthy,
        "Message": found.message,
        "Since": _since(found),
    }


def _rendered(template: str, variables: dict[str, Any], limits: Limits) -> str:
    from bellhop.rendering.templates import render  # noqa: PLC0415 - as above

    return render(template, variables, name=_NAME, limits=limits).strip()
