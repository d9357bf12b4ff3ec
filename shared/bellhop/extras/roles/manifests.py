"""Manifests of a RoleRequest: a service account, roles, and a binding of each role to the account.

    roleRefs ─► manifests: the account, the roles or templates of them ─► the record
    record ─► for a cluster: templates are rendered ─► a binding beside each role ─► planned

The account is in the record, and the bindings need nothing else: a rollback, too, deploys the
account and the roles of one time. Roles and bindings have names of their own for each request: two
requests with roles of one name do not conflict, and no other role is overwritten. Only the account
is shared, by all requests and other profiles that have it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ADOPT
from bellhop.errors import InvalidError
from bellhop.state.content import SERVICE_ACCOUNT, Content, Handling

_GROUP = "rbac.authorization.k8s.io"
_BINDINGS = {"Role": "RoleBinding", "ClusterRole": "ClusterRoleBinding"}
_LONGEST = 200
_DIGEST = 12
_SHOWN = 80


def with_account(contents: Sequence[Content], account: str) -> tuple[Content, ...]:
    """Return roles after their account, `namespace/name`.

    An existing account of another owner is used as it is, and stays when the rights are removed.

    Raises:
        InvalidError: one of them is no role.
    """
    refuse_others(contents)
    namespace, _, name = account.partition("/")
    metadata = {"name": name, "namespace": namespace, "annotations": {ADOPT: "true"}}
    manifest = {"apiVersion": "v1", "kind": SERVICE_ACCOUNT, "metadata": metadata}
    own = Content(f"{SERVICE_ACCOUNT} {account}", "", (manifest,), how=Handling(shared=True))
    return (own, *contents)


def with_bindings(contents: Sequence[Content], request: str) -> tuple[Content, ...]:
    """Return the desired objects of a RoleRequest, rendered for a cluster: with bindings.

    A request that could never be resolved has none.

    Raises:
        InvalidError: a rendered object is no role.
    """
    if not contents:
        return ()
    own, *roles = contents
    refuse_others(roles)
    [account] = own.manifests
    bound = (each for content in roles for each in _bound(content, account, request))
    return (own, *bound)


def refuse_others(contents: Sequence[Content]) -> None:
    """Refuse objects that are no roles, before anything is written.

    Raises:
        InvalidError: it names the first such object.
    """
    for content in contents:
        for manifest in content.manifests:
            gvk = GVK.parse(manifest["apiVersion"], manifest["kind"])
            if gvk.group != _GROUP or gvk.kind not in _BINDINGS:
                name = str(manifest["metadata"]["name"])[:_SHOWN]
                raise InvalidError(
                    f"cannot grant what {content.ref}, {content.entry} holds: {gvk.kind[:_SHOWN]}"
                    f" '{name}' is neither a Role nor a ClusterRole; take it out, and deploy it"
                    " by a ClusterProfile"
                )


def _bound(content: Content, account: Mapping[str, Any], request: str) -> tuple[Content, Content]:
    """Return the roles of a content under the names that they get, and their bindings."""
    roles = tuple(_renamed(each, request) for each in content.manifests)
    bindings = tuple(_binding(each, account["metadata"]) for each in roles)
    return replace(content, manifests=roles), replace(content, manifests=bindings)


def _renamed(role: Mapping[str, Any], request: str) -> dict[str, Any]:
    name = role["metadata"]["name"]
    suffix = hashlib.sha256(f"{request}\0{name}".encode()).hexdigest()[:_DIGEST]
    return {**role, "metadata": {**role["metadata"], "name": f"{name[:_LONGEST]}-{suffix}"}}


def _binding(role: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Return what binds a role, under its name: what it refers to never changes, as is demanded."""
    kind, place = role["kind"], role["metadata"]
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": _BINDINGS[kind],
        "metadata": {each: place[each] for each in ("name", "namespace") if place.get(each)},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": place["name"]},
        "subjects": [
            {"kind": SERVICE_ACCOUNT, "name": account["name"], "namespace": account["namespace"]}
        ],
    }
