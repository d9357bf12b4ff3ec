"""The page on rolling out in steps: typed where a real cluster gets the objects, in order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from bellhop.cli.main import cli
from tests.docs.test_preview_page import served
from tests.docs.typed import type_page
from tests.waiting import eventually

__all__ = ["served"]

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/roll-out-in-steps.md").read_text()


def bellhop(*words: str) -> str:
    """Run a command, whatever it ends with; return what it printed."""
    return CliRunner().invoke(cli, words).stdout


def until(is_so: Callable[[str], bool], *words: str) -> None:
    """Run a command until what it prints is as it is to be."""
    eventually(lambda: bellhop(*words), lambda: is_so(bellhop(*words)), patience=60, pause=0.1)


def test_a_reader_sees_what_waits_and_what_goes_on(served: Path) -> None:
    """Each command prints what stands below it, in order, and in the end all is deleted."""
    parts = re.split(r"```sh\nbellhop ([^\n]*)\n```\n", PAGE)
    awaited = [
        lambda said: "Waiting" in said,
        lambda said: said.count("Provisioned") == 2,
        lambda said: "depend on it" in said,
        lambda said: "dashboards" not in said,
        lambda said: "exporter=v1" in said,
        lambda said: "exporter-v1" in said,
        lambda said: "exporter-v2" in said and "exporter-v1" not in said,
        lambda said: "1 updated" in said,
        lambda said: "until `bellhop resume`" in said,
        lambda said: "cannot withdraw" in said,
        lambda said: "agent" not in said,
        lambda said: "active from" in said,
        lambda said: "active from" not in said,
    ]
    watched = [
        ("describe", "clusterprofile", "dashboards"),
        ("get", "clusterprofiles"),
        ("show", "failures"),
        ("get", "clusterprofiles"),
        ("describe", "cluster", "fleet/east"),
        *[("show", "addons")] * 2,
        ("describe", "clusterprofile", "agent"),
        *[("describe", "cluster", "fleet/east")] * 2,
        ("get", "clusterprofiles"),
        *[("describe", "cluster", "fleet/east")] * 2,
    ]
    assert len(parts) == 1 + 2 * len(awaited)
    type_page(parts[0], served)
    for command, is_so, words, text in zip(parts[1::2], awaited, watched, parts[2::2], strict=True):
        assert bellhop(*shlex.split(command))
        until(is_so, *words)
        type_page(text, served)
    assert "monitoring" not in bellhop("show", "addons")
