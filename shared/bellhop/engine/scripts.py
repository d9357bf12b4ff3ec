"""What Lua has against the scripts of a source, before any of them is run."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop import luabox
from bellhop.model.document import Path
from bellhop.model.kinds import EventSource


def objections(source: EventSource) -> Iterator[tuple[Path, str]]:
    """Yield where a script stands that is no Lua program, and why, with its line."""
    for path, text in _scripts(source):
        try:
            luabox.Script(text, name=source.name)
        except luabox.LuaError as error:
            place = f" in its line {error.line}" if error.line else ""
            line = f"; the line is `{error.excerpt}`" if error.excerpt else ""
            yield path, f"the Lua script cannot be compiled{place}: {error.wording}{line}"


def _scripts(source: EventSource) -> Iterator[tuple[Path, str]]:
    spec = source.spec
    yield from ((("spec", field), getattr(spec, field)) for field in _FIELDS if _has(spec, field))
    for index, entry in enumerate(spec.resource_selectors):
        for field in _FIELDS:
            if _has(entry, field):
                yield ("spec", "resourceSelectors", index, field), getattr(entry, field)


_FIELDS = ("script", "evaluate")


def _has(spec: object, field: str) -> bool:
    return bool(getattr(spec, field))
