"""The dependencies of a release with all extras, as CycloneDX describes software.

uv writes that of a lock file of its own, which it makes of `pyproject.toml` with the versions of
`requirements.lock`.
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

from infra.release.checkout import Checkout
from infra.release.uv import run_uv

_PIN = re.compile(r"^[a-z0-9][^\\\n]*==[^\\\n]*", re.MULTILINE)
_DYNAMIC = 'dynamic = ["version"]'


def bill_of_materials(checkout: Checkout) -> bytes:
    """Return a CycloneDX document in JSON; its time is the commit's.

    Raises:
        PermanentError: uv cannot resolve the dependencies.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text(_pinned(checkout), "utf-8")
        run_uv(folder, "lock")
        asked = ("--frozen", "--format", "cyclonedx1.5", "--no-dev", "--all-extras")
        found = json.loads(run_uv(folder, "export", *asked))
    found["metadata"]["timestamp"] = datetime.fromtimestamp(checkout.time, UTC).isoformat()
    del found["serialNumber"]
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(found, sort_keys=True))
    found["serialNumber"] = identity.urn
    return json.dumps(found, indent=1).encode() + b"\n"


def _pinned(checkout: Checkout) -> str:
    """Return the project with a version of its own, which allows no versions but the locked."""
    project = (checkout.root / "pyproject.toml").read_text("utf-8")
    lock = (checkout.root / "requirements.lock").read_text("utf-8")
    pins = json.dumps([each.strip() for each in _PIN.findall(lock)])
    versioned = project.replace(_DYNAMIC, f'version = "{checkout.version}"').replace(
        'readme = "README.md"\n', ""
    )
    return f"{versioned}\n[tool.uv]\nconstraint-dependencies = {pins}\n"
