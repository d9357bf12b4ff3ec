"""Files that URLs serve, from servers that are kind, broken or hostile."""

from __future__ import annotations

import gzip
import hashlib
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.adapters.egress.source_client import Limits
from bellhop.adapters.sources.files.downloads import FileDownloads
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    MissingError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.runtime.embedded.lazy import tools
from bellhop.settings import Settings
from bellhop.state.chart import Place
from bellhop.state.content import Remote
from infra.lab.certificates import write_certificates
from tests.fakes.clock import FakeClock
from tests.fakes.dripping import dripping
from tests.fakes.site import Site
from tests.fakes.tarballs import tarball
from tests.fakes.tars import raw
from tests.lab.http_server import Request, Response

YAML = b"kind: ConfigMap\n"
PACKED = tarball({"base/web.yaml": "kind: A\n", "README.md": "hello"})
ADA = ("ada", "hunter2")
SECRET = "the Secret that remoteURL names"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def files(clock: FakeClock) -> FileDownloads:
    return FileDownloads(LOCAL, clock)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/web.yaml", "web.yaml"),
        ("/a/web.yml?ref=main", "web.yml"),
        ("/a/web.json", "web.json"),
        ("/a/manifests", "manifests.yaml"),
        ("/a/v1.2", "v1.2.yaml"),
        ("/a/", "manifests.yaml"),
        ("", "manifests.yaml"),
        ("/a/..", "manifests.yaml"),
        ("/a/..%2Fb.yaml", "manifests.yaml"),
        ("/a/.hidden.yaml", "manifests.yaml"),
        ("/" + "a" * 300, "manifests.yaml"),
    ],
)
def test_a_body_is_one_file(files: FileDownloads, path: str, name: str) -> None:
    """The ending of its name says that it holds manifests."""
    with Site({path.partition("?")[0] or "/": YAML}) as site:
        found = files.remote(Remote(f"{site.address}{path}"))
    assert found.files == {name: YAML}
    assert found.digest == hashlib.sha256(YAML).hexdigest()


@pytest.mark.parametrize("path", ["/a.tar.gz", "/a.yaml", "/"])
def test_a_tarball_is_unpacked_whatever_its_name(files: FileDownloads, path: str) -> None:
    with Site({path: PACKED}) as site:
        found = files.remote(Remote(f"{site.address}{path}"))
    assert found.files == {"base/web.yaml": b"kind: A\n", "README.md": b"hello"}
    assert found.digest == hashlib.sha256(PACKED).hexdigest()


def test_credentials_are_sent(files: FileDownloads) -> None:
    """A token counts instead of a name and a password."""
    with Site({"/a": YAML}) as site:
        place = Remote(f"{site.address}/a", username="ada", password="hunter2")
        for each in (place, replace(place, token="t0ken"), Remote(place.url)):
            files.remote(each)
    assert [each.headers.get("Authorization") for each in site.asked] == [
        "Basic YWRhOmh1bnRlcjI=",
        "Bearer t0ken",
        None,
    ]


@pytest.mark.parametrize("token", ["a\nb", "t0ken\n", "é", " "])
def test_what_is_no_token_is_not_sent(files: FileDownloads, token: str) -> None:
    with Site({"/a": YAML}) as site, pytest.raises(InvalidError) as caught:
        files.remote(Remote(f"{site.address}/a", token=token))
    assert str(caught.value) == (
        f"cannot download '{site.address}/a': its token has other characters than visible ASCII;"
        " check it in the Secret that remoteURL names"
    )
    assert site.asked == []


@pytest.mark.parametrize(
    ("status", "token", "kind", "why"),
    [
        (
            401,
            "t0ken",
            UnauthorizedError,
            f"the server does not accept the credentials; check those in {SECRET}",
        ),
        (
            401,
            "",
            UnauthorizedError,
            "the server asks for credentials; name a Secret that has them",
        ),
        (403, "t0ken", DeniedError, "the credentials may not read it; grant access to it"),
        (
            403,
            "",
            DeniedError,
            "requests without credentials may not read it; grant access to it",
        ),
        (404, "", MissingError, "there is no such file; check the address in remoteURL"),
        (429, "", ThrottledError, "the server limits requests; Bellhop tries again"),
        (500, "", UnreachableError, "the server answers 500; Bellhop tries again"),
        (418, "", InvalidError, "the server answers 418; check the address in remoteURL"),
    ],
)
def test_each_status_has_its_sentence(
    files: FileDownloads, status: int, token: str, kind: type[BellhopError], why: str
) -> None:
    """None shows what may be secret, and none is cached."""
    with Site({"/a": Response(status, b"hunter6")}) as site:
        host = site.address.partition("//")[2]
        place = Remote(f"http://eve:hunter3@{host}/a?token=hunter4#hunter5", token=token)
        with pytest.raises(BellhopError) as caught:
            files.remote(place)
        assert type(caught.value) is kind
        assert str(caught.value) == f"cannot download '{site.address}/a': {why}"
        site.files["/a"] = YAML
        assert files.remote(place).files == {"a.yaml": YAML}


