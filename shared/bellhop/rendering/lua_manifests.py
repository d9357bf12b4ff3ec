"""Manifests that a Lua script writes at deploy time, of the objects that it may read.

Apart from `render`, which stages use that run no script: Lua is nine megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from bellhop import luabox
from bellhop.errors import ScriptError
from bellhop.gotemplate import Limits
from bellhop.rendering.secrecy import LOCALLY


class ScriptText(Struct, frozen=True):
    """A script that writes manifests of `resources`: objects by their identifiers.

    A `secret` script is never quoted in an error, neither as written nor as run.
    """

    text: str
    name: str
    resources: Mapping[str, dict[str, Any]]
    secret: bool = False

    def render(self, _variables: Mapping[str, Any], limits: Limits) -> str:
        """Run it in the box of `evaluate`, for as long as a template may take.

        Raises:
            ScriptError: the script fails, breaks out of its limits, or returns no text.
        """
        try:
            script = _compiled(self.text, self.name, limits.seconds)
            written = luabox.write(script, dict(self.resources))
        except luabox.LuaError as error:
            if not self.secret:
                shown = f", in '{error.excerpt.strip()[:120]}'" if error.excerpt else ""
                raise ScriptError(f"{error}{shown}", name=self.name) from error
            words = str(error) if isinstance(error, luabox.LuaLimitError) else _plain(error)
            raise ScriptError(f"{words}; {LOCALLY}", name=self.name) from None
        if len(written) > limits.output:
            said = f"the script writes more than the {limits.output:,} characters that it may"
            raise ScriptError(f"{self.name}: {said}", name=self.name)
        return written

    def origins(self, _variables: Mapping[str, Any], _limits: Limits) -> list[int]:
        """Return nothing: no one knows which line of a script wrote what."""
        return []


@lru_cache(maxsize=256)
def _compiled(text: str, name: str, seconds: float) -> luabox.Script:
    return luabox.Script(text, name=name, limits=luabox.Limits(seconds=seconds))


def _plain(error: luabox.LuaError) -> str:
    """Say where a script fails: what Lua has against one that cannot be compiled quotes it."""
    place = f"{error.name}:{error.line}" if error.line else error.name
    return f"{place}: the script fails here" if error.line else f"{place}: the script fails"
