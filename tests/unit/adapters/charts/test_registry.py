"""OCI registries that mean harm, and how each kind is signed in to."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bellhop.adapters.egress.registry import authorization
from bellhop.adapters.sources.charts import registry
from bellhop.adapters.sources.charts.client import ChartClient, Descriptor
from bellhop.adapters.sources.charts.registry import Registry
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
from bellhop.state.chart import Login
from tests.fakes.site import Answer, Site, basic
from tests.lab.http_server import Request, Response

ADA = ("ada", "hunter2")
PLAIN = Login(plain=True)
SIGNED_IN = Login(*ADA, plain=True)
ARCHIVE = b"archive"
HEX = hashlib.sha256(ARCHIVE).hexdigest()
BASE = "/v2/charts/demo"
MANIFEST = f"{BASE}/manifests/1.0.0"
TAGS = f"{BASE}/tags/list"
BLOB = f"{BASE}/blobs/sha256:{HEX}"
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def manifest(**layer: Any) -> bytes:
    others = {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "x"}
    made = {"mediaType": CHART, "digest": f"sha256:{HEX}", "size": len(ARCHIVE), **layer}
    return json.dumps({"schemaVersion": 2, "layers": [others, made]}).encode()


def tags(*names: str, following: str = "") -> Response:
    headers = {"Link": f'<{following}>; rel="next"'} if following else {}
    return Response(200, json.dumps({"name": "charts/demo", "tags": names}).encode(), headers)


FILES: dict[str, Answer] = {
    TAGS: tags("1.0.0", "latest", "1.1.0_b.1", "sha256-abc.sig"),
    MANIFEST: manifest(),
    f"{BASE}/manifests/1.1.0_b.1": manifest(),
    BLOB: ARCHIVE,
}


def site(more: Mapping[str, Answer] | None = None, account: tuple[str, str] | None = None) -> Site:
    return Site({**FILES, **(more or {})}, account)


def chart(there: Site, login: Login = PLAIN) -> Registry:
    return Registry(f"oci://{there.address.partition('//')[2]}/charts/demo", login, LOCAL)


def task(there: Site) -> str:
    return f"cannot find chart 'demo' in 'oci://{there.address.partition('//')[2]}/charts/demo'"


def test_an_exact_version_is_asked_for_at_once() -> None:
    with site() as there:
        one = chart(there)
        found = one.find("1.0.0")
        assert found == Descriptor("demo", "1.0.0", f"{there.address}{BLOB}", HEX)
        assert one.fetch(found) == ARCHIVE
        assert there.targets == [f"{BASE}/manifests/1.0.0", BLOB]
        assert one.find("1.1.0+b.1").version == "1.1.0+b.1"
    assert there.asked[0].headers["Accept"].startswith("application/vnd.oci.image.manifest.v1+json")


def test_a_range_is_chosen_from_the_tags() -> None:
    with site() as there:
        one = chart(there)
        assert one.versions() == ["1.1.0+b.1", "1.0.0"]
        assert one.find("1.0.x").version == "1.0.0"
        assert one.find("").version == "1.1.0+b.1"
        with pytest.raises(MissingError) as caught:
            one.find("2.0.0")
    assert str(caught.value).endswith("/charts/demo'; the newest are 1.1.0+b.1, 1.0.0")


def test_a_version_is_found_however_its_tag_begins() -> None:
    files: dict[str, Answer] = {
        TAGS: tags("v2.0.0"),
        f"{BASE}/manifests/v2.0.0": manifest(),
    }
    with site(files) as there:
        assert chart(there).find("2.0.0").version == "v2.0.0"


def test_tags_come_in_pages() -> None:
    pages: dict[str, Answer] = {
        f"{BASE}/tags/list?n=1000": tags("1.0.0", following=f"{BASE}/tags/list?last=1"),
        f"{BASE}/tags/list?last=1": tags("1.1.0", following="list?last=2"),
        f"{BASE}/tags/list?last=2": tags("1.2.0"),
    }
    with site(pages) as there:
        assert chart(there).versions() == ["1.2.0", "1.1.0", "1.0.0"]


def test_pages_without_end_are_left() -> None:
    with site({TAGS: tags("1.0.0", following=f"{BASE}/tags/list?again=1")}) as there:
        with pytest.raises(TooLargeError) as caught:
            chart(there).versions()
        assert str(caught.value) == (
            f"{task(there)}: its list of tags has more than 50 pages; name an exact version"
        )
    assert len(there.asked) == registry.MOST_PAGES


def test_tags_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has as many tags as a registry likes, so that they are counted one by one."""
    monkeypatch.setattr(registry, "MOST_TAGS", 3)
    with (
        site({TAGS: tags("1.0.0", "1.1.0", "1.2.0", "1.3.0")}) as there,
        pytest.raises(TooLargeError) as refusal,
    ):
        chart(there).versions()
    assert str(refusal.value) == (
        f"{task(there)}: its list of tags has more than 3 tags; name an exact version"
    )


