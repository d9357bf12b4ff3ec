"""Tarballs of users: what is unpacked, and what is refused before it costs anything."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import tracemalloc
from collections.abc import Iterable, Mapping

import pytest

from bellhop.documents.tarball import Bounds, unpack
from bellhop.errors import InvalidError, TooLargeError


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    made.linkname = target
    return made


def packed(files: Mapping[str, bytes] | None = None, more: Iterable[tarfile.TarInfo] = ()) -> bytes:
    """Pack files and empty members."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name, content in (files or {}).items():
            made = member(name)
            made.size = len(content)
            archive.addfile(made, io.BytesIO(content))
        for each in more:
            archive.addfile(each)
    return written.getvalue()


def test_files_come_with_plain_paths_and_their_content() -> None:
    """As `tar -czf FILE -C FOLDER .` packs them, and with names of any length and script."""
    long = "f" * 200 + "/" + "n" * 255
    files = {"./kustomization.yaml": b"a", "./base//x.yaml": b"\0\xff", long: b"", "ü/日本": b"u"}
    found = unpack({"x.tar.gz": packed(files, [member(".", tarfile.DIRTYPE)])})
    assert found == {
        "kustomization.yaml": b"a",
        "base/x.yaml": b"\0\xff",
        long: b"",
        "ü/日本": b"u",
    }


def test_several_are_one_folder() -> None:
    assert unpack({"b": packed({"b/x": b"2"}), "a": packed({"a": b"1"})}) == {
        "a": b"1",
        "b/x": b"2",
    }
    assert unpack({}) == {}


@pytest.mark.parametrize(
    ("tarballs", "sentence"),
    [
        ({"a": packed({"x": b"1"}), "b": packed({"./x": b"2"})}, "'b': 'x' is there twice"),
        ({"a": packed({"x": b"1"}), "b": packed({"x/y": b"2"})}, "'x': it is a file and a folder"),
        ({"a": packed({"/etc/x": b""})}, "'a': '/etc/x' leads out of the folder"),
        ({"a": packed({"a/../../x": b""})}, "leads out of the folder"),
        ({"a": packed(more=[member("a/..", tarfile.DIRTYPE)])}, "leads out of the folder"),
        ({"a": packed({"./.": b""})}, "a file without a name"),
        ({"a": packed({"a\nb": b""})}, r"'a\\nb' is not the name of a file"),
        ({"a": packed({"n" * 256: b""})}, "is not the name of a file"),
        ({"a": packed({("n" * 250 + "/") * 5: b""})}, "is not the name of a file"),
        ({"a": packed({"a\udcff": b""})}, "not a complete tar.gz"),
        ({"a": packed(more=[member("l", tarfile.SYMTYPE, "x")])}, "'l' is a link; only regular"),
        ({"a": packed(more=[member("l", tarfile.LNKTYPE, "x")])}, "'l' is a link"),
        ({"a": packed(more=[member("d", tarfile.CHRTYPE)])}, "'d' is a device"),
        ({"a": packed(more=[member("p", tarfile.FIFOTYPE)])}, "'p' is a device"),
        ({"a": packed(more=[member("s", tarfile.GNUTYPE_SPARSE)])}, "'s' is a sparse file"),
        ({"a.zip": b"PK\3\4"}, "'a.zip': it is not a complete tar.gz; make it with"),
        ({"a": b""}, "not a complete tar.gz"),
        ({"a": gzip.compress(b"not a tarball")}, "not a complete tar.gz"),
        ({"a": packed({"x": b"1" * 100_000})[:-9]}, "not a complete tar.gz"),
        ({"a": packed({"x": b"1"})[:-8] + b"\0" * 8}, "not a complete tar.gz"),
    ],
)
def test_what_is_refused(tarballs: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(InvalidError, match=sentence):
        unpack(tarballs)


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (Bounds(packed=10), "at most 10 are unpacked"),
        (Bounds(unpacked=60_000), "more than the 60,000 bytes"),
        (Bounds(members=2), "more than the 2 members"),
        (Bounds(depth=1), "'a/b/c' is deeper than 1 folders"),
    ],
)
def test_more_than_the_bounds_is_refused(bounds: Bounds, sentence: str) -> None:
    files = {"a/b/c": b"1" * 60_000, "d": b"2", "e": b"3"}
    assert len(unpack({"a": packed(files)}, Bounds(200_000, 80_000, 3, 2))) == 3
    with pytest.raises(TooLargeError, match=sentence):
        unpack({"a": packed(files)}, bounds)


