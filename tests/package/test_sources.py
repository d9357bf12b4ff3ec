"""Sources as Google's buildpacks get them: what a stage may load, and whose versions are pinned."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from infra.package.build import STAGES
from infra.package.files import build_id
from infra.package.programs import PLACES
from infra.package.sources import lay_out
from infra.package.zips import SUMS
from tests.lab.frameworks import program

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

ID = build_id("functions")

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


def test_all_stages_require_the_same(laid_out: Path) -> None:
    """The extras of functions on Google Cloud, and nothing of another cloud or of the CLI."""
    texts = {(laid_out / stage / "requirements.txt").read_text() for stage in STAGES}
    [text] = texts

    assert names(text) & {"boto3", "kubernetes", "nats-py"} == set()
    assert {"functions-framework", "grpcio", "google-cloud-firestore", "urllib3"} <= names(text)
    assert {"semantic-version", "pydantic", "grpcio-status"} <= names(text)


def test_cel_is_installed_on_request(laid_out: Path) -> None:
    """The same sources, with one more requirement; a stage that has no rules has no such zip."""
    plain, more = (laid_out / each for each in ("evaluate", "evaluate-cel"))

    assert {each.name for each in laid_out.glob("*-cel-*.zip")} == {
        f"{stage}-cel-{ID}.zip" for stage in ("charts", "deploy", "evaluate")
    }
    required = names((more / "requirements.txt").read_text())
    assert required - names((plain / "requirements.txt").read_text()) >= {"cel-expr-python"}
    assert _files(plain).keys() == _files(more).keys()


def test_only_charts_has_helm_and_kubectl(laid_out: Path) -> None:
    """In its zip they may be run; the zip is as small as Google takes it."""
    for stage in STAGES:
        with zipfile.ZipFile(laid_out / f"{stage}-{ID}.zip") as opened:
            modes = {each.filename: each.external_attr >> 16 for each in opened.infolist()}
        programs = {each: mode for each, mode in modes.items() if mode != 0o100644}

        assert programs == (dict.fromkeys(PLACES.values(), 0o100755) if stage == "charts" else {})
    assert (laid_out / f"charts-{ID}.zip").stat().st_size <= 44_000_000


def test_the_same_sources_make_the_same_bytes(laid_out: Path, tmp_path: Path) -> None:
    """Also over what a killed build has left; the zip is the folder, and its sum is printed."""
    (tmp_path / "ingest.unfinished").mkdir()
    (tmp_path / "ingest").mkdir()
    (tmp_path / "ingest" / "old.py").write_text("raise SystemExit")
    made = lay_out(tmp_path, charts=False)

    assert set(made) == set(STAGES) - {"charts"} | {"deploy-cel", "evaluate-cel"}
    for name, path in made.items():
        again = (laid_out / f"{name}-{ID}.zip").read_bytes()
        assert path.read_bytes() == again
        digest = hashlib.sha256(again).hexdigest()
        assert f"{digest}  {name}-{ID}.zip\n" in (tmp_path / SUMS).read_text()
    with zipfile.ZipFile(made["ingest"]) as opened:
        assert {name: opened.read(name) for name in opened.namelist()} == _files(
            tmp_path / "ingest"
        )
    expected = {SUMS, *made, *(f"{name}-{ID}.zip" for name in made)}
    assert {each.name for each in tmp_path.iterdir()} == expected


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and each.suffix != ".pyc"
    }