def test_a_page_of_something_else_than_tags_is_not_built() -> None:
    """Megabytes of brackets would become a hundred times as many bytes of objects."""
    brackets = b'{"tags": [' + b",".join([b"[]"] * (1 << 18)) + b"]}"
    with site({TAGS: brackets}) as there:
        tracemalloc.start()
        try:
            assert chart(there).versions() == []
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 8 * len(brackets)


def test_pages_go_on_at_the_same_server() -> None:
    with Site() as other:
        other_server = tags("1.0.0", following=f"{other.address}{TAGS}")
        with (
            site({TAGS: other_server}) as there,
            pytest.raises(InvalidError, match="another server"),
        ):
            chart(there).versions()
    assert other.asked == []


DISTRUST = "do not trust this registry"
NO_DIGEST = f"the manifest has no SHA-256 of the chart; {DISTRUST}"
NO_CHART = "version '1.0.0' is not a Helm chart; check the address"
LARGE = (32 << 20) + 1


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (
            Response(200, manifest(), {"Docker-Content-Digest": f"sha256:{'0' * 64}"}),
            InvalidError,
            f"the digest of the manifest is not that of the registry's answer; {DISTRUST}",
        ),
        (
            manifest(digest="sha256:abc"),
            InvalidError,
            NO_DIGEST,
        ),
        (
            manifest(digest="../../../v2/a"),
            InvalidError,
            NO_DIGEST,
        ),
        (manifest(size=LARGE), TooLargeError, "the archive has more than 32 MiB"),
        (
            manifest(mediaType="application/octet-stream"),
            InvalidError,
            NO_CHART,
        ),
        (b"<html>", InvalidError, NO_CHART),
        (b'{"layers": [1]}', InvalidError, NO_CHART),
        (
            Response(403),
            DeniedError,
            "requests without credentials may not read '{}'; grant access to it",
        ),
        (Response(503), UnreachableError, "'{}' answers 503; Bellhop tries again"),
        (
            Response(401),
            UnauthorizedError,
            "'{}' asks for credentials; name a Secret that has them",
        ),
    ],
)
def test_what_is_wrong_is_said(answer: Any, kind: type[BellhopError], why: str) -> None:
    with site({MANIFEST: answer}) as there, pytest.raises(kind) as caught:
        chart(there).find("1.0.0")
    assert str(caught.value) == f"{task(there)}: {why.format(there.address + MANIFEST)}"


def test_what_is_not_there_is_missing() -> None:
    with Site() as there, pytest.raises(MissingError) as caught:
        chart(there).find("1.0.0")
    assert str(caught.value) == (f"{task(there)}: the registry does not have it; check its address")


def test_an_archive_is_what_the_manifest_says() -> None:
    with site({BLOB: b"another"}) as there:
        one = chart(there)
        found = one.find("1.0.0")
        with pytest.raises(InvalidError, match="the digest of the archive is not"):
            one.fetch(found)


def test_a_manifest_is_so_large_at_most() -> None:
    large = b"x" * (5 << 20)
    with site({MANIFEST: large}) as there, pytest.raises(TooLargeError):
        chart(there).find("1.0.0")


@pytest.mark.parametrize("to", ["http://169.254.169.254/latest", "file:///etc/passwd"])
def test_nobody_is_led_to_credentials_or_files(to: str) -> None:
    with site({BLOB: Response(307, b"", {"Location": to})}) as there:
        one = chart(there)
        found = one.find("1.0.0")
        with pytest.raises(InvalidError):
            one.fetch(found)


def test_basic_credentials_are_sent_when_asked_for() -> None:
    """A blob on another server is got without them, also where they may go everywhere."""
    with Site({"/blob": ARCHIVE}) as storage, site(account=ADA) as there:
        there.files[BLOB] = Response(307, b"", {"Location": f"{storage.address}/blob"})
        one = chart(there, Login(*ADA, plain=True, everywhere=True))
        assert one.fetch(one.find("1.0.0")) == ARCHIVE
        with pytest.raises(UnauthorizedError, match="does not accept the credentials"):
            chart(there, Login("ada", "wrong", plain=True)).find("1.0.0")
    assert [each.headers.get("Authorization") for each in there.asked[:3]] == [
        None,
        basic(*ADA),
        basic(*ADA),
    ]
    assert storage.asked[0].headers.get("Authorization") is None


class Guarded(Site):
    """A registry that takes tokens, one for each of what is asked, from a server of its own."""

    def __init__(self, account: tuple[str, str] | None) -> None:
        super().__init__(FILES)
        self.files["/token"] = self._token
        self._wanted = account and basic(*account)
        self.realm = f"{self.address}/token"
        self.field = "token"

    def _token(self, request: Request) -> Response:
        if request.headers.get("Authorization") != self._wanted:
            return Response(401)
        scope = parse_qs(urlsplit(request.target).query)["scope"][0]
        return Response.of(200, {self.field: f"for-{scope}"})

    def respond(self, request: Request) -> Response:
        scope = "tags" if "/tags/" in request.target else "pull"
        if not request.target.startswith("/token") and (
            request.headers.get("Authorization") != f"Bearer for-{scope}"
        ):
            self.asked.append(request)
            challenge = f'Bearer realm="{self.realm}",service="a b&c",scope="{scope}"'
            return Response(401, b"", {"WWW-Authenticate": challenge})
        return super().respond(request)


