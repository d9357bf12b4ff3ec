"""Where Helm is found, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.helm.program import cache, find
from bellhop.errors import InvalidError, MissingError


def program(folder: Path, says: str) -> Path:
    """Write a program that says what it is asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "helm"
    made.write_text(f"#!/bin/sh\necho '{says}'\n")
    made.chmod(0o755)
    return made


def test_what_is_named_counts_before_path_and_cache(tmp_path: Path) -> None:
    named, on_path = program(tmp_path / "a", "v4.2.0+g1"), program(tmp_path / "b", "v4.1.0+g2")
    environ = {"HOME": str(tmp_path), "PATH": str(on_path.parent)}
    cached = program(cache(environ).parent, "never asked")

    assert find({**environ, "BELLHOP_HELM": str(named)}) == named
    assert find(environ) == on_path
    assert find({**environ, "PATH": str(tmp_path)}) == cached


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/bellhop/helm/4.3.1/helm"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/c"}, "/c/bellhop/helm/4.3.1/helm"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "c"}, "/home/ada/.cache/bellhop/helm/4.3.1/helm"),
    ],
)
def test_the_cache_lies_where_caches_lie(environ: dict[str, str], place: str) -> None:
    assert cache(environ) == Path(place)


def test_nowhere_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        find({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert str(caught.value) == (
        "cannot deploy Helm charts: there is no program 'helm'; install Helm 4.1 or newer, or have"
        " `bellhop charts get-helm` download it; BELLHOP_HELM may name its program"
    )


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ("v3.17.3+g1", "which is Helm 3.17;"),
        ("v4.0.9+g1", "which is Helm 4.0;"),
        ("something else", "which is no Helm;"),
    ],
)
def test_another_program_is_refused(tmp_path: Path, says: str, sentence: str) -> None:
    made = program(tmp_path / "bin", says)
    for environ in ({"BELLHOP_HELM": str(made)}, {"PATH": str(made.parent)}):
        with pytest.raises(InvalidError, match=sentence):
            find({"HOME": str(tmp_path), **environ})


def test_a_program_that_is_replaced_is_asked_again(tmp_path: Path) -> None:
    made = program(tmp_path / "bin", "v3.1.0")
    environ = {"HOME": str(tmp_path), "BELLHOP_HELM": str(made)}
    with pytest.raises(InvalidError):
        find(environ)
    made.unlink()
    program(tmp_path / "bin", "v4.1.0+later")

    assert find(environ) == made


def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no Helm"):
        find({"BELLHOP_HELM": str(tmp_path / "none")})
