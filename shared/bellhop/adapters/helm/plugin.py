"""The plugin by which Helm has us change and check what a chart writes, before it is deployed.

Helm runs it once a call, with all objects on its input; patches are applied by the same code as to
a profile's own objects, in a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bellhop.core.allow import ReleaseAllow
from bellhop.core.structs import read_struct
from bellhop.documents.document import dump, read_documents
from bellhop.errors import BellhopError, InvalidError
from bellhop.ports.charts import DesiredRelease
from bellhop.rendering.allow_limits import NotAllowedError, refuse_charted
from bellhop.rendering.patches.patch import patched
from bellhop.rendering.patches.texts import patches_of
from bellhop.state.content import PatchText

NAME = "bellhop"
CHANGES, OBJECTION = "changes", "objection"
_VARIABLE, _OBJECTION = "BELLHOP_CHANGES", "BELLHOP_OBJECTION"

PLUGIN = {
    f"plugins/{NAME}/plugin.yaml": json.dumps(
        {
            "apiVersion": "v1",
            "type": "postrenderer/v1",
            "name": NAME,
            "version": "1.0.0",
            "runtime": "subprocess",
            "runtimeConfig": {
                "platformCommand": [{"command": sys.executable, "args": ["-m", __name__]}]
            },
        }
    ).encode()
}
"""The files of the plugin, below the home of a call."""

ENVIRONMENT = {
    "HELM_PLUGINS": "{home}/plugins",
    _VARIABLE: f"{{{CHANGES}}}",
    _OBJECTION: f"{{{OBJECTION}}}",
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
}
"""Variables by which Helm finds the plugin, and the plugin its changes."""


class _Changes(msgspec.Struct, frozen=True):
    patches: tuple[PatchText, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    allow: ReleaseAllow | None = None


def changes_of(desired: DesiredRelease) -> bytes:
    """Return the changes that the plugin makes, in its own format."""
    patches = tuple(desired.patches)
    changes = _Changes(patches, desired.labels, desired.annotations, desired.allow)
    return msgspec.json.encode(changes)


def apply_changes(manifest: str, changes_json: bytes) -> str:
    """Return the objects of a chart with all changes.

    Raises:
        InvalidError: a patch does not fit an object that it is for, or the chart writes no YAML.
        NotAllowedError: the release may not have one of the objects.
    """
    changes = read_struct(json.loads(changes_json), _Changes)
    # As an API server reads it: to other readers of YAML 12:30 is a number, and 1e3 a text.
    read = read_documents(manifest, source="the chart", expand_lists=False, repeats=True)
    documents = [each.data for each in read if isinstance(each.data, dict)]
    patches = [patch for text in changes.patches for patch in patches_of(text)]
    made = [_add_metadata(each, changes) for each in patched(documents, patches)]
    if changes.allow:
        refuse_charted(changes.allow, made)
    return "---\n".join(map(dump, made))


def objection(doing: str, wrote: bytes) -> BellhopError:
    """Return what the plugin wrote about its refusal as an error."""
    is_denied, why = json.loads(wrote)
    return NotAllowedError(why) if is_denied else InvalidError(f"cannot {doing}: {why}")


def _add_metadata(manifest: Mapping[str, Any], changes: _Changes) -> dict[str, Any]:
    metadata = dict(manifest.get("metadata") or {})
    for part, added in (("labels", changes.labels), ("annotations", changes.annotations)):
        if added:
            metadata[part] = {**(metadata.get(part) or {}), **added}
    return {**manifest, "metadata": metadata}


def main() -> int:
    """Change the objects from Helm; an error goes into a file, since Helm does not repeat it."""
    changes_json = Path(os.environ[_VARIABLE]).read_bytes()
    try:
        sys.stdout.write(apply_changes(sys.stdin.read(), changes_json))
    except BellhopError as error:
        refusal = json.dumps([isinstance(error, NotAllowedError), str(error)])
        Path(os.environ[_OBJECTION]).write_text(refusal)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
