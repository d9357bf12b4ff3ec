"""Types a page: its files are made, its commands run, and they print what the page shows.

```yaml file=PATH      a file that the reader saves
```bash                one command
```text                what it prints, or ```text error: what it says on standard error
```sh, ```hcl          what is typed or written in other places, for an installation
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from bellhop.cli.main import cli
from tests.waiting import eventually

_BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


_LOOKS = ("diff", "get", "history", "show", "status")


def type_page(page: str, folder: Path) -> None:
    """Type a page in a folder, which is the current one; each command is compared.

    A command that only looks is typed again until it shows what the page says: a reader
    is slower than the work that goes on meanwhile.
    """
    said, compared = {"": "", "error": ""}, 0
    arguments: list[str] = []
    for language, mark, body in _BLOCK.findall(page):
        if language == "bash":
            program, *arguments = shlex.split(body)
            assert program == "bellhop"
            said = _say(arguments)
        elif mark.startswith("file="):
            path = folder / mark.removeprefix("file=")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        elif language not in {"sh", "hcl"}:
            compared += 1
            if body.strip() not in said[mark]:
                assert arguments[0] in _LOOKS, said
                said = _look(arguments, mark, body.strip())

    assert compared == page.count("\nbellhop ")


def _look(arguments: list[str], mark: str, shown: str) -> dict[str, str]:
    """Look again until the page's words are there; return all that is said."""
    said: dict[str, str] = {}

    def shows() -> bool:
        said.update(_say(arguments))
        return shown in said[mark]

    eventually(lambda: f"{shown!r} is in {said}", shows)
    return said


def _say(arguments: list[str]) -> dict[str, str]:
    result = CliRunner().invoke(cli, arguments)
    return {"": result.stdout, "error": result.stderr}
