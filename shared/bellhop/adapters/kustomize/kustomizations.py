"""Builds kustomizations by kubectl, of files that were checked before.

folder in memory ─► sources: what the kustomization reads, refused where it is not in the folder
                 ─► only those files, in a private folder ─► kubectl kustomize, offline ─► YAML
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from bellhop.adapters.kustomize.sources import collect, normalise, restated
from bellhop.adapters.programs.box import Ended, Limits, OvertimeError, private_home, run
from bellhop.adapters.programs.program import KUBECTL
from bellhop.documents.tarball import Folder
from bellhop.errors import BellhopError, InvalidError, TemporaryError, TooLargeError

LIMITS = Limits(seconds=60)

_SOURCE = "source"


class KubectlKustomizations:
    """Kustomizations by the program `kubectl`, or the one that is found when it is asked first."""

    def __init__(self, program: Path | None = None, limits: Limits = LIMITS) -> None:
        self._named = program
        self._limits = limits

    def build(
        self,
        folder: Folder,
        path: str = "",
        *,
        components: Sequence[str] = (),
        namespace: str = "",
    ) -> str:
        doing = f"build the kustomization '{path or '.'}'"
        try:
            place = normalise(path)
            files = collect(folder, place, components, namespace)
        except InvalidError as error:
            raise restated(error, f"cannot {doing}: ") from error
        program = self._named or KUBECTL.find()
        with private_home({f"{_SOURCE}/{path}": files[path] for path in files}) as home:
            ended = self.run(program, home / _SOURCE / place, doing, home)
        if ended.code:
            raise failure(ended, doing, str(home / _SOURCE))
        return ended.output.decode(errors="replace")

    def run(self, program: Path, place: Path, doing: str, home: Path | None = None) -> Ended:
        """Run kustomize in a folder, without a network and without git."""
        arguments = ["kustomize", "--load-restrictor=LoadRestrictionsRootOnly", str(place)]
        try:
            return run(
                program,
                arguments,
                environment={"PATH": ""},
                limits=self._limits,
                offline=True,
                home=home,
            )
        except TooLargeError as error:
            raise TooLargeError(f"cannot {doing}: {error}") from error
        except OvertimeError as error:
            raise OvertimeError(f"cannot {doing}: {error}") from error


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
        found = _unquote(found)
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


def _unquote(text: str) -> str:
    """Return what Go has quoted; where its escapes are not JSON's, as it stands."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip('"')
