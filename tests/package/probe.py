"""Load all of a package of ours, and all that it imports of others; say what failed.

Run by Lambda's Python with nothing but an unpacked package on its path:
`python -S probe.py FOLDER`.
"""

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def modules(folder: Path) -> Iterator[str]:
    """Yield our modules, and the names of all that they import, wherever they do."""
    for path in sorted([*folder.glob("bellhop/**/*.py"), *folder.glob("functions/**/*.py")]):
        parts = path.relative_to(folder).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module


def main(folder: Path) -> None:
    failed = {}
    for name in dict.fromkeys(modules(folder)):
        try:
            importlib.import_module(name)
        except ImportError as error:
            failed[name] = getattr(error, "name", None) or repr(error)
    made = importlib.import_module("bellhop.adapters.aws.services")
    services = made.Services(region="eu-west-1", keys=("nobody", "nothing"))
    described = sorted(each.name for each in (folder / "botocore/data").iterdir() if each.is_dir())
    for each in described:
        services.client(each)
    outside = sorted(
        name
        for name, module in sys.modules.items()
        if "site-packages" in (getattr(module, "__file__", None) or "")
    )
    print(json.dumps({"failed": failed, "services": described, "outside": outside}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
