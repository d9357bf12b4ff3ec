"""Write the generated parts of docs/reference/cli.md from the commands themselves.

A command's block has its heading, the forms in which it is typed, its help and its options; the
prose below it is written by hand. Run as `python -m infra.cli_page`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path

import click

from bellhop.cli.command import Exampled
from bellhop.cli.commands.delete import orphans
from bellhop.cli.main import cli
from infra.generated_blocks import fill, table

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"

LIKE = {
    "bellhop events": "bellhop show events",
    "bellhop register cluster-eks": "bellhop register cluster",
    "bellhop register cluster-gke": "bellhop register cluster",
}
"""Commands whose table leaves out the options of another, which is linked."""

_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*(?: (?:wide|json|yaml))?")


def commands() -> Mapping[str, click.Command]:
    """Return every command and group by its whole name, a group before its commands."""
    found = dict(_list_commands(cli, "bellhop"))
    # Not a group's command: `delete` reads its first word as a kind, or as this.
    return {**found, "bellhop delete orphans": orphans}


def written() -> str:
    """Return the page with its blocks as they have to be."""
    every = commands()
    return fill(PAGE.read_text(), {name: block(name, every) for name in every})


def block(name: str, every: Mapping[str, click.Command]) -> str:
    """Return the heading, forms, help and options of one command of all."""
    command, context = every[name], click.Context(every[name], info_name=name)
    parts = [f"##{'#' * (name.count(' ') > 1)} {name}\n", _help(command)]
    if command is cli or not isinstance(command, click.Group):
        assert isinstance(command, Exampled)
        forms = "\n".join(f"{name} {form}".strip() for form in command.forms(context))
        parts.insert(1, f"```\n{forms}\n```\n")
    like = LIKE.get(name, "")
    others = {each.opts[-1] for each in _options(every[like])} if like else set()
    rows = [_row(each, context) for each in _options(command) if each.opts[-1] not in others]
    if rows:
        parts.append(table(("Option", "Meaning"), rows))
    if like:
        missing = sorted(others - {each.opts[-1] for each in _options(command)})
        but = ", except " + ", ".join(f"`{each}`" for each in missing) if missing else ""
        parts.append(f"Other options are those of [`{like}`](#{like.replace(' ', '-')}){but}.\n")
    return "\n".join(parts)


def _list_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from _list_commands(found, f"{name} {each}")


def _options(command: click.Command) -> Iterator[click.Option]:
    """Yield a command's options, without `--state`, which all but the root share."""
    for each in command.params:
        if isinstance(each, click.Option) and (each.expose_value or command is cli):
            yield each


def _help(command: click.Command) -> str:
    paragraphs = cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_marked(" ".join(each.split())) for each in paragraphs) + "\n"


def _row(option: click.Option, context: click.Context) -> tuple[str, str]:
    names = [*option.opts, *option.secondary_opts]
    if not option.is_flag:
        names[-1] += f" {option.make_metavar(context)}"
    meaning = _marked(option.help or "")
    if option.required:
        meaning += " Required."
    elif option.show_default and not option.is_flag:
        meaning += f" Default: `{option.default}`."
    cells = ", ".join(f"`{each}`" for each in names), meaning
    return cells[0].replace("|", r"\|"), cells[1].replace("|", r"\|")


def _marked(text: str) -> str:
    """Mark the options that a sentence names as code, outside of what is marked already."""
    parts = _CODE.split(text)
    parts[::2] = [_OPTION.sub(lambda found: f"`{found[0]}`", each) for each in parts[::2]]
    return "".join(parts)


def main() -> None:
    PAGE.write_text(written())
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
