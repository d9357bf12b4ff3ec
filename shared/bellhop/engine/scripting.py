"""Manifests that a Lua script writes at deploy time, of the objects that it may read.

Apart from `render`, which loads it for the first script alone: Lua is nine megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bellhop import luabox
from bellhop.engine.secrecy import LOCALLY
from bellhop.errors import ScriptError
from bellhop.gotemplate import Limits


def write(
    text: str,
    resources: Mapping[str, dict[str, Any]],
    *,
    name: str,
    limits: Limits,
    secret: bool = False,
) -> str:
    """Run a script, in the box of `evaluate`, and return the manifests that it writes.

    It has the time that a template has. Of one that is `secret` nothing is told but where it fails.

    Raises:
        ScriptError: the script fails, breaks out of its limits, or returns no text.
    """
    try:
        written = luabox.write(_compiled(text, name, limits.seconds), dict(resources))
    except luabox.LuaError as error:
        if not secret:
            shown = f", in '{error.excerpt.strip()[:120]}'" if error.excerpt else ""
            raise ScriptError(f"{error}{shown}", name=name) from error
        words = str(error) if isinstance(error, luabox.LuaLimitError) else _plain(error)
        raise ScriptError(f"{words}; {LOCALLY}", name=name) from None
    if len(written) > limits.output:
        said = f"the script writes more than the {limits.output:,} characters that it may"
        raise ScriptError(f"{name}: {said}", name=name)
    return written


@lru_cache(maxsize=256)
def _compiled(text: str, name: str, seconds: float) -> luabox.Script:
    return luabox.Script(text, name=name, limits=luabox.Limits(seconds=seconds))


def _plain(error: luabox.LuaError) -> str:
    """Say where a script fails: what Lua has against one that cannot be compiled quotes it."""
    place = f"{error.name}:{error.line}" if error.line else error.name
    return f"{place}: the script fails here" if error.line else f"{place}: the script fails"
