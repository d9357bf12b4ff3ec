"""Which of Docker's credentials are for a repository."""

from __future__ import annotations

import json

import pytest

from bellhop.errors import InvalidError
from bellhop.rendering.charts.credentials import login_for
from bellhop.state.chart import ANONYMOUS
from bellhop.state.cluster_text import HeldText

ANN = {"username": "ann", "password": "hush"}


@pytest.mark.parametrize(
    ("repository", "named"),
    [
        ("oci://ghcr.example/charts", "ghcr.example"),
        ("oci://ghcr.example/charts", "https://ghcr.example/v2/"),
        ("oci://registry-1.docker.io/charts", "https://index.docker.io/v1/"),
    ],
)
def test_credentials_are_for_their_host(repository: str, named: str) -> None:
    assert login_for(repository, [docker(named)], ANONYMOUS).username == "ann"


@pytest.mark.parametrize(
    ("repository", "named"),
    [
        ("oci://ghcr.example/charts", "other.example"),
        ("oci://ghcr.example/charts", "https://[other"),
        ("oci://[ghcr.example", "ghcr.example"),
    ],
)
def test_credentials_for_another_host_are_refused(repository: str, named: str) -> None:
    with pytest.raises(InvalidError, match=r"cannot use Secret a/b in c: it has no login for"):
        login_for(repository, [docker(named)], ANONYMOUS)


def docker(host: str) -> HeldText:
    found = {"docker": {host: ANN}, "of": "Secret a/b in c"}
    return HeldText(json.dumps(found), "credentials", plain=True, secret=True)
