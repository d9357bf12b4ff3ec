"""What kustomize says when it fails, as an error of ours."""

from __future__ import annotations

import json
import re

from bellhop.adapters.programs.box import Ended
from bellhop.errors import BellhopError, InvalidError, TemporaryError, TooLargeError

_LONGEST = 600
_LOGGED = '"command failed" err='
_ERROR = re.compile(r"^error: ", re.MULTILINE)
_MEMORY = re.compile(r"^(?:fatal error|runtime): .*memory", re.MULTILINE)


def failure(ended: Ended, doing: str, root: str) -> BellhopError:
    """Return kustomize's words as an error; `root` is the folder that nobody else knows."""
    if ended.code < 0:
        return TemporaryError(f"cannot {doing}: signal {-ended.code} has ended it")
    if ended.errors.startswith("unshare: "):
        return TemporaryError(f"cannot {doing}: the kernel gives it no namespace of its own now")
    if _MEMORY.search(ended.errors):
        return TooLargeError(f"cannot {doing}: it takes more memory than it may")
    return InvalidError(f"cannot {doing}: {_sentence(ended.errors.replace(f'{root}/', ''))}")


def _sentence(errors: str) -> str:
    """Return what kustomize says, on one line and not without end."""
    found = _message(errors)
    if found.startswith('"'):
        found = _unquoted(found)
    said = " ".join(found.split())
    return (said[:_LONGEST] + "…" if len(said) > _LONGEST else said) or "kustomize says nothing"


def _message(errors: str) -> str:
    """Return what kubectl writes after `error: `, or its log does in quotes or on several lines."""
    _, logged, message = errors.partition(_LOGGED)
    if logged and message.startswith("<\n"):
        return message[2:].rpartition("\n >")[0]
    if logged:
        return message.partition("\n")[0]
    found = _ERROR.search(errors)
    return errors[found.end() :] if found else errors


def _unquoted(text: str) -> str:
    """Return what Go has quoted; where its escapes are not JSON's, as it stands."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip('"')
