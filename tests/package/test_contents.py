"""What is in the packages: all that a function may load, for the right machine, and little else."""

from __future__ import annotations

import json
import struct
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.programs.layer import VERSIONS
from infra.package.build import build
from infra.package.distributions import SERVICES
from infra.package.interpreter import machine_architecture
from infra.package.programs import PLACES

PROBE = Path(__file__).with_name("probe.py")
UNZIPPED = 250_000_000
"""What Lambda takes, with all layers."""

LAYER_ZIPPED = 42_000_000
"""Lambda takes no more than 50 MB in the call that makes a layer."""

NOT_THERE = {"cel_expr_python", "h11", "uvicorn"}
"""CEL, which is in a layer, and the libraries of the embedded mode's server."""


@pytest.fixture(scope="module")
def package(built: Mapping[str, Path]) -> Path:
    return built[f"functions-{machine_architecture()}"]


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(package) as opened:
        opened.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def loaded(unpacked: Path, interpreter: Path) -> dict[str, Any]:
    """What came of loading all of it.

    The first test that needs it waits until it is loaded.
    """
    answer = subprocess.run(
        [interpreter, "-S", PROBE, unpacked],
        env={"PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_nothing_is_missing(loaded: dict[str, Any]) -> None:
    """Every module of ours loads, and whatever it imports of others, early or late."""
    missing = {each for name in loaded["failed"].values() for each in [name.partition(".")[0]]}

    assert missing <= NOT_THERE
    assert loaded["outside"] == []


def test_services_that_are_called_are_described_and_no_others(loaded: dict[str, Any]) -> None:
    """A client of each can be made; all others would be most of what botocore weighs."""
    assert loaded["services"] == sorted(SERVICES)


def test_a_package_is_small(package: Path, unpacked: Path) -> None:
    """A cold start fetches and unpacks it."""
    assert package.stat().st_size <= 20_000_000
    assert size(unpacked) <= 65_000_000


def test_what_runs_in_no_function_is_left_out(unpacked: Path) -> None:
    """Commands, the embedded mode, the forwarder, another cloud, and libraries that build."""
    absent = [
        "bin",
        "cffi",
        "pycparser",
        "bellhop/cli",
        "bellhop/runtime/embedded",
        "bellhop/forwarder",
    ]
    absent += [
        "bellhop/runtime/gcp",
        "bellhop/adapters/gcp",
        "functions/ingest/gcp.py",
        "click",
        "helm",
    ]

    assert [each for each in absent if (unpacked / each).exists()] == []


def test_every_module_is_compiled_for_the_folder_it_runs_in(unpacked: Path) -> None:
    """Nobody compares it with its source, and it has no word of where it was built."""
    for path in unpacked.rglob("*.py"):
        name = path.relative_to(unpacked)
        code = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
        content = code.read_bytes()
        assert struct.unpack("<I", content[4:8]) == (1,), name
        assert f"/var/task/{name}".encode() in content, name


def test_licences_travel_along(unpacked: Path) -> None:
    """Ours, and those of every distribution."""
    kept = [each for each in unpacked.glob("*.dist-info") if any(each.rglob("*LICEN?E*"))]

    assert (unpacked / "LICENSE").is_file()
    assert len(kept) == len(list(unpacked.glob("*.dist-info"))) > 5


def test_the_other_architecture_has_its_own_machine_code(
    built: Mapping[str, Path],
    tmp_path: Path,
) -> None:
    """All libraries are for the architecture that a zip is named after, and all else is equal.

    The zips for this machine are built a second time, with the same bytes.
    It takes long: packages are built for two architectures, and what is in them is compiled.
    """
    made = build(tmp_path, charts=False)
    for what, count in (("functions", 8), ("layer-cel", 2)):
        of = {each: content(made[f"{what}-{each}"]) for each in ("x86_64", "arm64")}
        machines = {
            each: {struct.unpack("<H", data[18:20])[0] for data in files.values() if elf(data)}
            for each, files in of.items()
        }
        common = {
            each: {name: data for name, data in files.items() if not elf(data)}
            for each, files in of.items()
        }

        assert machines == {"x86_64": {0x3E}, "arm64": {0xB7}}
        assert sum(map(elf, of["arm64"].values())) == sum(map(elf, of["x86_64"].values())) >= count
        assert common["arm64"] == common["x86_64"]
    for name in made.keys() & built.keys():
        assert made[name].name == built[name].name
        assert made[name].read_bytes() == built[name].read_bytes()


def test_the_layer_has_cel_and_nothing_else(
    cel_layer: Path, unpacked: Path, tmp_path: Path, interpreter: Path
) -> None:
    """What rules import, for the folder that Lambda looks in, with its licence; no Python source.

    Unzipped it fits beside the functions.
    """
    with zipfile.ZipFile(cel_layer) as opened:
        opened.extractall(tmp_path)
        names = {name for name in opened.namelist() if "dist-info" not in name}
        licences = [name for name in opened.namelist() if name.endswith("/LICENSE")]
    modules = {name.partition(".cpython-313-")[0] for name in names}

    assert modules == {"python/cel_expr_python/cel", "python/cel_expr_python/ext/ext_strings"}
    assert len(licences) == 1
    assert cel_layer.stat().st_size <= 8_000_000
    assert size(tmp_path) + size(unpacked) <= UNZIPPED
    path = {"PYTHONPATH": f"{unpacked}:{tmp_path / 'python'}"}
    ask = "from bellhop.celbox import Rule; print(Rule('resource.a == 1').holds({'a': 1}))"
    done = subprocess.run(
        [interpreter, "-S", "-c", ask], env=path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_layer_of_helm_has_two_programs_and_nothing_else(
    helm_layer: Path, cel_layer: Path, unpacked: Path, tmp_path: Path
) -> None:
    """They may be run, have their licences, and fit beside the functions and the layer of CEL."""
    with zipfile.ZipFile(helm_layer) as opened:
        modes = {each.filename: each.external_attr >> 16 for each in opened.infolist()}
        sizes = [each.file_size for each in opened.infolist()]
        for place in PLACES.values():
            opened.extract(place, tmp_path)
            (tmp_path / place).chmod(0o755)
    with zipfile.ZipFile(cel_layer) as opened:
        sizes += [each.file_size for each in opened.infolist()]
    said = {
        program: subprocess.check_output([tmp_path / place, *program.asked], text=True, env={})
        for program, place in PLACES.items()
    }

    licences = {"helm/LICENSE": 0o100644, "kubectl/LICENSE": 0o100644}
    assert modes == dict.fromkeys(PLACES.values(), 0o100755) | licences
    assert all(VERSIONS[program] in text for program, text in said.items())
    assert helm_layer.stat().st_size <= LAYER_ZIPPED
    assert sum(sizes) + size(unpacked) <= UNZIPPED


def size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def content(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def elf(data: bytes) -> bool:
    return data.startswith(b"\x7fELF")
