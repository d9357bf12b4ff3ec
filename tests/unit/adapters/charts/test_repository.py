"""Chart repositories: their indexes, archives and digests, and where the credentials go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from bellhop.adapters.sources.charts.client import Descriptor
from bellhop.adapters.sources.charts.repository import INDEX, Repository
from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import (
    BellhopError,
    InvalidError,
    MissingError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.state.chart import ANONYMOUS, Login, Place
from infra.lab.port import free_port
from tests.fakes.site import Site, basic
from tests.lab.http_server import Response

ADA = ("ada", "hunter2")
ARCHIVE = b"archive"
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


def index(*urls: str, version: str = "1.0.0", digest: str = DIGEST) -> bytes:
    entry = {"version": version, "urls": urls, "digest": digest}
    older = {"version": "0.9.0", "urls": ["demo-0.9.0.tgz"]}
    return json.dumps({"apiVersion": "v1", "entries": {"demo": [older, entry]}}).encode()


def repository(
    address: str,
    chart: str = "demo",
    login: Login = ANONYMOUS,
    reach: AddressPolicy = LOCAL,
) -> Repository:
    def read(index: Callable[[], bytes]) -> bytes:
        return index()

    return Repository(Place(address, chart, login=login), reach, read)


def fetched(one: Repository, version: str = "") -> bytes:
    return one.fetch(one.find(version))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("demo-1.0.0.tgz", "/charts/demo-1.0.0.tgz"),
        ("a/../b/demo.tgz", "/charts/b/demo.tgz"),
        ("/demo.tgz", "/demo.tgz"),
        ("{}/elsewhere/demo.tgz?a=b", "/elsewhere/demo.tgz?a=b"),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_finds_an_archive_where_the_index_says(url: str, path: str, slash: str) -> None:
    with Site({path: ARCHIVE}) as site:
        site.files["/charts/index.yaml"] = index(url.format(site.address))
        assert fetched(repository(f"{site.address}/charts{slash}")) == ARCHIVE
    assert site.targets == ["/charts/index.yaml", path]


def test_the_query_of_a_repository_goes_along() -> None:
    """As with Helm: a signed address is one for the index and for what lies beside it."""
    with Site({"/index.yaml": index("demo.tgz"), "/demo.tgz": ARCHIVE}) as site:
        assert fetched(repository(f"{site.address}?signed=1")) == ARCHIVE
    assert site.targets == ["/index.yaml?signed=1", "/demo.tgz?signed=1"]


def test_finds_versions() -> None:
    with Site({"/index.yaml": index("demo.tgz")}) as site:
        one = repository(site.address, "ours/demo")
        assert one.versions() == ["1.0.0", "0.9.0"]
        assert one.find("<1.0.0") == Descriptor("demo", "0.9.0", f"{site.address}/demo-0.9.0.tgz")
        with pytest.raises(MissingError) as caught:
            one.find("2.0.0")
    assert str(caught.value) == (
        f"cannot find version '2.0.0' of chart 'demo' in '{site.address}'; the newest are 1.0.0,"
        " 0.9.0"
    )


def test_the_credentials_are_needed() -> None:
    with Site({"/index.yaml": index("demo.tgz"), "/demo.tgz": ARCHIVE}, ADA) as site:
        assert fetched(repository(site.address, login=Login(*ADA))) == ARCHIVE
        for login in (Login("ada", "wrong"), ANONYMOUS):
            with pytest.raises(
                UnauthorizedError, match=f"cannot find chart 'demo' in '{site.address}'"
            ):
                repository(site.address, login=login).find("")


@pytest.mark.parametrize(("everywhere", "given"), [(False, None), (True, basic(*ADA))])
def test_credentials_go_to_another_host_only_on_request(
    *, everywhere: bool, given: str | None
) -> None:
    """Another port of a host is another server, and `//host` is an address of one."""
    with (
        Site({"/demo.tgz": ARCHIVE}) as other,
        Site(account=ADA) as site,
    ):
        for url in (f"{other.address}/demo.tgz", f"//{other.address.partition('//')[2]}/demo.tgz"):
            site.files["/index.yaml"] = index(url)
            login = Login(*ADA, everywhere=everywhere)
            assert fetched(repository(site.address, login=login)) == ARCHIVE
    assert [each.headers.get("Authorization") for each in other.asked] == [given] * 2


def test_the_credentials_go_from_tls_to_none_without_it() -> None:
    login = Login(*ADA, everywhere=True)
    one = repository("https://charts.example.com", login=login)
    assert one._headers("http://charts.example.com/demo.tgz") == {}
    assert one._headers("https://other.example.com/demo.tgz") == {"Authorization": basic(*ADA)}


def test_the_digest_of_the_index_counts() -> None:
    with Site({"/index.yaml": index("demo.tgz"), "/demo.tgz": b"another"}) as site:
        with pytest.raises(InvalidError, match="is not that of the index"):
            fetched(repository(site.address))
        site.files["/index.yaml"] = index("demo.tgz", digest=f"sha256:{DIGEST.upper()}")
        site.files["/demo.tgz"] = ARCHIVE
        assert fetched(repository(site.address)) == ARCHIVE


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (
            b"<html>",
            InvalidError,
            "what is there is no index of a chart repository; check its address",
        ),
        (b"entries: {}", MissingError, "the index does not have this chart; check its name"),
        (
            Response(404),
            MissingError,
            "there is no '{}/index.yaml'; check the repository's address",
        ),
        (Response(502), UnreachableError, "'{}/index.yaml' answers 502; Bellhop tries again"),
        (
            index(),
            InvalidError,
            "the index has no address of version '1.0.0'; have the index re-created",
        ),
        (
            index("http://["),
            InvalidError,
            "the index has no address of version '1.0.0'; have the index re-created",
        ),
    ],
)
def test_what_is_wrong_is_said(answer: Any, kind: type[BellhopError], why: str) -> None:
    with Site({"/index.yaml": answer}) as site, pytest.raises(kind) as caught:
        repository(site.address).find("")
    assert str(caught.value) == (
        f"cannot find chart 'demo' in '{site.address}': {why.format(site.address)}"
    )


def test_nobody_answers() -> None:
    with pytest.raises(UnreachableError, match="cannot download 'http://"):
        repository(f"http://127.0.0.1:{free_port()}").find("")


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://metadata.google.internal/a.tgz",
        "file:///etc/passwd",
    ],
)
def test_nobody_is_led_to_credentials_or_files(url: str) -> None:
    """By the index or by a redirect."""
    with Site({"/index.yaml": index(url)}) as site:
        with pytest.raises(InvalidError):
            fetched(repository(site.address))
        for path in ("/index.yaml", "/demo.tgz"):
            site.files["/index.yaml"] = index("demo.tgz")
            site.files[path] = Response(302, b"", {"Location": url})
            with pytest.raises(InvalidError):
                fetched(repository(site.address))


def test_a_cloud_calls_nobody_on_its_own_machine() -> None:
    with (
        Site({"/index.yaml": index("demo.tgz")}) as site,
        pytest.raises(InvalidError, match="nothing is called there"),
    ):
        repository(site.address, reach=PUBLIC).find("")
    assert site.asked == []


def test_an_index_is_so_large_at_most() -> None:
    """One of 30 MB is taken: there are such ones."""
    filler = b'"x": "' + b"x" * (30 << 20) + b'", '
    with Site({"/index.yaml": b"{" + filler + index("demo.tgz")[1:]}) as site:
        assert repository(site.address).find("").version == "1.0.0"
        site.files["/index.yaml"] = b"x" * (INDEX.largest + 1)
        with pytest.raises(TooLargeError):
            repository(site.address).find("")


@pytest.mark.parametrize("address", ["http://", "http://[", "http://a:port", "https://"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidError):
        repository(address)
