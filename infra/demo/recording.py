"""The picture of the demo in the README: what the terminal showed, as an SVG."""

from __future__ import annotations

import io
import re

from rich.console import Console

COMMAND = "make demo"

_WIDTH = 124
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def terminal() -> Console:
    """Return a console of fixed size that records what it prints."""
    return Console(
        highlight=False,
        record=True,
        width=_WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        force_interactive=False,  # A spinner would leave each of its turns.
        color_system="truecolor",
    )


def picture(console: Console) -> str:
    """Return what a console has printed; no font is loaded from a server."""
    made = console.export_svg(title=COMMAND, unique_id="demo")
    return _FONT_FACE.sub("", made)
