"""What is in the packages: all that a stage may load, and nothing else without a reason."""

from __future__ import annotations

import fnmatch
import json
import struct
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop.programs.layer import VERSIONS
from infra.package.build import STAGES, build
from infra.package.modules import reached
from infra.package.parts import OPTIONAL, SERVICES
from infra.package.programs import PLACES
from infra.package.zips import SUMS

PROBE = Path(__file__).with_name("probe.py")
LIMIT = {"ingest": 15_000_000, "evaluate": 15_000_000}
UNZIPPED = 250_000_000
"""What Lambda takes, all in all."""

CEL_UNZIPPED = 60_000_000
"""More than the layer of CEL has."""

LAYER_ZIPPED = 42_000_000
"""Lambda takes no more than 50 MB in the call that makes a layer."""

EXTRAS: Mapping[str, str] = {
    "LICENSE": "says what may be done with it",
    "*.dist-info/*": "says what may be done with it",
    "*/__pycache__/*.pyc": "is a module, compiled",
    "__pycache__/*.pyc": "is a module, compiled",
    "bellhop/luabox/lua/*.lua": "is read when a script runs first",
    "botocore/cacert.pem": "is read when AWS is called first",
    "botocore/data/*.json": "is read when a client is made first",
    "botocore/data/*.json.gz": "is read when a client of the service is made first",
    "annotated_types/*": "is loaded by what is asked of the package",
    "bcrypt/*": "is loaded by what is asked of the package",
    "boto3/*": "makes resources and moves large files, which nobody asks for",
    "botocore/*": "is loaded by how a service signs, streams and tries again",
    "cronsim/*": "explains expressions to people, which nobody asks for",
    "cryptography/*": "is loaded by what is asked of the package",
    "dateutil/*": "is loaded by what is asked of the package",
    "jinja2/*": "is loaded by what is asked of the package",
    "jmespath/*": "is loaded by what is asked of the package",
    "lupa/*": "is loaded by what is asked of the package",
    "msgspec/*": "is loaded by what is asked of the package",
    "markupsafe/*": "stands in where its other half cannot be loaded",
    "pydantic/*": "is loaded by what is asked of the package",
    "s3transfer/*": "moves large files, which nobody asks for",
    "typing_inspection/*": "is loaded by what is asked of the package",
    "urllib3/*": "is loaded by how somebody connects",
    "yaml/*": "is loaded by what is asked of the package",
    "_yaml/*": "is the name that older packages know yaml by",
}
"""What no module that is loaded is, and why it is there all the same."""


