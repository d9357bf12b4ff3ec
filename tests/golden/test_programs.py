"""The programs that tests compare with: where they are kept, and when they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.errors import PermanentError
from infra.lab import debian
from infra.lab.workshop import Workshop
from tests.golden import programs


def made(shop: Workshop) -> Path:
    program = shop.folder / "made"
    program.write_text("program")
    return program


def broken(shop: Workshop) -> Path:
    made(shop)
    raise PermanentError("it does not compile")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HOME": "/home/ada"}, "/home/ada/.cache/bellhop/oracle", id="home"),
        pytest.param({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/bellhop/oracle", id="xdg"),
        pytest.param({"BELLHOP_ORACLE": "/o", "HOME": "/h"}, "/o", id="named"),
    ],
)
def test_programs_are_kept_in_the_cache(environ: dict[str, str], expected: str) -> None:
    """The folder is beside the control plane's, unless one is named."""
    assert Path(expected) == programs.cache(environ)


def test_a_changed_oracle_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle built from other sources is not taken for today's."""
    before = programs.oracle_path()
    (tmp_path / "main.go").write_text("package main")
    monkeypatch.setattr(programs, "SOURCES", tmp_path)

    assert before.name != programs.oracle_path().name


@pytest.mark.skipif(not debian.is_at_hand(), reason="programs are made on Debian alone")
class TestMaking:
    def test_a_program_is_made_once(self, tmp_path: Path) -> None:
        """What is there is not made again; nothing but it and the lock stays."""
        program = programs._have(tmp_path / "cache" / "oracle-1", made)

        assert program.read_text() == "program"
        assert program == programs._have(program, broken)
        assert sorted(path.name for path in program.parent.iterdir()) == ["lock", "oracle-1"]

    def test_a_failure_leaves_nothing(self, tmp_path: Path) -> None:
        """After a step that failed there is no program, and the next attempt may succeed."""
        program = tmp_path / "oracle-1"
        with pytest.raises(PermanentError, match="does not compile"):
            programs._have(program, broken)

        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        assert programs._have(program, made).exists()

    def test_remains_of_a_killed_run_are_removed(self, tmp_path: Path) -> None:
        """A workshop that nobody is left to close goes with the next run."""
        (tmp_path / "unfinished-1").mkdir()
        (tmp_path / "unfinished-1" / "made").touch()

        programs._have(tmp_path / "oracle-1", made)

        assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "oracle-1"]
