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

from bellhop.adapters.egress.answer import LateError
from bellhop.adapters.egress.client import LARGEST
from bellhop.adapters.kube import applying
from bellhop.adapters.kube.discovery import Discovery, group_path
from bellhop.adapters.kube.errors import refusal_error
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
from bellhop.core.nesting import DEEPEST, exceeds_depth
from bellhop.core.terminating_objects import is_terminating
from bellhop.errors import (
    InvalidError,
    MissingError,
    StaleError,
    TooLargeError,
    UnreachableError,
)
from bellhop.ports.kube import Manifest, Page, Unread

PAGE = 500
_RESTARTS = 3
# What no list of an API server that means well exceeds.
_MOST = 1_000_000
_BARREN = 1_000
_LONGEST_TOKEN = 4096
_LONGEST_NAME = 1024
_STATUS = "status"
_MANAGED = "managedFields"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DEEP = f"nested deeper than {DEEPEST} levels"
_LARGE = f"larger than {LARGEST >> 20} MiB as JSON"
# It is shown and kept.
_VERSION = re.compile(r"[A-Za-z0-9.+~_-]{1,64}")
_SECRET = GVK("", "v1", "Secret")


class Right(NamedTuple):
    """One right to ask for; an empty namespace means all of them."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""


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
        self._transport: Sends = Transport(name, kubeconfig, renew=self._renewed, reach=reach)
        # Which kinds are served, and as what, is no tenant's secret: it is asked for once, by us.
        self._discovery = Discovery(name, self._transport)
        # How many objects of a kind a page holds at most, where pages turned out too large.
        self._fitting: dict[GVK, int] = {}
        # The kinds of which it was one object: their pages grow again.
        self._growing: set[GVK] = set()
        # Of which kinds a new object is refused for its condition, by servers that cannot take it.
        self._doubted: applying.Doubted = set()

    def acting_as(self, account: str) -> KubeClient:
        """Return a client with the rights of a service account, over the same connections."""
        acting = copy(self)
        vars(acting)["_transport"] = Acting(self._transport, account)
        return acting

    @property
    def kubeconfig(self) -> Kubeconfig:
        """Return the credentials that are in use."""
        return self._transport.kubeconfig

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind in just this version; None if there is none."""
        return self._discovery.find(gvk)

    def served(self, group: str, kind: str) -> Resource | None:
        """Find the resource of a kind in the version that the cluster prefers."""
        return next(self._discovery.served(group, kind), None)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """Name the versions in which a kind is served, the preferred one first."""
        return tuple(each.gvk.version for each in self._discovery.served(group, kind))

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        """Read one object; None only if the API server says that this very object is not there."""
        call = self._call("read", gvk, namespace, name)
        answer = self._asked(Request("GET", ""), gvk, name, call)
        if isinstance(answer, Refusal):
            return None
        found = _object(answer, call)
        if _is_too_deep(found):
            raise TooLargeError(f"{call}: it is {_DEEP}")
        return found

    def page(
        self, gvk: GVK, *, limit: int, after: str = "", namespace: str = "", labels: str = ""
    ) -> Page:
        """Read at most `limit` objects of a kind; fewer where so many would be too large.

        Of an object that is too large by itself, or nested too deep, only the name is read.
        """
        call = self._call("list", gvk, namespace, "")
        resource = self._served(gvk, call)
        path = _collection(resource, call.namespace, call)
        query = {"labelSelector": labels} if labels else {}
        query |= {"continue": after} if after else {}
        request = Request("GET", path, query, answers_json=False)
        try:
            answer, large = self._bounded(request, gvk, limit, call), ""
        except TooLargeError:
            answer, large = self._named(request, gvk, call), _LARGE
        if isinstance(answer, Refusal):
            raise self._refused(answer, gvk, call)
        page = _page(read_answer(answer, call), gvk, call, large)
        return page._replace(size=len(answer))

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        """Yield the objects of a kind in pages, with apiVersion and kind filled in.

        Where reading takes so long that the API server forgets the state it reads from, it begins
        anew: an object that changed meanwhile comes a second time.
        """
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
        """Apply one object by server-side apply as field manager `bellhop`, taking over fields."""
        key = _key(manifest, self._name)
        call = self._call("apply", key.gvk, key.namespace, key.name)
        resource = self._served(key.gvk, call)
        call = self._call("apply", key.gvk, _home(resource, key.namespace), key.name)
        path = _path(resource, call, key.name)
        body = applying.applicable(manifest, call.namespace, uid, version)
        answer = applying.apply(self._transport, path, body, call, self._doubted, dry_run=dry_run)
        if isinstance(answer, Refusal):
            raise self._refused(answer, key.gvk, call)
        applied = _object(answer, call)
        if not applied.get("metadata", {}).get("uid"):
            raise UnreachableError(f"{call}: the answer is an object without a uid")
        return applied

    def merge_status(self, manifest: Manifest, *, uid: str) -> None:
        """Merge the status that a manifest says into that of one life of an object."""
        key = _key(manifest, self._name)
        doing = "write the status of"
        call = self._call(doing, key.gvk, key.namespace, key.name)
        resource = self._served(key.gvk, call)
        if _STATUS not in resource.subresources:
            raise InvalidError(f"{call}: the kind has no status of its own; leave it out")
        call = self._call(doing, key.gvk, _home(resource, key.namespace), key.name)
        path = f"{_path(resource, call, key.name)}/{_STATUS}"
        patch = {"metadata": {"uid": uid}, "status": manifest["status"]}
        request = Request("PATCH", path, {"fieldManager": MANAGER}, patch, MERGE)
        answer = self._transport.ask(request, call)
        if isinstance(answer, Refusal):
            if answer.code == HTTPStatus.NOT_FOUND:
                raise StaleError(f"{call}: it is gone")
            raise self._refused(answer, key.gvk, call)

    def merge(self, gvk: GVK, namespace: str, name: str, patch: Manifest) -> bool:
        """Merge a patch into one object, in which None takes a field away; say if it was there."""
        call = self._call("change", gvk, namespace, name)
        query = {"fieldManager": MANAGER}
        request = Request("PATCH", "", query, patch, MERGE)
        return not isinstance(self._asked(request, gvk, name, call), Refusal)

    def knock(self, gvk: GVK, namespace: str, name: str, *, manager: str) -> str:
        """Change nothing of an object in a dry run, for which its webhooks ring.

        Returns the warnings of whoever has answered, as HTTP has them; empty if there are none.
        """
        call = self._call("call the webhooks by a dry run of", gvk, namespace, name)
        query = {"fieldManager": manager, "dryRun": "All"}
        request = Request("PATCH", "", query, {}, MERGE, warns=True)
        answer = self._asked(request, gvk, name, call)
        return "" if isinstance(answer, Refusal) else str(answer)

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Manifest | None:
        """Delete one object (only if it still has `uid`, where given); return what is left."""
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
            answer = self._asked(request, gvk, name, call)
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
        """Say how far the API server's clock is ahead of ours, by its latest answer."""
        return self._transport.skew

    @property
    def ends_at(self) -> datetime | None:
        """Say when our credentials end, as far as they say so themselves."""
        return self._transport.ends_at

    def version(self) -> str:
        """Return the API server's version, such as `v1.31.2`."""
        call = Call(self._name, "read the version")
        answer = _object(self._transport.send(Request("GET", "/version"), call), call)
        version = str(answer.get("gitVersion") or "")
        return version if _VERSION.fullmatch(version) else "unknown"

    def issuer(self) -> tuple[str, Manifest]:
        """Read who makes the tokens of its service accounts, and the key set that they fit.

        The keys are those of the API server itself, wherever else it says that they are published.
        """
        call = Call(self._name, "read the keys of its service accounts")
        described = self._transport.send(Request("GET", "/.well-known/openid-configuration"), call)
        issuer = _object(described, call).get("issuer")
        if not issuer or not isinstance(issuer, str):
            raise UnreachableError(f"{call}: the answer names no issuer")
        # An API server has its keys in no other form.
        keys = Request("GET", "/openid/v1/jwks", accept="application/jwk-set+json")
        return issuer, _object(self._transport.send(keys, call), call)

    def proxied(self, namespace: str, service: str, path: str) -> bytes:
        """Download a file from a Service by the API server's proxy."""
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

    def rights(
        self, checks: Sequence[Right | tuple[str, str, str, str, str]]
    ) -> builtins.list[Right]:
        """Return those of (verb, group, resource, subresource, namespace) that are missing."""
        return [right for right in (Right(*check) for check in checks) if not self._may(right)]

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
        path = _path(accounts, call, service_account) + "/token"
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self._transport.send(Request("POST", path, body={**kind, "spec": spec}), call)
        token = _status(answer, call).get("token")
        if not token or not isinstance(token, str):
            raise UnreachableError(f"{call}: the answer holds no token")
        return token

    def close(self) -> None:
        """Close the idle connections; those in use finish first."""
        self._transport.close()

    def _renewed(self, refused: Kubeconfig) -> Kubeconfig | None:
        """Read the credentials anew; another server knows other kinds."""
        kubeconfig = self._renew(refused)
        if kubeconfig is not None and kubeconfig.server != self._server:
            self._server = kubeconfig.server
            self._discovery.clear()
        return kubeconfig

    def _asked(self, request: Request, gvk: GVK, name: str, call: Call) -> Any:
        """Ask about one object, in any version; a `Refusal` says that it is not there.

        Raises:
            MissingError: no version is served.
        """
        first = way = self._way(gvk)
        while True:
            if way is None:
                raise MissingError(f"{call}: the cluster does not serve {gvk} in any version")
            answer = self._transport.ask(replace(request, path=_path(way, call, name)), call)
            if not isinstance(answer, Refusal) or answer.names(way.plural, gvk.kind, name):
                return answer
            error = self._refused(answer, way.gvk, call)
            if not isinstance(error, MissingError) or way is not first:
                raise error
            # What was known of the kind is wrong: it may be served in another way by now.
            way = self._way(gvk)
            if way == first:
                raise error

    def _way(self, gvk: GVK) -> Resource | None:
        return self._discovery.find(gvk) or self.served(gvk.group, gvk.kind)

    def _bounded(self, request: Request, gvk: GVK, limit: int, call: Call) -> Any:
        """Read a page, of fewer objects if so many are larger than what is taken."""
        while True:
            size = max(1, min(limit, self._fitting.get(gvk, limit)))
            query = {"limit": str(size), **(request.query or {})}
            try:
                answer = self._transport.ask(replace(request, query=query), call)
            except TooLargeError:
                if size == 1:
                    raise
                self._growing.discard(gvk)
                self._fitting[gvk] = size // 2
            except LateError:
                # The next try asks for less; this one has taken its time.
                self._fitting[gvk] = max(1, size // 2)
                raise
            else:
                if gvk in self._growing:
                    self._fitting[gvk] = max(2 * size, self._fitting[gvk])
                return answer

    def _named(self, request: Request, gvk: GVK, call: Call) -> Any:
        """Read the metadata alone of one object that is too large; pages grow again after it."""
        self._growing.add(gvk)
        query = {"limit": "1", **(request.query or {})}
        answer = self._transport.ask(replace(request, query=query, accept=_METADATA), call)
        if isinstance(answer, Refusal) and answer.code == HTTPStatus.NOT_ACCEPTABLE:
            raise TooLargeError(f"{call}: an object is {_LARGE}")
        return answer

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

    def _may(self, right: Right) -> bool:
        call = Call(self._name, f"ask for the right to {right.verb} '{right.resource}'")
        group = GVK("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
        body = {
            "apiVersion": group.api_version,
            "kind": group.kind,
            "spec": {"resourceAttributes": {k: v for k, v in right._asdict().items() if v}},
        }
        path = f"{group_path(group)}/selfsubjectaccessreviews"
        answer = self._transport.send(Request("POST", path, body=body), call)
        return _status(answer, call).get("allowed") is True

    def _call(self, verb: str, gvk: GVK, namespace: str, name: str) -> Call:
        place = "/".join(filter(None, (namespace, name)))
        return Call(
            self._name,
            f"{verb} {gvk.kind} '{place}'" if place else f"{verb} {gvk.kind}",
            namespace,
            private=gvk == _SECRET,
        )

    def _served(self, gvk: GVK, call: Call) -> Resource:
        resource = self._discovery.find(gvk)
        if resource is None:
            raise MissingError(f"{call}: the cluster does not serve {gvk}")
        return resource

    def _refused(self, refusal: Refusal, gvk: GVK, call: Call) -> Exception:
        error = refusal_error(refusal, call)
        if isinstance(error, MissingError):
            self._discovery.forget(gvk)
        if isinstance(error, MissingError) or refusal.code == HTTPStatus.FORBIDDEN:
            self._discovery.require_ready(call)
        return error


def _key(manifest: Manifest, cluster: str) -> ObjectKey:
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict):
        key = ObjectKey.of(manifest)
        if key.gvk.kind and key.gvk.version and all(isinstance(part, str) for part in key[1:]):
            return key
    raise InvalidError(
        f"cannot apply an object on cluster '{cluster}': it needs `apiVersion`, `kind` and "
        "`metadata`, and in it names that are texts"
    )


def _home(resource: Resource, namespace: str) -> str:
    return (namespace or "default") if resource.namespaced else ""


def _collection(resource: Resource, namespace: str, call: Call) -> str:
    root = group_path(resource.gvk)
    if resource.namespaced and namespace:
        root += f"/namespaces/{_segment(namespace, call)}"
    return f"{root}/{resource.plural}"


def _path(resource: Resource, call: Call, name: str) -> str:
    if not name:
        raise InvalidError(f"{call}: it has no name")
    collection = _collection(resource, _home(resource, call.namespace), call)
    return f"{collection}/{_segment(name, call)}"


def _segment(name: str, call: Call) -> str:
    # What API servers themselves refuse; here it would lead to another path.
    if name in {".", ".."} or "/" in name or "%" in name:
        raise InvalidError(f"{call}: a name may not be '.' or '..', nor contain '/' or '%'")
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError:
        segment = ""
    if not segment or len(segment) > _LONGEST_NAME:
        raise InvalidError(f"{call}: a name is too long, or holds half of a character")
    return segment


def _object(answer: Any, call: Call) -> Manifest:
    if not _is_object(answer):
        raise UnreachableError(f"{call}: the answer is not an object")
    found: Manifest = answer
    return found


def _status(answer: Any, call: Call) -> Manifest:
    status = _object(answer, call).get("status")
    return status if isinstance(status, dict) else {}


def _is_object(answer: Any) -> bool:
    """Say if it has the shape on which everything that reads objects relies."""
    if not isinstance(answer, dict):
        return False
    metadata = answer.get("metadata", {})
    return isinstance(metadata, dict) and all(
        isinstance(metadata.get(key, ""), str)
        for key in ("name", "namespace", "uid", "resourceVersion")
    )


def _page(answer: Any, gvk: GVK, call: Call, large: str = "") -> Page:
    """Read a page; of one whose object is too `large` there is metadata alone."""
    answer = answer if isinstance(answer, dict) else {}
    metadata = answer.get("metadata") or {}
    after = (metadata.get("continue") or "") if isinstance(metadata, dict) else None
    items = answer.get("items", "none") or []
    if not isinstance(items, list) or not isinstance(after, str):
        raise UnreachableError(f"{call}: the answer is not a list")
    if len(after) > _LONGEST_TOKEN:
        raise UnreachableError(f"{call}: the answer's token for the next page is too long")
    if not all(_is_object(item) and item.get("metadata", {}).get("name") for item in items):
        raise UnreachableError(f"{call}: the answer lists something that is not an object")
    filled = [{**item, "apiVersion": gvk.api_version, "kind": gvk.kind} for item in items]
    if large:
        return Page([], after, tuple(Unread(ObjectKey.of(each), large) for each in filled))
    unread: tuple[Unread, ...] = ()
    if exceeds_depth(list(map(_unmanaged, filled)), DEEPEST + 1):
        unread = tuple(Unread(ObjectKey.of(each), _DEEP) for each in filled if _is_too_deep(each))
        filled = [each for each in filled if not _is_too_deep(each)]
    return Page(filled, after, unread)


def _is_too_deep(manifest: Manifest) -> bool:
    return exceeds_depth(_unmanaged(manifest), DEEPEST)


def _unmanaged(manifest: Manifest) -> Manifest:
    """Return an object without managedFields, which nest as it does and are not kept."""
    metadata = manifest.get("metadata") or {}
    rest = {key: value for key, value in metadata.items() if key != _MANAGED}
    return {**manifest, "metadata": rest}
