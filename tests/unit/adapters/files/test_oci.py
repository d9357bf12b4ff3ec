"""Files in OCI registries: what Flux and ORAS push, and registries that mean harm."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bellhop.adapters.egress.source_client import Limits
from bellhop.adapters.sources.files.downloads import FileDownloads
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    MissingError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.state.content import Remote
from tests.fakes.clock import FakeClock
from tests.fakes.site import Answer, Site
from tests.fakes.tarballs import tarball
from tests.fakes.tars import raw
from tests.lab.http_server import Request, Response

FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
TAR = "application/vnd.oci.image.layer.v1.tar"
YAML = "application/yaml"
BASE = "/v2/add-ons/web"
ADA = ("ada", "hunter2")
WEB = b"kind: ConfigMap\n"

Layer = tuple[str, bytes, str]
"""Its type, its content, and its title."""


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(kind: str, content: bytes, title: str = "", **fields: Any) -> Mapping[str, Any]:
    annotations = {"annotations": {"org.opencontainers.image.title": title}} if title else {}
    size = {"mediaType": kind, "digest": digest(content), "size": len(content)}
    return {**size, **annotations, **fields}


def manifest(*layers: Mapping[str, Any]) -> bytes:
    return json.dumps({"schemaVersion": 2, "layers": layers}).encode()


def pushed(*layers: Layer, reference: str = "latest") -> dict[str, Answer]:
    """Return what a registry serves once layers are pushed."""
    made = manifest(*(layer(*each) for each in layers))
    blobs = {f"{BASE}/blobs/{digest(content)}": content for _, content, _ in layers}
    return {**blobs, f"{BASE}/manifests/{reference}": made}


def place(site: Site, more: str = "", **fields: Any) -> Remote:
    host = site.address.partition("//")[2]
    return Remote(f"oci://{host}/add-ons/web{more}", plain=True, **fields)


@pytest.fixture
def files() -> FileDownloads:
    return FileDownloads(LOCAL, FakeClock())


BOTH = tarball({"a/web.yaml": "kind: A\n", "b.txt": "b"})
UNPACKED = {"a/web.yaml": b"kind: A\n", "b.txt": b"b"}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (FLUX, BOTH),
        (f"{TAR}+gzip", BOTH),
        (TAR, gzip.decompress(BOTH)),
        ("application/octet-stream", BOTH),
        (YAML, gzip.decompress(BOTH)),
    ],
)
def test_a_tar_is_unpacked_whatever_its_type(
    files: FileDownloads, kind: str, content: bytes
) -> None:
    with Site(pushed((kind, content, "web.yaml"))) as site:
        found = files.remote(place(site))
        served = site.files[f"{BASE}/manifests/latest"]
    assert found.files == UNPACKED
    assert isinstance(served, bytes)
    assert f"sha256:{found.digest}" == digest(served)


@pytest.mark.parametrize("kind", [YAML, TAR, FLUX])
def test_a_single_file_has_its_title_as_path(files: FileDownloads, kind: str) -> None:
    layers = (kind, WEB, "overlays/web.yaml"), (kind, b"{}", "kustomization"), (FLUX, BOTH, "dir")
    with Site(pushed(*layers)) as site:
        found = files.remote(place(site))
    assert found.files == {**UNPACKED, "overlays/web.yaml": WEB, "kustomization": b"{}"}


@pytest.mark.parametrize("title", ["", "a\0b", "a\nb", "\ud800"])
def test_a_file_without_a_path_has_its_digest(files: FileDownloads, title: str) -> None:
    with Site(pushed((YAML, WEB, title))) as site:
        found = files.remote(place(site))
    assert found.files == {f"{hashlib.sha256(WEB).hexdigest()}.yaml": WEB}


def test_the_empty_layer_is_no_file(files: FileDownloads) -> None:
    empty = ("application/vnd.oci.empty.v1+json", b"{}", "")
    with Site(pushed(empty, (YAML, WEB, "web.yaml"))) as site:
        assert files.remote(place(site)).files == {"web.yaml": WEB}


def test_a_manifest_is_named_by_tag_or_digest(files: FileDownloads) -> None:
    """A digest counts where both are given."""
    one = manifest(layer(YAML, WEB, "web.yaml"))
    blob = {f"{BASE}/blobs/{digest(WEB)}": WEB}
    for more, reference in (
        (":v1.0", "v1.0"),
        ("", "latest"),
        (f"@{digest(one)}", digest(one)),
        (f":v2@{digest(one)}", digest(one)),
    ):
        with Site({**blob, f"{BASE}/manifests/{reference}": one}) as site:
            assert files.remote(place(site, more)).files == {"web.yaml": WEB}


@pytest.mark.parametrize("more", [":", ":a b", "@", "@sha256:abc", "@sha512:abc", ":v1@", ":a:b"])
def test_what_is_no_reference_is_refused(files: FileDownloads, more: str) -> None:
    with Site() as site, pytest.raises(InvalidError, match="its tag or digest is invalid"):
        files.remote(place(site, more))
    assert site.asked == []


@pytest.mark.parametrize("address", ["oci://", "oci://host", "oci://host/A", "oci://[/a"])
def test_what_is_no_address_is_refused(files: FileDownloads, address: str) -> None:
    with pytest.raises(InvalidError):
        files.remote(Remote(address))


DISTRUST = "do not trust this registry"
TWICE = (layer(YAML, WEB, "a.yaml"), layer(YAML, b"other", "a.yaml"))
MANY = [layer(YAML, WEB, f"{at}.yaml") for at in range(65)]
LINKED = gzip.compress(raw(b"2", b"", b"a.yaml"))
BOMB = gzip.compress(raw(b"0", bytes((32 << 20) + 1), b"a.yaml"), 1)
INDEX = b'{"schemaVersion": 2, "manifests": [{"digest": "sha256:abc"}]}'


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (INDEX, InvalidError, "it is an image index, which has no files itself; name one of its"),
        (b"<html>", InvalidError, "it is not an OCI artifact with layers; check the address"),
        (manifest(), InvalidError, "it is not an OCI artifact with layers; check the address"),
        (manifest(*MANY), TooLargeError, "it has more than 64 layers"),
        (
            Response(200, manifest(*TWICE), {"Docker-Content-Digest": digest(b"")}),
            InvalidError,
            f"the digest of the manifest is not that of the registry's answer; {DISTRUST}",
        ),
        (
            manifest(layer(YAML, WEB, digest="sha256:../../a")),
            InvalidError,
            f"the manifest has no SHA-256 of the layer; {DISTRUST}",
        ),
        (
            manifest(layer(YAML, WEB, digest=digest(b"wrong"))),
            InvalidError,
            f"the digest of the layer is not that of the manifest; {DISTRUST}",
        ),
        (
            manifest(*TWICE),
            InvalidError,
            "cannot unpack 'single files': 'a.yaml' is there twice; keep one of them",
        ),
        (
            manifest(layer(YAML, WEB, "../a.yaml")),
            InvalidError,
            "cannot unpack 'single files': '../a.yaml' leads out of the folder;",
        ),
        (
            manifest(layer(FLUX, LINKED)),
            InvalidError,
            f"cannot unpack '{digest(LINKED)}': 'a.yaml' is a link;",
        ),
        (
            manifest(layer(FLUX, BOMB)),
            TooLargeError,
            f"cannot unpack '{digest(BOMB)}': it has more than the 33,554,432 bytes",
        ),
        (manifest(layer(YAML, b"", "a.yaml")), InvalidError, "it is empty; have it serve what"),
        (Response(404), MissingError, "the registry does not have it; check its address"),
        (Response(403), DeniedError, "requests without credentials may not read '{}'"),
        (Response(500), UnreachableError, "'{}' answers 500; Bellhop tries again"),
        (
            Response(401),
            UnauthorizedError,
            "'{}' asks for credentials; name a Secret that has them",
        ),
    ],
)
def test_what_is_wrong_is_said(
    files: FileDownloads, answer: Answer, kind: type[BellhopError], why: str
) -> None:
    blobs: dict[str, Answer] = {
        f"{BASE}/blobs/{digest(each)}": each for each in (WEB, b"other", LINKED, BOMB, b"")
    }
    blobs[f"{BASE}/blobs/{digest(b'wrong')}"] = b"right"
    with Site({**blobs, f"{BASE}/manifests/latest": answer}) as site:
        with pytest.raises(kind) as caught:
            files.remote(place(site, "?token=hunter2"))
        url = f"{site.address}{BASE}/manifests/latest"
        task = f"cannot download '{place(site).url}': "
    assert type(caught.value) is kind
    assert str(caught.value).startswith(task + why.format(url))


def test_another_manifest_than_the_one_of_the_digest_is_refused(files: FileDownloads) -> None:
    expected = digest(b"wanted")
    with (
        Site(pushed((YAML, WEB, ""), reference=expected)) as site,
        pytest.raises(InvalidError, match="is not the one that was asked for; do not trust"),
    ):
        files.remote(place(site, f"@{expected}"))


def test_all_layers_together_are_so_large_at_most() -> None:
    files = FileDownloads(LOCAL, FakeClock(), Limits(1000, 10))
    halves = [(YAML, letter * 500, f"{letter.decode()}.yaml") for letter in (b"a", b"b", b"c")]
    with Site(pushed(*halves[:2])) as site:
        assert set(files.remote(place(site)).files) == {"a.yaml", "b.yaml"}
    with Site(pushed(*halves)) as site, pytest.raises(TooLargeError) as caught:
        files.remote(place(site))
    assert str(caught.value).endswith("/add-ons/web': its layers have more than 1,000 bytes")


def test_basic_credentials_are_sent_when_asked_for(files: FileDownloads) -> None:
    with Site(pushed((YAML, WEB, "a.yaml")), ADA) as site:
        ada = place(site, username="ada", password="hunter2")
        assert files.remote(ada).files == {"a.yaml": WEB}
        with pytest.raises(UnauthorizedError, match="those in the Secret that remoteURL names"):
            files.remote(place(site, username="ada", password="wrong"))


def test_a_token_answers_any_challenge(files: FileDownloads) -> None:
    """It goes to the registry itself, and to no token server or storage."""
    served = pushed((YAML, WEB, "a.yaml"))

    def guarded(request: Request) -> Response:
        if request.headers.get("Authorization") != "Bearer t0ken":
            realm = 'Bearer realm="https://auth.example/token"'
            return Response(401, b"", {"WWW-Authenticate": realm})
        found = served[request.target]
        assert isinstance(found, bytes)
        if "/blobs/" in request.target:
            return Response(307, b"", {"Location": f"{storage.address}/blob"})
        return Response(200, found)

    with Site({"/blob": WEB}) as storage, Site(dict.fromkeys(served, guarded)) as site:
        assert files.remote(place(site, token="t0ken")).files == {"a.yaml": WEB}
        with pytest.raises(UnauthorizedError):
            files.remote(place(site, token="0ther"))
    assert "Authorization" not in storage.asked[0].headers


@pytest.mark.parametrize("to", ["http://169.254.169.254/latest", "file:///etc/passwd"])
def test_no_redirect_leads_to_credentials_or_files(files: FileDownloads, to: str) -> None:
    served = pushed((YAML, WEB, "a.yaml"))
    served[f"{BASE}/blobs/{digest(WEB)}"] = Response(307, b"", {"Location": to})
    with Site(served) as site, pytest.raises(InvalidError):
        files.remote(place(site))


def test_a_registry_is_called_by_tls_unless_a_user_says_otherwise(files: FileDownloads) -> None:
    with Site(pushed((YAML, WEB, "a.yaml"))) as site:
        with pytest.raises(UnreachableError):
            files.remote(Remote(place(site).url))
        with pytest.raises(InvalidError, match="nothing is called there"):
            FileDownloads(PUBLIC, FakeClock()).remote(place(site))
    assert site.asked == []
