"""Artifacts of Flux: through the API server of their cluster, checked, and downloaded once."""

from __future__ import annotations

import gzip
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from bellhop.adapters.egress.source_client import Limits
from bellhop.adapters.sources.files.downloads import ARTIFACT_SECONDS, MOST_BYTES, FileDownloads
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from tests.fakes.clock import FakeClock
from tests.fakes.kube import FakeKube
from tests.fakes.site import Site
from tests.fakes.tarballs import tarball
from tests.fakes.tars import raw
from tests.lab.http_server import Response

PATH = "gitrepository/flux-system/web/abc.tar.gz"
HOST = "source-controller.flux-system.svc.cluster.local."
URL = f"http://{HOST}/{PATH}"
TARBALL = tarball({"web.yaml": "kind: A\n"})
FILES = {"web.yaml": b"kind: A\n"}
HEX = hashlib.sha256(TARBALL).hexdigest()
DIGEST = f"sha256:{HEX}"


def of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def files(clock: FakeClock) -> FileDownloads:
    return FileDownloads(PUBLIC, clock)


@pytest.fixture
def kube() -> FakeKube:
    return served()


def served(content: bytes = TARBALL, service: str = "http:source-controller:80") -> FakeKube:
    """Return a cluster with Flux, whose artifact is a content."""
    kube = FakeKube()
    kube.files["flux-system", service, PATH] = content
    return kube


def calls(kube: FakeKube) -> list[str]:
    return [each.name for each in kube.calls if each.verb == "proxied"]


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("source-controller.flux-system", "http:source-controller:80"),
        ("source-controller.flux-system.", "http:source-controller:80"),
        ("source-controller.flux-system.svc", "http:source-controller:80"),
        ("Source-Controller.flux-system.SVC.", "http:source-controller:80"),
        ("source-controller.flux-system.svc.cluster.local", "http:source-controller:80"),
        (HOST, "http:source-controller:80"),
        ("source-controller.flux-system.svc.corp.internal.", "http:source-controller:80"),
        (f"{HOST}:9090", "http:source-controller:9090"),
    ],
)
def test_a_service_is_called_through_its_api_server(
    files: FileDownloads, host: str, service: str
) -> None:
    kube = served(service=service)
    assert files.artifact(kube, f"http://{host}/{PATH}", DIGEST) == FILES
    assert calls(kube) == [f"{service}/{PATH}"]


def test_a_service_may_have_tls(files: FileDownloads) -> None:
    kube = served(service="https:source-controller:443")
    assert files.artifact(kube, f"https://{HOST}/{PATH}", DIGEST) == FILES


def test_another_host_is_called_without_credentials(clock: FakeClock, kube: FakeKube) -> None:
    with Site({f"/{PATH}": TARBALL}) as site:
        assert FileDownloads(LOCAL, clock).artifact(kube, f"{site.address}/{PATH}", DIGEST) == FILES
    assert "Authorization" not in site.asked[0].headers
    assert kube.calls == []


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "localhost", "10.1"])
def test_another_host_is_guarded(files: FileDownloads, kube: FakeKube, host: str) -> None:
    with pytest.raises(InvalidError, match="nothing is called there"):
        files.artifact(kube, f"http://{host}/{PATH}", DIGEST)
    assert kube.calls == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "oci://a.b/c",
        "ftp://a.b/c",
        "file:///etc/passwd",
        "http://a.b",
        "http://a.b/",
        "http://a.b//c",
        "http://a.b/c/",
        "http://a.b/../c",
        "http://a.b/c/..",
        "http://a.b/./c",
        "http://a.b/%2e%2e/c",
        "http://a.b/c%00",
        "http://a.b/c?token=hunter2",
        "http://a.b/c#hunter2",
        "http://eve:hunter2@a.b/c",
        "http://a.b:0/c",
        "http://a.b:65536/c",
        "http://a.b:x/c",
        "http://a.b:/c",
        "http://a.b\\c/d",
        "http://a.b/c\n",
        " http://a.b/c",
        "http://a.b/ü",
        "http://1.b.svc/c",
        "http://a.svc.cluster.local/c",
        "http://10-0-0-1.b.pod.cluster.local/c",
        "http://x.a.b.svc.cluster.local./c",
        "http://a.b.svc../c",
    ],
)
def test_odd_addresses_are_refused(files: FileDownloads, kube: FakeKube, url: str) -> None:
    with pytest.raises(InvalidError, match="no artifact has such an address") as caught:
        files.artifact(kube, url, DIGEST)
    assert "hunter2" not in str(caught.value)
    assert kube.calls == []


@pytest.mark.parametrize("algorithm", ["", "sha256", "sha384", "sha512"])
def test_the_digest_is_checked(files: FileDownloads, kube: FakeKube, algorithm: str) -> None:
    """Older ones of Flux say a bare SHA-256."""
    value = hashlib.new(algorithm or "sha256", TARBALL).hexdigest()
    prefix = f"{algorithm}:" if algorithm else ""
    assert files.artifact(kube, URL, f"{prefix}{value}") == FILES
    with pytest.raises(InvalidError) as caught:
        files.artifact(kube, URL, f"{prefix}{'0' * len(value)}")
    assert str(caught.value) == (
        f"cannot download '{URL}': its digest is not that of the source's status; Flux has replaced"
        " it meanwhile, or it is not Flux that answers"
    )


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "sha256:abc",
        "sha384:" + HEX,
        "blake3:" + HEX,
        "md5:abc",
        "a" * 40,
        HEX + "\n",
    ],
)
def test_another_digest_is_refused(files: FileDownloads, kube: FakeKube, digest: str) -> None:
    with pytest.raises(InvalidError) as caught:
        files.artifact(kube, URL, digest)
    assert str(caught.value) == (
        f"cannot download '{URL}': its digest is not a sha256, sha384 or sha512; start"
        " source-controller without another --artifact-digest-algo"
    )
    assert kube.calls == []


