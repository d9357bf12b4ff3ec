"""What all tests share: clusters and AWS on demand, and an environment that tells them nothing."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["tests.kube_fixtures", "tests.aws_fixtures", "tests.lambda_fixtures"]

_KEPT = frozenset({"CI", "HOME", "KUBEBUILDER_ASSETS", "LANG", "PATH", "TMPDIR", "XDG_CACHE_HOME"})


@pytest.fixture(autouse=True)
def _scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away whatever a laptop's environment would whisper to the code under test."""
    for name in [name for name in os.environ if name.startswith(("BELLHOP_", "KUBE", "AWS_"))]:
        if name not in _KEPT:
            monkeypatch.delenv(name)
