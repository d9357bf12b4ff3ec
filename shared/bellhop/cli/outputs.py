"""What Terraform has put out of an installation: `terraform output -json`, or one of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bellhop.cli.contexts import AWS, GCP
from bellhop.errors import InvalidError
from bellhop.state.messages import INBOXES

OUTPUT = "bellhop"
"""The output that describes an installation."""

OWN = ("profile", "role_arn", "endpoint")
"""What a context has beside it: how its user calls."""

LARGEST = 1024 * 1024


class _Shape(Struct, frozen=True):
    """What the output of a cloud's module has: texts, one of `by_inbox` each, and named texts."""

    texts: tuple[str, ...]
    may_be_empty: tuple[str, ...]
    by_inbox: str
    named: tuple[str, ...]


_SHAPES = {
    AWS: _Shape(
        ("region", "table", "bucket", "secrets", "key_secret", "ingest_key_secret"),
        ("ingest_url", "kms_key", "version"),
        "queues",
        ("log_groups", "roles"),
    ),
    GCP: _Shape(
        ("project", "region", "database", "bucket", "secrets", "key_secret", "ingest_key_secret"),
        ("ingest_url", "kms_key", "logs", "secret_region", "version"),
        "topics",
        ("services", "accounts"),
    ),
}


def read_outputs(text: str, source: str, kind: str) -> dict[str, Any]:
    """Read where an installation of a cloud is; what is not known is left out.

    Raises:
        InvalidError: it is no such output, or of an older module.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            f"cannot read '{source}': it is not JSON; write it with `terraform output -json`"
        ) from error
    if isinstance(data, dict) and isinstance(data.get(OUTPUT), dict):
        data = data[OUTPUT].get("value")
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise InvalidError(
            f"cannot read '{source}': it has no output '{OUTPUT}' of kind '{kind}'; write it with"
            " `terraform output -json` where the module is applied, and put the module's output"
            " out under that name"
        )
    return checked(data, source, kind)


def checked(data: Mapping[str, Any], source: str, kind: str) -> dict[str, Any]:
    """Return what a context keeps of an output.

    Raises:
        InvalidError: something is missing, or is not of its type.
    """
    shape = _SHAPES[kind]
    texts = (*shape.texts, *shape.may_be_empty)
    wrong = [name for name in shape.texts if not (isinstance(data.get(name), str) and data[name])]
    wrong += [name for name in shape.may_be_empty if not isinstance(data.get(name, ""), str)]
    named = {name: data.get(name) or {} for name in (shape.by_inbox, *shape.named)}
    wrong += [name for name, found in named.items() if not _named(found)]
    if shape.by_inbox not in wrong and INBOXES.keys() - named[shape.by_inbox].keys():
        wrong.append(shape.by_inbox)
    if wrong:
        raise InvalidError(
            f"cannot read '{source}': {', '.join(wrong)} of the output '{OUTPUT}' cannot be used;"
            " apply the Terraform module of this release"
        )
    return {**{name: data[name] for name in texts if data.get(name)}, **named}


def _named(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(text, str) and text for each in found.items() for text in each
    )
