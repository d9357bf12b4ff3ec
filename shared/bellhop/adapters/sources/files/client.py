"""The words of errors about files; all else about requests is `egress`."""

from __future__ import annotations

from typing import ClassVar

from bellhop.adapters.egress.source_client import SourceClient


class RemoteClient(SourceClient, frozen=True):
    """Requests for the files of one `remoteURL`."""

    login_source: ClassVar[str] = "the Secret that remoteURL names"
    address: ClassVar[str] = "the address in remoteURL"


class ArtifactClient(SourceClient, frozen=True):
    """Requests for one artifact of Flux; there are no credentials for any."""

    login_source: ClassVar[str] = "none"
    address: ClassVar[str] = "the address that Flux gives its artifacts"
    anonymous: ClassVar[str] = "have artifacts served without any"
