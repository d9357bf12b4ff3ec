"""The page on failing deploys: typed where a real cluster refuses objects of the profile."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellhop.cli.main import cli
from tests.docs.test_preview_page import served
from tests.docs.typed import type_page
from tests.waiting import eventually

__all__ = ["served"]

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/debug-a-deploy.md").read_text()
APPLY = "```bash\nbellhop apply -f web.yaml\n```\n"
MENDED = "```sh\nsed -i 's/80000/80/' web.yaml\nbellhop apply -f web.yaml\n```\n"


def apply(state: str) -> None:
    """Apply the page's file, and wait until the profile is in a state."""
    assert CliRunner().invoke(cli, ["apply", "-f", "web.yaml"]).exit_code == 0

    def profiles() -> str:
        return CliRunner().invoke(cli, ["get", "clusterprofiles"]).stdout

    eventually(profiles, lambda: state in profiles(), patience=60, pause=0.1)


def printed(command: str) -> Result | None:
    """Run a command; None if it prints nothing."""
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    return result if result.stdout else None


def type_rest(text: str, folder: Path) -> None:
    """Type a part of the page; check of commands that print times that they print something."""
    for command in re.findall(r"```bash\n([^`]*)```\n(?!\n```text)", text):
        # Lines of the event log are written half a second after the event.
        result = eventually(f"'{command.strip()}' prints", partial(printed, command))
        # There the API server still refuses the Service.
        assert result.exit_code == (2 if command == "bellhop diff web\n" else 0), command
        text = text.replace(f"```bash\n{command}```\n", "")
    type_page(text, folder)


def test_a_reader_sees_what_is_refused_and_mends_it(served: Path) -> None:
    """Each command prints what stands below it, and says why where the page says it does."""
    file, first, rest = PAGE.partition(APPLY)
    refused, mended, well = rest.partition(MENDED)
    assert first
    assert mended
    type_page(file, served)
    apply(" Failed")

    type_rest(refused, served)
    sentence = "must be between 1 and 65535"
    for command in ("describe clusterprofile web", "show failures", "diff web"):
        assert sentence in CliRunner().invoke(cli, command.split()).output

    text = served / "web.yaml"
    text.write_text(text.read_text().replace("80000", "80"))
    apply(" Provisioned")
    type_rest(well, served)
    assert "Service" in CliRunner().invoke(cli, ["show", "addons"]).stdout


@pytest.mark.parametrize("state", ["Provisioned", "Provisioning", "Failed", "FailedNonRetriable"])
def test_every_state_is_explained(state: str) -> None:
    """The table has each word that STATE may be."""
    assert f"| `{state}` |" in PAGE
