"""What several versions of kubectl write when they fail, as one sentence."""

from __future__ import annotations

import pytest

from bellhop.adapters.kustomize.kustomizations import failure
from bellhop.adapters.programs.box import Ended
from bellhop.errors import InvalidError, TemporaryError, TooLargeError


@pytest.mark.parametrize(
    ("errors", "sentence"),
    [
        (
            'E1 8 run.go:72] "command failed" err="loading \'/x/a\': \\"b\\"\\nat line 2"\n',
            "loading 'a': \"b\" at line 2",
        ),
        ('E1 8 run.go:72] "command failed" err="a \\x00"\n', "a \\x00"),
        ('E1 8 run.go:72] "command failed" err=<\n\tfirst\n\t  second\n >\n', "first second"),
        ("# Warning: 'a' is old.\nerror: one: error: two\nthree\n", "one: error: two three"),
        ("something else\n", "something else"),
        ("", "kustomize says nothing"),
        ("error: " + "x" * 700, "x" * 600 + "…"),
    ],
)
def test_its_words_are_one_bounded_line(errors: str, sentence: str) -> None:
    made = failure(Ended(1, b"", errors), "build it", "/x")
    assert isinstance(made, InvalidError)
    assert str(made) == f"cannot build it: {sentence}"


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Ended(1, b"", "unshare: unshare failed: No space left on device"), TemporaryError),
        (Ended(-9, b"", ""), TemporaryError),
        (Ended(2, b"", "fatal error: out of memory\n\ngoroutine 1"), TooLargeError),
        (Ended(2, b"", "runtime: cannot allocate memory\n"), TooLargeError),
        (Ended(1, b"", "error: the file 'out of memory.yaml' is not there"), InvalidError),
    ],
)
def test_some_are_no_mistake_of_a_kustomization(ended: Ended, kind: type[Exception]) -> None:
    made = failure(ended, "build it", "/x")
    assert type(made) is kind
    assert "\n" not in str(made)
