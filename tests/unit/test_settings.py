"""Settings: what is read from the environment, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import asdict

from bellhop.errors import InvalidError
from bellhop.settings import Settings, read


def test_reads_nothing_but_its_own_variables() -> None:
    """An environment that says nothing leaves every default."""
    assert read({"PATH": "/bin", "BELLHOP_STATE": "/x", "workers": "3"}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("WORKERS", "3", 3, id="a count"),
        pytest.param("WORKERS", "3.0", 3, id="a count written as a fraction"),
        pytest.param("SWEEP_INTERVAL", "0.5", timedelta(milliseconds=500), id="a duration"),
        pytest.param("DELETION_SHARE", "0", 0.0, id="a share of nothing"),
        pytest.param("DELETION_FLOOR", "0", 0, id="no floor"),
        pytest.param("HOLD_AGREEMENT", "0", 0, id="never by agreement"),
        pytest.param("SCRIPT_SECONDS", "1e1", 10.0, id="with an exponent"),
        pytest.param("ADOPT", "always", "always", id="a word"),
        pytest.param("EGRESS_ALLOW", "public, a.example", "public, a.example", id="a list"),
    ],
)
def test_reads_a_value_as_its_type(name: str, text: str, expected: object) -> None:
    """Durations are in seconds; the rest stays as it is by default."""
    settings = read({f"BELLHOP_{name}": text})

    assert getattr(settings, name.lower()) == expected
    others = asdict(Settings()) | {name.lower(): expected}
    assert asdict(settings) == others


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("WORKERS", "many", "is not a number above zero", id="a word"),
        pytest.param("WORKERS", "", "is not a number above zero", id="nothing"),
        pytest.param("WORKERS", "0", "is not a number above zero", id="no worker"),
        pytest.param("WORKERS", "1.5", "is not a number above zero", id="half a worker"),
        pytest.param("WORKERS", "inf", "is not a number above zero", id="without end"),
        pytest.param("ATTEMPTS", "-1", "is not a number above zero", id="less than none"),
        pytest.param("SCRIPT_SECONDS", "nan", "is not a number above zero", id="no number"),
        pytest.param("SWEEP_INTERVAL", "1e300", "is not a number above zero", id="too long"),
        pytest.param("DELETION_SHARE", "-0.1", "is not a number from zero up", id="a debt"),
    ],
)
def test_refuses_a_value_that_means_nothing(name: str, text: str, expected: str) -> None:
    """The sentence names the variable and what it holds."""
    with pytest.raises(InvalidError) as caught:
        read({f"BELLHOP_{name}": text})

    assert str(caught.value) == f"cannot read the setting BELLHOP_{name}: '{text}' {expected}"


def test_refuses_a_list_that_names_no_host() -> None:
    """Before anything is called."""
    with pytest.raises(InvalidError, match="BELLHOP_EGRESS_ALLOW: 'https://a' is neither a host"):
        read({"BELLHOP_EGRESS_ALLOW": "https://a"})


def test_refuses_a_word_that_is_none_of_its() -> None:
    """The sentence names those that there are."""
    with pytest.raises(InvalidError, match="BELLHOP_ADOPT: 'never' is not one of asked, always"):
        read({"BELLHOP_ADOPT": "never"})
