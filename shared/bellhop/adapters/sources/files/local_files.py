"""Files of this machine that stand for those of a URL or of a Flux source, which nobody fetches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bellhop.documents.tarball import USUAL, Folder, unpack
from bellhop.errors import InvalidError, TooLargeError
from bellhop.state.content import FLUX_KINDS, ref_name, shown_url

_GZIP = b"\x1f\x8b"
_ENDINGS = (".yaml", ".yml", ".json")


def local_files(given: Iterable[str]) -> dict[str, Folder]:
    """Read `NAME=PATH` entries; return the files of each by what errors and refs call them.

    A name is a URL, or `KIND/NAMESPACE/NAME` of a Flux source. A path is a folder, a tar.gz, or one
    manifest.

    Raises:
        InvalidError: an entry is no such pair, or its path cannot be read.
        TooLargeError: a path has more than an archive may have.
    """
    found: dict[str, Folder] = {}
    for each in given:
        name, _, path = each.rpartition("=")
        ref = _ref(name)
        if not ref or not path:
            raise InvalidError(
                f"cannot read --files '{_shorten(each)}':"
                " write URL=PATH, or KIND/NAMESPACE/NAME=PATH"
                f" with {', '.join(sorted(FLUX_KINDS))} as KIND"
            )
        if ref in found:
            raise InvalidError(f"cannot read --files '{_shorten(each)}': it is given twice")
        found[ref] = _read(Path(path))
    return found


def _shorten(given: str) -> str:
    """Return an entry without what a URL may have of credentials."""
    return shown_url(given) if "://" in given else given


def _ref(name: str) -> str:
    if "://" in name:
        return shown_url(name)
    kind, _, place = name.partition("/")
    namespace, _, own = place.partition("/")
    is_flux = kind in FLUX_KINDS and namespace and own
    return ref_name(kind, namespace, own) if is_flux else ""


def _read(path: Path) -> Folder:
    try:
        if path.is_dir():
            return _folder(path)
        size = path.stat().st_size
        if not path.is_file():
            raise InvalidError(f"cannot read '{path}': it is neither a file nor a folder")
        if size > USUAL.unpacked:
            raise TooLargeError(f"cannot read '{path}': it has more than {USUAL.unpacked:,} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise InvalidError(f"cannot read '{path}': {error.strerror}") from error
    if content.startswith(_GZIP):
        return unpack({path.name: content})
    return {path.name if path.name.endswith(_ENDINGS) else f"{path.name}.yaml": content}


def _folder(top: Path) -> Folder:
    """Return the files below a folder, without those of Git, as Flux does."""
    files: dict[str, bytes] = {}
    left, whole = USUAL.unpacked, top.resolve()
    for path in sorted(top.rglob("*")):
        place = path.relative_to(top)
        if ".git" in place.parts or not path.is_file():
            continue
        if not path.resolve().is_relative_to(whole):
            raise InvalidError(
                f"cannot read '{path}': it is a link to a file outside of the folder"
            )
        left -= path.stat().st_size
        if left < 0 or len(files) == USUAL.members:
            raise TooLargeError(
                f"cannot read '{top}': it has more than {USUAL.members:,} files or"
                f" {USUAL.unpacked:,} bytes"
            )
        files[place.as_posix()] = path.read_bytes()
    return files
