"""Lay out the sources of the functions for Google's buildpacks: `dist/gcp/STAGE`, and a zip of it.

The zip has the build ID in its name: one of other sources has another name.

    main.py             the targets of functions-framework: `handle`, and `hear` of ingest
    functions/ bellhop/ the sources, the same for each stage
    helm/ kubectl/      Helm and kubectl, for `charts` only
    requirements.txt    what these need of others, by version and hash: Google installs it

`STAGE-cel` is the same with one more requirement, for an installation that has rules in CEL. The
same sources and the same lock make the same bytes. Nothing is compiled: buildpacks do that, with
the Python that they choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bellhop.state.messages import CHARTS
from infra.package.build import STAGES
from infra.package.distributions import EXCLUDED, LAYERS, requirements
from infra.package.files import build_id, own_files
from infra.package.programs import PLACES, programs
from infra.package.zips import filled, zipped

_MAIN = '''"""What functions-framework looks for: `--target handle`."""

from functions.{stage}.gcp import {targets}

__all__ = [{quoted}]
'''

_MORE_TARGETS = {"ingest": ("hear",)}
"""Beside `handle`: one package may be two functions, which let in others."""

_EVALUATING = ("charts", "deploy", "evaluate")
"""The stages that evaluate rules, which may be in CEL."""


def lay_out(into: Path, *, charts: bool = True) -> Mapping[str, Path]:
    """Lay out the sources of the stages, with layers and without, in a folder.

    Return the zips by their names without the ID.

    Raises:
        MissingError: there is no Helm or kubectl for `charts`.
        PermanentError: uv cannot resolve what the functions require.
    """
    beyond = programs() if charts else {}
    files = own_files("gcp")
    included = {"": "", **{f"-{layer}": each for layer, each in LAYERS.items()}}
    required = {
        suffix: requirements("gcp", excluded=set(EXCLUDED["gcp"]) - {each}).encode()
        for suffix, each in included.items()
    }
    made, identity = {}, build_id("functions")
    with filled(into) as folder:
        for stage in sorted(set(STAGES) - (set() if charts else {CHARTS})):
            for suffix in required if stage in _EVALUATING else [""]:
                whole = {**files, **(beyond if stage == CHARTS else {})}
                whole["main.py"] = _main(stage).encode()
                whole["requirements.txt"] = required[suffix]
                name = f"{stage}{suffix}"
                folder.lay_out(name, whole)
                made[name] = folder.put(f"{name}-{identity}.zip", zipped(whole, PLACES.values()))
    return made


def _main(stage: str) -> str:
    targets = ["handle", *_MORE_TARGETS.get(stage, ())]
    quoted = ", ".join(f'"{each}"' for each in targets)
    return _MAIN.format(stage=stage, targets=", ".join(targets), quoted=quoted)
