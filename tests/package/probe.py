"""Load all that a package may ever load, and say which of its files that were.

Run by Lambda's Python with nothing but an unpacked package on its path:
`python -S probe.py FOLDER NAME…`, the names being what is imported of others.
"""

import importlib
import json
import sys
from pathlib import Path


def load(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        if not module:
            raise
        getattr(importlib.import_module(module), attribute)


def main(folder: str, *names: str) -> None:
    failed = {}
    ours = [
        path.relative_to(folder)
        for top in ("bellhop", "functions")
        for path in sorted(Path(folder, top).rglob("*.py"))
    ]
    for name in [*(".".join(path.with_suffix("").parts) for path in ours), *names]:
        try:
            load(name.removesuffix(".__init__"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            failed[name] = repr(error)
    if not failed:
        call_aws(folder)
    files = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
    outside = sorted(
        name
        for name, module in sys.modules.items()
        if "site-packages" in (getattr(module, "__file__", None) or "")
    )
    print(json.dumps({"failed": failed, "files": sorted(files), "outside": outside}))


def call_aws(folder: str) -> None:
    """Make a client of each service that the package describes."""
    made = importlib.import_module("bellhop.adapters.aws.services")
    services = made.Services(region="eu-west-1", keys=("nobody", "nothing"))
    for path in Path(folder, "botocore", "data").iterdir():
        if path.is_dir():
            services.client(path.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
