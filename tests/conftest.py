"""What all tests share: clusters and AWS on demand, and an environment that tells them nothing."""

from __future__ import annotations

import os

import pytest

from tests import live

pytest_plugins = ["tests.kube_fixtures", "tests.aws_fixtures", "tests.lambda_fixtures"]

_KEPT = frozenset({"CI", "HOME", "KUBEBUILDER_ASSETS", "LANG", "PATH", "TMPDIR", "XDG_CACHE_HOME"})


def pytest_addoption(parser: pytest.Parser) -> None:
    live.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Keep AWS out of reach, unless an account is named."""
    if live.chosen(config) is None:
        live.forbid()


@pytest.fixture(autouse=True)
def _scrubbed_environment(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Take away whatever a laptop's environment would whisper to the code under test."""
    kinds = ("BELLHOP_", "KUBE") if live.chosen(pytestconfig) else ("BELLHOP_", "KUBE", "AWS_")
    for name in [name for name in os.environ if name.startswith(kinds)]:
        if name not in _KEPT:
            monkeypatch.delenv(name)
