"""The content of a support bundle: views that name things and their states, and no contents.

Nothing is filtered out of what has secrets; it is not read. So manifests, values of Helm charts,
objects in reports and credentials are left out as a whole: any of them may have a password.
"""

from __future__ import annotations

import io
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from bellhop.cli import output
from bellhop.cli.kinds import NAMES, KindName
from bellhop.cli.views.view import Query
from bellhop.diagnosis import timeline
from bellhop.errors import BellhopError
from bellhop.installation.installation import Installation

_MOST_EVENTS = 10_000
"""Lines of the event log: the last ones."""


def bundle(here: Installation, folder: str, since: timedelta, *, answers: bool) -> bytes:
    """Return a tar.gz with a file for each part; a part that cannot be read has the error."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, read in _parts(here, since, answers=answers).items():
            path, text = _read(name, read)
            member, content = tarfile.TarInfo(f"{folder}/{path}"), text.encode()
            member.size, member.mode = len(content), 0o600
            member.mtime = here.records.clock.now().timestamp()
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _read(name: str, read: Callable[[], str]) -> tuple[str, str]:
    """Return the name and the text of a part, or of the error that it met instead."""
    try:
        return name, read()
    except BellhopError as error:
        sentence = str(error)
    except Exception as error:  # noqa: BLE001 - a fault of ours is what a bundle is needed for
        # Its message may quote anything.
        sentence = f"internal error ({type(error).__name__})"
    return f"{name}.error.txt", f"{sentence}\n"


def _parts(here: Installation, since: timedelta, *, answers: bool) -> dict[str, Callable[[], str]]:
    """Return how each file is made, by its name."""

    def lists(kind: KindName) -> Callable[[], str]:
        return lambda: _lines(_listed(here, kind))

    return {
        "version.json": lambda: _lines([_versions(here)]),
        "settings.json": lambda: _lines([msgspec.to_builtins(here.settings)]),
        "status.json": lambda: _lines([_status(here)]),
        "doctor.jsonl": lambda: _lines(_signs(here, answers=answers)),
        "events.jsonl": lambda: _lines(_events(here, since)),
        **{f"{kind.plural}.jsonl": lists(kind) for kind in NAMES},
    }


def _lines(rows: Any) -> str:
    return "".join(f"{output.line(row)}\n" for row in rows)


def _versions(here: Installation) -> Mapping[str, Any]:
    from bellhop.cli.commands.version import own, stored

    return {**own(), **stored(here)}


def _status(here: Installation) -> Mapping[str, Any]:
    from bellhop.cli.commands.status import whole
    from bellhop.diagnosis.status import status

    return whole(status(here))


def _signs(here: Installation, *, answers: bool) -> Iterator[Mapping[str, Any]]:
    from bellhop.cli.commands.doctor import rows
    from bellhop.diagnosis.doctor import examine, house

    yield from rows([("", list(house(here, answers=answers)))])
    yield from rows(list(examine(here, list(here.catalogs.known().clusters))))


def _events(here: Installation, since: timedelta) -> Iterator[Mapping[str, Any]]:
    begin = timeline.beginning(here.records, since)
    entries = (entry for _, entry in timeline.read(here.records, begin))
    yield from map(timeline.row, deque(entries, _MOST_EVENTS))


def _listed(here: Installation, kind: KindName) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of `bellhop get KIND -o wide`."""
    for row in kind.view.rows(here, Query()):
        yield {each.key: each.shown(row[each.key]) for each in kind.view.columns}
