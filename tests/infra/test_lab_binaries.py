from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.errors import MissingError, PermanentError
from infra.lab.binaries import cache_folder, find, look_up, release
from infra.lab.build import missing

NAMES = ("kube-apiserver", "kube-controller-manager", "etcd", "kubectl")


class Machine:
    """A made-up machine with the three places that binaries may be in."""

    def __init__(self, root: Path) -> None:
        self.assets = root / "assets"
        self.path = root / "path"
        self.environ = {
            "KUBEBUILDER_ASSETS": str(self.assets),
            "PATH": f"{root / 'nowhere'}:{self.path}",
            "XDG_CACHE_HOME": str(root / "cache"),
        }
        self.cache = cache_folder(self.environ)

    def put(self, folder: Path, *names: str, version: str = "v1.20.2") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            program = folder / name
            program.write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
            program.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_looks_into_assets_then_path_then_the_cache(machine: Machine) -> None:
    """Each place wins over those after it."""
    seen = [look_up("etcd", machine.environ)]
    for folder in (machine.cache, machine.path, machine.assets):
        machine.put(folder, "etcd")
        seen.append(look_up("etcd", machine.environ))

    assert [
        None,
        machine.cache / "etcd",
        machine.path / "etcd",
        machine.assets / "etcd",
    ] == seen


def test_passes_over_what_cannot_be_executed(machine: Machine) -> None:
    """A folder or a plain file of the right name is not the program."""
    (machine.assets / "etcd").mkdir(parents=True)
    machine.put(machine.path, "etcd")
    (machine.path / "etcd").chmod(0o644)
    machine.put(machine.cache, "etcd")

    assert machine.cache / "etcd" == look_up("etcd", machine.environ)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x", id="XDG_CACHE_HOME"),
        pytest.param({"HOME": "/h"}, "/h/.cache", id="the default below HOME"),
        pytest.param({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache", id="an empty value"),
        pytest.param({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache", id="a relative value"),
    ],
)
def test_keeps_the_cache_where_xdg_says(environ: dict[str, str], expected: str) -> None:
    """The XDG base directory rules name the cache."""
    assert Path(expected, "bellhop/control-plane/1.20.2") == cache_folder(environ)


def test_finds_a_complete_set(machine: Machine) -> None:
    """One folder with everything is taken whole."""
    machine.put(machine.assets, *NAMES, version="v1.31.4")

    found = find(machine.environ)

    assert found.version == (1, 31)
    assert [machine.assets / name for name in NAMES] == [
        found.apiserver,
        found.controller_manager,
        found.etcd,
        found.kubectl,
    ]


def test_does_not_complete_a_newer_server_with_an_older_controller_manager(
    machine: Machine,
) -> None:
    """Envtest has no controller manager, and the cache's does not fit."""
    machine.put(machine.assets, "kube-apiserver", "etcd", version="v1.31.4")
    machine.put(machine.cache, *NAMES)

    assert find(machine.environ).controller_manager is None
    assert missing(machine.environ) == set()


def test_takes_a_controller_manager_of_the_same_release_from_another_place(
    machine: Machine,
) -> None:
    """The release decides, not the folder."""
    machine.put(machine.assets, "kube-apiserver", "etcd", version="v1.31.4")
    machine.put(machine.path, "kube-controller-manager", version="v1.31.1")

    assert machine.path / "kube-controller-manager" == find(machine.environ).controller_manager


@pytest.mark.parametrize(
    ("present", "named"),
    [
        pytest.param((), "without kube-apiserver and etcd;", id="nothing"),
        pytest.param(("etcd",), "without kube-apiserver;", id="only etcd"),
        pytest.param(("kube-apiserver",), "without etcd;", id="only the server"),
    ],
)
def test_says_what_is_missing_and_how_to_get_it(
    machine: Machine, present: tuple[str, ...], named: str
) -> None:
    """The message names the missing programs and every way to have them."""
    machine.put(machine.path, *present)

    with pytest.raises(MissingError) as caught:
        find(machine.environ)

    assert named in str(caught.value)
    assert "KUBEBUILDER_ASSETS" in str(caught.value)
    assert "PATH" in str(caught.value)
    assert "infra.lab build" in str(caught.value)


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        pytest.param("echo hello", "it says 'hello'", id="says no version"),
        pytest.param("exit 3", "does not run", id="fails"),
    ],
)
def test_reports_a_program_that_is_not_what_it_seems(
    tmp_path: Path, script: str, complaint: str
) -> None:
    """A program of the right name only is no control plane."""
    program = tmp_path / "kube-apiserver"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)

    with pytest.raises(PermanentError, match=complaint):
        release(program)
