"""What a RoleRequest brings: a service account, roles, and a binding of each role to the account.

    roleRefs ─► declared: the account, the roles or templates of them ─► the record
    record ─► for a cluster: templates are rendered ─► a binding beside each role ─► planned as ever

The account is among what the record holds, and so the bindings need nothing else: a rollback, too,
brings the account and the roles of one time. Roles and bindings have names of their own for each
request: two that give rights by the same names do not meet, nor is a role overwritten that somebody
else has made. The account alone is shared: by all that give it rights, and who else brings it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ADOPT
from bellhop.errors import InvalidError
from bellhop.state.record import Content, Handling

_GROUP = "rbac.authorization.k8s.io"
_ACCOUNT = "ServiceAccount"
_BINDINGS = {"Role": "RoleBinding", "ClusterRole": "ClusterRoleBinding"}
_LONGEST = 200
_DIGEST = 12
_SHOWN = 80


def with_account(contents: Sequence[Content], account: str) -> tuple[Content, ...]:
    """Return roles after the account that is to have them, `namespace/name`.

    An account that somebody else has made is good as it is, and stays when the rights go.

    Raises:
        InvalidError: something among them is no role.
    """
    refuse_others(contents)
    namespace, _, name = account.partition("/")
    metadata = {"name": name, "namespace": namespace, "annotations": {ADOPT: "true"}}
    manifest = {"apiVersion": "v1", "kind": _ACCOUNT, "metadata": metadata}
    own = Content(f"{_ACCOUNT} {account}", "", (manifest,), how=Handling(shared=True))
    return (own, *contents)


def with_bindings(contents: Sequence[Content], request: str) -> tuple[Content, ...]:
    """Return what a RoleRequest wants in a cluster, rendered for it: with a binding of each role.

    One that could never be resolved wants nothing.

    Raises:
        InvalidError: something that was rendered is no role.
    """
    if not contents:
        return ()
    own, *roles = contents
    refuse_others(roles)
    [account] = own.manifests
    bound = (each for content in roles for each in _bound(content, account, request))
    return (own, *bound)


def account_of(contents: Sequence[Content]) -> str:
    """Name the account that a RoleRequest gives rights to; empty where it brings nothing."""
    kind, _, account = (contents[0].ref if contents else "").partition(" ")
    return account if kind == _ACCOUNT else ""


def refuse_others(contents: Sequence[Content]) -> None:
    """Refuse what is no role, before anything is written.

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
            {"kind": _ACCOUNT, "name": account["name"], "namespace": account["namespace"]}
        ],
    }
