"""Sources as Google's buildpacks get them: what a stage may load, and whose versions are pinned."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from bellhop.errors import InvalidError
from infra.lab.frameworks import program
from infra.package.build import STAGES
from infra.package.programs import PLACES
from infra.package.requirements import requirements
from infra.package.sources import lay_out
from infra.package.wheels import pins
from infra.package.zips import SUMS

# Loads the target as functions-framework does, and all else of ours that lies there.
PROBE = """
import importlib, json, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.append(str(folder))
from main import handle
for path in sorted(folder.rglob("*.py")):
    parts = path.relative_to(folder).with_suffix("").parts
    importlib.import_module(".".join(parts).removesuffix(".__init__"))
for name in sys.argv[2:]:
    importlib.import_module(name)
ours = [each.__file__ for name, each in sys.modules.items() if name.partition(".")[0] == "bellhop"]
print(json.dumps({"target": type(handle).__name__, "ours": ours}))
"""

LATE = ["google.pubsub_v1.services.publisher", "google.cloud.secretmanager_v1", "google.auth"]
"""What is loaded when Google is called first."""


@pytest.fixture(scope="module")
def laid_out(google_sources: Path) -> Path:
    return google_sources


def names(text: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_loads_with_what_it_requires_and_nothing_else(
    stage: str, laid_out: Path, google_installed: Path
) -> None:
    """All of it is in its folder, or in a distribution that its requirements name."""
    folder = laid_out / stage
    answer = subprocess.run(
        [*program(), "-c", PROBE, str(folder), *LATE],
        env={"PYTHONPATH": str(google_installed / stage), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(answer.stdout)

    assert found["target"] == "function"
    assert [each for each in found["ours"] if not each.startswith(str(folder))] == []


@pytest.mark.parametrize(
    ("stage", "absent"),
    [
        ("ingest", ["pydantic", "pyyaml", "lupa", "bcrypt", "boto3"]),
        ("evaluate", ["boto3"]),
        ("deploy", ["boto3"]),
        ("charts", ["boto3"]),
        ("schedule", ["lupa", "boto3"]),
    ],
)
def test_a_stage_requires_only_its_own(stage: str, absent: list[str], laid_out: Path) -> None:
    """What it does not load is not installed, and not started with each time."""
    text = (laid_out / stage / "requirements.txt").read_text()

    assert names(text) & set(absent) == set()
    assert {"functions-framework", "grpcio", "google-cloud-firestore"} <= names(text)


def test_who_wants_cel_has_it_installed(tmp_path: Path) -> None:
    """The same sources, with one more requirement; a stage that has no rules has no such zip."""
    made = lay_out(tmp_path, stages=["ingest", "evaluate"], layers=["cel"])
    plain, more = (tmp_path / each for each in ("evaluate", "evaluate-cel"))

    assert set(made) == {"ingest.zip", "evaluate.zip", "evaluate-cel.zip"}
    wanted = names((more / "requirements.txt").read_text())
    assert wanted - names((plain / "requirements.txt").read_text()) >= {"cel-expr-python"}
    assert _files(plain).keys() == _files(more).keys()


def test_charts_alone_has_helm_and_kubectl(laid_out: Path) -> None:
    """In its zip they may be run; the zip is as small as Google takes it."""
    for stage in STAGES:
        with zipfile.ZipFile(laid_out / f"{stage}.zip") as opened:
            modes = {each.filename: each.external_attr >> 16 for each in opened.infolist()}
        programs = {each: mode for each, mode in modes.items() if mode != 0o100644}

        assert programs == (dict.fromkeys(PLACES.values(), 0o100755) if stage == "charts" else {})
        wanted = names((laid_out / stage / "requirements.txt").read_text())
        assert ("semantic-version" in wanted) == (stage == "charts")
    assert (laid_out / "charts.zip").stat().st_size <= 44_000_000


def test_every_requirement_has_its_version_and_hashes(laid_out: Path) -> None:
    """Pip takes hashes for all or for none, and they are those of the lock."""
    for stage in STAGES:
        text = (laid_out / stage / "requirements.txt").read_text()
        for each in re.split(r"\n(?=\S)", text.strip()):
            pin, *hashes = each.split(" \\\n    ")
            name, _, version = pin.partition("==")
            locked = pins()[name]

            assert version == locked.version
            assert {one.rpartition(":")[2] for one in hashes} == locked.hashes


def test_extras_are_followed(laid_out: Path) -> None:
    """google-api-core needs grpcio-status for gRPC alone."""
    assert "grpcio-status" in names((laid_out / "ingest" / "requirements.txt").read_text())


def test_the_same_sources_make_the_same_bytes(laid_out: Path, tmp_path: Path) -> None:
    """Also over what a killed build has left; the zip is the folder, and its sum is told."""
    (tmp_path / "ingest.unfinished").mkdir()
    (tmp_path / "ingest").mkdir()
    (tmp_path / "ingest" / "old.py").write_text("raise SystemExit")
    made = lay_out(tmp_path, stages=["ingest"])
    again = (laid_out / "ingest.zip").read_bytes()

    assert made["ingest.zip"].read_bytes() == again
    digest = hashlib.sha256(again).hexdigest()
    assert (tmp_path / SUMS).read_text() == f"{digest}  ingest.zip\n"
    with zipfile.ZipFile(made["ingest.zip"]) as opened:
        assert {name: opened.read(name) for name in opened.namelist()} == _files(
            tmp_path / "ingest"
        )
    assert {each.name for each in tmp_path.iterdir()} == {"ingest", "ingest.zip", SUMS}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(["leftpad"], r"cannot package leftpad: not in requirements\.lock", id="free"),
        pytest.param(["pywin32"], r"cannot package pywin32: .*run `make", id="not installed"),
    ],
)
def test_what_is_not_locked_and_installed_is_refused(wanted: Iterable[str], expected: str) -> None:
    """By name, and with what to do."""
    with pytest.raises(InvalidError, match=expected):
        requirements(wanted)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }
