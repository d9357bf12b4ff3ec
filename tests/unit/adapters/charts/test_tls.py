"""Charts over TLS: by an authority of one's own, or by none, and never back to plain HTTP."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError, UnreachableError
from bellhop.state.chart import ANONYMOUS, Login, Place
from infra.lab.certificates import write_certificates
from tests.fakes.chart import packed
from tests.fakes.clock import FakeClock
from tests.fakes.site import Answer, Site
from tests.lab.http_server import Response

INDEX = b"entries: {demo: [{version: 1.0.0, urls: [demo.tgz]}]}"


@pytest.fixture
def authority(tmp_path: Path) -> str:
    return write_certificates(tmp_path, "charts", ("127.0.0.1",))


@pytest.fixture
def tls(authority: str, tmp_path: Path) -> ssl.SSLContext:
    assert authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    return context


@pytest.fixture
def charts(tmp_path: Path) -> ChartRepositories:
    return ChartRepositories(LOCAL, tmp_path / "charts", FakeClock())


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Answer]:
    return {"/index.yaml": INDEX, "/demo.tgz": packed(tmp_path).read_bytes()}


def test_a_server_is_trusted_by_its_authority(
    charts: ChartRepositories, files: dict[str, Answer], tls: ssl.SSLContext, authority: str
) -> None:
    with Site(files, tls=tls) as site:
        for login in (Login(authority=authority), Login(insecure=True)):
            assert charts.find(Place(site.address, "demo", login=login)).version == "1.0.0"
        with pytest.raises(UnreachableError):
            charts.find(Place(site.address, "demo", login=ANONYMOUS))


@pytest.mark.parametrize("path", ["/index.yaml", "/demo.tgz"])
def test_a_redirect_stays_on_tls(
    charts: ChartRepositories,
    files: dict[str, Answer],
    tls: ssl.SSLContext,
    authority: str,
    path: str,
) -> None:
    with Site(files) as plain, Site(files, tls=tls) as site:
        site.files[path] = Response(302, b"", {"Location": f"{plain.address}{path}"})
        with pytest.raises(InvalidError, match="leads to an address without TLS"):
            charts.find(Place(site.address, "demo", login=Login(authority=authority)))
        assert plain.asked == []


def test_a_registry_is_called_by_tls(
    charts: ChartRepositories, tls: ssl.SSLContext, authority: str
) -> None:
    """Its token server, too; and it is never called without TLS unless a user says so."""
    challenge = {"WWW-Authenticate": 'Bearer realm="http://127.0.0.1/token"'}
    refuses = {"/v2/demo/manifests/1.0.0": Response(401, b"", challenge)}
    with Site(refuses, tls=tls) as site:
        login = Login("ada", "hunter2", authority=authority)
        place = Place(site.address.replace("https:", "oci:"), "demo", "1.0.0", login)
        with pytest.raises(InvalidError, match="/token' has no TLS"):
            charts.find(place)
    with Site(refuses) as plain:
        place = Place(plain.address.replace("http:", "oci:"), "demo", "1.0.0")
        with pytest.raises(UnreachableError):
            charts.find(place)
        assert plain.asked == []
