"""`bellhop backup` and `bellhop restore`: files, passphrases, and who works meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bellhop.installation import Installation
from bellhop.runtime.embedded.state import BACKUP
from tests.fakes.manifests import source
from tests.unit.cli.conftest import Bellhop

PASSPHRASE = "four words and a number 7"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "passphrase"
    path.write_text(PASSPHRASE + "\n")
    return path


@pytest.fixture
def declared(bellhop: Bellhop, here: Installation) -> None:
    """Something to move."""
    del here
    assert bellhop("apply", "-f", "-", stdin=source()).exit_code == 0


@pytest.mark.usefixtures("declared")
def test_moves_from_one_folder_to_another(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """The old one refuses to work, and the new one has what it had."""
    archive, there = tmp_path / "archive", str(tmp_path / "there")
    passphrase_option = ("--passphrase-file", str(secret))
    left = bellhop("backup", str(archive), "--leave", *passphrase_option)

    assert (left.exit_code, left.stdout.split()[:3]) == (0, ["saved", "0", "clusters,"])
    assert archive.stat().st_mode & 0o777 == 0o600
    filled = bellhop("restore", str(archive), *passphrase_option, "--state", there)
    assert filled.exit_code == 0, filled.stderr
    assert "watched" in bellhop("get", "eventsources", "--state", there).stdout
    refused = bellhop("apply", "-f", "-", stdin=source(name="more"))
    assert (refused.exit_code, "it was left for another one" in refused.stderr) == (75, True)
    served = bellhop("serve", "--listen", "127.0.0.1:0")
    assert (served.exit_code, "it was left for another one" in served.stderr) == (75, True)
    returned = bellhop("restore", str(archive), *passphrase_option)
    assert returned.stdout == "this installation is active again, as it was when it was left\n"
    assert bellhop("apply", "-f", "-", stdin=source(name="more")).exit_code == 0


@pytest.mark.usefixtures("declared")
def test_asks_for_the_passphrase_unseen(bellhop: Bellhop, tmp_path: Path) -> None:
    """Twice where it seals, once where it opens; it is never shown."""
    archive = str(tmp_path / "archive")
    sealed = bellhop("backup", archive, stdin=f"{PASSPHRASE}\n{PASSPHRASE}\n")
    opened = bellhop(
        *("restore", archive, "--without-leave", "--state", str(tmp_path / "x")),
        stdin=f"{PASSPHRASE}\n",
    )

    assert (sealed.exit_code, opened.exit_code) == (0, 0)
    assert PASSPHRASE not in sealed.output + opened.output


@pytest.mark.usefixtures("declared")
def test_a_backup_leaves_its_time(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """Metrics show it; a backup that fails leaves none."""
    passphrase_option, mark = ("--passphrase-file", str(secret)), tmp_path / "state" / BACKUP
    assert bellhop("backup", str(tmp_path / "no" / "x"), *passphrase_option).exit_code == 2
    assert not mark.exists()
    assert bellhop("backup", str(tmp_path / "archive"), *passphrase_option).exit_code == 0
    assert mark.exists()


@pytest.mark.usefixtures("declared")
def test_refuses_what_it_cannot_do(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """A file that is there, one that is none, no passphrase: a sentence each, nothing left over."""
    archive, passphrase_option = tmp_path / "archive", ("--passphrase-file", str(secret))
    archive.write_text("mine")
    blob = tmp_path / "blob"
    blob.write_bytes(b"\xff\xfe")
    missing = ("--passphrase-file", str(tmp_path / "nothing"))
    for command, said in (
        (("backup", str(archive), *passphrase_option), "there is such a file; name another one"),
        (("backup", str(tmp_path / "no" / "x"), *passphrase_option), "No such file or directory"),
        (
            ("backup", str(tmp_path / "new"), *missing),
            f"cannot read the passphrase in '{missing[1]}'",
        ),
        (("backup", str(tmp_path / "new"), "--passphrase-file", str(blob)), "it is not UTF-8 text"),
        (("restore", str(archive), *passphrase_option), "`bellhop backup` did not write this file"),
        (("restore", str(blob), *passphrase_option), "`bellhop backup` did not write this file"),
        (
            ("restore", str(tmp_path), *passphrase_option),
            f"cannot read '{tmp_path}': Is a directory",
        ),
        (("restore", str(tmp_path / "new"), *passphrase_option), "new': there is no such file"),
    ):
        result = bellhop(*command)
        assert result.exit_code in {1, 2}, command
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert archive.read_text() == "mine"
    names = {"archive", "blob", "passphrase", "state"}
    assert {each.name for each in tmp_path.iterdir()} == names


@pytest.mark.usefixtures("declared")
def test_says_where_an_archive_is_damaged(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """Also where a disk has put what is no text."""
    archive, passphrase_option = tmp_path / "archive", ("--passphrase-file", str(secret))
    assert bellhop("backup", str(archive), *passphrase_option).exit_code == 0
    first, second, third, *rest = archive.read_bytes().splitlines(keepends=True)
    archive.write_bytes(b"".join([first, second, b"\xff" + third[1:], *rest]))
    result = bellhop(
        "restore",
        str(archive),
        "--without-leave",
        *passphrase_option,
        "--state",
        str(tmp_path / "there"),
    )

    assert (result.exit_code, "it is damaged at its line 3" in result.stderr) == (2, True)


def test_looks_for_the_installation_before_it_asks(bellhop: Bellhop, tmp_path: Path) -> None:
    """Nobody types a passphrase twice for nothing."""
    result = bellhop("backup", str(tmp_path / "archive"), "--state", str(tmp_path / "none"))

    assert result.exit_code == 1
    assert "Passphrase" not in result.output
    assert "there is no state in" in result.stderr


@pytest.mark.usefixtures("declared")
def test_asks_nobody_where_there_is_no_terminal(tmp_path: Path) -> None:
    """As in a pipeline: a sentence says what to do, and nothing is read or left."""
    archive = tmp_path / "archive"
    state = ("--state", str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, "-m", "bellhop.cli.main", *state, "backup", str(archive)],
        input=f"{PASSPHRASE}\n{PASSPHRASE}\n",
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error: cannot ask for the passphrase: there is no terminal; name its file with"
        " --passphrase-file"
    )
    assert "Warning" not in done.stderr
    assert not archive.exists()


@pytest.mark.usefixtures("declared", "served")
def test_takes_a_backup_beside_serve(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """The backup is complete, and the installation stays active."""
    archive, passphrase_option = str(tmp_path / "archive"), ("--passphrase-file", str(secret))
    saved = bellhop("backup", archive, *passphrase_option)
    there = ("--state", str(tmp_path / "there"))
    restored = bellhop("restore", archive, "--without-leave", *passphrase_option, *there)

    assert (saved.exit_code, restored.exit_code) == (0, 0)
    assert "watched" in bellhop("get", "eventsources", *there).stdout
    assert bellhop("apply", "-f", "-", stdin=source(name="more")).exit_code == 0


@pytest.mark.usefixtures("declared", "served")
def test_refuses_to_leave_and_to_restore_beside_serve(
    bellhop: Bellhop, tmp_path: Path, secret: Path
) -> None:
    """A running `serve` would go on with an installation that was left, or write into another."""
    passphrase_option = ("--passphrase-file", str(secret))
    result = bellhop("backup", str(tmp_path / "archive"), "--leave", *passphrase_option)

    (tmp_path / "other").touch()
    filled = bellhop("restore", str(tmp_path / "other"), *passphrase_option)

    busy = "another process, as `bellhop serve`, is at work there; stop it first\n"
    assert (result.exit_code, filled.exit_code) == (75, 75)
    assert (result.stderr.startswith("error: cannot leave '"), result.stderr.endswith(busy)) == (
        True,
        True,
    )
    assert filled.stderr.startswith("error: cannot restore into '")
    assert not (tmp_path / "archive").exists()
