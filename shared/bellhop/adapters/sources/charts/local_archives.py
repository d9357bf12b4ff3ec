"""The port `Repositories` over archives that a user names: none of it needs a network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from bellhop.adapters.sources.charts import archive
from bellhop.adapters.sources.charts.versions import choose, newest_first
from bellhop.documents.tarball import Folder
from bellhop.errors import InvalidError, MissingError
from bellhop.ports.charts import Archive, Repositories
from bellhop.state.chart import Place


class LocalArchives:
    """Finds charts by their names and versions, wherever a profile has them from.

    The `folder` gets the archives as they were checked. Charts that are in no archive are found by
    `others`, if it is given.
    """

    def __init__(
        self, paths: Iterable[str], folder: Path, others: Repositories | None = None
    ) -> None:
        """Read archives.

        Raises:
            InvalidError: one cannot be read, or is no chart.
        """
        self._archives = [_check(path, folder) for path in paths]
        self._others = others

    def find(self, place: Place) -> Archive:
        found = self._find(place)
        if not found and self._others:
            return self._others.find(place)
        version = choose(found, place.version, of=f"chart '{_name(place)}' among the archives")
        return found[version]

    def open(self, content: bytes, digest: str) -> Archive:
        """Refuse charts of releases: what is rendered from files has none."""
        del content
        raise MissingError(f"cannot open the chart '{digest}': name an archive with --chart")

    def pack(self, files: Folder, path: str, revision: str) -> Archive:
        """Refuse charts of Flux: `bellhop render` reads none of its sources."""
        del files, path
        raise MissingError(f"cannot read {revision}: name an archive of the chart with --chart")

    def versions(self, place: Place) -> Sequence[str]:
        return newest_first(self._find(place))

    def _find(self, place: Place) -> dict[str, Archive]:
        found = {each.version: each for each in self._archives if each.chart == _name(place)}
        if found or self._others:
            return found
        raise MissingError(
            f"cannot render chart '{_name(place)}': it is in no archive; name one with --chart,"
            " have it downloaded with --download, or leave charts out with --show profiles"
        )


def _name(place: Place) -> str:
    """Return a chart's name, which may stand at the end of an address."""
    return (place.chart or place.repository).rstrip("/").rpartition("/")[2]


def _check(path: str, folder: Path) -> Archive:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidError(f"cannot read '{path}': {error.strerror}") from error
    chart = archive.check(content, f"the archive '{path}'")
    digest = hashlib.sha256(chart.content).hexdigest()
    place = folder / f"{digest}.tgz"
    place.write_bytes(chart.content)
    return Archive(place, chart.name, chart.version, digest)
