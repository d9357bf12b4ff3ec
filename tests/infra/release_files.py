"""The files of a release for tests: built from the files as they are here, committed or not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from infra.release.archives import modules, packed
from infra.release.checkout import check_out
from infra.release.distribution import distribution

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody who may commit, and return what it printed."""
    author = ("-c", "user.name=Tester", "-c", "user.email=tester@example.com")
    return subprocess.run(
        ["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def clean_checkout(folder: Path) -> Path:
    """Commit a copy of the files as they are here."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def put_release(folder: Path, cloud: str, packages: Path, scratch: Path) -> None:
    """Put the files of a release that the page of a cloud begins with into a folder.

    The packages of the cloud's functions are built already.
    """
    checkout = check_out(clean_checkout(scratch))
    built = {path.name: path.read_bytes() for path in packages.iterdir() if path.is_file()}
    files = {
        f"{checkout.name}-terraform.tar.gz": modules(checkout),
        f"{checkout.name}-{cloud}.tar": packed(checkout, f"dist/{cloud}", built),
        **{name: each for name, each in distribution(checkout).items() if name.endswith(".whl")},
    }
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def install_dependencies(venv: Path, wheel: Path, extra: str = "") -> None:
    """Install all that a wheel needs into an environment, since pip takes a minute for it."""
    pip = [sys.executable, "-m", "uv", "--quiet", "pip"]
    place = ["--python", venv]
    subprocess.run([*pip, "install", *place, f"{wheel}{extra}"], check=True)
    subprocess.run([*pip, "uninstall", *place, "bellhop-fleet"], check=True)
