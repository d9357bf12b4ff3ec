"""Kubeconfigs of EKS clusters, made when they are read: none of them is stored.

Address and certificate authority are what EKS says. The token is a signed request to STS that
says who signed it: the API server makes it, and takes who it is told of for the caller, as far as
an access entry of the cluster lets that role in. EKS takes such a token for fifteen minutes.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.model.kubeconfig import Kubeconfig
from bellhop.remembered import Remembered

KEPT_SECONDS = 480
"""How long one kubeconfig is given out: a call that begins with it has some minutes left."""

_ARN = re.compile(r"arn:[a-z-]+:eks:(?P<region>[a-z0-9-]+):\d{12}:cluster/(?P<name>[\w-]{1,100})")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,99}")
_QUERY = "Action=GetCallerIdentity&Version=2011-06-15"
_ABSENT = frozenset({"ResourceNotFoundException"})


class EksClusters:
    """EKS clusters by their ARN, as whoever calls may reach them."""

    def __init__(
        self, services: Services, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._made: Remembered[Kubeconfig] = Remembered(KEPT_SECONDS, seconds=seconds)

    def arn(self, name: str, region: str) -> str:
        """Return the ARN of the account's cluster of that name.

        Raises:
            MissingError: there is none in the region.
            InvalidError: EKS takes no such name.
        """
        if not _NAME.fullmatch(name):
            raise InvalidError(
                f"cannot find the EKS cluster {name[:128]!r}: it is not the name of one"
            )
        found: str = self._described(f"{name} in {region}", region, name)["arn"]
        return found

    def kubeconfig(self, arn: str) -> Kubeconfig:
        """Make a kubeconfig that is taken for some minutes.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is not the ARN of an EKS cluster, or that of another account's.
            UnreachableError: it has no address yet.
        """
        parts = _ARN.fullmatch(arn)
        if not parts:
            raise InvalidError(
                f"cannot reach the EKS cluster {arn[:128]!r}: this is not the ARN of one; register"
                " the cluster again, by a kubeconfig with a token"
            )
        return self._made.get(arn, lambda: self._make(arn, parts))

    def refused(self, arn: str, token: str) -> None:
        """Give out a token no more that the cluster has refused."""
        self._made.forget(arn, lambda made: made.token == token)

    def _make(self, arn: str, parts: re.Match[str]) -> Kubeconfig:
        told = self._described(arn, parts["region"], parts["name"])
        if told["arn"] != arn:
            # EKS is asked by name: who calls from another account meets a namesake.
            raise InvalidError(
                f"cannot reach the EKS cluster {arn!r}: the account that is called has another one"
                " of that name; register the cluster again, by a kubeconfig with a token"
            )
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