@pytest.mark.parametrize("account", [None, ADA])
@pytest.mark.parametrize("field", ["token", "access_token"])
def test_a_token_is_asked_for(account: tuple[str, str] | None, field: str) -> None:
    """Each part may need its own: Azure's registries do."""
    with Guarded(account) as there:
        there.field = field
        one = chart(there, SIGNED_IN if account else PLAIN)
        assert one.fetch(one.find("1.0.x")) == ARCHIVE
        assert "/token?service=a+b%26c&scope=tags" in there.targets
        assert sum(each.startswith("/token") for each in there.targets) == 2


def test_a_token_server_refuses() -> None:
    with Guarded(ADA) as there:
        with pytest.raises(UnauthorizedError, match="/token' asks for credentials"):
            chart(there).find("1.0.0")
        with pytest.raises(UnauthorizedError, match="/token' does not accept the credentials"):
            chart(there, Login("eve", "hunter3", plain=True)).find("1.0.0")


@pytest.mark.parametrize(
    "realm",
    ["http://169.254.169.254/token", "http://a.example/token", "file:///etc", "", "//a"],
)
def test_credentials_go_to_no_token_server_without_tls(realm: str) -> None:
    with Guarded(ADA) as there:
        there.realm = realm
        with pytest.raises(InvalidError):
            chart(there, SIGNED_IN).find("1.0.0")
        assert all(each.headers.get("Authorization") is None for each in there.asked)


def test_a_registry_with_tls_has_a_token_server_with_tls() -> None:
    """On the same host, too, unless it is called without TLS itself."""
    client = ChartClient("cannot find it", Login(*ADA), LOCAL)
    with pytest.raises(InvalidError) as caught:
        authorization(client, "https://a.example/v2/", 'Bearer realm="http://a.example/token?x=y"')
    assert str(caught.value) == (
        "cannot find it: its token server 'http://a.example/token' has no TLS; have the registry"
        " name an https:// one"
    )


def test_a_token_server_is_guarded() -> None:
    client = ChartClient("cannot find it", Login(*ADA), PUBLIC)
    for realm in ("https://169.254.169.254/token", "https://127.0.0.1/token"):
        with pytest.raises(InvalidError, match="nothing is called there"):
            authorization(client, "https://a.example/v2/", f'Bearer realm="{realm}"')


@pytest.mark.parametrize(
    "answer", [{}, {"token": 1}, {"token": "a\r\nHost: b"}, {"token": "é"}, []]
)
def test_what_is_no_token_is_refused(answer: Any) -> None:
    with Guarded(None) as there:
        there.files["/token"] = Response.of(200, answer)
        with pytest.raises(InvalidError, match="answers without a token"):
            chart(there).find("1.0.0")


@pytest.mark.parametrize(
    ("challenge", "header"),
    [
        ("", {}),
        ("Negotiate", {}),
        ("Digest realm=basic", {}),
        ('Basic realm="a"', {"Authorization": basic(*ADA)}),
        ('Negotiate, basic realm="a"', {"Authorization": basic(*ADA)}),
    ],
)
def test_only_what_is_asked_for_is_sent(challenge: str, header: dict[str, str]) -> None:
    client = ChartClient("cannot find it", Login(*ADA), LOCAL)
    assert authorization(client, "https://a.example/v2/", challenge) == header


@pytest.mark.parametrize(
    "address",
    [
        "oci://",
        "oci://host",
        "oci://host/",
        "oci:///path",
        "oci://host/Upper",
        "oci://host/a/../b",
        "oci://host/a b",
        "oci://host/a%2fb",
        "oci://host:port/a",
        "oci://[/a",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidError):
        Registry(address, PLAIN, LOCAL)


def test_no_error_shows_secrets_of_an_address() -> None:
    with Site() as there:
        address = f"oci://eve:hunter3@{there.address.partition('//')[2]}/charts/demo?token=hunter4"
        with pytest.raises(MissingError) as caught:
            Registry(address, PLAIN, LOCAL).find("1.0.0")
        assert str(caught.value).startswith(task(there))


def test_docker_hub_has_a_server_of_another_name() -> None:
    one = Registry("oci://docker.io/bitnamicharts/vault", Login(), LOCAL)
    assert one._base == "https://registry-1.docker.io/v2/bitnamicharts/vault"


@pytest.mark.parametrize("version", ["1.0.0+" + "x" * 200])
def test_what_is_no_tag_is_not_asked_for(version: str) -> None:
    with Site() as there, pytest.raises(InvalidError, match="is not a version"):
        chart(there).find(version)
    assert there.asked == []