@pytest.mark.parametrize("body", [b"", tarball({}), tarball({"a.yaml": ""})])
def test_nothing_is_no_file(files: FileDownloads, body: bytes) -> None:
    """A server that has lost its files does not have the add-ons removed."""
    with Site({"/a": body}) as site, pytest.raises(InvalidError) as caught:
        files.remote(Remote(f"{site.address}/a"))
    assert str(caught.value) == (
        f"cannot download '{site.address}/a': it is empty; have it serve what is to be deployed"
    )


def test_a_file_is_so_large_at_most(clock: FakeClock) -> None:
    files = FileDownloads(LOCAL, clock, Limits(1000, 10))
    with Site({"/a": b"x" * 1000, "/b": b"x" * 1001}) as site:
        assert files.remote(Remote(f"{site.address}/a")).files
        with pytest.raises(TooLargeError, match="the answer has more than 1000 bytes"):
            files.remote(Remote(f"{site.address}/b"))


BOMB = gzip.compress(raw(b"0", bytes((32 << 20) + 1), b"a.yaml"), 1)


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (BOMB, TooLargeError, "it has more than the 33,554,432 bytes that are unpacked"),
        (
            gzip.compress(raw(b"2", b"", b"a.yaml")),
            InvalidError,
            "'a.yaml' is a link; only regular files are unpacked",
        ),
        (
            gzip.compress(raw(b"0", b"x", b"../a.yaml")),
            InvalidError,
            "'../a.yaml' leads out of the folder; pack relative paths without '..'",
        ),
        (
            gzip.compress(YAML),
            InvalidError,
            "it is not a complete tar.gz; make it with `tar -czf FILE -C FOLDER .`",
        ),
        (
            PACKED[:-10],
            InvalidError,
            "it is not a complete tar.gz; make it with `tar -czf FILE -C FOLDER .`",
        ),
    ],
    ids=["bomb", "link", "way out", "no tar", "half"],
)
def test_hostile_tarballs_are_refused(
    files: FileDownloads, body: bytes, kind: type[BellhopError], why: str
) -> None:
    with Site({"/a": body}) as site, pytest.raises(kind) as caught:
        files.remote(Remote(f"{site.address}/a?token=hunter2"))
    assert str(caught.value) == f"cannot unpack '{site.address}/a': {why}"


def test_a_server_that_drips_is_left(clock: FakeClock) -> None:
    files = FileDownloads(LOCAL, clock, Limits(1000, 0.3))
    with (
        dripping() as address,
        pytest.raises(UnreachableError, match=r"took longer than 0\.3 s"),
    ):
        files.remote(Remote(f"{address}/a"))


@pytest.mark.parametrize("to", ["http://169.254.169.254/latest", "file:///etc/passwd"])
def test_no_redirect_leads_to_credentials_or_files(files: FileDownloads, to: str) -> None:
    with (
        Site({"/a": Response(302, b"", {"Location": to})}) as site,
        pytest.raises(InvalidError, match="cannot download"),
    ):
        files.remote(Remote(f"{site.address}/a", token="t0ken"))


def test_a_redirect_to_another_server_has_no_credentials(files: FileDownloads) -> None:
    """The file has the name of the address that the user wrote."""
    with Site({"/signed": YAML}) as storage:
        away = Response(302, b"", {"Location": f"{storage.address}/signed"})
        with Site({"/a.yaml": away}) as site:
            found = files.remote(Remote(f"{site.address}/a.yaml", token="t0ken"))
    assert found.files == {"a.yaml": YAML}
    assert site.asked[0].headers["Authorization"] == "Bearer t0ken"
    assert "Authorization" not in storage.asked[0].headers