def test_an_artifact_that_was_replaced_is_tried_again(clock: FakeClock, kube: FakeKube) -> None:
    """The status that says where the next one is may come any moment; nothing is cached."""
    files = FileDownloads(LOCAL, clock)
    kube.files.clear()
    with Site() as site:
        for url in (URL, f"{site.address}/{PATH}"):
            with pytest.raises(UnreachableError) as caught:
                files.artifact(kube, url, DIGEST)
            assert str(caught.value) == (
                f"cannot download '{url}': there is no such file; Flux may have replaced it, so"
                " Bellhop tries again"
            )
    assert files.artifact(served(), URL, DIGEST) == FILES


@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        (401, UnauthorizedError, "the server asks for credentials; have artifacts served without"),
        (403, DeniedError, "requests without credentials may not read it; grant access to it"),
        (429, ThrottledError, "the server limits requests; Bellhop tries again"),
        (500, UnreachableError, "the server answers 500; Bellhop tries again"),
        (418, InvalidError, "the server answers 418; check the address that Flux gives"),
    ],
)
def test_each_status_has_its_sentence(
    clock: FakeClock, kube: FakeKube, status: int, kind: type[BellhopError], why: str
) -> None:
    with Site({f"/{PATH}": Response(status, b"hunter2")}) as site:
        url = f"{site.address}/{PATH}"
        with pytest.raises(BellhopError) as caught:
            FileDownloads(LOCAL, clock).artifact(kube, url, DIGEST)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"cannot download '{url}': {why}")


def test_what_the_api_server_refuses_is_passed_on(files: FileDownloads, kube: FakeKube) -> None:
    denied = DeniedError("cannot download: no right to it")
    kube.fail_with(denied, "proxied")
    with pytest.raises(DeniedError) as caught:
        files.artifact(kube, URL, DIGEST)
    assert caught.value is denied


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (b"", InvalidError, "it is not a complete tar.gz"),
        (b"kind: A", InvalidError, "it is not a complete tar.gz"),
        (gzip.compress(raw(b"2", b"", b"a.yaml")), InvalidError, "'a.yaml' is a link"),
        (
            gzip.compress(raw(b"0", bytes((32 << 20) + 1), b"a"), 1),
            TooLargeError,
            "it has more than the 33,554,432 bytes that are unpacked",
        ),
    ],
    ids=["empty", "no tar", "link", "bomb"],
)
def test_hostile_artifacts_are_refused(
    files: FileDownloads, content: bytes, kind: type[BellhopError], why: str
) -> None:
    """A digest says what they are, and not that they are good."""
    with pytest.raises(kind) as caught:
        files.artifact(served(content), URL, of(content))
    assert str(caught.value).startswith(f"cannot unpack '{URL}': {why}")


def test_an_artifact_is_so_large_at_most(clock: FakeClock, kube: FakeKube) -> None:
    with Site({f"/{PATH}": TARBALL}) as site, pytest.raises(TooLargeError, match="more than 10"):
        FileDownloads(LOCAL, clock, Limits(10, 10)).artifact(kube, f"{site.address}/{PATH}", DIGEST)


def test_an_artifact_is_downloaded_once(
    files: FileDownloads, kube: FakeKube, clock: FakeClock
) -> None:
    """Whatever its address: the digest says which one it is."""
    files.artifact(kube, URL, DIGEST)
    assert files.artifact(FakeKube(), "http://other.flux/a.tar.gz", HEX) == FILES
    clock.advance(timedelta(seconds=ARTIFACT_SECONDS))
    files.artifact(kube, URL, DIGEST)
    assert len(calls(kube)) == 2


def test_the_cache_has_its_bounds(files: FileDownloads, kube: FakeKube) -> None:
    """What was used last stays."""
    large = [tarball({f"{at}.yaml": "x" * (MOST_BYTES // 2 - 10_000)}) for at in range(2)]
    files.artifact(kube, URL, DIGEST)
    files.artifact(served(large[0]), URL, of(large[0]))
    files.artifact(kube, URL, DIGEST)
    files.artifact(served(large[1]), URL, of(large[1]))
    assert len(calls(kube)) == 1
    small = tarball({"a.yaml": "y" * 20_000})
    files.artifact(served(small), URL, of(small))
    files.artifact(kube, URL, DIGEST)
    assert len(calls(kube)) == 1
    again = served(large[0])
    files.artifact(again, URL, of(large[0]))
    assert len(calls(again)) == 1


class SlowKube(FakeKube):
    """Answers downloads once a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = threading.Event(), threading.Event()

    def proxied(self, namespace: str, service: str, path: str) -> bytes:
        self.asked.set()
        assert self.go_on.wait(10)
        return super().proxied(namespace, service, path)


def test_two_threads_download_once(files: FileDownloads) -> None:
    kube = SlowKube()
    kube.files["flux-system", "http:source-controller:80", PATH] = TARBALL
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(files.artifact, kube, URL, DIGEST)
        assert kube.asked.wait(10)
        second = pool.submit(files.artifact, kube, URL, DIGEST)
        kube.go_on.set()
        assert first.result() == second.result() == FILES
    assert len(calls(kube)) == 1
