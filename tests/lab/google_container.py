"""Serve GKE on this machine, as far as a client can distinguish it from Google's.

    with Gke() as gke:
        cluster = control_plane.start_cluster("gke", extra_args=gke.trusted_by(folder))
        gke.describe("projects/p/locations/l/clusters/c", {"endpoint": …, "masterAuth": …})
        Services("p", emulators={"CONTAINER_EMULATOR_HOST": gke.address, …})

What is asked of it:

    GET  /v1/projects/P/locations/L/clusters/C   where a cluster is, as the Container API says
    POST /token                                  a token for a service account's signed claim
    POST /review                                 whose token that is, asked by the API server
    ANY  /v1/projects/N/…/gkeMemberships/M/…     the Connect gateway, passed on to the cluster
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.lab.http_server import HttpServer, Request, Response
from tests.lab.reviews import asking

ACCOUNT = "lab-sweep@lab-7.iam.gserviceaccount.com"
"""The service account of which the key file is."""

_GATEWAY = re.compile(r"(/v1/projects/\d+/locations/[^/]+/gkeMemberships/[^/]+)(/.*)")
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_BITS = 2048


class Gke(HttpServer):
    """GKE's clusters, the accounts that get tokens for them, and the check of those."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._clusters: dict[str, Mapping[str, Any]] = {}
        self._behind: dict[str, tuple[str, str]] = {}
        self._tokens: dict[str, str] = {}
        self._requests: Counter[str] = Counter()
        self._other_review: Callable[[str], str] = lambda _: ""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        self.lifetime = 3600

    def describe(self, name: str, description: Mapping[str, Any]) -> None:
        """Have a cluster, by its full name, with this description."""
        self._clusters[name] = description

    def join(self, membership: str, server: str, ca_pem: str) -> None:
        """Have a member of a fleet, to which the Connect gateway passes requests on."""
        self._behind[f"/v1/{membership}"] = server, ca_pem

    def believe(self, reviewer: Callable[[str], str]) -> None:
        """Have somebody else asked whose a token is that was not given out here."""
        self._other_review = reviewer

    def revoke(self) -> None:
        """Take none of the tokens any more that were given out."""
        with self._lock:
            self._tokens.clear()

    def requests(self) -> dict[str, int]:
        """Count the requests since this was asked last, by what they are for."""
        with self._lock:
            found, self._requests = dict(self._requests), Counter()
            return found

    def key_file(self, folder: Path) -> Path:
        """Write the key file of the service account, as Google's libraries read it."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        key = {
            "type": "service_account",
            "project_id": "lab-7",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": ACCOUNT,
            "client_id": "1",
            "token_uri": f"{self.address}/token",
        }
        path = folder / "account.json"
        path.write_text(json.dumps(key))
        return path

    def trusted_by(self, folder: Path) -> Sequence[str]:
        """Return the arguments of an API server that asks here whose a token is."""
        return asking(f"{self.address}/review", folder)

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        gateway = _GATEWAY.fullmatch(request.target)
        if gateway:
            self._note("gateway")
            server, ca_pem = self._behind[gateway[1]]
            return _passed_on(f"{server}{gateway[2]}", ca_pem, request)
        path = request.target.partition("?")[0]
        if path == "/token":
            self._note("token")
            return Response.of(*self._given(parse_qs(request.body.decode())))
        if path == "/review":
            return Response.of(200, self._review(json.loads(request.body)))
        self._note("cluster")
        described = self._clusters.get(path.removeprefix("/v1/"))
        missing = {"error": {"code": 404, "status": "NOT_FOUND"}}
        return Response.of(404, missing) if described is None else Response.of(200, described)

    def _note(self, what: str) -> None:
        with self._lock:
            self._requests[what] += 1

    def _given(self, asked: Mapping[str, Sequence[str]]) -> tuple[int, Any]:
        """Give a token for a claim that the account's key has signed, as OAuth's RFC 7523 says."""
        head, claim, signature = asked["assertion"][0].split(".")
        self._key.public_key().verify(
            _decoded(signature), f"{head}.{claim}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        claims = json.loads(_decoded(claim))
        if asked["grant_type"] != [_GRANT] or "userinfo.email" not in claims["scope"]:
            return 400, {"error": "invalid_scope"}
        token = f"ya29.{uuid4().hex}"
        with self._lock:
            self._tokens[token] = claims["iss"]
        return 200, {"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"}

    def _review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        token = review["spec"]["token"]
        who = self._tokens.get(token) or self._other_review(token)
        user = {"username": who, "groups": ["system:masters"]}
        return {**review, "status": {"authenticated": bool(who), "user": user}}


def _passed_on(url: str, ca_pem: str, asked: Request) -> Response:
    names = {"Authorization", "Content-Type"} & asked.headers.keys()
    passed = {name: asked.headers[name] for name in names}
    request = urllib.request.Request(url, asked.body or None, passed, method=asked.method)
    json_type = {"Content-Type": "application/json"}
    trust = ssl.create_default_context(cadata=ca_pem)
    try:
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
            return Response(answer.status, answer.read(), json_type)
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read(), json_type)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
