"""Texts of strangers, each of which a quadratic search would read for hours.

An input has megabytes where it may have some: the time-out of a test ends what is not linear.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from bellhop.adapters.kube.refusal import read_shallow
from bellhop.adapters.kustomize.kustomizations import failure
from bellhop.adapters.kustomize.sources import collect
from bellhop.adapters.programs.box import Ended
from bellhop.adapters.sources.charts.versions import choose, newest_first
from bellhop.cli.options import read_duration
from bellhop.cli.sveltos.hub import Reference
from bellhop.clusters.kubeconfig import sanitise
from bellhop.documents.document import Bounds, read_documents
from bellhop.errors import InvalidError

_MANY = 2_000_000


def _kubeconfig(pem: str) -> dict[str, object]:
    data = base64.b64encode(pem.encode()).decode()
    return {
        "clusters": [
            {
                "name": "a",
                "cluster": {"server": "https://10.0.0.1", "certificate-authority-data": data},
            }
        ],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }


def _kustomization(entry: str) -> dict[str, bytes]:
    return {"kustomization.yaml": f"resources: [{entry}]".encode()}


_REFUSED: dict[str, Callable[[], object]] = {
    "a range of blanks": lambda: choose(["1.0.0"], f"1{' ' * _MANY}x", of="chart 'demo'"),
    "a PEM block of blanks": lambda: sanitise(
        _kubeconfig(f"-----BEGIN CERTIFICATE-----{' ' * _MANY}")
    ),
    "a file of a kustomization": lambda: collect(_kustomization("." * _MANY), ""),
    "a duration of digits": lambda: read_duration("1" * _MANY),
    "JSON whose text never ends": lambda: read_documents(
        '{\t"' + '\\"' * (_MANY // 8),
        source="f",
        bounds=Bounds(nodes=1000, documents=10),
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_a_hostile_text_is_refused_in_time_that_grows_with_its_length(name: str) -> None:
    """A text of megabytes is refused; the time-out of the test ends a quadratic search."""
    with pytest.raises(InvalidError):
        _REFUSED[name]()


def test_a_name_of_nothing_but_beginnings_of_actions_is_no_template_that_fits_everything() -> None:
    """The parts of a name around its actions are found in one pass."""
    name = Reference("Secret", "", "{" * _MANY)
    assert not name.is_open
    assert not name.fits("any", "name", ["any"])


def test_an_answer_whose_text_never_ends_is_no_json() -> None:
    """Each quote in a text without an end is looked at once."""
    with pytest.raises(ValueError, match="ends early"):
        read_shallow(b'{"a": "' + b'\\"' * _MANY)


def test_an_index_version_of_megabytes_is_no_version() -> None:
    """A version that is too long to be chosen is left out of the list."""
    assert newest_first(["1.0.0", f"1.0.0-{'a' * _MANY}"]) == ["1.0.0"]


def test_an_error_that_repeats_the_beginnings_of_kubectls_own_is_read_in_one_pass() -> None:
    """The first beginning counts; what repeats it is part of its message."""
    ended = Ended(1, b"", '"command failed" err="' * (_MANY // 20) + "x\n")
    assert "cannot build" in str(failure(ended, "build", "/root"))
