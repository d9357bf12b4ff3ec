"""Serve EKS on this machine beside moto, whose clusters have no API server that knows its roles.

    with Eks(moto.url) as eks:
        cluster = control_plane.start_cluster("eks", extra_args=eks.trusted_by(folder))
        eks.describe(cluster)
        # with AWS_ENDPOINT_URL_EKS=eks.address for a client that asks where it is

What is asked of it:

    GET  /clusters/own   where the one cluster is, as EKS describes it
    POST /review         whose a token is, asked by the API server

A token is checked as EKS does it: the request that it is gets made, signed for this cluster; who
STS says is the user.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from infra.lab.cluster import Cluster
from tests.lab.http_server import HttpServer, Request, Response
from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import REGION
from tests.lab.reviews import asking

NAME = "own"
ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{NAME}"

_WHO = re.compile(r"<Arn>([^<]+)</Arn>")


class Eks(HttpServer):
    """One cluster's description, and the check of the tokens for it; everybody is let in."""

    def __init__(self, sts: str) -> None:
        super().__init__()
        self._sts = sts
        self._description: Mapping[str, Any] = {}
        self._refuses_one = False
        self._refused = ""
        self.judged: dict[str, str] = {}
        """Who each token was found to be of."""

    def describe(self, cluster: Cluster) -> None:
        """Say where the cluster is."""
        authority = base64.b64encode(cluster.ca_pem.encode()).decode()
        self._description = {
            "name": NAME,
            "arn": ARN,
            "status": "ACTIVE",
            "endpoint": cluster.server,
            "certificateAuthority": {"data": authority},
        }

    def trusted_by(self, folder: Path) -> Sequence[str]:
        """Return the arguments of an API server that asks here whose a token is."""
        return asking(f"{self.address}/review", folder)

    def refuse_one(self) -> None:
        """Refuse the next token that is checked, however often it is shown."""
        self._refuses_one = True

    def review(self, token: str) -> str:
        """Say whose a token is; "" if it is nobody's."""
        prefix, _, encoded = token.partition(".")
        if self._refuses_one:
            self._refuses_one, self._refused = False, token
        if prefix != "k8s-aws-v1" or token == self._refused:
            return ""
        url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        if not url.startswith(f"{self._sts}/") or "x-k8s-aws-id" not in url:
            return ""
        # Moto asks a header for the service, where AWS reads it from what was signed.
        scope = parse_qs(urlsplit(url).query)["X-Amz-Credential"][0]
        headers = {"x-k8s-aws-id": NAME, "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}"}
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            who = _WHO.search(answer.read().decode())
        if who:
            self.judged[token] = who[1]
        return who[1] if who else ""

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        # Newer API servers add a time-out as the query.
        if request.target.partition("?")[0] == "/review":
            return Response.of(HTTPStatus.OK, self._reviewed(json.loads(request.body)))
        if request.target == f"/clusters/{NAME}":
            return Response.of(HTTPStatus.OK, {"cluster": self._description})
        missing = Response.of(HTTPStatus.NOT_FOUND, {"message": "no such cluster"})
        headers = {**missing.headers, "x-amzn-ErrorType": "ResourceNotFoundException"}
        return replace(missing, headers=headers)

    def _reviewed(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        who = self.review(asked["spec"]["token"])
        user = {"username": who, "groups": ["system:masters"]}
        return {**asked, "status": {"authenticated": bool(who), "user": user}}
