"""What Terraform has put out of an installation on AWS: `terraform output -json`, or one of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bellhop.cli.contexts import AWS
from bellhop.errors import InvalidError
from bellhop.messages import INBOXES

OUTPUT = "bellhop"
"""The output that describes an installation."""

LARGEST = 1024 * 1024
_WORDS = ("region", "table", "bucket", "secrets", "key_secret")
_MAY_BE_EMPTY = ("ingest_url", "kms_key", "version")


def read_outputs(text: str, source: str) -> dict[str, Any]:
    """Read where an installation on AWS is; what is not known is left out.

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
    if not isinstance(data, dict) or data.get("kind") != AWS:
        raise InvalidError(
            f"cannot read '{source}': it has no output '{OUTPUT}' of kind '{AWS}'; write it with"
            " `terraform output -json` where the module is applied, and put the module's output"
            " out under that name"
        )
    return checked(data, source)


def checked(data: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return what a context keeps of an output.

    Raises:
        InvalidError: something is missing, or is not of its type.
    """
    wrong = [name for name in _WORDS if not (isinstance(data.get(name), str) and data[name])]
    wrong += [name for name in _MAY_BE_EMPTY if not isinstance(data.get(name, ""), str)]
    queues = data.get("queues") or {}
    named = {name: data.get(name) or {} for name in ("log_groups", "roles")}
    if not _named(queues) or INBOXES.keys() - queues.keys():
        wrong.append("queues")
    wrong += [name for name, found in named.items() if not _named(found)]
    if wrong:
        raise InvalidError(
            f"cannot read '{source}': {', '.join(wrong)} of the output '{OUTPUT}' cannot be used;"
            " apply the Terraform module of this release"
        )
    known = {name: data[name] for name in (*_WORDS, *_MAY_BE_EMPTY) if data.get(name)}
    return {**known, **named, "queues": dict(queues)}


def _named(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(text, str) and text for each in found.items() for text in each
    )
