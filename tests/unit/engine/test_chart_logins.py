"""Which of Docker's credentials are for a repository."""

from __future__ import annotations

import json

import pytest

from bellhop.engine.charts.logins import login_for
from bellhop.model.chart import ANONYMOUS
from bellhop.model.held_text import HeldText

ANN = {"username": "ann", "password": "hush"}


@pytest.mark.parametrize(
    ("repository", "named", "username"),
    [
        ("oci://ghcr.example/charts", "ghcr.example", "ann"),
        ("oci://ghcr.example/charts", "https://ghcr.example/v2/", "ann"),
        ("oci://ghcr.example/charts", "other.example", ""),
        ("oci://ghcr.example/charts", "https://[other", ""),
        ("oci://[ghcr.example", "ghcr.example", ""),
        ("oci://[ghcr.example", "https://[ghcr.example", ""),
    ],
)
def test_credentials_are_for_one_host(repository: str, named: str, username: str) -> None:
    text = HeldText(json.dumps({"docker": {named: ANN}}), "credentials", plain=True, secret=True)
    assert login_for(repository, [text], ANONYMOUS).username == username
