"""`bellhop export`: manifests that files have applied, for the configuration cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.command import Command
from bellhop.cli.output import say
from bellhop.cli.session import open_installation
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.cli.manifest_folder import ManifestFile
    from bellhop.configuration.export import ExportedManifest
    from bellhop.installation import Installation

_MOST_NAMES = 5


@click.command(
    "export",
    cls=Command,
    usage=("--for-cluster DIR",),
    examples=("bellhop export --for-cluster fleet",),
)
@click.option(
    "--for-cluster",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Write one file for each manifest, readable by you only. The folder must have no other"
    " manifests; a file with other contents is never overwritten.",
)
def command(folder: Path) -> None:
    """Write what files have applied as manifests for the cluster that holds the configuration.

    Applied there by `kubectl apply --server-side -f DIR`, they change nothing in the fleet: each
    object takes the place of the manifest of its name. Kinds have the version v1beta1, and
    EventBasedAddOns become EventTriggers. Registered clusters are not exported, and stay
    registered; ConfigMaps and Secrets only if a manifest names them. Secrets are in plain text.

    The exit code is 1 if a manifest cannot be exported. The others are written all the same.
    """
    from bellhop.cli.manifest_folder import report_written, write_folder

    here = open_installation()
    found = _read(here)
    if not found.files and not found.lost:
        raise InvalidError("cannot export anything: files have applied no manifest")
    secrets = write_folder(folder, lambda: _list_files(here), only=True)
    report_written(folder, found.files, secrets)
    for kind, number in sorted(found.unnamed.items()):
        say(f"left out: {number} {kind}: named by no manifest")
    if found.namespaces:
        names = ", ".join(sorted(found.namespaces))
        say(f"to do: create the namespaces that the cluster lacks: {names}")
    for each in found.lost[:_MOST_NAMES]:
        say(f"error: cannot export {each.key}: {each.reason}", err=True)
    if len(found.lost) > _MOST_NAMES:
        say(f"error: {len(found.lost) - _MOST_NAMES} more cannot be exported", err=True)
    if found.lost:
        click.get_current_context().exit(1)


class _Found:
    """Counts of an export, and the manifests that it has to leave out."""

    def __init__(self) -> None:
        self.files = 0
        self.namespaces: set[str] = set()
        self.unnamed: Counter[str] = Counter()
        self.lost: list[ExportedManifest] = []


def _read(here: Installation) -> _Found:
    from bellhop.configuration.export import list_exported

    found = _Found()
    for each in list_exported(here):
        if each.manifest:
            found.files += 1
            found.namespaces |= {each.key.namespace} - {"", "default"}
        elif each.is_lost:
            found.lost.append(each)
        else:
            found.unnamed[each.key.kind] += 1
    return found


def _list_files(here: Installation) -> Iterator[ManifestFile]:
    from bellhop.cli.manifest_folder import ManifestFile, name_file
    from bellhop.configuration.export import list_exported

    for each in list_exported(here):
        if each.manifest:
            yield ManifestFile(name_file(*each.key), (each.manifest,))
