"""Where programs are found, and what is said where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.programs.program import HELM, KUBECTL, Program, cache
from bellhop.errors import InvalidError, MissingError

OLD_KUBECTL = (
    'Client Version: version.Info{{Major:"1", Minor:"{0}", GitVersion:"v1.{0}.3", GoVersion:"go1"}}'
)
GOOD = {HELM: ("v4.1.0+g1", "v5.0.0"), KUBECTL: ("Client Version: v1.32.4", OLD_KUBECTL.format(27))}
each_program = pytest.mark.parametrize(
    "program", [pytest.param(HELM, id="helm"), pytest.param(KUBECTL, id="kubectl")]
)


def written(folder: Path, program: Program, says: str) -> Path:
    """Write a program that says what it is asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / program.name
    made.write_text(f"#!/bin/sh\necho '{says}'\n")
    made.chmod(0o755)
    return made


@each_program
def test_what_is_named_counts_before_path_and_cache(tmp_path: Path, program: Program) -> None:
    named, on_path = (
        written(tmp_path / folder, program, says)
        for folder, says in zip("ab", GOOD[program], strict=True)
    )
    environ = {"HOME": str(tmp_path), "PATH": str(on_path.parent)}
    cached = written(cache(environ), program, "never asked")

    assert program.find({**environ, program.variable: str(named)}) == named
    assert program.find(environ) == on_path
    assert program.find({**environ, "PATH": str(tmp_path)}) == cached


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/bellhop/helm/4.3.1"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/c"}, "/c/bellhop/helm/4.3.1"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "c"}, "/home/ada/.cache/bellhop/helm/4.3.1"),
    ],
)
def test_the_cache_lies_where_caches_lie(environ: dict[str, str], place: str) -> None:
    assert cache(environ) == Path(place)


HELM_IS_MISSING = (
    "cannot deploy Helm charts: there is no program 'helm'; install Helm 4.1 or newer, or have"
    " `bellhop charts get-helm` download it; BELLHOP_HELM may name its program"
)
KUBECTL_IS_MISSING = (
    "cannot build kustomizations: there is no program 'kubectl'; install kubectl 1.27 or newer, or"
    " have `bellhop charts get-helm` download it; BELLHOP_KUBECTL may name its program"
)


@pytest.mark.parametrize(
    ("program", "sentence"), [(HELM, HELM_IS_MISSING), (KUBECTL, KUBECTL_IS_MISSING)]
)
def test_nowhere_says_how_to_get_it(tmp_path: Path, program: Program, sentence: str) -> None:
    with pytest.raises(MissingError) as caught:
        program.find({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("program", "says", "sentence"),
    [
        (HELM, "v3.17.3+g1", "which is Helm 3.17;"),
        (HELM, "v4.0.9+g1", "which is Helm 4.0;"),
        (HELM, "something else", "which is not Helm;"),
        (KUBECTL, "Client Version: v1.26.15", "which is kubectl 1.26;"),
        (KUBECTL, OLD_KUBECTL.format(21), "which is kubectl 1.21;"),
        (KUBECTL, "v4.3.1+g1", "which is not kubectl;"),
    ],
)
def test_another_program_is_refused(
    tmp_path: Path, program: Program, says: str, sentence: str
) -> None:
    made = written(tmp_path / "bin", program, says)
    for environ in ({program.variable: str(made)}, {"PATH": str(made.parent)}):
        with pytest.raises(InvalidError, match=sentence):
            program.find({"HOME": str(tmp_path), **environ})


def test_the_cache_counts_where_path_has_another_program(tmp_path: Path) -> None:
    old = written(tmp_path / "bin", HELM, "v3.17.3+g1")
    environ = {"HOME": str(tmp_path), "PATH": str(old.parent)}
    cached = written(cache(environ), HELM, "never asked")

    assert HELM.find(environ) == cached


def test_a_program_that_is_replaced_is_asked_again(tmp_path: Path) -> None:
    made = written(tmp_path / "bin", HELM, "v3.1.0")
    environ = {"HOME": str(tmp_path), "BELLHOP_HELM": str(made)}
    with pytest.raises(InvalidError):
        HELM.find(environ)
    made.unlink()
    written(tmp_path / "bin", HELM, "v4.1.0+later")

    assert HELM.find(environ) == made


def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="not Helm"):
        HELM.find({"BELLHOP_HELM": str(tmp_path / "none")})
