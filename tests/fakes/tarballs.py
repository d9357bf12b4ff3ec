"""Kustomizations as users pack them: tarballs in ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import Mapping


def tarball(files: Mapping[str, str]) -> bytes:
    """Return files as `tar -czf` packs a folder, always in the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"./{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def packed(
    name: str, files: Mapping[str, str] | bytes, *, kind: str = "ConfigMap", space: str = "default"
) -> str:
    """Return a ConfigMap or Secret with a tarball, as `kubectl create --from-file` makes it."""
    content = files if isinstance(files, bytes) else tarball(files)
    encoded = base64.b64encode(content).decode()
    entries = "binaryData" if kind == "ConfigMap" else "data"
    kind_of = "" if kind == "ConfigMap" else "type: addons.projectsveltos.io/cluster-profile\n"
    return f"""
apiVersion: v1
kind: {kind}
metadata: {{name: {name}, namespace: {space}}}
{kind_of}{entries}: {{kustomize.tar.gz: {encoded}}}
"""
