"""Archives of charts: what is taken, and what is refused with which words."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from bellhop.adapters.sources.charts import archive
from bellhop.adapters.sources.charts.archive import check, read
from bellhop.errors import InvalidError, TooLargeError
from tests.fakes.chart import packed
from tests.fakes.tars import raw

ABOUT = "apiVersion: v2\nname: demo\nversion: 1.10\n"
REMOTE = '{"properties": {"a": {"$ref": "http://example.com/a.json"}}}'
OF = "chart 'demo' 1.0.0 of 'https://charts.example.com'"

Made = tuple[str, str | bytes]


def made(*files: Made, about: str = ABOUT, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Pack files, all but the first of a kind."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for at, (name, text) in enumerate([("demo/Chart.yaml", about), *files]):
            content = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            if at:
                member.type, member.linkname = kind, "/etc/passwd"
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def names(content: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return tar.getnames()


def refusal(content: bytes) -> str:
    with pytest.raises(InvalidError) as caught:
        check(content, OF)
    text = str(caught.value)
    assert text.startswith(f"cannot take {OF}: ")
    return text.removeprefix(f"cannot take {OF}: ")


def test_a_chart_is_repacked(tmp_path: Path) -> None:
    given = packed(tmp_path).read_bytes()
    chart = check(given, OF)
    assert (chart.name, chart.version) == ("demo", "1.0.0")
    assert names(chart.content) == [
        "demo/Chart.yaml",
        "demo/templates/config.yaml",
        "demo/values.yaml",
    ]
    assert check(chart.content, OF) == chart == read(chart.content)


def test_a_version_is_what_is_written() -> None:
    assert check(made(), OF).version == "1.10"


def test_paths_are_written_plainly() -> None:
    chart = check(made(("demo/./a//b.txt", "1"), ("demo/templates/", "")), OF)
    assert "demo/a/b.txt" in names(chart.content)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/passwd", "leads out of its folder"),
        ("../a", "leads out of its folder"),
        ("demo/../../a", "leads out of its folder"),
        ("demo/a/..", "leads out of its folder"),
        ("demo\\..\\a", "leads out of its folder"),
        ("./demo/a", "leads out of its folder"),
        ("other/a", "more than one folder: 'demo' and 'other'"),
        ("demo", "the file 'demo' outside of a folder"),
    ],
)
def test_files_lie_in_one_folder(name: str, why: str) -> None:
    assert why in refusal(made((name, "1")))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CONTTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_links_and_devices_are_refused(kind: bytes) -> None:
    assert refusal(made(("demo/a", ""), kind=kind)) == (
        "its archive has 'demo/a', which is a link or a device; a chart has only files and folders"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is not a gzip archive, or is damaged"),
        (b"<html>", "it is not a gzip archive"),
        (gzip.compress(b"no tar"), "its archive is not a tar file, or is damaged"),
        (gzip.compress(b""), "its archive has no Chart.yaml; it is not a chart"),
        (made()[:-10], "it is not a gzip archive, or is damaged"),
        (made() + made(), "it is not a gzip archive, or is damaged"),
    ],
)
def test_what_is_no_archive_is_refused(content: bytes, why: str) -> None:
    assert refusal(content) == why


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ("", "its Chart.yaml lacks a name or a version"),
        ("- a\n", "its Chart.yaml lacks a name or a version"),
        ("apiVersion: v2\nname: demo\n", "its Chart.yaml lacks a name or a version"),
        ("apiVersion: v2\nname: [a]\nversion: 1.0.0\n", "its Chart.yaml lacks a name or a version"),
        ("a: [", "its Chart.yaml is not YAML"),
        ("name: a\nversion: 1.0.0\n", "its Chart.yaml has another apiVersion than v1 and v2"),
        (f"{ABOUT}apiVersion: v3\n", "its Chart.yaml has another apiVersion than v1 and v2"),
        (
            f"{ABOUT}type: library\n",
            "it is a library chart, which cannot be installed; name a chart that depends on it",
        ),
        (f"{ABOUT}#{'x' * (1 << 20)}", "its Chart.yaml has more than 1 MiB"),
    ],
)
def test_what_is_no_chart_is_refused(about: str, why: str) -> None:
    assert refusal(made(about=about)) == why


SAYS = (
    "refers by '$ref' to 'http://example.com/a.json', which Helm would fetch; have the chart's"
    " author bundle the schema, so that it refers only to itself ('#…')"
)
IN_IT = f"its 'values.schema.json' {SAYS}"
INNER = made(("demo/values.schema.json", REMOTE))
INNERMOST = made(("demo/charts/inner-1.0.0.tgz", INNER))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([("demo/values.schema.json", REMOTE)], f"its 'values.schema.json' {SAYS}"),
        (
            [("demo/charts/a/values.schema.json", REMOTE)],
            f"its 'charts/a/values.schema.json' {SAYS}",
        ),
        (
            [("demo/charts/a-1.0.0.tgz", INNER)],
            f"in its 'charts/a-1.0.0.tgz', its 'values.schema.json' {SAYS}",
        ),
        (
            [("demo/charts/b/charts/a.tgz", INNERMOST)],
            f"in its 'charts/b/charts/a.tgz', in its 'charts/inner-1.0.0.tgz', {IN_IT}",
        ),
        ([("demo/charts/a.tgz", "text")], "in its 'charts/a.tgz', it is not a gzip archive"),
    ],
)
def test_no_schema_refers_to_another_address(files: Iterable[Made], why: str) -> None:
    assert refusal(made(*files)) == why


def test_what_two_readers_read_in_two_ways_is_written_as_it_was_read() -> None:
    """Go would take GNU's name here, and not see the one that counts for us."""
    names_twice = raw(b"L", b"demo/values.schema.json\0") + raw(b"x", b"20 path=demo/README\n")
    about = raw(b"0", ABOUT.encode(), name=b"demo/Chart.yaml")
    given = gzip.compress(about + names_twice + raw(b"0", REMOTE.encode()))
    assert names(check(given, OF).content) == ["demo/Chart.yaml", "demo/README"]


