"""Kubeconfigs of EKS clusters, made when they are read: none of them is stored.

Address and certificate authority are what EKS says. The token is a signed request to STS that
says who signed it: the API server sends it, and takes the role in the answer for the caller, if an
access entry of the cluster admits that role. EKS takes such a token for fifteen minutes.

A cluster of another account is described and signed in to by a role of that account, which the
caller assumes each time: what STS gives for it is used for these two requests, and then forgotten.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.cache import Cached
from bellhop.errors import InvalidError, MissingError, UnreachableError

KEPT_SECONDS = 480
"""How long one kubeconfig is given out: a call that begins with it has some minutes left."""

_ARN = re.compile(r"arn:[a-z-]+:eks:(?P<region>[a-z0-9-]+):\d{12}:cluster/(?P<name>[\w-]{1,100})")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,99}")
_ROLE = re.compile(r"arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_QUERY = "Action=GetCallerIdentity&Version=2011-06-15"
_ABSENT = frozenset({"ResourceNotFoundException"})


class EksCluster(Struct, frozen=True):
    """A cluster by its ARN, and the role that is assumed to reach it, with its external ID."""

    arn: str
    assume_role: str = ""
    external_id: str = ""


class EksClusters:
    """EKS clusters, reached with the caller's permissions."""

    def __init__(
        self, services: Services, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._made: Cached[Kubeconfig] = Cached(KEPT_SECONDS, seconds=seconds)

    def find(
        self, name: str, region: str, assume_role: str = "", external_id: str = ""
    ) -> EksCluster:
        """Return the cluster of that name in the account that is called, or in the role's.

        Raises:
            MissingError: there is none in the region.
            InvalidError: EKS takes no such name, or STS no such role or external ID.
        """
        if not _NAME.fullmatch(name):
            raise InvalidError(
                f"cannot find the EKS cluster {name[:128]!r}: it is not the name of one"
            )
        shown = f"{name!r} in {region}"
        with self._open_services(shown, assume_role, external_id) as services:
            described = _describe(services, shown, region, name)
        return EksCluster(described["arn"], assume_role, external_id)

    def kubeconfig(self, cluster: EksCluster) -> Kubeconfig:
        """Make a kubeconfig that is taken for some minutes.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is not the ARN of an EKS cluster, or that of another account's.
            UnreachableError: it has no address yet.
        """
        parts = _ARN.fullmatch(cluster.arn)
        if not parts:
            raise InvalidError(
                f"cannot reach the EKS cluster {cluster.arn[:128]!r}: this is not the ARN of one;"
                " register the cluster again, by a kubeconfig with a token"
            )
        return self._made.get(_key(cluster), lambda: self._make(cluster, parts))

    def refused(self, cluster: EksCluster, token: str) -> None:
        """Give out a token no more that the cluster has refused."""
        self._made.forget(_key(cluster), lambda made: made.token == token)

    def _make(self, cluster: EksCluster, parts: re.Match[str]) -> Kubeconfig:
        arn, region, name = cluster.arn, parts["region"], parts["name"]
        with self._open_services(repr(arn), cluster.assume_role, cluster.external_id) as services:
            described = _describe(services, repr(arn), region, name)
            if described["arn"] != arn:
                # EKS is asked by name: who calls from another account meets a namesake.
                raise InvalidError(
                    f"cannot reach the EKS cluster {arn!r}: the account that is called has another"
                    " one of that name; register the cluster again, with --assume-role, or by a"
                    " kubeconfig with a token"
                )
            endpoint = described.get("endpoint")
            if not endpoint:
                raise UnreachableError(
                    f"cannot reach the EKS cluster {arn!r}: it has no address yet"
                )
            return Kubeconfig(
                server=endpoint,
                ca_data=described["certificateAuthority"]["data"],
                token=_make_token(services, arn, region, name),
            )

    @contextmanager
    def _open_services(self, shown: str, role: str, external_id: str) -> Iterator[Services]:
        """Yield what calls AWS for a cluster: with our own role, or one that it assumes.

        Raises:
            InvalidError: STS takes no such role, or no such external ID.
        """
        if not role:
            yield self._services
            return
        for what, text, pattern in (
            ("role", role, _ROLE),
            ("external ID", external_id or "none", _EXTERNAL_ID),
        ):
            if not pattern.fullmatch(text):
                raise InvalidError(
                    f"cannot reach the EKS cluster {shown}: {text[:128]!r} is no"
                    f" {'ARN of a role' if what == 'role' else what} of AWS; register the cluster"
                    " again with another one"
                )
        doing = f"assume the role {role!r} for the EKS cluster {shown}"
        assumed = self._services.assuming(role, external_id, doing=doing)
        try:
            yield assumed
        finally:
            assumed.close()


def _key(cluster: EksCluster) -> str:
    return f"{cluster.arn} {cluster.assume_role} {cluster.external_id}"


def _describe(services: Services, shown: str, region: str, name: str) -> dict[str, Any]:
    try:
        answer = services.call(
            "eks",
            "describe_cluster",
            {"name": name},
            doing=f"look up the EKS cluster {shown}",
            taken=_ABSENT,
            region=region,
        )
    except RefusedError as error:
        raise MissingError(
            f"there is no EKS cluster {shown} that you may see; check its name, its region and"
            " your credentials"
        ) from error
    found: dict[str, Any] = answer["cluster"]
    return found


def _make_token(services: Services, arn: str, region: str, name: str) -> str:
    address = services.signed(
        "sts",
        _QUERY,
        {"x-k8s-aws-id": name},
        doing=f"sign in to the EKS cluster {arn!r}",
        region=region,
    )
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")
