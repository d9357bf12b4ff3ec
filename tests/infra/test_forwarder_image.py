"""What the forwarder's image holds is what the forwarder needs."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED = dict(
    re.findall(
        r"^([\w.-]+)==(\S+)$",
        (ROOT / "infra" / "forwarder" / "requirements.txt").read_text(),
        re.MULTILINE,
    )
)
_RUN = """
import sys
from bellhop.forwarder.__main__ import main
heavy = {"pydantic", "cryptography", "lupa", "re2", "jinja2"} & set(sys.modules)
assert not heavy, heavy
try:
    main(["--help"])
except SystemExit as end:
    sys.exit(end.code)
"""


def test_runs_with_what_its_image_has_and_nothing_else(tmp_path: Path) -> None:
    """In a folder of the pinned packages alone it starts, and loads none of the stages' weight."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in PINNED:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or []:
            top = file.parts[0]
            if top.startswith((".", "_")) and top != "_yaml":
                continue
            place = packages / top
            if not place.exists():
                place.symlink_to(Path(str(distribution.locate_file(top))).resolve())
    for folder in ("bellhop", "infra"):
        (packages / folder).symlink_to(ROOT / ("shared" if folder == "bellhop" else ".") / folder)

    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.append({str(packages)!r})\n{_RUN}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "--kubeconfig" in done.stdout


def test_pins_what_is_tested() -> None:
    """The pins are the versions that these tests run with."""
    installed = {name: importlib.metadata.version(name) for name in PINNED}

    assert installed == PINNED