def test_the_bounds_are_of_all_tarballs_together() -> None:
    tarballs = {name: packed({name: b"1"}) for name in "abc"}
    with pytest.raises(TooLargeError, match="'c': it has more than the 2 members"):
        unpack(tarballs, Bounds(members=2))


def zeros(size: int) -> bytes:
    """Return a tarball of a megabyte that says to hold gigabytes."""
    head = member("zeros")
    head.size = size
    written = io.BytesIO()
    with gzip.open(written, "wb", compresslevel=6) as zipped:
        zipped.write(head.tobuf())
        for _ in range(200):
            zipped.write(bytes(1 << 20))
    return written.getvalue()


def test_a_bomb_ends_at_the_bound() -> None:
    """Of 200 MiB of zeros no more are unzipped than may be, whatever size the head claims."""
    bomb = zeros(1 << 40)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="bytes that are unpacked"):
            unpack({"a": bomb}, Bounds(unpacked=4 << 20))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_behind_the_end_of_the_archive_ends_too() -> None:
    tarball = packed({"x": b"1"}) + gzip.compress(bytes(8 << 20))
    with pytest.raises(TooLargeError, match="bytes that are unpacked"):
        unpack({"a": tarball}, Bounds(unpacked=1 << 20))


def test_a_hundred_thousand_members_are_not_read_to_their_end() -> None:
    folders = member("d", tarfile.DIRTYPE).tobuf() * 100_000
    with pytest.raises(TooLargeError, match="more than the 10,000 members"):
        unpack({"a": gzip.compress(folders, 1)}, Bounds(unpacked=64 << 20))


def test_long_names_of_long_names_end() -> None:
    """Each head says that another one follows, and none does."""
    one = member("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    one.size = 1
    head = one.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(512, b"\0")
    with pytest.raises(InvalidError, match=r"not a complete tar\.gz"):
        unpack({"a": gzip.compress(head * 5_000)})


def test_a_header_of_a_million_digits_takes_no_time() -> None:
    """Python's own reader takes minutes for the length of such a record."""
    record = b"1" * 1_000_000 + b" path=a\n"
    head = member("x", tarfile.XHDTYPE)
    head.size = len(record)
    padded = record + bytes(-len(record) % 512)
    with pytest.raises(InvalidError, match=r"not a complete tar\.gz"):
        unpack({"a": gzip.compress(head.tobuf() + padded + member("a").tobuf() + bytes(1024))})


def test_a_damage_in_the_middle_is_no_end() -> None:
    """Python's own reader takes what is before it for the whole."""
    whole = bytearray(gzip.decompress(packed({"a": b"1", "b": b"2", "c": b"3"})))
    whole[1024] ^= 1
    with pytest.raises(InvalidError, match=r"not a complete tar\.gz"):
        unpack({"a": gzip.compress(bytes(whole))})
    zipped = bytearray(packed({"a": random.Random(1).randbytes(4000), "b": b"2"}))
    zipped[len(zipped) // 2] ^= 1
    with pytest.raises(InvalidError, match=r"not a complete tar\.gz"):
        unpack({"a": bytes(zipped)})


def test_what_is_broken_anywhere_is_refused_or_read() -> None:
    """Of a thousand damaged tarballs each is unpacked, or refused by a sentence."""
    chance = random.Random(7)
    whole = gzip.decompress(packed({"a/b": b"1" * 700, "n" * 150: b"2"}, [member("d")]))
    for _ in range(1000):
        damaged = bytearray(whole[:5120])
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.choice(b"\0\x80\xff019xgLKS/.")
        try:
            unpack({"a": gzip.compress(bytes(damaged), 1)})
        except InvalidError as error:
            assert "\n" not in str(error)  # noqa: PT017 - most are refused, which ones is chance
