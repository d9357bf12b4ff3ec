"""Sources of clusters: kinds of custom resources, each object of which registers a cluster.

A SveltosCluster is also the form into which the reader of another kind translates its objects.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from bellhop.api.manifest import without_server_fields
from bellhop.api.problems import mistakes
from bellhop.api.sveltos_cluster import KIND, SveltosCluster, WorkloadIdentity
from bellhop.documents.document import InvalidDocuments, spell
from bellhop.errors import InvalidError
from bellhop.registration.managed_clusters import EKS, GKE, ClusterRequest


class ClusterSource(Protocol):
    """The reader of one kind of objects that register clusters."""

    kind: str

    def read(self, manifest: Mapping[str, Any]) -> SveltosCluster:
        """Return the cluster that an object registers.

        Raises:
            InvalidError: a field is wrong, or asks for what is not supported.
        """
        ...


class SveltosClusters:
    """The reader of SveltosClusters."""

    kind = KIND

    def read(self, manifest: Mapping[str, Any]) -> SveltosCluster:
        """Return the cluster of a SveltosCluster.

        Raises:
            InvalidError: a field is wrong, or asks for what is not supported.
        """
        try:
            return SveltosCluster.model_validate(without_server_fields(dict(manifest)))
        except ValidationError as error:
            found = mistakes(error, SveltosCluster, ())
            problems = [InvalidError(sentence, where=spell(path)) for path, sentence in found]
        raise InvalidDocuments(problems)


def read_entries(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the entries of a Secret as bytes.

    Raises:
        InvalidError: one is not base64; its value is not quoted.
    """
    found = {}
    for name, text in (secret.get("data") or {}).items():
        try:
            found[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise InvalidError("is not base64", where=f"data['{name}']") from None
    return found


def request_managed(identity: WorkloadIdentity) -> ClusterRequest:
    """Return how a cloud finds the cluster that a workload identity names."""
    if identity.aws:
        return ClusterRequest(
            EKS, identity.aws.cluster_name, identity.aws.region, identity.aws.role_arn
        )
    assert identity.gcp is not None
    place = f"projects/{identity.gcp.project_id}/locations/{identity.gcp.location}"
    return ClusterRequest(GKE, f"{place}/clusters/{identity.gcp.cluster_name}")


def is_managed_as(name: str, role: str, request: ClusterRequest) -> bool:
    """Return whether a cluster with a full name in its cloud, reached by a role, is a request's."""
    if request.service == GKE:
        return name == request.name
    parts = name.split(":", 5)
    return (
        len(parts) > len(("arn", "partition", "eks", "region", "account"))
        and parts[5] == f"cluster/{request.name}"
        and request.region in ("", parts[3])
        and request.assume_role == role
    )
