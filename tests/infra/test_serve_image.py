"""The image of `bellhop serve` is of the forwarder's base, pinned, and what the chart runs."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import yaml
from packaging.requirements import Requirement

from bellhop import __version__
from bellhop.cli.main import cli
from infra.release.image import SERVE
from tests.infra.image import Dockerfile

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra/serve"
READ = Dockerfile.read(FOLDER / "Dockerfile")
_PINNED = r"^([\w.-]+)==([^\s;]+)(.*(?:\n .*)*)"


def test_runs_as_nobody_with_a_state_that_it_owns() -> None:
    """Of the base that the forwarder has, by its digest."""
    state = READ.environment["BELLHOP_STATE"]

    assert READ.base == Dockerfile.read(ROOT / "infra/forwarder/Dockerfile").base
    assert READ.user == "65532:65532"
    assert f"os.mkdir('{state}', 0o700); os.chown('{state}', 65532, 65532)" in str(READ.steps)


def test_copies_only_what_is_there_and_what_the_build_is_given() -> None:
    """Every path exists in the checkout, and the ignore file lets it through."""
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()

    assert [path for path in READ.copied if not (ROOT / path).exists()] == []
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(READ.copied)


def test_its_command_takes_the_options_of_the_entry_point() -> None:
    """The program is in a folder of PATH, and may be executed."""
    program, name, *options = READ.entrypoint
    context = click.Context(cli)
    command = cli.get_command(context, name)
    advertised = [*options, "--advertise", "https://bellhop.example.com:8443"]

    assert command
    assert command.make_context(name, advertised, parent=context).params["advertise"]
    assert ["infra/serve/bellhop", f"/usr/local/bin/{program}"] in [each for _, each in READ.steps]
    assert os.access(FOLDER / program, os.X_OK)


def test_pins_what_the_library_needs_with_the_hashes_of_the_lock() -> None:
    """Each distribution that it may load and no other, in the version that is tested.

    Those of both clouds are among them: a cluster of EKS or GKE registers here, too.
    """
    pins = _read_pins(FOLDER / "requirements.txt")
    locked = _read_pins(ROOT / "requirements.lock")

    assert pins.keys() == {
        _normalize(each) for each in _list_needed("bellhop-fleet", extras=("", "aws", "gcp"))
    }
    assert {name: locked[name] for name in pins} == pins
    for name, (version, _) in pins.items():
        assert importlib.metadata.version(name) == version


def test_the_chart_names_the_image_of_a_release_by_default() -> None:
    """By its name and the chart's version, which is that of the library."""
    values = yaml.safe_load((ROOT / "infra/charts/bellhop/values.yaml").read_text())

    assert f"{values['image']['repository']}:{__version__}" == SERVE.name


def _read_pins(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Return version and hashes by the names of distributions; of several versions the last."""
    return {
        _normalize(name): (version, frozenset(re.findall("sha256:[0-9a-f]{64}", rest)))
        for name, version, rest in re.findall(_PINNED, path.read_text(), re.MULTILINE)
    }


def _list_needed(
    name: str, known: frozenset[str] = frozenset(), *, extras: Iterable[str] = ("",)
) -> Iterator[str]:
    """Yield what a distribution requires here with some extras, and what that requires."""
    for text in importlib.metadata.requires(name) or ():
        each = Requirement(text)
        if each.name in known or not any(_is_for(each, extra) for extra in extras):
            continue
        yield each.name
        yield from _list_needed(each.name, known | {name}, extras=("", *each.extras))


def _is_for(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
