"""`bellhop support-bundle`: names and states of an installation as one file, for a bug report."""

from __future__ import annotations

import io
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bellhop.cli import output, session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_file
from bellhop.cli.options import read_duration
from bellhop.cli.output import say
from bellhop.errors import BellhopError, ConflictError

if TYPE_CHECKING:
    from bellhop.cli.kinds import KindName
    from bellhop.installation import Installation


@click.command(
    "support-bundle",
    cls=Command,
    usage=("[FILE] [OPTIONS]",),
    examples=("bellhop support-bundle", "bellhop support-bundle fault.tar.gz --since 2h"),
)
@click.argument(
    "file", required=False, type=click.Path(path_type=Path), shell_complete=complete_file
)
@click.option(
    "--since",
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="How far back events go, as in 90m or 24h; 10,000 lines at most.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def command(file: Path | None, since: str, *, overwrite: bool) -> None:
    """Write a tar.gz with the state of an installation, for a bug report or a colleague.

    It has the versions, the settings, the output of `bellhop status` and `bellhop doctor`, the
    lists that `bellhop get` prints of every kind, and recent events. Only you can read the file. It
    has no manifests, no contents of ConfigMaps, Secrets and reports, no values of charts and no
    credentials. It has the names of clusters and objects, their labels, addresses and error
    messages, which may quote an object that a script or a template reads: read it before you pass
    it on. Clusters are called, as `bellhop doctor` does. Nothing else is written.
    """
    from bellhop.adapters.local.files import write_whole

    ago = read_duration(since)
    folder = f"bellhop-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    file = file or Path(f"{folder}.tar.gz")
    if file.exists() and not overwrite:
        raise ConflictError(f"cannot write '{file}': it exists; name another file, or --overwrite")
    here = session.open_read_only()
    write_whole(file, make_bundle(here, folder, ago, answers=session.is_listening(here.inbound)))
    say(f"written to {file}")


_MOST_EVENTS = 10_000
"""Lines of the event log: the last ones."""


def make_bundle(here: Installation, folder: str, since: timedelta, *, answers: bool) -> bytes:
    """Return a tar.gz with a file for each part; a part that cannot be read has the error."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, read in _list_parts(here, since, answers=answers).items():
            path, text = _read_part(name, read)
            member, content = tarfile.TarInfo(f"{folder}/{path}"), text.encode()
            member.size, member.mode = len(content), 0o600
            member.mtime = here.records.clock.now().timestamp()
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _read_part(name: str, read: Callable[[], str]) -> tuple[str, str]:
    """Return the name and text of a part, or of the error in its place."""
    try:
        return name, read()
    except BellhopError as error:
        sentence = str(error)
    except Exception as error:  # noqa: BLE001 - a fault of ours is what a bundle is needed for
        # Its message may quote anything.
        sentence = f"internal error ({type(error).__name__})"
    return f"{name}.error.txt", f"{sentence}\n"


def _list_parts(
    here: Installation, since: timedelta, *, answers: bool
) -> dict[str, Callable[[], str]]:
    """Return the function that makes each file, by its name."""
    from bellhop.cli.kinds import NAMES

    def lists(kind: KindName) -> Callable[[], str]:
        return lambda: _format_lines(_list_rows(here, kind))

    return {
        "version.json": lambda: _format_lines([_versions(here)]),
        "settings.json": lambda: _format_lines([msgspec.to_builtins(here.settings)]),
        "status.json": lambda: _format_lines([_status(here)]),
        "doctor.jsonl": lambda: _format_lines(_list_checks(here, answers=answers)),
        "events.jsonl": lambda: _format_lines(_events(here, since)),
        **{f"{kind.plural}.jsonl": lists(kind) for kind in NAMES},
    }


def _format_lines(rows: Any) -> str:
    return "".join(f"{output.format_json_line(row)}\n" for row in rows)


def _versions(here: Installation) -> Mapping[str, Any]:
    from bellhop.cli.commands.version import read_own_versions, read_stored_versions

    return {**read_own_versions(), **read_stored_versions(here)}


def _status(here: Installation) -> Mapping[str, Any]:
    from bellhop.cli.commands.status import make_document
    from bellhop.diagnosis.status import read_status

    return make_document(read_status(here))


def _list_checks(here: Installation, *, answers: bool) -> Iterator[Mapping[str, Any]]:
    from bellhop.cli.commands.doctor import make_rows
    from bellhop.configuration.doctor import check_configuration
    from bellhop.diagnosis.doctor import check_clusters
    from bellhop.diagnosis.worker_status import check_worker

    yield from make_rows([("", list(check_worker(here, answers=answers)))])
    keys = list(here.catalogs.known().clusters)
    yield from make_rows(list(check_clusters(here, keys, check_configuration)))


def _events(here: Installation, since: timedelta) -> Iterator[Mapping[str, Any]]:
    from bellhop.diagnosis import timeline

    begin = timeline.find_start(here.records, since)
    entries = (entry for _, entry in timeline.read_since(here.records, begin))
    yield from map(timeline.make_row, deque(entries, _MOST_EVENTS))


def _list_rows(here: Installation, kind: KindName) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of `bellhop get KIND -o wide`."""
    from bellhop.cli.views.view import Query

    for row in kind.view.rows(here, Query()):
        yield {each.key: each.shown(row[each.key]) for each in kind.view.columns}
