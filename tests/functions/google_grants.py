"""Read google_rights.json as the proxies of `tests/lab/google_access.py` take it.

Tests of the module hold that file to what Terraform grants, to functions and to people; here its
places become the prefixes of the names that requests have.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

ACCOUNTS = json.loads((Path(__file__).parents[1] / "terraform/google_rights.json").read_text())
OPERATOR, READER = "group:operators@example.com", "user:reader@example.com"

_ROLES = {
    "roles/pubsub.publisher": "pubsub.topics.publish",
    "roles/pubsub.subscriber": "pubsub.subscriptions.consume",
}
"""The permission that functions and people use of a role of Google's own."""

_PLACES = {
    "project ": "projects/",
    "pubsub topic ": "projects/acme/topics/",
    "pubsub subscription ": "projects/acme/subscriptions/",
    "secret manager secret ": "projects/acme/secrets/",
    "storage bucket ": "projects/_/buckets/",
}
"""How a request names the resource of a permission, by how google_rights.json names it."""

_CLAUSE = re.compile(r'resource\.name( == |\.startsWith\()"([^"]+)"')


def granted(
    who: str, project: str, name: str, database: str, *, configuration: bool = False
) -> dict[str, tuple[str, ...]]:
    """Return the permissions of an account of an installation, with the prefixes of resources.

    With `configuration` they are those with the module's variable `configuration_cluster`.
    """
    found: dict[str, list[str]] = defaultdict(list)
    account = ACCOUNTS[who]
    if configuration and who == "sweep":
        former = next(each for each in account if "NAME_abandoned" in each)
        account = {
            **account,
            former.replace("NAME_abandoned", "NAME_kubeconfig"): account[former],
        }
    for place, permissions in account.items():
        for each in permissions:
            found[_ROLES.get(each, each)] += [
                _named(prefix, project, name, database) for prefix in _prefixes(place)
            ]
    return {permission: tuple(prefixes) for permission, prefixes in found.items()}


def _prefixes(place: str) -> list[str]:
    """Return the prefixes of the resources of an entry: `/` ends one with all below, `$` a name."""
    if clauses := _CLAUSE.findall(place):
        return [name + "$" * (how == " == ") for how, name in clauses]
    for kind, start in _PLACES.items():
        if place.startswith(kind):
            return [start + place.removeprefix(kind) + "/"]
    return [place]


def _named(prefix: str, project: str, name: str, database: str) -> str:
    """Write a name of google_rights.json as an installation has it."""
    resource = prefix.replace("databases/NAME", f"databases/{database}")
    resource = resource.replace("NAME-acme", f"{name}-{project}").replace("NAME", name)
    return re.sub("projects/(acme|NUMBER)", f"projects/{project}", resource)