@pytest.mark.parametrize("url", ["ftp://a.example/b", "file:///etc/passwd", "a", "", "http://"])
def test_only_http_and_registries_are_called(files: FileDownloads, url: str) -> None:
    with pytest.raises(InvalidError, match="does not begin with http:// or https://"):
        files.remote(Remote(url))


def test_a_cloud_calls_nothing_on_its_own_machine(clock: FakeClock) -> None:
    files = FileDownloads(PUBLIC, clock)
    with Site({"/a": YAML}) as site, pytest.raises(InvalidError, match="nothing is called there"):
        files.remote(Remote(f"{site.address}/a"))
    assert site.asked == []


def test_nothing_is_called_that_the_operator_does_not_allow(clock: FakeClock) -> None:
    """The sentence names the setting; who is redirected from an allowed server is refused, too."""
    files = FileDownloads(LOCAL.within("localhost, 10.0.0.0/8"), clock)
    with Site({"/a": YAML}) as site:
        allowed = site.address.replace("127.0.0.1", "localhost")
        site.files["/led"] = Response(302, b"", {"Location": f"{site.address}/a"})
        assert files.remote(Remote(f"{allowed}/a")).files == {"a.yaml": YAML}
        asked = len(site.asked)
        for url in (f"{site.address}/a", f"{allowed}/led"):
            with pytest.raises(InvalidError) as caught:
                files.remote(Remote(url))
            assert str(caught.value) == (
                f"cannot download '{site.address}/a': it is not among the hosts and ranges of the"
                " setting BELLHOP_EGRESS_ALLOW; nothing is called there"
            )
    assert len(site.asked) == asked + 1


def test_a_server_is_trusted_by_its_authority(files: FileDownloads, tmp_path: Path) -> None:
    authority = write_certificates(tmp_path, "files", ("127.0.0.1",))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    with Site({"/a": YAML}, tls=tls) as site:
        place = Remote(f"{site.address}/a")
        for each in (replace(place, authority=authority), replace(place, insecure=True)):
            assert files.remote(each).files == {"a.yaml": YAML}
        with pytest.raises(UnreachableError):
            files.remote(place)
        with pytest.raises(InvalidError, match="the given certificate authority is not PEM"):
            files.remote(replace(place, authority="hunter2"))


def test_a_file_counts_for_as_long_as_its_place_says(
    files: FileDownloads, clock: FakeClock
) -> None:
    with Site({"/a": YAML}) as site:
        place = Remote(f"{site.address}/a", seconds=60)
        first = files.remote(place)
        site.files["/a"] = b"kind: Secret\n"
        clock.advance(timedelta(seconds=59))
        assert files.remote(place) == first
        clock.advance(timedelta(seconds=1))
        assert files.remote(place).files == {"a.yaml": b"kind: Secret\n"}
        assert len(site.asked) == 2


def test_other_credentials_get_nothing_from_the_cache(files: FileDownloads) -> None:
    with Site({"/a": YAML}, ADA) as site:
        place = Remote(f"{site.address}/a", username="ada", password="hunter2")
        files.remote(place)
        for each in (replace(place, password="wrong"), Remote(place.url)):
            with pytest.raises(UnauthorizedError):
                files.remote(each)


def test_two_threads_download_once(files: FileDownloads) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(_: Request) -> Response:
        asked.set()
        go_on.wait(10)
        return Response(200, YAML)

    with Site({"/a": answer}) as site, ThreadPoolExecutor(2) as pool:
        place = Remote(f"{site.address}/a")
        first = pool.submit(files.remote, place)
        assert asked.wait(10)
        second = pool.submit(files.remote, place)
        go_on.set()
        assert first.result() == second.result()
    assert len(site.asked) == 1


def test_an_installation_on_one_machine_holds_contents_to_its_setting(
    clock: FakeClock, tmp_path: Path
) -> None:
    """Charts and files alike; the settings say what `bellhop serve` may call for them."""
    found = tools(tmp_path, Settings(egress_allow="files.example.com"), clock)
    assert found.files
    assert found.helm
    with Site({"/a": YAML}) as site:
        with pytest.raises(InvalidError, match="BELLHOP_EGRESS_ALLOW"):
            found.files.remote(Remote(f"{site.address}/a"))
        with pytest.raises(InvalidError, match="BELLHOP_EGRESS_ALLOW"):
            found.helm.repositories.find(Place(site.address, "web"))
    assert site.asked == []
