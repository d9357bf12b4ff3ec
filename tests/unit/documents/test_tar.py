"""Tar files: as everybody packs them, and as those do who mean harm."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable

import pytest

from bellhop.documents.tarball import FILE, FOLDER, Member, TarError, members
from tests.fakes.tars import raw

LONG = "demo/" + "folder/" * 20 + "b" * 120 + "/värde.yaml"


def packed(*made: tuple[str, bytes, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form, encoding="utf-8") as archive:
        for name, kind, content in made:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_reads_what_is_packed(form: int) -> None:
    content = packed(
        ("demo", tarfile.DIRTYPE, b""),
        ("demo/Chart.yaml", tarfile.REGTYPE, b"name: demo"),
        (LONG, tarfile.REGTYPE, b"x" * 1024),
        ("demo/empty", tarfile.AREGTYPE, b""),
        form=form,
    )
    assert list(members(content)) == [
        Member("demo/", FOLDER),
        Member("demo/Chart.yaml", FILE, b"name: demo"),
        Member(LONG, FILE, b"x" * 1024),
        Member("demo/empty", FILE),
    ]


def test_reads_ustar_prefixes() -> None:
    name = "demo/" + "a" * 90 + "/" + "b" * 90
    content = packed((name, tarfile.REGTYPE, b"1"), form=tarfile.USTAR_FORMAT)
    assert [each.name for each in members(content)] == [name]


def test_what_is_no_file_is_named_as_such() -> None:
    content = packed(("demo/a", tarfile.SYMTYPE, b""), ("demo/b", tarfile.FIFOTYPE, b""))
    assert [each.kind for each in members(content)] == [tarfile.SYMTYPE, tarfile.FIFOTYPE]
    sparse = raw(b"x", b"22 GNU.sparse.major=1\n") + raw(b"0", b"")
    assert [each.kind for each in members(sparse)] == [b"S"]


def test_passes_over_what_a_repository_says_of_all() -> None:
    """`git archive` writes its commit as a header of the whole archive."""
    content = raw(b"g", b"13 comment=a\n") + raw(b"0", b"1")
    assert list(members(content)) == [Member("demo/a", FILE, b"1")]


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda whole: whole[:700],
    lambda whole: whole[:1024] + b"x" * 512 + whole[1536:],
    lambda whole: whole[:10] + b"x" + whole[11:],
    lambda whole: b"x" + whole,
    lambda whole: whole + raw(b"0", b"more"),
    lambda _: b"no archive",
    lambda _: raw(b"0", b"", size=b"\x80" + b"\0" * 10 + b"\1"),
    lambda _: raw(b"0", b"", size=b"\xff" * 12),
    lambda _: raw(b"0", b"", size=b"-0000001000"),
    lambda _: raw(b"0", b"", size=b"00000_00100"),
    lambda _: raw(b"x", b"9999 path=demo/b\n") + raw(b"0", b"1"),
    lambda _: raw(b"x", b"3 path=demo/b\n") + raw(b"0", b"1"),
    lambda _: raw(b"x", b"0 path=demo/b\n") + raw(b"0", b"1"),
    lambda _: raw(b"x", b"path=demo/b\n") + raw(b"0", b"1"),
    lambda _: raw(b"x", b"11 size=-1\n") + raw(b"0", b"1"),
    lambda _: raw(b"0", b"", name=b"demo/\xff"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_refused(damage: Callable[[bytes], bytes]) -> None:
    """Nothing of an archive is passed over without a word."""
    whole = packed(("demo/a", tarfile.REGTYPE, b"1"), ("demo/b", tarfile.REGTYPE, b"2"))
    with pytest.raises(TarError):
        list(members(damage(whole)))


@pytest.mark.clocked
def test_hostile_headers_take_no_time() -> None:
    """Python's own reader takes minutes for these digits."""
    began = time.monotonic()
    with pytest.raises(TarError):
        list(members(raw(b"x", b"1" * (4 << 20)) + raw(b"0", b"1")))
    assert time.monotonic() - began < 5