def test_charts_are_packed_in_charts_a_few_times() -> None:
    content = made()
    for _ in range(archive.MOST_NESTED):
        content = made(("demo/charts/a.tgz", content))
    assert check(content, OF).name == "demo"
    assert "it packs charts in charts more than 4 deep" in refusal(
        made(("demo/charts/a.tgz", content))
    )


def test_what_helm_passes_over_is_left_as_it_is() -> None:
    chart = check(made(("demo/charts/._a.tgz", "of a Mac"), ("demo/a.tgz", "no chart")), OF)
    assert "demo/charts/._a.tgz" in names(chart.content)


def test_a_library_may_be_packed_in_a_chart() -> None:
    library = made(about=f"{ABOUT}type: library\n")
    assert check(made(("demo/charts/a.tgz", library)), OF).name == "demo"


def test_a_bomb_is_refused() -> None:
    """64 MiB of nothing are 64 KB; so are those that are packed in a packed chart."""
    bomb = made(("demo/a", b"\0" * (archive.MOST_BYTES + 1)))
    assert len(bomb) < 1 << 20
    with pytest.raises(TooLargeError, match="it unpacks to more than 64 MiB"):
        check(bomb, OF)
    half = made(("demo/a", b"\0" * (archive.MOST_BYTES // 2)))
    with pytest.raises(TooLargeError):
        check(made(("demo/charts/a.tgz", half), ("demo/charts/b.tgz", half)), OF)


def test_so_many_files_are_taken() -> None:
    with pytest.raises(TooLargeError, match="it has more than 10000 files"):
        check(made(*((f"demo/{at}", "") for at in range(archive.MOST_FILES))), OF)
