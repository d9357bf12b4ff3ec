"""`bellhop export` and `bellhop import`: files, passphrases, and who works meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.fleet.installation import Installation
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
    told = ("--passphrase-file", str(secret))
    left = bellhop("export", str(archive), "--leave", *told)

    assert (left.exit_code, left.stdout.split()[:3]) == (0, ["exported", "0", "clusters,"])
    assert archive.stat().st_mode & 0o777 == 0o600
    filled = bellhop("import", str(archive), *told, "--state", there)
    assert filled.exit_code == 0, filled.stderr
    assert "watched" in bellhop("get", "eventsources", "--state", there).stdout
    refused = bellhop("apply", "-f", "-", stdin=source(name="more"))
    assert (refused.exit_code, "it was left for another one" in refused.stderr) == (75, True)
    served = bellhop("serve", "--listen", "127.0.0.1:0")
    assert (served.exit_code, "it was left for another one" in served.stderr) == (75, True)
    returned = bellhop("import", str(archive), *told)
    assert returned.stdout == "this installation goes on as it was when it was left\n"
    assert bellhop("apply", "-f", "-", stdin=source(name="more")).exit_code == 0


@pytest.mark.usefixtures("declared")
def test_asks_for_the_passphrase_unseen(bellhop: Bellhop, tmp_path: Path) -> None:
    """Twice where it seals, once where it opens; it is never shown."""
    archive = str(tmp_path / "archive")
    sealed = bellhop("export", archive, stdin=f"{PASSPHRASE}\n{PASSPHRASE}\n")
    opened = bellhop(
        *("import", archive, "--copy", "--state", str(tmp_path / "x")), stdin=f"{PASSPHRASE}\n"
    )

    assert (sealed.exit_code, opened.exit_code) == (0, 0)
    assert PASSPHRASE not in sealed.output + opened.output


@pytest.mark.usefixtures("declared")
def test_refuses_what_it_cannot_do(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """A file that is there, one that is none, no passphrase: a sentence each, nothing left over."""
    archive, told = tmp_path / "archive", ("--passphrase-file", str(secret))
    archive.write_text("mine")
    missing = ("--passphrase-file", str(tmp_path / "nothing"))
    for command, said in (
        (("export", str(archive), *told), "there is such a file; name another one"),
        (("export", str(tmp_path / "no" / "x"), *told), "No such file or directory"),
        (("export", str(tmp_path / "new"), *missing), "cannot read the passphrase"),
        (("import", str(archive), *told), "the file is none that `bellhop export` wrote"),
        (("import", str(tmp_path / "new"), *told), "No such file or directory"),
    ):
        result = bellhop(*command)
        assert result.exit_code == 2, command
        assert said in result.stderr
    assert archive.read_text() == "mine"
    assert {each.name for each in tmp_path.iterdir()} == {"archive", "passphrase", "state"}


@pytest.mark.usefixtures("declared", "served")
def test_refuses_while_somebody_serves(bellhop: Bellhop, tmp_path: Path, secret: Path) -> None:
    """What changes while it is read would be half of the one and half of the other."""
    told = ("--passphrase-file", str(secret))
    result = bellhop("export", str(tmp_path / "archive"), *told)

    assert (result.exit_code, "another `bellhop serve` does" in result.stderr) == (75, True)
    assert not (tmp_path / "archive").exists()
