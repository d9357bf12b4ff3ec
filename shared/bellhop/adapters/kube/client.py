"""One Kubernetes cluster as the port `Kube` has it, with a discovery of our own.

Objects go in and out as plain dicts, so that integers stay integers and nothing is wrapped.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from copy import copy
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from bellhop.adapters.kube import applying
from bellhop.adapters.kube.discovery import Discovery, group_path
from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.objects import (
    TOO_DEEP,
    collection_path,
    expect_object,
    expect_status,
    home_namespace,
    is_too_deep,
    object_path,
    read_key,
    read_page,
)
from bellhop.adapters.kube.page_sizes import PageSizes
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import (
    MERGE,
    Acting,
    Renew,
    Request,
    Sends,
    Transport,
    read_answer,
)
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.core.identity import MANAGER
from bellhop.core.terminating_objects import is_terminating
from bellhop.errors import (
    InvalidError,
    MissingError,
    StaleError,
    TooLargeError,
    UnreachableError,
)
from bellhop.ports.kube import Manifest, Page

PAGE = 500
_RESTARTS = 3
# What no list of an API server that means well exceeds.
_MOST = 1_000_000
_BARREN = 1_000
_STATUS = "status"
# It is shown and kept.
_VERSION = re.compile(r"[A-Za-z0-9.+~_-]{1,64}")
_SECRET = GVK("", "v1", "Secret")


class Right(NamedTuple):
    """One right to ask for; an empty namespace, or name of an object, means all of them."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class KubeClient:
    """Objects of one cluster; shared between threads."""

    def __init__(
        self,
        name: str,
        kubeconfig: Kubeconfig,
        *,
        renew: Renew = lambda _: None,
        reach: AddressPolicy = PUBLIC,
    ) -> None:
        self._name = name
        self._server = kubeconfig.server
        self._renew = renew
        self._transport: Sends = Transport(
            name, kubeconfig, renew=self._renew_credentials, reach=reach
        )
        # Which kinds are served, and as what, is no tenant's secret: it is asked for once, by us.
        self._discovery = Discovery(name, self._transport)
        self._sizes = PageSizes()
        # Of which kinds a new object is refused for its condition, by servers that cannot take it.
        self._doubted: applying.Doubted = set()

    def acting_as(self, account: str) -> KubeClient:
        """Return a client with the rights of a service account, over the same connections."""
        acting = copy(self)
        vars(acting)["_transport"] = Acting(self._transport, account)
        return acting

    @property
    def kubeconfig(self) -> Kubeconfig:
        return self._transport.kubeconfig

    def resource(self, gvk: GVK) -> Resource | None:
        return self._discovery.find(gvk)

    def served(self, group: str, kind: str) -> Resource | None:
        return next(self._discovery.served(group, kind), None)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        return tuple(each.gvk.version for each in self._discovery.served(group, kind))

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        call = self._call("read", gvk, namespace, name)
        answer = self._ask(Request("GET", ""), gvk, name, call)
        if isinstance(answer, Refusal):
            return None
        found = expect_object(answer, call)
        if is_too_deep(found):
            raise TooLargeError(f"{call}: it is {TOO_DEEP}")
        return found

    def page(
        self, gvk: GVK, *, limit: int, after: str = "", namespace: str = "", labels: str = ""
    ) -> Page:
        call = self._call("list", gvk, namespace, "")
        resource = self._find_resource(gvk, call)
        path = collection_path(resource, call.namespace, call)
        query = {"labelSelector": labels} if labels else {}
        query |= {"continue": after} if after else {}
        request = Request("GET", path, query, answers_json=False)
        answer, problem = self._sizes.read(self._transport, request, gvk, limit, call)
        if isinstance(answer, Refusal):
            raise self._translate_refusal(answer, gvk, call)
        page = read_page(read_answer(answer, call), gvk, call, problem)
        return page._replace(size=len(answer))

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        call = self._call("list", gvk, namespace, "")
        seen: set[tuple[str, str]] = set()
        for item in self._items(gvk, namespace, labels, call):
            metadata = item["metadata"]
            key = (str(metadata.get("uid", "")), str(metadata.get("resourceVersion", "")))
            if key not in seen:
                seen.add(key)
                yield item

    def apply(
        self,
        manifest: Manifest,
        *,
        uid: str | None = None,
        version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        key = read_key(manifest, self._name)
        call = self._call("apply", key.gvk, key.namespace, key.name)
        resource = self._find_resource(key.gvk, call)
        call = self._call("apply", key.gvk, home_namespace(resource, key.namespace), key.name)
        path = object_path(resource, call, key.name)
        body = applying.applicable(manifest, call.namespace, uid, version)
        answer = applying.apply(self._transport, path, body, call, self._doubted, dry_run=dry_run)
        if isinstance(answer, Refusal):
            raise self._translate_refusal(answer, key.gvk, call)
        applied = expect_object(answer, call)
        if not applied.get("metadata", {}).get("uid"):
            raise UnreachableError(f"{call}: the answer is an object without a uid")
        return applied

    def merge_status(self, manifest: Manifest, *, uid: str) -> None:
        call, path, key = self._find_status(manifest)
        patch = {"metadata": {"uid": uid}, "status": manifest["status"]}
        request = Request("PATCH", path, {"fieldManager": MANAGER}, patch, MERGE)
        self._write_status(request, key.gvk, call)

    def apply_status(self, manifest: Manifest, *, uid: str) -> None:
        call, path, key = self._find_status(manifest)
        request = applying.make_status_request(path, manifest, call.namespace, uid)
        self._write_status(request, key.gvk, call)

    def _find_status(self, manifest: Manifest) -> tuple[Call, str, ObjectKey]:
        """Return the call that writes a status, the path that it goes to, and the object's key."""
        key = read_key(manifest, self._name)
        call = self._call("write the status of", key.gvk, key.namespace, key.name)
        resource = self._find_resource(key.gvk, call)
        if _STATUS not in resource.subresources:
            raise InvalidError(f"{call}: the kind has no status of its own; leave it out")
        call = replace(call, namespace=home_namespace(resource, key.namespace))
        return call, f"{object_path(resource, call, key.name)}/{_STATUS}", key

    def _write_status(self, request: Request, gvk: GVK, call: Call) -> None:
        answer = self._transport.ask(request, call)
        if isinstance(answer, Refusal):
            if answer.code == HTTPStatus.NOT_FOUND:
                raise StaleError(f"{call}: it is gone")
            raise self._translate_refusal(answer, gvk, call)

    def merge(self, gvk: GVK, namespace: str, name: str, patch: Manifest) -> bool:
        call = self._call("change", gvk, namespace, name)
        request = Request("PATCH", "", {"fieldManager": MANAGER}, patch, MERGE)
        return not isinstance(self._ask(request, gvk, name, call), Refusal)

    def knock(self, gvk: GVK, namespace: str, name: str, *, manager: str) -> str:
        """Send an empty dry-run patch of an object, for which the API server calls its webhooks.

        Return the warnings of webhooks that answered, as in HTTP; empty if there are none.
        """
        call = self._call("call the webhooks by a dry run of", gvk, namespace, name)
        query = {"fieldManager": manager, "dryRun": "All"}
        request = Request("PATCH", "", query, {}, MERGE, warns=True)
        answer = self._ask(request, gvk, name, call)
        return "" if isinstance(answer, Refusal) else str(answer)

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Manifest | None:
        call = self._call("remove", gvk, namespace, name)
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            request = Request("DELETE", "", body=options)
            answer = self._ask(request, gvk, name, call)
        except MissingError:
            if self._way(gvk) is None:
                return None
            raise
        except StaleError:
            there = self.get(gvk, namespace, name) if uid else {}
            if there is None or (uid and there.get("metadata", {}).get("uid") != uid):
                return None
            raise
        if isinstance(answer, Refusal):
            return None
        if gvk[::2] == ("", "Service") and answer.get("kind") == "Status":
            # API servers before 1.23 answer so even if a finalizer keeps the Service.
            answer = self.get(gvk, namespace, name) or {}
        return answer if is_terminating(answer) else {}

    @property
    def skew(self) -> timedelta | None:
        return self._transport.skew

    @property
    def ends_at(self) -> datetime | None:
        return self._transport.ends_at

    def version(self) -> str:
        call = Call(self._name, "read the version")
        answer = expect_object(self._transport.send(Request("GET", "/version"), call), call)
        version = str(answer.get("gitVersion") or "")
        return version if _VERSION.fullmatch(version) else "unknown"

    def issuer(self) -> tuple[str, Manifest]:
        call = Call(self._name, "read the keys of its service accounts")
        described = self._transport.send(Request("GET", "/.well-known/openid-configuration"), call)
        issuer = expect_object(described, call).get("issuer")
        if not issuer or not isinstance(issuer, str):
            raise UnreachableError(f"{call}: the answer names no issuer")
        # An API server has its keys in no other form.
        keys = Request("GET", "/openid/v1/jwks", accept="application/jwk-set+json")
        return issuer, expect_object(self._transport.send(keys, call), call)

    def proxied(self, namespace: str, service: str, path: str) -> bytes:
        call = Call(self._name, f"download '{path}' from Service '{namespace}/{service}'")
        place = quote(namespace, safe=""), quote(service, safe=":"), quote(path)
        where = "/api/v1/namespaces/{}/services/{}/proxy/{}".format(*place)
        request = Request("GET", where, accept="*/*", answers_json=False)
        answer = self._transport.ask(request, call)
        if isinstance(answer, Refusal):
            if answer.code == HTTPStatus.NOT_FOUND:
                raise MissingError(f"{call}: it is not there")
            raise refusal_error(answer, call)
        return bytes(answer)

    def rights(self, checks: Sequence[tuple[str, ...]]) -> builtins.list[Right]:
        return [
            right for right in (Right(*check) for check in checks) if not self._review_right(right)
        ]

    def token_request(
        self, namespace: str, service_account: str, audience: str = "", seconds: int = 3600
    ) -> str:
        """Ask for a token of a service account; the API server may give it another lifetime."""
        call = Call(
            self._name,
            f"make a token of service account '{namespace}/{service_account}'",
            namespace,
        )
        spec: dict[str, Any] = {"expirationSeconds": seconds}
        spec |= {"audiences": [audience]} if audience else {}
        accounts = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts", namespaced=True)
        path = object_path(accounts, call, service_account) + "/token"
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self._transport.send(Request("POST", path, body={**kind, "spec": spec}), call)
        token = expect_status(answer, call).get("token")
        if not token or not isinstance(token, str):
            raise UnreachableError(f"{call}: the answer holds no token")
        return token

    def close(self) -> None:
        """Close the idle connections; those in use finish first."""
        self._transport.close()

    def _renew_credentials(self, refused: Kubeconfig) -> Kubeconfig | None:
        """Read the credentials again; another server has other kinds."""
        kubeconfig = self._renew(refused)
        if kubeconfig is not None and kubeconfig.server != self._server:
            self._server = kubeconfig.server
            self._discovery.clear()
        return kubeconfig

    def _ask(self, request: Request, gvk: GVK, name: str, call: Call) -> Any:
        """Ask about one object, in any version; a `Refusal` says that it is not there.

        Raises:
            MissingError: no version is served.
        """
        first = way = self._way(gvk)
        while True:
            if way is None:
                raise MissingError(f"{call}: the cluster does not serve {gvk} in any version")
            answer = self._transport.ask(replace(request, path=object_path(way, call, name)), call)
            if not isinstance(answer, Refusal) or answer.names(way.plural, gvk.kind, name):
                return answer
            error = self._translate_refusal(answer, way.gvk, call)
            if not isinstance(error, MissingError) or way is not first:
                raise error
            # What was known of the kind is wrong: it may be served in another way by now.
            way = self._way(gvk)
            if way == first:
                raise error

    def _way(self, gvk: GVK) -> Resource | None:
        return self._discovery.find(gvk) or self.served(gvk.group, gvk.kind)

    def _items(self, gvk: GVK, namespace: str, labels: str, call: Call) -> Iterator[Manifest]:
        restarts, count, barren, after = 0, 0, 0, ""
        while True:
            try:
                page = self.page(gvk, limit=PAGE, after=after, namespace=namespace, labels=labels)
            except StaleError as error:
                restarts, after = restarts + 1, ""
                if restarts > _RESTARTS:
                    raise StaleError(f"{call}: it changes faster than it can be read") from error
                continue
            if page.unread:
                raise TooLargeError(f"{call}: {page.unread[0]}")
            count, barren = count + len(page.items), 0 if page.items else barren + 1
            if count > _MOST or barren > _BARREN:
                raise UnreachableError(f"{call}: the list has no end")
            yield from page.items
            after = page.after
            if not after:
                return

    def _review_right(self, right: Right) -> bool:
        call = Call(self._name, f"ask for the right to {right.verb} '{right.resource}'")
        group = GVK("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
        body = {
            "apiVersion": group.api_version,
            "kind": group.kind,
            "spec": {"resourceAttributes": {k: v for k, v in right._asdict().items() if v}},
        }
        path = f"{group_path(group)}/selfsubjectaccessreviews"
        answer = self._transport.send(Request("POST", path, body=body), call)
        return expect_status(answer, call).get("allowed") is True

    def _call(self, verb: str, gvk: GVK, namespace: str, name: str) -> Call:
        place = "/".join(filter(None, (namespace, name)))
        doing = f"{verb} {gvk.kind} '{place}'" if place else f"{verb} {gvk.kind}"
        return Call(self._name, doing, namespace, private=gvk == _SECRET)

    def _find_resource(self, gvk: GVK, call: Call) -> Resource:
        resource = self._discovery.find(gvk)
        if resource is None:
            raise MissingError(f"{call}: the cluster does not serve {gvk}")
        return resource

    def _translate_refusal(self, refusal: Refusal, gvk: GVK, call: Call) -> Exception:
        error = refusal_error(refusal, call)
        if isinstance(error, MissingError):
            self._discovery.forget(gvk)
        if isinstance(error, MissingError) or refusal.code == HTTPStatus.FORBIDDEN:
            self._discovery.require_ready(call)
        return error
