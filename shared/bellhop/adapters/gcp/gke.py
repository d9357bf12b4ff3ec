"""Kubeconfigs of GKE clusters, made when they are read: none of them is stored.

    control plane with a public address         https://ADDRESS           the cluster's authority
    private, the cluster is in a fleet          https://connectgateway…   public authorities
    private, and in no fleet                    https://PRIVATE ADDRESS   the cluster's authority

GKE says where a cluster is. The token is the caller's: GKE takes a service account for the user of
its address, if IAM or the cluster's own RBAC admits it. The last way is for functions that are
placed in the cluster's network.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.cache import Cached
from bellhop.errors import InvalidError, MissingError, UnreachableError

KEPT_SECONDS = 480
"""How long it is not asked again where a cluster is; whose token it is reached by, each time."""

PUBLIC = "its public address"
GATEWAY = "the Connect gateway of its fleet"
PRIVATE = "its private address"

_PART = r"[a-z0-9][a-z0-9.:-]{0,98}"
_NAME = re.compile(
    rf"projects/(?P<project>{_PART})/locations/(?P<location>{_PART})/clusters/(?P<name>{_PART})"
)
_SHORT = re.compile(rf"(?:({_PART})/)?({_PART})")
_MEMBERSHIP = re.compile(
    rf"//gkehub\.googleapis\.com/projects/({_PART})/locations/({_PART})/memberships/({_PART})"
)
_ABSENT = frozenset({"NOT_FOUND"})


class Way(Struct, frozen=True):
    """How a cluster is reached: over what, where, and which authority is trusted there."""

    over: str
    server: str
    ca_data: str

    @property
    def by_gateway(self) -> bool:
        """Say whether it leads through the Connect gateway, which asks for rights of its own."""
        return self.over == GATEWAY


class GkeClusters:
    """GKE clusters by their full names, as the caller may reach them."""

    def __init__(
        self, services: Services, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._ways: Cached[Way] = Cached(KEPT_SECONDS, seconds=seconds)

    def named(self, text: str, location: str) -> str:
        """Return the full name of a cluster; NAME and LOCATION/NAME are the project's own.

        Raises:
            InvalidError: it is not the name of one.
        """
        short = _SHORT.fullmatch(text)
        if short:
            place = f"projects/{self._services.project}/locations/{short[1] or location}"
            return f"{place}/clusters/{short[2]}"
        if not _NAME.fullmatch(text):
            raise InvalidError(
                f"cannot find the GKE cluster {text[:128]!r}: write NAME, LOCATION/NAME or"
                " projects/PROJECT/locations/LOCATION/clusters/NAME"
            )
        return text

    def kubeconfig(self, name: str) -> Kubeconfig:
        """Make a kubeconfig that is taken for some minutes.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is not the full name of a GKE cluster.
            UnreachableError: it has no address yet.
        """
        way = self.way(name)
        token = self._services.token(doing=f"sign in to the GKE cluster {name!r}")
        return Kubeconfig(server=way.server, ca_data=way.ca_data, token=token)

    def refused(self, _name: str, token: str) -> None:
        """Give out a token no more that a cluster has refused: it is the same for all of them."""
        self._services.refused(token)

    def way(self, name: str) -> Way:
        """Say how a cluster is reached.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is not the full name of a GKE cluster.
            UnreachableError: it has no address yet.
        """
        if not _NAME.fullmatch(name):
            raise InvalidError(
                f"cannot reach the GKE cluster {name[:128]!r}: this is not the full name of one;"
                " register the cluster again, by a kubeconfig with a token"
            )
        return self._ways.get(name, lambda: self._find(name))

    def _find(self, name: str) -> Way:
        described = self._describe(name)
        ca_data = str(described.get("masterAuth", {}).get("clusterCaCertificate") or "")
        addresses = _addresses(described)
        gateway = _gateway(described.get("fleet", {}))
        if addresses.get(PUBLIC):
            return Way(PUBLIC, f"https://{addresses[PUBLIC]}", ca_data)
        if gateway:
            return Way(GATEWAY, self._services.moved(gateway), "")
        if addresses.get(PRIVATE):
            return Way(PRIVATE, f"https://{addresses[PRIVATE]}", ca_data)
        raise UnreachableError(f"cannot reach the GKE cluster {name!r}: it has no address yet")

    def _describe(self, name: str) -> Mapping[str, Any]:
        try:
            answer = self._services.ask(
                "GET",
                f"https://container.googleapis.com/v1/{name}",
                doing=f"look up the GKE cluster {name!r}",
                taken=_ABSENT,
            )
        except RefusedError as error:
            raise MissingError(
                f"there is no GKE cluster {name!r} that you may see; check its name and your"
                " credentials"
            ) from error
        found: Mapping[str, Any] = json.loads(answer)
        return found


def _addresses(described: Mapping[str, Any]) -> dict[str, str]:
    """Return a cluster's addresses by what they are, as newer and as older answers have them."""
    private = described.get("privateClusterConfig", {})
    newer = described.get("controlPlaneEndpointsConfig", {}).get("ipEndpointsConfig", {})
    found = {PRIVATE: newer.get("privateEndpoint") or private.get("privateEndpoint") or ""}
    hidden = newer.get("enablePublicEndpoint") is False or private.get("enablePrivateEndpoint")
    if not hidden:
        public = newer.get("publicEndpoint") or private.get("publicEndpoint")
        found[PUBLIC] = public or described.get("endpoint") or ""
    return found


def _gateway(fleet: Mapping[str, Any]) -> str:
    """Return the address of a fleet's member at the Connect gateway; empty if it is in none."""
    member = _MEMBERSHIP.fullmatch(str(fleet.get("membership") or ""))
    if not member:
        return ""
    project, location, name = member.groups()
    number = str(fleet.get("project") or "")
    region = "" if location == "global" else f"{location}-"
    where = f"projects/{number if number.isdigit() else project}/locations/{location}"
    return f"https://{region}connectgateway.googleapis.com/v1/{where}/gkeMemberships/{name}"
