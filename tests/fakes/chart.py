"""Charts that tests write, packed as an archive."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

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
