"""Kubeconfigs of EKS clusters, made when they are read: none of them is stored.

Address and certificate authority are what EKS says. The token is a signed request to STS that
says who signed it: the API server makes it, and takes who it is told of for the caller, as far as
an access entry of the cluster lets that role in. EKS takes such a token for fifteen minutes.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.model.kubeconfig import Kubeconfig
from bellhop.ports.secrets import Secrets

KEPT_SECONDS = 480
"""How long one kubeconfig is given out: a call that begins with it has some minutes left."""

_ARN = re.compile(r"arn:[a-z-]+:eks:(?P<region>[a-z0-9-]+):\d{12}:cluster/(?P<name>[\w-]{1,100})")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,99}")
_PREFIX = "kubeconfig/"
_QUERY = "Action=GetCallerIdentity&Version=2011-06-15"
_ABSENT = frozenset({"ResourceNotFoundException"})


class EksClusters:
    """EKS clusters by their ARN, as whoever calls may reach them."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def arn(self, name: str, region: str) -> str:
        """Return the ARN of the account's cluster of that name.

        Raises:
            MissingError: there is none in the region.
            InvalidError: EKS takes no such name.
        """
        if not _NAME.fullmatch(name):
            raise InvalidError(f"cannot find the EKS cluster {name[:128]!r}: it is no name of one")
        found: str = self._described(f"{name} in {region}", region, name)["arn"]
        return found

    def kubeconfig(self, arn: str) -> Kubeconfig:
        """Make a kubeconfig that is taken for some minutes.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is not the ARN of an EKS cluster.
            UnreachableError: it has no address yet.
        """
        parts = _ARN.fullmatch(arn)
        if not parts:
            raise InvalidError(f"cannot reach the EKS cluster {arn[:128]!r}: this is no ARN of one")
        told = self._described(arn, parts["region"], parts["name"])
        endpoint = told.get("endpoint")
        if not endpoint:
            raise UnreachableError(f"cannot reach the EKS cluster {arn!r}: it has no address yet")
        return Kubeconfig(
            server=endpoint,
            ca_data=told["certificateAuthority"]["data"],
            token=self._token(arn, parts["region"], parts["name"]),
        )

    def _described(self, arn: str, region: str, name: str) -> dict[str, Any]:
        try:
            answer = self._services.call(
                "eks",
                "describe_cluster",
                {"name": name},
                doing=f"look up the EKS cluster {arn!r}",
                taken=_ABSENT,
                region=region,
            )
        except RefusedError as error:
            raise MissingError(f"there is no EKS cluster {arn!r} that you may see") from error
        found: dict[str, Any] = answer["cluster"]
        return found

    def _token(self, arn: str, region: str, name: str) -> str:
        address = self._services.signed(
            "sts",
            _QUERY,
            {"x-k8s-aws-id": name},
            doing=f"sign in to the EKS cluster {arn!r}",
            region=region,
        )
        return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


class EksSecrets:
    """A secret store that makes the kubeconfigs of EKS clusters, and asks another for the rest.

    `arn` tells the ARN of the cluster `namespace/name`, as its record has it; "" if it has none.
    """

    def __init__(
        self,
        behind: Secrets,
        clusters: EksClusters,
        arn: Callable[[str], str],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._behind = behind
        self._clusters = clusters
        self._arn = arn
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, bytes]] = {}

    def read(self, name: str) -> bytes:
        """Read a secret, or make it.

        Raises:
            MissingError: there is none of that name, or no such EKS cluster.
            InvalidError: what the record has is not the ARN of an EKS cluster.
        """
        arn = self._arn(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else ""
        if not arn:
            return self._behind.read(name)
        now = self._seconds()
        with self._lock:
            made_at, content = self._kept.get(arn, (now - KEPT_SECONDS, b""))
        if now - made_at >= KEPT_SECONDS:
            content = json.dumps(self._clusters.kubeconfig(arn).to_dict()).encode()
            with self._lock:
                self._kept = {
                    each: kept for each, kept in self._kept.items() if now - kept[0] < KEPT_SECONDS
                }
                self._kept[arn] = (now, content)
        return content

    def put(self, name: str, value: bytes) -> None:
        """Write a secret, new or over an older one, whole or not at all."""
        self._behind.put(name, value)

    def delete(self, name: str) -> None:
        """Forget a secret, with all its older values; one that is not there is fine."""
        self._behind.delete(name)

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names that start with `prefix`, in order; what is made has none."""
        return self._behind.names(prefix)
