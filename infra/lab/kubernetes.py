"""Compile the control plane from Debian's source package.

No package registry ships these programs ready-made, but bookworm's source package is complete.
It must be compiled with bullseye's Go 1.15: with bookworm's own 1.19 the API server crashes on
the first custom resource, because the package holds a reflection library that is older than
that compiler.

Of what Kubernetes' own Makefile generates the package has all but the OpenAPI definitions, so that
one generator is run and the Makefile is not: it takes a third longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from infra.lab.binaries import APISERVER, BUILT_VERSION, CONTROLLER_MANAGER, ETCD, KUBECTL
from infra.lab.debian import Archive
from infra.lab.workshop import Workshop

# Programs that Debian has ready-made, and their packages.
_PACKAGED = {ETCD: "etcd-server", KUBECTL: "kubernetes-client"}
COMPILED = frozenset({APISERVER, CONTROLLER_MANAGER})
MINUTES = 4
"""The time to build them, on two cores."""

_GO = ["golang-1.15-go", "golang-1.15-src"]
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGE = "k8s.io/kubernetes"
_GENERATOR = "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"
_DESCRIBED = b"+k8s:openapi-gen="
_NOT_SERVED = ("vendor/k8s.io/code-generator", "vendor/k8s.io/sample-apiserver")
_VERSIONED = ("component-base/version", "client-go/pkg/version")


def make(names: AbstractSet[str], shop: Workshop) -> dict[str, Path]:
    """Make programs in the workshop; return their paths.

    Raises:
        UnreachableError: No mirror of Debian's archive answers.
        PermanentError: A step failed.
    """
    compiled = names & COMPILED
    root = shop.folder / "root"
    shop.progress.stage("reading Debian's package lists")
    archive = Archive(shop)
    archive.update()
    shop.progress.stage("downloading packages")
    archive.fetch(*_packages(names))
    tarball = archive.fetch_source("kubernetes") if compiled else None
    shop.progress.stage("unpacking")
    archive.unpack(root)
    made = {name: root / "usr/bin" / name for name in names & _PACKAGED.keys()}
    if tarball is not None:
        folder = _compile(compiled, tarball, root, shop)
        made |= {name: folder / name for name in compiled}
    return made


def _packages(names: AbstractSet[str]) -> Iterator[str]:
    yield from (_PACKAGED[name] for name in names & _PACKAGED.keys())
    if names & COMPILED:
        yield from _GO


def _compile(names: AbstractSet[str], tarball: Path, root: Path, shop: Workshop) -> Path:
    tree = shop.folder / "go/src" / _PACKAGE
    tree.mkdir(parents=True)
    shop.run(["tar", "-xzf", tarball, "-C", tree, "--strip-components=1"])
    environment = _environment(shop.folder, root)
    programs = shop.folder / "programs"
    programs.mkdir()

    def build(*arguments: str) -> None:
        shop.run(["go", "build", "-o", f"{programs}/", *arguments], cwd=tree, env=environment)

    shop.progress.stage("generating OpenAPI definitions")
    build(_GENERATOR)
    shop.run(_generate(tree, programs), cwd=tree, env=environment)
    shop.progress.stage("compiling Kubernetes")
    build("-ldflags", _link_flags(), *(f"./cmd/{name}" for name in sorted(names)))
    return programs


def _generate(tree: Path, programs: Path) -> list[str | Path]:
    """Return the command that generates the definitions of all types of the API server."""
    return [
        programs / "openapi-gen",
        "--logtostderr",
        *("--go-header-file", "hack/boilerplate/boilerplate.generatego.txt"),
        *("--input-dirs", ",".join(f"{_PACKAGE}/{folder}" for folder in _described(tree))),
        *("--output-package", f"{_PACKAGE}/pkg/generated/openapi"),
        *("--output-file-base", "zz_generated.openapi"),
        *("--report-filename", programs / "violations"),
    ]


def _described(tree: Path) -> list[str]:
    """Name the folders whose types say that they are to be described."""
    found = {
        str(file.parent.relative_to(tree)).replace("staging/src/", "vendor/")
        for part in ("cmd", "pkg", "plugin", "staging/src/k8s.io")
        for file in (tree / part).rglob("*.go")
        if not file.name.startswith("zz_generated") and _DESCRIBED in file.read_bytes()
    }
    return sorted(folder for folder in found if not folder.startswith(_NOT_SERVED))


def _link_flags() -> str:
    major, minor, _ = BUILT_VERSION.split(".")
    said = {
        "gitVersion": f"v{BUILT_VERSION}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "archive",
    }
    settings = (
        f"-X {_PACKAGE}/vendor/k8s.io/{package}.{name}={value}"
        for package in _VERSIONED
        for name, value in said.items()
    )
    return " ".join(["-s -w", *settings])


def _environment(folder: Path, root: Path) -> dict[str, str]:
    # From nothing: a developer's own GOFLAGS must not change the result.
    goroot = root / "usr/lib/go-1.15"
    return {
        "PATH": f"{goroot}/bin:{_SYSTEM_PATH}",
        "HOME": os.environ.get("HOME", str(folder)),
        "TMPDIR": str(folder),
        "GOROOT": str(goroot),
        "GOPATH": str(folder / "go"),
        "GOCACHE": str(folder / "go-cache"),
        "GOENV": "off",
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
    }
