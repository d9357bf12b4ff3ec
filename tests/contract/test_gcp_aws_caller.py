"""The identity under which decisions about promotions are recorded in each cloud."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from bellhop.adapters.aws.services import Services as AwsServices
from bellhop.adapters.gcp.services import Services
from bellhop.errors import BellhopError
from bellhop.runtime.aws import installation as aws
from bellhop.runtime.gcp import installation as gcp
from tests.lab.http_server import HttpServer, Request, Response


class UserInfo(HttpServer):
    """Google's page about the caller."""

    def __init__(self, status: int = HTTPStatus.OK, **claims: str) -> None:
        super().__init__()
        self._answer = Response.of(status, claims)

    def respond(self, request: Request) -> Response:
        assert request.target == "/v1/userinfo"
        return self._answer


def google(address: str) -> Services:
    return Services("lab-7", emulators={"OPENID_CONNECT_EMULATOR_HOST": address})


def test_aws_names_the_caller_by_arn(hurried: AwsServices) -> None:
    assert aws.identify(hurried).startswith("arn:aws:")


@pytest.mark.parametrize(
    ("claims", "name"),
    [({"sub": "1", "email": "ann@example.com"}, "ann@example.com"), ({"sub": "1"}, "1")],
)
def test_google_names_the_caller_by_address(claims: dict[str, str], name: str) -> None:
    with UserInfo(**claims) as info:
        assert gcp.identify(google(info.address)) == name


def test_a_caller_who_is_refused_is_no_identity() -> None:
    with UserInfo(HTTPStatus.UNAUTHORIZED) as info, pytest.raises(BellhopError, match="identify"):
        gcp.identify(google(info.address))
