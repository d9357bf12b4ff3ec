"""Types a page: its files are made, its commands run, and they print what the page shows.

```yaml file=PATH      a file that the reader saves
```bash                one command
```text                what it prints, or ```text error: what it says on standard error
```sh, ```hcl          what is typed or written elsewhere, for an installation
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from bellhop.cli.main import cli

_BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def type_page(page: str, folder: Path) -> None:
    """Type a page in a folder, which is the current one; each command is compared."""
    said = {"": "", "error": ""}
    compared = 0
    for language, mark, body in _BLOCK.findall(page):
        if language == "bash":
            program, *arguments = shlex.split(body)
            assert program == "bellhop"
            result = CliRunner().invoke(cli, arguments)
            said = {"": result.stdout, "error": result.stderr}
        elif mark.startswith("file="):
            path = folder / mark.removeprefix("file=")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        elif language not in {"sh", "hcl"}:
            compared += 1
            assert body.strip() in said[mark], said

    assert compared == page.count("\nbellhop ")
