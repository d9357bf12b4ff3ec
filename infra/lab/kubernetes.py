"""Compile the control plane from Debian's source package.

No package registry ships these programs ready-made, but bookworm's source package is complete.
It must be compiled with bullseye's Go 1.15: with bookworm's own 1.19 the API server crashes on
the first custom resource, because the package holds a reflection library that is older than
that compiler.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from infra.lab.binaries import APISERVER, BUILT_VERSION, CONTROLLER_MANAGER, ETCD, KUBECTL
from infra.lab.debian import Archive
from infra.lab.workshop import Workshop

# Programs that Debian has ready-made, and their packages.
_PACKAGED = {ETCD: "etcd-server", KUBECTL: "kubernetes-client"}
_COMPILED = {APISERVER, CONTROLLER_MANAGER}
_GO = ["golang-1.15-go", "golang-1.15-src"]
_RSYNC = ["rsync", "libpopt0", "libxxhash0", "liblz4-1", "libzstd1", "libacl1"]
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def make(wanted: AbstractSet[str], shop: Workshop) -> dict[str, Path]:
    """Make the wanted programs in the workshop; returns where each one lies.

    Raises:
        UnreachableError: No mirror of Debian's archive answers.
        PermanentError: A step failed.
    """
    compiling = bool(wanted & _COMPILED)
    root = shop.folder / "root"
    shop.progress.stage("reading Debian's package lists")
    archive = Archive(shop)
    archive.update()
    shop.progress.stage("downloading packages")
    archive.fetch(*_packages(wanted, compiling=compiling))
    tarball = archive.fetch_source("kubernetes") if compiling else None
    shop.progress.stage("unpacking")
    archive.unpack(root)
    made = {name: root / "usr/bin" / name for name in wanted & _PACKAGED.keys()}
    if tarball is not None:
        folder = _compile(tarball, root, shop)
        made |= {name: folder / name for name in _COMPILED}
    return made


def _packages(wanted: AbstractSet[str], *, compiling: bool) -> Iterator[str]:
    yield from (_PACKAGED[name] for name in wanted & _PACKAGED.keys())
    if compiling:
        yield from _GO
        if not shutil.which("rsync", path=_SYSTEM_PATH):
            yield from _RSYNC
        if not shutil.which("make", path=_SYSTEM_PATH):
            yield "make"


def _compile(tarball: Path, root: Path, shop: Workshop) -> Path:
    tree = shop.folder / "go/src/k8s.io/kubernetes"
    tree.mkdir(parents=True)
    shop.run(["tar", "-xzf", tarball, "-C", tree, "--strip-components=1"])
    tools = _tools(root, shop.folder / "tools")
    shop.progress.stage("compiling Kubernetes, which takes 4 to 7 minutes once")
    what = " ".join(f"cmd/{name}" for name in sorted(_COMPILED))
    shop.run(["make", f"WHAT={what}"], cwd=tree, env=_environment(shop.folder, root, tools))
    return tree / "_output/bin"


def _tools(root: Path, folder: Path) -> Path:
    """Put the unpacked tools into a folder for PATH, with their unpacked libraries."""
    folder.mkdir()
    if (make_program := root / "usr/bin/make").exists():
        (folder / "make").symlink_to(make_program)
    if (rsync := root / "usr/bin/rsync").exists():
        libraries = ":".join(sorted({str(path.parent) for path in root.glob("**/lib*.so.*")}))
        script = folder / "rsync"
        script.write_text(
            f"#!/bin/sh\nLD_LIBRARY_PATH='{libraries}' exec '{rsync}' \"$@\"\n", "utf-8"
        )
        script.chmod(0o755)
    return folder


def _environment(folder: Path, root: Path, tools: Path) -> dict[str, str]:
    # From nothing: a developer's own GOFLAGS or KUBE_* must not change the result.
    goroot = root / "usr/lib/go-1.15"
    major, minor, _ = BUILT_VERSION.split(".")
    return {
        "PATH": f"{goroot}/bin:{tools}:{_SYSTEM_PATH}",
        "HOME": os.environ.get("HOME", str(folder)),
        "TMPDIR": str(folder),
        "GOROOT": str(goroot),
        "GOPATH": str(folder / "go"),
        "GOCACHE": str(folder / "go-cache"),
        "GOENV": "off",
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
        "KUBE_GIT_VERSION": f"v{BUILT_VERSION}",
        "KUBE_GIT_MAJOR": major,
        "KUBE_GIT_MINOR": minor,
        "KUBE_GIT_TREE_STATE": "archive",
    }
