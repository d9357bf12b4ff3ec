"""Builds kustomizations by kubectl, of files that were checked before.

folder in memory ─► sources: what the kustomization reads, refused where it is not in the folder
                 ─► those files alone, in a private folder ─► kubectl kustomize, offline ─► YAML
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bellhop.adapters.kustomize.failures import failure
from bellhop.adapters.kustomize.sources import collect, normalise, restated
from bellhop.adapters.programs.box import Ended, Limits, OvertimeError, run
from bellhop.adapters.programs.home import private_home
from bellhop.adapters.programs.program import KUBECTL
from bellhop.documents.tarball import Folder
from bellhop.errors import InvalidError, TooLargeError

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
        """Return all objects of the kustomization at a path of a folder, as YAML."""
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
