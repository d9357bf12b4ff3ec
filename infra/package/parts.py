"""What of others' distributions goes into a package, and why the rest does not.

A distribution travels whole, with its licences, less what is left out here; so a later version
brings what it needs without a look at it. boto3 travels as well, though Lambda has one: AWS
changes that one when it likes, while this one is what the adapters' errors were mapped for, and
the models of the few services that are called weigh less than a hundredth of all of them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email.parser import Parser
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.requirements import Requirement

from bellhop.errors import InvalidError
from infra.package.wheels import PYTHON

DISTRIBUTIONS: Mapping[str, str] = {
    "bcrypt": "bcrypt",
    "boto3": "boto3",
    "botocore": "botocore",
    "cloudevents": "cloudevents",
    "cronsim": "cronsim",
    "cryptography": "cryptography",
    "flask": "flask",
    "functions_framework": "functions-framework",
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.cloud.firestore_v1": "google-cloud-firestore",
    "google.cloud.secretmanager_v1": "google-cloud-secret-manager",
    "google.protobuf": "protobuf",
    "google.pubsub_v1": "google-cloud-pubsub",
    "grpc": "grpcio",
    "jinja2": "jinja2",
    "jsonpatch": "jsonpatch",
    "jsonpointer": "jsonpointer",
    "lupa": "lupa",
    "msgspec": "msgspec",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic-core",
    "re2": "google-re2",
    "requests": "requests",
    "semantic_version": "semantic-version",
    "urllib3": "urllib3",
    "werkzeug": "werkzeug",
    "yaml": "pyyaml",
}
"""The distributions whose modules are imported, by the names of these."""

LAYERS: Mapping[str, tuple[str, ...]] = {"cel": ("cel-expr-python",)}
"""Distributions that whoever wants them has beside a package, as a layer: they weigh too much."""

OPTIONAL: Mapping[str, str] = {"cel_expr_python": "cel"}
"""Modules that are imported where they are wanted and there, and the layer that brings them."""

SERVICES = ("dynamodb", "eks", "s3", "secretsmanager", "sqs", "sts")
"""What functions call of AWS."""

NOT_WANTED: Mapping[str, str] = {
    "pycparser": "cffi needs it to read C, which happened when cryptography was built",
}
"""Distributions that others say they need, and why nothing here does."""

_LEFT_OUT: Mapping[str, str] = {
    "*.pyi": "is for type checkers",
    "*/py.typed": "is for type checkers",
    "*.pyx": "was compiled",
    "*.pxd": "was compiled",
    "*.pxi": "was compiled",
    "*.c": "was compiled",
    "*.h": "was compiled",
    "*.libs/*.txt": "is for its authors",
    "*/tests/*": "is for its authors",
    "*.data/*": "is a program, or its manual",
    "*.dist-info/*": "is for installers; licences stay",
    "bazel-project/*": "is for its authors",
    "cel_expr_python/ext/*": "is another of CEL's extensions; that of strings stays",
    "boto3/data/*": "describes resources, of which none is made",
    "boto3/examples/*": "is a manual",
    "botocore/data/*": "describes services; those that are called stay",
    "jsonpatch_cli.py": "is a command",
    "lupa/*": "is another Lua; 5.1 stays",
    "semantic_version/django_fields.py": "is for models of Django",
    "pydantic/mypy.py": "is for type checkers",
    "pydantic/v1/*": "is what pydantic 1 was",
    "pydantic/deprecated/copy_internals.py": "is for models of pydantic 1",
    "urllib3/contrib/emscripten/*": "runs in browsers",
    "cffi/*": "reads C, which happened when cryptography was built; _cffi_backend stays",
    "dateutil/zoneinfo/*.tar.gz": "is all time zones; nobody asks for one",
}
"""Which files stay behind, and why."""

_KEPT = (
    re.compile(
        r"[^/]+\.dist-info/(licenses/.+|LICEN[CS]E[^/]*|NOTICE[^/]*|COPYING[^/]*|AUTHORS.*)"
    ),
    re.compile(r"botocore/data/[^/]+\.json"),
    re.compile(
        rf"botocore/data/({'|'.join(SERVICES)})/.+/(service-2|endpoint-rule-set-1)\..*json.*"
    ),
    re.compile(r"cel_expr_python/ext/ext_strings\..*so"),
    re.compile(r"lupa/(__init__|version|lua51)\b.*"),
)


def distributions(names: Iterable[str]) -> frozenset[str]:
    """Return the distributions that names are imported of.

    Raises:
        InvalidError: it is not said whose one of them is.
    """
    wanted = {name for name in names if name.partition(".")[0] not in OPTIONAL}
    found = {name: whose(name) for name in wanted}
    if unknown := ", ".join(sorted({_top(name) for name, owner in found.items() if not owner})):
        raise InvalidError(f"cannot package {unknown}: say whose it is in DISTRIBUTIONS")
    return frozenset(found.values())


def whose(name: str) -> str:
    """Say whose a module is, by the nearest package that is known; nothing if none is."""
    while name and name not in DISTRIBUTIONS:
        name = name.rpartition(".")[0]
    return DISTRIBUTIONS.get(name, "")


def _top(name: str) -> str:
    """Return what a name is told of by: others are below Google's."""
    return name if name.startswith("google.") else name.partition(".")[0]


def kept(wheel: Path) -> Mapping[str, bytes]:
    """Read what a package has of a wheel, by its place."""
    with zipfile.ZipFile(wheel) as opened:
        return {
            name: opened.read(name)
            for name in opened.namelist()
            if not name.endswith("/") and not _left_out(name)
        }


def needs(wheel: Path) -> Iterator[str]:
    """Yield the distributions that a wheel says it needs, where functions run."""
    with zipfile.ZipFile(wheel) as opened:
        [name] = [each for each in opened.namelist() if _METADATA.fullmatch(each)]
        about = Parser().parsestr(opened.read(name).decode(), headersonly=True)
    for text in about.get_all("Requires-Dist", []):
        asked = Requirement(text)
        if asked.marker is None or asked.marker.evaluate(THERE):
            name = re.sub(r"[-_.]+", "-", asked.name).lower()
            if name not in NOT_WANTED:
                yield name


def closed(names: Iterable[str], wheels: Mapping[str, Path]) -> frozenset[str]:
    """Return distributions with all that they need, as far as their wheels are there to say."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs(wheels[name]) if name in wheels else []
    return frozenset(found)


_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
THERE = {
    "extra": "",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": f"{PYTHON}.0",
    "python_version": PYTHON,
    "sys_platform": "linux",
}


def _left_out(name: str) -> bool:
    return any(fnmatchcase(name, each) for each in _LEFT_OUT) and not any(
        each.fullmatch(name) for each in _KEPT
    )
