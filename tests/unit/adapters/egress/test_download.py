"""Downloads: bounded, led on a few times, and without credentials for unauthenticated clients."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import pytest

from bellhop.adapters.egress.download import MOST_REDIRECTS, Terms, download
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import InvalidError, TooLargeError, UnreachableError
from infra.lab.port import free_port
from tests.lab.http_server import HttpServer, Request, Response

SECRET = {"Authorization": "Basic hunter2", "X-Kept": "1"}
TERMS = Terms(LOCAL, largest=1 << 20)


class Site(HttpServer):
    """Answers as configured, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        super().__init__()
        self._answer = answer
        self.asked: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.asked.append(request)
        return self._answer(request)


def ok(body: bytes = b"content") -> Callable[[Request], Response]:
    return lambda _: Response(HTTPStatus.OK, body)


def leads(to: str) -> Callable[[Request], Response]:
    return lambda _: Response(HTTPStatus.FOUND, b"", {"Location": to})


def test_gets_what_is_there() -> None:
    with Site(ok()) as site:
        answer = download(f"{site.address}/a/b.tgz?c=d", TERMS, SECRET)
    assert (answer.status, answer.data) == (200, b"content")
    assert site.asked[0].target == "/a/b.tgz?c=d"
    assert site.asked[0].headers["Authorization"] == "Basic hunter2"


@pytest.mark.parametrize("path", ["", "/", "/a", "/a/", "/a/?b=c"])
def test_an_address_is_called_as_it_is(path: str) -> None:
    """To many servers a folder is another address than a file."""
    with Site(ok()) as site:
        download(f"{site.address}{path}", TERMS)
    assert site.asked[0].target == (path or "/")


def test_an_answer_that_is_no_success_is_an_answer() -> None:
    with Site(lambda _: Response(HTTPStatus.NOT_FOUND, b"none")) as site:
        assert download(site.address, TERMS).status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(("everywhere", "given"), [(False, None), (True, "Basic hunter2")])
def test_credentials_go_to_no_other_server(everywhere: bool, given: str | None) -> None:  # noqa: FBT001
    """Another port of the same host is another server."""
    with Site(ok()) as other, Site(leads(f"{other.address}/there")) as site:
        terms = Terms(LOCAL, largest=1 << 20, everywhere=everywhere)
        assert download(site.address, terms, SECRET).data == b"content"
    assert other.asked[0].headers.get("Authorization") == given
    assert other.asked[0].headers["X-Kept"] == "1"


def test_credentials_go_along_to_the_same_server() -> None:
    def answer(request: Request) -> Response:
        return ok()(request) if request.target == "/there" else leads("/there")(request)

    with Site(answer) as site:
        assert download(f"{site.address}/here", TERMS, SECRET).data == b"content"
    assert [each.headers["Authorization"] for each in site.asked] == ["Basic hunter2"] * 2


def test_who_leads_on_and_on_is_left() -> None:
    with Site(leads("/again")) as site, pytest.raises(InvalidError, match="leads on more than 5"):
        download(site.address, TERMS)
    assert len(site.asked) == MOST_REDIRECTS + 1


@pytest.mark.parametrize(
    "to",
    ["http://169.254.169.254/latest/meta-data", "http://metadata.google.internal/", "file:///etc"],
)
def test_nobody_is_led_to_credentials_or_files(to: str) -> None:
    with Site(leads(to)) as site, pytest.raises(InvalidError):
        download(site.address, TERMS)


@pytest.mark.parametrize("to", ["http://[::1", "//[x"])
def test_who_leads_to_no_address_is_refused(to: str) -> None:
    with Site(leads(to)) as site, pytest.raises(InvalidError, match="it leads to no address"):
        download(site.address, TERMS)


@pytest.mark.parametrize(
    "url",
    ["", "file:///etc/passwd", "ftp://a", "http://", "http://a:port", "http://169.254.169.254/"],
)
def test_what_may_not_be_called_is_refused(url: str) -> None:
    with pytest.raises(InvalidError):
        download(url, TERMS)


def test_a_cloud_calls_nobody_on_its_own_machine() -> None:
    with Site(ok()) as site, pytest.raises(InvalidError):
        download(site.address, Terms(PUBLIC, largest=1 << 20))
    assert site.asked == []


def test_what_is_too_large_is_refused() -> None:
    with Site(ok(b"x" * 4096)) as site:
        assert len(download(site.address, Terms(LOCAL, largest=4096)).data) == 4096
        with pytest.raises(TooLargeError):
            download(site.address, Terms(LOCAL, largest=4095))


def test_errors_show_no_secrets_of_an_address() -> None:
    url = f"http://ada:hunter2@127.0.0.1:{free_port()}/a?token=hunter2"
    with pytest.raises(UnreachableError) as caught:
        download(url, TERMS)
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_an_authority_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidError, match="not PEM"):
        download("https://127.0.0.1:1", Terms(LOCAL, largest=1, authority="no certificate"))


def test_a_server_that_does_not_listen_is_named_in_words() -> None:
    """No class of a library is named."""
    with pytest.raises(UnreachableError) as caught:
        download(f"https://127.0.0.1:{free_port()}/", TERMS)
    assert str(caught.value).endswith("/': the connection is refused or has no route")


def test_a_server_without_tls_is_reported_with_a_hint() -> None:
    """A registry that serves plain HTTP is the usual reason."""
    with Site(ok()) as site, pytest.raises(UnreachableError, match=r"plain HTTP.*plainHTTP: true"):
        download(site.address.replace("http://", "https://"), TERMS)
