"""Files in OCI registries: layers that are tars, as Flux and ORAS push folders, or single files."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from bellhop.adapters.egress.registry import (
    MANIFEST,
    OciRepository,
    is_digest,
    is_tag,
    layers,
    split,
)
from bellhop.adapters.egress.source_client import Limits, SourceClient, json_object
from bellhop.documents.tarball import Folder, unpack
from bellhop.errors import InvalidError, TooLargeError
from bellhop.ports.tools import Downloaded

GZIP = b"\x1f\x8b"
MOST_LAYERS = 64

_TAR = slice(257, 262), b"ustar"
_NO_CONTENT = "application/vnd.oci.empty.v1+json"
_TITLE = "org.opencontainers.image.title"
_FAST = 1
_LEAST_SECONDS = 0.001


class Reference(Struct, frozen=True):
    """One manifest in a registry: by its digest, which counts where there is one, or by its tag."""

    host: str
    name: str
    tag: str
    digest: str

    @classmethod
    def of(cls, address: str, task: str) -> Reference:
        """Read `oci://HOST/PATH[:TAG][@sha256:DIGEST]`.

        Raises:
            InvalidError: it is none.
        """
        try:
            parts = urlsplit(address)
        except ValueError as error:
            raise InvalidError(f"{task}: the registry's address is invalid") from error
        path, at, digest = parts.path.partition("@")
        path, colon, tag = path.partition(":")
        host, name = split(parts._replace(path=path).geturl(), "file")
        if (colon and not is_tag(tag)) or (at and not is_digest(digest)):
            raise InvalidError(
                f"{task}: its tag or digest is invalid; write oci://HOST/PATH:TAG or"
                " oci://HOST/PATH@sha256:DIGEST"
            )
        return cls(host, name, tag or "latest", digest)


def pull(client: SourceClient, address: str, limits: Limits) -> Downloaded:
    """Download the layers of a manifest within limits, and return their files and its digest."""
    reference = Reference.of(address, client.task)
    repository = OciRepository(client, reference.host, reference.name)
    until = time.monotonic() + limits.seconds
    manifest = _manifest(repository, reference, limits)
    tarballs: dict[str, bytes] = {}
    files: list[tuple[str, bytes]] = []
    left = limits.largest
    for layer in _layers(manifest, client.task):
        if left <= 0:
            raise TooLargeError(
                f"{client.task}: its layers have more than {limits.largest:,} bytes"
            )
        digest = repository.digest(layer, "layer")
        within = Limits(left, max(until - time.monotonic(), _LEAST_SECONDS))
        content = repository.blob(digest, within, "layer")
        left -= len(content)
        if content.startswith(GZIP):
            tarballs[f"sha256:{digest}"] = content
        elif content[_TAR[0]] == _TAR[1]:
            tarballs[f"sha256:{digest}"] = gzip.compress(content, _FAST)
        else:
            files.append((_title(layer) or f"{digest}.yaml", content))
    return Downloaded(hashlib.sha256(manifest).hexdigest(), _unpack(tarballs, files, client.task))


def _manifest(repository: OciRepository, reference: Reference, limits: Limits) -> bytes:
    url = repository.manifest_url(reference.digest or reference.tag)
    seconds = min(MANIFEST.seconds, limits.seconds)
    answer = repository.get(url, Limits(MANIFEST.largest, seconds))
    manifest = repository.manifest(answer, url)
    found = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    if reference.digest and reference.digest != found:
        repository.refuse("the digest of the manifest is not the one that was asked for")
    return manifest


def _layers(manifest: bytes, task: str) -> list[Mapping[str, Any]]:
    found = [each for each in layers(manifest) if each.get("mediaType") != _NO_CONTENT]
    if len(found) > MOST_LAYERS:
        raise TooLargeError(f"{task}: it has more than {MOST_LAYERS} layers")
    if found:
        return found
    if "manifests" in json_object(manifest):
        raise InvalidError(
            f"{task}: it is an image index, which has no files itself; name one of its manifests by"
            " @sha256:DIGEST"
        )
    raise InvalidError(
        f"{task}: it is not an OCI artifact with layers; check the address in remoteURL"
    )


def _title(layer: Mapping[str, Any]) -> str:
    """Return the path that a layer's file had where it was pushed; empty if it has none."""
    annotations = layer.get("annotations")
    title = annotations.get(_TITLE) if isinstance(annotations, dict) else None
    return title if isinstance(title, str) and title.isprintable() else ""


def _unpack(tarballs: Mapping[str, bytes], files: Sequence[tuple[str, bytes]], task: str) -> Folder:
    """Return all files together.

    Single files are packed with the others, so that one check holds for the paths of all.
    """
    packed = {**tarballs, "single files": _pack(files)} if files else tarballs
    try:
        return unpack(packed)
    except InvalidError as error:
        raise type(error)(f"{task}: {error}") from error


def _pack(files: Sequence[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=_FAST) as archive:
        for path, content in files:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
