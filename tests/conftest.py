"""What all tests share: clusters and AWS on demand, and an environment that tells them nothing."""

from __future__ import annotations

import os

import pytest

from bellhop.adapters.gcp.services import EMULATORS
from tests import live, live_google

pytest_plugins = [
    "tests.kube_fixtures",
    "tests.aws_fixtures",
    "tests.gcp_fixtures",
    "tests.lambda_fixtures",
    "tests.framework_fixtures",
]

_KEPT = frozenset({"CI", "HOME", "KUBEBUILDER_ASSETS", "LANG", "PATH", "TMPDIR", "XDG_CACHE_HOME"})
_OURS = ("BELLHOP_", "KUBE")
_AWS = ("AWS_",)
_GOOGLE = ("GOOGLE_", "GCLOUD_", "GCP_", "CLOUDSDK_", *EMULATORS)


_LONG = ("tests/terraform/test_deployed.py",)
"""Files that take more minutes than any other, the longest first."""


def pytest_addoption(parser: pytest.Parser) -> None:
    live.add_options(parser)
    live_google.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the clouds out of reach, unless an account or a project is named."""
    if live.chosen(config) is None and live_google.chosen(config) is None:
        live.forbid()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is long: begun last, it would have one worker wait for the other.

    The many short files of `unit` come last as they are, and end together.
    """
    ranks = {name: rank for rank, name in enumerate(_LONG)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(_LONG)))


@pytest.fixture(autouse=True)
def _scrubbed_environment(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Take away whatever a laptop's environment would whisper to the code under test."""
    aws = () if live.chosen(pytestconfig) else _AWS
    google = () if live_google.chosen(pytestconfig) else _GOOGLE
    for name in [name for name in os.environ if name.startswith((*_OURS, *aws, *google))]:
        if name not in _KEPT:
            monkeypatch.delenv(name)
    if not live_google.chosen(pytestconfig):
        for name, value in live_google.SILENCE.items():
            monkeypatch.setenv(name, value)
