"""Calls to servers that have charts: what each status means, and how long they are waited for."""

from __future__ import annotations

import pytest

from bellhop.adapters.egress.source_client import Limits, basic, json_object
from bellhop.adapters.sources.charts.client import ChartClient
from bellhop.core.address_policy import LOCAL
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    MissingError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.state.chart import ANONYMOUS, Login
from tests.fakes.dripping import dripping
from tests.fakes.site import Site
from tests.lab.http_server import Response

TASK = "cannot find chart 'demo' in 'https://charts.example.com'"
ADA = Login("ada", "hunter2")
LIMITS = Limits(1 << 20, 10)


@pytest.mark.parametrize(
    ("status", "login", "kind", "why"),
    [
        (
            401,
            ADA,
            UnauthorizedError,
            "{} does not accept the credentials; check those in the repository's Secret",
        ),
        (
            401,
            ANONYMOUS,
            UnauthorizedError,
            "{} asks for credentials; name a Secret that has them",
        ),
        (403, ADA, DeniedError, "the credentials may not read {}; grant access to it"),
        (
            403,
            ANONYMOUS,
            DeniedError,
            "requests without credentials may not read {}; grant access to it",
        ),
        (404, ANONYMOUS, MissingError, "there is no {}; check the repository's address"),
        (410, ANONYMOUS, MissingError, "there is no {}; check the repository's address"),
        (429, ANONYMOUS, ThrottledError, "{} limits requests; Bellhop tries again"),
        (408, ANONYMOUS, UnreachableError, "{} answers 408; Bellhop tries again"),
        (503, ANONYMOUS, UnreachableError, "{} answers 503; Bellhop tries again"),
        (418, ANONYMOUS, InvalidError, "{} answers 418; check the repository's address"),
        (304, ANONYMOUS, InvalidError, "{} answers 304; check the repository's address"),
    ],
)
def test_each_status_has_its_sentence(
    status: int, login: Login, kind: type[BellhopError], why: str
) -> None:
    """None shows what may be secret in an address."""
    with Site({"/index.yaml": Response(status)}) as site:
        url = f"http://eve:hunter3@{site.address.partition('//')[2]}/index.yaml?token=hunter4"
        with pytest.raises(BellhopError) as caught:
            ChartClient(TASK, login, LOCAL).content(url, LIMITS, {})
    assert type(caught.value) is kind
    assert str(caught.value) == f"{TASK}: {why.format(repr(f'{site.address}/index.yaml'))}"


def test_gets_what_is_there() -> None:
    with Site({"/a": b"content"}, ("ada", "hunter2")) as site:
        assert ChartClient(TASK, ADA, LOCAL).content(f"{site.address}/a", LIMITS, basic(ADA)) == (
            b"content"
        )
    assert basic(ANONYMOUS) == {}


def test_a_server_that_drips_is_left() -> None:
    with (
        dripping() as address,
        pytest.raises(UnreachableError, match=r"took longer than 0\.3 s"),
    ):
        ChartClient(TASK, ANONYMOUS, LOCAL).content(f"{address}/index.yaml", Limits(1000, 0.3), {})


@pytest.mark.parametrize("content", [b"", b"[]", b"1", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_no_object_has_no_fields(content: bytes) -> None:
    assert json_object(content) == {}


def test_reads_objects() -> None:
    assert json_object(b'{"a": 1}') == {"a": 1}
