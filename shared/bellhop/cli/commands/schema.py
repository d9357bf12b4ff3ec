"""`bellhop schema`: JSON Schemas of manifests, for editors and validators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bellhop.cli import output
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_kind
from bellhop.cli.kinds import NAMES, KindName, find_kind
from bellhop.cli.options import TABLE, wrap_file_errors
from bellhop.cli.output import format_count, say
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.core.base import Model

_COLUMNS = (
    output.Column("NAME", "name"),
    output.Column("SHORTNAME", "short"),
    output.Column("APIVERSION", "api_version"),
    output.Column("KIND", "kind"),
)
_SAVE = "bellhop schema --output-dir schemas"


class _Schema(NamedTuple):
    """A kind in one version, with the model that reads it."""

    name: KindName
    kind: str
    api_version: str
    model: type[Model]

    @property
    def row(self) -> output.Row:
        return {**self._asdict(), "name": self.name.plural, "short": self.name.short}

    @property
    def path(self) -> str:
        """The file of the schema, named as by kubeconform and the public catalogs."""
        group, _, version = self.api_version.rpartition("/")
        return f"{group}/{self.kind.lower()}_{version}.json".lstrip("/")

    @property
    def text(self) -> str:
        """The schema, which all kinds of one name share."""
        from bellhop.api.json_schema import json_schema

        kinds = self.name.stored or (self.kind,)
        return json.dumps(json_schema(self.model, kinds, self.api_version), indent=2) + "\n"


@click.command(
    "schema",
    cls=Command,
    state=False,
    usage=("[KIND] [OPTIONS]",),
    examples=("bellhop schema", "bellhop schema eventtrigger", _SAVE),
)
@click.argument("kind", required=False, default="", shell_complete=complete_kind)
@click.option(
    "--api-version",
    metavar="GROUP/VERSION",
    default="",
    help="The version of the kind; by default the newest.",
)
@click.option(
    "--output-dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a file for each kind and version, GROUP/KIND_VERSION.json. Existing files are"
    " replaced.",
)
def command(kind: str, api_version: str, folder: Path | None) -> None:
    """Print the JSON Schema of a kind's manifests, for editors and for kubeconform.

    Without KIND, it lists the kinds that have one. A schema refuses unknown fields, values of wrong
    types, and manifests without a field that they always need. `bellhop apply --dry-run` checks
    more, such as names, references, and fields that only some manifests need. It needs no
    installation.
    """
    schemas = list(_select_schemas(kind, api_version))
    if folder is not None:
        _write_schemas(folder, schemas)
    elif kind:
        output.print_text(schemas[0].text)
    else:
        output.print_table(_COLUMNS, (each.row for each in schemas), TABLE, nothing="")


def _select_schemas(kind: str, api_version: str) -> Iterator[_Schema]:
    """Yield the schemas of a kind or of all, in one version or in all, newest first."""
    name = find_kind(kind) if kind else None
    found = [each for each in _list_schemas() if name in (None, each.name)]
    if not found:
        raise InvalidError(f"{kind} has no schema: Bellhop writes it, and `apply` refuses it")
    versions = list(dict.fromkeys(each.api_version for each in found))
    if api_version and api_version not in versions:
        known = " and ".join(versions)
        raise InvalidError(f"there is no apiVersion '{api_version}'; there is {known}")
    yield from (each for each in found if api_version in ("", each.api_version))


def _list_schemas() -> Iterator[_Schema]:
    from bellhop.api.kinds import KINDS
    from bellhop.api.sveltos_cluster import KIND, VERSIONS, SveltosCluster

    models: dict[str, tuple[type[Model], tuple[str, ...]]] = {
        **KINDS,
        KIND: (SveltosCluster, VERSIONS),
    }
    for name in NAMES:
        stored = (KIND,) if name.singular == "cluster" else name.stored
        for kind in stored:
            model, versions = models[kind]
            yield from (_Schema(name, kind, each, model) for each in versions)


def _write_schemas(folder: Path, schemas: Sequence[_Schema]) -> None:
    with wrap_file_errors(f"'{folder}'", "write"):
        for each in schemas:
            path = folder / each.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.text)
    say(f"{format_count(len(schemas), 'file')} written to {folder}")