@pytest.fixture(scope="module")
def unpacked(
    packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folders = {stage: tmp_path_factory.mktemp(stage) for stage in packages}
    for stage, package in packages.items():
        with zipfile.ZipFile(package) as opened:
            opened.extractall(folders[stage])
    return folders


@pytest.fixture(scope="module")
def loaded(unpacked: dict[str, Path], interpreter: Path) -> dict[str, dict[str, Any]]:
    """What each package could load when asked for all of it.

    The first test that wants it waits until each package has loaded all of it.
    """
    found = {}
    for stage, folder in unpacked.items():
        others = reached(f"functions.{stage}.aws").others
        names = sorted(each for each in others if each.partition(".")[0] not in OPTIONAL)
        answer = subprocess.run(
            [interpreter, "-S", PROBE, folder, *names],
            env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            check=True,
        )
        found[stage] = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_missing(stage: str, loaded: dict[str, dict[str, Any]]) -> None:
    """Every module of ours in it, every name that these import of others, and every client."""
    assert loaded[stage]["failed"] == {}
    assert loaded[stage]["outside"] == []


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_there_without_a_reason(
    stage: str, loaded: dict[str, dict[str, Any]], unpacked: dict[str, Path]
) -> None:
    """What nobody loads is named above; of every distribution something is loaded."""
    folder = unpacked[stage]
    files = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    used = {
        str(Path(each).relative_to(folder))
        for each in loaded[stage]["files"]
        if each.startswith(f"{folder}/")
    }
    tops = {each.partition("/")[0] for each in used}

    idle = {each for each in files - used if not _allowed(each)}
    assert idle == set()
    packages = {each.partition("/")[0] for each in files if each.endswith(".so") or "/" in each}
    assert {each for each in packages if not each.endswith("-info")} - tops <= {
        "__pycache__",
        "_yaml",
    }


def test_each_reason_is_needed(
    loaded: dict[str, dict[str, Any]], unpacked: dict[str, Path]
) -> None:
    """A reason for what is there no more is taken away."""
    idle = set()
    for stage, folder in unpacked.items():
        files = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
        idle |= files - {
            str(Path(each).relative_to(folder))
            for each in loaded[stage]["files"]
            if each.startswith(f"{folder}/")
        }

    assert [each for each in EXTRAS if not fnmatch.filter(idle, each)] == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_package_is_as_small_as_was_promised(
    stage: str, packages: dict[str, Path], unpacked: dict[str, Path]
) -> None:
    """Ingest and evaluate, which are scaled most, have 15 MB at most."""
    whole = sum(each.stat().st_size for each in unpacked[stage].rglob("*") if each.is_file())

    assert packages[stage].stat().st_size <= LIMIT.get(stage, 50_000_000)
    assert whole <= UNZIPPED


def test_only_services_that_are_called_are_described(unpacked: dict[str, Path]) -> None:
    """The models of all others are most of what botocore weighs."""
    for folder in unpacked.values():
        found = {each.name for each in (folder / "botocore" / "data").iterdir() if each.is_dir()}
        assert found == set(SERVICES)


@pytest.mark.parametrize("stage", STAGES)
def test_every_module_is_compiled_for_the_folder_it_runs_in(
    stage: str, unpacked: dict[str, Path], packages: dict[str, Path]
) -> None:
    """Nobody compares it with its source, and it has no word of where it was built."""
    with zipfile.ZipFile(packages[stage]) as opened:
        for name in fnmatch.filter(opened.namelist(), "*.py"):
            path = unpacked[stage] / name
            code = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
            content = code.read_bytes()
            assert struct.unpack("<I", content[4:8]) == (1,), name
            assert f"/var/task/{name}".encode() in content, name


@pytest.mark.parametrize("stage", STAGES)
def test_licences_travel_along(stage: str, unpacked: dict[str, Path]) -> None:
    """Ours, and those of every distribution."""
    kept = [each for each in unpacked[stage].glob("*.dist-info") if any(each.rglob("*LICEN?E*"))]

    assert (unpacked[stage] / "LICENSE").is_file()
    assert len(kept) == len(list(unpacked[stage].glob("*.dist-info"))) > 5


def test_the_other_architecture_has_its_own_machine_code(
    tmp_path: Path,
    interpreter: Path,  # noqa: ARG001 - it compiles
) -> None:
    """All libraries are for the architecture that the zip is named after, and all else is equal.

    It takes long: a package is built for two architectures, and what is in it is compiled.
    """
    made = build(tmp_path, stages=["evaluate"])
    of = {each: _content(made[f"evaluate-{each}.zip"]) for each in ("x86_64", "arm64")}
    machines = {
        each: {struct.unpack("<H", data[18:20])[0] for data in content.values() if _elf(data)}
        for each, content in of.items()
    }
    common = {
        each: {name: data for name, data in content.items() if not _elf(data)}
        for each, content in of.items()
    }

    assert machines == {"x86_64": {0x3E}, "arm64": {0xB7}}
    assert sum(map(_elf, of["arm64"].values())) == sum(map(_elf, of["x86_64"].values())) >= 6
    assert common["arm64"] == common["x86_64"]
    assert made["evaluate-arm64.zip"].stat().st_size <= LIMIT["evaluate"]


def test_the_layer_has_cel_and_nothing_else(
    cel_layer: Path, unpacked: dict[str, Path], tmp_path: Path, interpreter: Path
) -> None:
    """What rules import, for the folder that Lambda looks in, with its licence; no Python source.

    Unzipped it has room beside evaluate.
    """
    with zipfile.ZipFile(cel_layer) as opened:
        opened.extractall(tmp_path)
        names = {name for name in opened.namelist() if "dist-info" not in name}
        licences = [name for name in opened.namelist() if name.endswith("/LICENSE")]
    modules = {name.partition(".cpython-313-")[0] for name in names}
    sizes = [each.stat().st_size for each in tmp_path.rglob("*") if each.is_file()]
    beside = [each.stat().st_size for each in unpacked["evaluate"].rglob("*") if each.is_file()]

    assert modules == {"python/cel_expr_python/cel", "python/cel_expr_python/ext/ext_strings"}
    assert len(licences) == 1
    assert cel_layer.stat().st_size <= 8_000_000
    assert sum(sizes) + sum(beside) <= UNZIPPED
    path = {"PYTHONPATH": f"{unpacked['evaluate']}:{tmp_path / 'python'}"}
    ask = "from bellhop.celbox import Rule; print(Rule('resource.a == 1').holds({'a': 1}))"
    done = subprocess.run(
        [interpreter, "-S", "-c", ask], env=path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_layer_is_built_for_both_architectures(
    cel_layer: Path,
    tmp_path: Path,
    interpreter: Path,  # noqa: ARG001 - it compiles
) -> None:
    """Each has its own machine code, and a second build makes the same bytes.

    It takes seconds: a layer is built for two architectures, and what is in it is compiled.
    """
    made = build(tmp_path, stages=(), layers=["cel"])
    of = {each: _content(made[f"layer-cel-{each}.zip"]) for each in ("x86_64", "arm64")}
    machines = {
        each: {struct.unpack("<H", data[18:20])[0] for data in content.values() if _elf(data)}
        for each, content in of.items()
    }

    assert machines == {"x86_64": {0x3E}, "arm64": {0xB7}}
    assert made[cel_layer.name].read_bytes() == cel_layer.read_bytes()
    assert cel_layer.name in (tmp_path / SUMS).read_text()


def test_the_layer_of_helm_has_two_programs_and_nothing_else(
    helm_layer: Path, unpacked: dict[str, Path], tmp_path: Path
) -> None:
    """They may be run, have their licences, and room beside charts and the layer of CEL."""
    with zipfile.ZipFile(helm_layer) as opened:
        modes = {each.filename: each.external_attr >> 16 for each in opened.infolist()}
        sizes = [each.file_size for each in opened.infolist()]
        for place in PLACES.values():
            opened.extract(place, tmp_path)
            (tmp_path / place).chmod(0o755)
    beside = [each.stat().st_size for each in unpacked["charts"].rglob("*") if each.is_file()]
    said = {
        program: subprocess.check_output([tmp_path / place, *program.asked], text=True, env={})
        for program, place in PLACES.items()
    }

    licences = {"helm/LICENSE": 0o100644, "kubectl/LICENSE": 0o100644}
    assert modes == dict.fromkeys(PLACES.values(), 0o100755) | licences
    assert all(VERSIONS[program] in text for program, text in said.items())
    assert helm_layer.stat().st_size <= LAYER_ZIPPED
    assert sum(sizes) + sum(beside) <= UNZIPPED - CEL_UNZIPPED


def test_only_charts_needs_versions_of_charts_and_no_package_has_a_program(
    unpacked: dict[str, Path],
) -> None:
    """Without `charts` there is none of it."""
    brings = {stage for stage, each in unpacked.items() if (each / "semantic_version").exists()}
    found = [
        each
        for folder in unpacked.values()
        for program in PLACES
        for each in folder.rglob(program.name)
    ]

    assert brings == {"charts"}
    assert [each for each in found if each.is_file()] == []


def _allowed(place: str) -> bool:
    return any(fnmatch.fnmatch(place, each) for each in EXTRAS)


def _content(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def _elf(data: bytes) -> bool:
    return data.startswith(b"\x7fELF")
