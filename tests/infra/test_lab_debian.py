from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bellhop.errors import UnreachableError
from infra.lab import debian
from infra.lab.progress import Progress
from infra.lab.workshop import workshop

ROOT = Path(__file__).parents[2]

# It keeps its arguments and sources, and knows one broken archive.
FAKE_APT = """#!/bin/sh
echo "$@" >> {home}/calls
case "$*" in
*--print-uris*) cat {home}/uris; exit 0;;
esac
cat sources.list >> {home}/sources
if grep -q -f {home}/broken sources.list; then
  echo "E: The repository is not signed."
  exit 100
fi
"""


class Apt:
    """A machine's apt that answers as configured."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mirrors()
        self.break_archives("no archive at all")
        program = home / "bin" / "apt-get"
        program.parent.mkdir()
        program.write_text(FAKE_APT.format(home=home))
        program.chmod(0o755)

    def mirrors(self, *uris: str) -> None:
        self.home.joinpath("uris").write_text("".join(f"'{uri}' name 0\n" for uri in uris))

    def break_archives(self, pattern: str) -> None:
        self.home.joinpath("broken").write_text(f"{pattern}\n")

    def sources(self) -> list[str]:
        return self.home.joinpath("sources").read_text().splitlines()


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    machine = Apt(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return machine


def update(folder: Path) -> None:
    with workshop(folder, Progress(io.StringIO())) as shop:
        shop.progress.stage("reading")
        debian.Archive(shop).update()


@pytest.mark.parametrize(
    ("uris", "expected"),
    [
        pytest.param((), debian.DEFAULT_MIRROR, id="none of its own"),
        pytest.param(
            ("http://near.example/debian/dists/bookworm/InRelease",),
            "http://near.example/debian",
            id="its own",
        ),
        pytest.param(
            (
                "https://packages.example/apt/dists/stable/InRelease",
                "http://near.example/debian-security/dists/bookworm-security/InRelease",
                "mirror+file:/etc/apt/list/debian/dists/trixie/InRelease",
            ),
            "mirror+file:/etc/apt/list/debian",
            id="after other archives, on a newer release",
        ),
        pytest.param(
            ("http://near.example/debian//dists/bookworm/InRelease",),
            "http://near.example/debian",
            id="with a doubled slash",
        ),
    ],
)
def test_uses_the_mirror_of_the_machine(apt: Apt, uris: tuple[str, ...], expected: str) -> None:
    """A machine with a mirror uses it."""
    apt.mirrors(*uris)

    assert debian.mirror() == expected


def test_every_source_names_the_key_that_signs_it(apt: Apt, tmp_path: Path) -> None:
    """No other key of the machine can vouch for what is compiled."""
    update(tmp_path)

    sources = apt.sources()
    assert len(sources) == 3
    assert all(f"[signed-by={debian.KEYRING}]" in source for source in sources)


def test_asks_the_archive_for_a_release_that_mirrors_have_dropped(apt: Apt, tmp_path: Path) -> None:
    """The compiler's release is older than the machine's."""
    apt.mirrors("http://near.example/debian/dists/bookworm/InRelease")
    apt.break_archives("near.example/debian bullseye")

    update(tmp_path)

    last = apt.sources()[-3:]
    assert [line.split("] ")[1] for line in last] == [
        "http://near.example/debian bookworm main",
        "http://near.example/debian bookworm main",
        f"{debian.ARCHIVE} bullseye main",
    ]


def test_says_which_mirror_failed_and_why(apt: Apt, tmp_path: Path) -> None:
    """The first thing that apt calls an error is the reason."""
    apt.break_archives("bookworm")

    with pytest.raises(UnreachableError) as caught:
        update(tmp_path)

    assert str(caught.value) == (
        "cannot read Debian's archive at http://deb.debian.org/debian: The repository is not signed"
    )


def test_on_other_systems_the_command_lists_the_ways(tmp_path: Path) -> None:
    """Without apt it ends at once, with a sentence and no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.lab", "build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("cannot make etcd, kube-apiserver, kube-controller-manager")
    assert "set KUBEBUILDER_ASSETS" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("ci", "expected"),
    [
        pytest.param({}, "1 skipped", id="a developer's machine"),
        pytest.param({"CI": "true"}, "1 error", id="CI"),
    ],
)
def test_tests_without_binaries_are_skipped_locally_and_fail_in_ci(
    tmp_path: Path, ci: dict[str, str], expected: str
) -> None:
    """A missing control plane must not make CI green."""
    test = tmp_path / "test_it.py"
    test.write_text("def test_it(source_cluster):\n    pass\n")
    environ = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    plugins = ["-p", "tests.kube_fixtures", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rA", "-c", os.devnull, str(test)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**environ, **ci},
    )

    assert expected in done.stdout.splitlines()[-1]
    assert "KUBEBUILDER_ASSETS" in done.stdout
