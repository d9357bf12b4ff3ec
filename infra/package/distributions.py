"""Others' distributions in a package: uv installs them, as `requirements.lock` has them.

A package has the dependencies that `pyproject.toml` declares, without those of the command line and
the embedded mode, and the extra of its cloud. All stages have the same: a dependency that a stage
does not import costs it no time. uv takes only what the lock has, by version and hash.
boto3 travels though Lambda has one: AWS changes that one when it likes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from bellhop.errors import InvalidError, PermanentError
from infra.package.files import ROOT
from infra.package.interpreter import ARCHITECTURES, PYTHON

LAYERS: Mapping[str, str] = {"cel": "cel-expr-python"}
"""Distributions of layers, beside the functions' zip: they are too large for it."""

EXCLUDED: Mapping[str, tuple[str, ...]] = {
    "aws": ("click", "h11", "kubernetes", "prometheus-client", "uvicorn", *LAYERS.values()),
    # functions-framework needs the others itself.
    "gcp": ("kubernetes", "prometheus-client", *LAYERS.values()),
}
"""The dependencies of the plain installation that functions of a cloud do not need."""

SERVICES = ("dynamodb", "eks", "s3", "secretsmanager", "sqs", "ssm", "sts")
"""The services of AWS that functions call."""

LOCK = ROOT / "requirements.lock"
_GLIBC = "manylinux_2_34"  # Amazon Linux 2023 has it.

_LEFT_OUT: Mapping[str, str] = {
    "*.pyi": "is for type checkers",
    "*.lock": "is uv's own",
    "*.dist-info/*": "is for installers; licences stay",
    "bin/*": "is a program",
    "bazel-project/*": "is for its authors",
    "boto3/examples/*": "is a manual",
    "botocore/data/*": "describes services; those that are called stay",
    "cel_expr_python/ext/*": "is another of CEL's extensions; that of strings stays",
    "cffi/*": "reads C, which happened when cryptography was built; _cffi_backend stays",
    "lupa/*": "is another Lua; 5.1 stays",
    "pycparser/*": "reads C, as cffi does",
    "*-stubs/*": "is for type checkers",
}
"""Files that are left out, and why."""

_KEPT = re.compile(
    r"[^/]+\.dist-info/(licenses/.+|(LICEN[CS]E|NOTICE|COPYING|AUTHORS)[^/]*)"
    r"|botocore/data/[^/]+\.json"
    rf"|botocore/data/({'|'.join(SERVICES)})/.+/(service-2|endpoint-rule-set-1)\..*json.*"
    r"|cel_expr_python/ext/ext_strings\..*so"
    r"|lupa/(.*/)?(__init__|version|lua51)\b.*"
)


def install(
    folder: Path,
    architecture: str,
    *packages: str,
    excluded: Iterable[str] = (),
    lock: Path = LOCK,
) -> None:
    """Install what a lock allows into a folder, for Lambda's Python on an architecture.

    `packages` are what `declared` or `pinned` return.

    Raises:
        PermanentError: uv cannot install them; the message ends with its words.
    """
    _run(
        *("install", "--target", str(folder), "--only-binary", ":all:", "--require-hashes"),
        *("--python-platform", f"{ARCHITECTURES[architecture]}-{_GLIBC}"),
        *("--constraints", str(lock), *packages),
        excluded=excluded,
    )


def declared(*extras: str) -> list[str]:
    """Return uv's options for our dependencies, those of some extras among them."""
    return ["-r", str(ROOT / "pyproject.toml"), *(f"--extra={each}" for each in extras)]


def pinned(name: str) -> str:
    """Return the requirement of a distribution as the lock has it; uv takes no other name.

    Raises:
        InvalidError: it is not locked.
    """
    found = re.search(rf"^{re.escape(name)}==\S+", LOCK.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise InvalidError(f"cannot package {name}: not in {LOCK.name}; run `make lock`")
    return found[0]


def requirements(*extras: str, excluded: Iterable[str] = ()) -> str:
    """Return our dependencies as pip reads them, each by the version and hashes of the lock.

    Raises:
        PermanentError: uv cannot resolve them; the message ends with its words.
    """
    _, pyproject, *more = declared(*extras)
    with tempfile.TemporaryDirectory() as folder:
        # What is in the file already is what uv prefers, hashes among it.
        text = Path(folder, "requirements.txt")
        shutil.copy(LOCK, text)
        _run(
            *("compile", pyproject, *more, "--output-file", str(text), "--generate-hashes"),
            *("--no-annotate", "--no-header", "--python-platform", f"x86_64-{_GLIBC}"),
            *("--constraints", str(LOCK)),
            excluded=excluded,
        )
        return text.read_text("utf-8")


def kept(folder: Path) -> Mapping[str, bytes]:
    """Read what a package has of a folder that was installed to, by its place."""
    places = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {place: path.read_bytes() for place, path in places.items() if not _left_out(place)}


def _left_out(place: str) -> bool:
    # Byte-code of a module that stays is beside it in a folder of its own.
    source = place.replace("__pycache__/", "")
    return any(fnmatchcase(source, each) for each in _LEFT_OUT) and not _KEPT.fullmatch(source)


def _run(command: str, *arguments: str, excluded: Iterable[str]) -> None:
    """Run uv, which asks a registry only for what it has not in its cache."""
    target = ("--python-version", PYTHON, "--python", sys.executable, "--excludes", "-")
    for more in (["--offline"], []):
        done = subprocess.run(  # noqa: S603 - uv, with arguments of ours
            [sys.executable, "-m", "uv", "pip", command, "--quiet", *arguments, *target, *more],
            check=False,
            capture_output=True,
            text=True,
            input="\n".join(excluded),
        )
        if done.returncode == 0:
            return
    raise PermanentError(f"uv cannot get what requirements.lock has: {done.stderr.strip()}")
