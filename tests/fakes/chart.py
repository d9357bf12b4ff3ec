"""Charts that tests write, packed as an archive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.site import Site

CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-config}
data: {greeting: {{ .Values.greeting | quote }}}
"""


def packed(
    folder: Path,
    name: str = "demo",
    version: str = "1.0.0",
    *,
    more: str = "",
    files: Mapping[str, str] | None = None,
) -> Path:
    """Pack a chart of a ConfigMap, or of other files, and return its archive."""
    about = f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}"
    usual = {"templates/config.yaml": CONFIG_MAP, "values.yaml": "greeting: hello\n"}
    content = {"Chart.yaml": about, **(usual if files is None else files)}
    place = folder / f"{name}-{version}.tgz"
    with tarfile.open(place, "w:gz") as archive:
        for path, text in content.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return place


def repository(*archives: Path) -> Site:
    """Serve archives that `packed` has made from a chart repository, once it is entered."""
    entries: dict[str, list[dict[str, object]]] = {}
    for each in archives:
        name, _, version = each.stem.rpartition("-")
        digest = hashlib.sha256(each.read_bytes()).hexdigest()
        entry = {"name": name, "version": version, "urls": [each.name], "digest": digest}
        entries.setdefault(name, []).append(entry)
    index = json.dumps({"apiVersion": "v1", "entries": entries}).encode()
    return Site({"/index.yaml": index, **{f"/{each.name}": each.read_bytes() for each in archives}})
