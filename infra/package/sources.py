"""Lay out the sources of the functions for Google's buildpacks: `dist/gcp/STAGE`, and a zip of it.

    main.py             the targets of functions-framework: `handle`, and `hear` of ingest
    functions/ bellhop/ what the stage may load
    helm/ kubectl/      Helm and kubectl, for `charts` only
    requirements.txt    what these load of others, by version and hash: Google installs it

Who wants what stays behind otherwise, as it weighs too much, takes `STAGE-LAYER` instead: the same
with one more requirement. The same sources and the same lock make the same bytes. Nothing is
compiled: buildpacks do that, with the Python that they choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bellhop.messages import CHARTS
from infra.package.build import STAGES
from infra.package.modules import ROOT, Reached, reached
from infra.package.parts import LAYERS, OPTIONAL, distributions
from infra.package.programs import PLACES, programs
from infra.package.requirements import requirements
from infra.package.zips import filled, zipped

_MAIN = '''"""What functions-framework looks for: `--target handle`."""

from functions.{stage}.gcp import {targets}

__all__ = [{quoted}]
'''

_MORE_TARGETS = {"ingest": ("hear",)}
"""Beside `handle`: one package may be two functions, which let in others."""


def lay_out(
    into: Path, *, stages: Iterable[str] = STAGES, layers: Iterable[str] = ()
) -> Mapping[str, Path]:
    """Lay out the sources of stages, and those with layers, in a folder; return zips by name.

    Raises:
        InvalidError: a distribution is not locked, or not installed as it is locked.
        MissingError: there is no Helm or kubectl for `charts`.
    """
    wanted: dict[str, dict[str, bytes]] = {}
    for stage in stages:
        found = reached(f"functions.{stage}.gcp")
        wanted[stage] = _files(stage, found)
        for layer in set(layers) & _wanting(found):
            wanted[f"{stage}-{layer}"] = _files(stage, found, *LAYERS[layer])
    made = {}
    with filled(into) as folder:
        for name, files in sorted(wanted.items()):
            folder.lay_out(name, files)
            folder.put(f"{name}.zip", zipped(files, PLACES.values()))
            made[f"{name}.zip"] = into / f"{name}.zip"
    return made


def _wanting(found: Reached) -> set[str]:
    """Return the layers with which a stage could do more."""
    return {
        OPTIONAL[top] for top in {each.partition(".")[0] for each in found.others} & OPTIONAL.keys()
    }


def _files(stage: str, found: Reached, *more: str) -> dict[str, bytes]:
    files = {place: path.read_bytes() for place, path in found.files.items()}
    files["main.py"] = _main(stage).encode()
    required = distributions(found.others) | set(more)
    files["requirements.txt"] = requirements(required).encode()
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return {**files, **programs()} if stage == CHARTS else files


def _main(stage: str) -> str:
    targets = ["handle", *_MORE_TARGETS.get(stage, ())]
    quoted = ", ".join(f'"{each}"' for each in targets)
    return _MAIN.format(stage=stage, targets=", ".join(targets), quoted=quoted)
