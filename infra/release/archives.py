"""Archives that unpack side by side into one folder, which is then as a checkout with packages.

The Terraform modules compute the names of packages from the sources that these are built of, so
that the sources lie beside the modules.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from infra.package.files import SOURCES
from infra.release.checkout import Checkout

_BUILT_OF = sorted({each for of in SOURCES.values() for each in of})
_MODULES = ("LICENSE", "docs/examples/**", "terraform/**", *_BUILT_OF)


def modules(checkout: Checkout) -> bytes:
    """Pack the Terraform modules, the sources, and all examples, as tar.gz."""
    return checkout.archive([f":(glob){each}" for each in _MODULES])


def packed(checkout: Checkout, place: str, files: Mapping[str, bytes]) -> bytes:
    """Pack files below a place of the release's folder, as tar: packages are compressed already."""
    placed = {f"{checkout.name}/{place}/{name}": content for name, content in files.items()}
    return tarred(placed, checkout.time)


def tarred(files: Mapping[str, bytes], time: int) -> bytes:
    """Pack files by their places, in order, as a tar that is the same whenever it is made."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as opened:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), time, 0o644
            opened.addfile(entry, io.BytesIO(content))
    return whole.getvalue()
