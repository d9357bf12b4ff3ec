"""Plain scalars mean what kubectl's YAML library takes them for."""

import pytest

from bellhop.documents.yaml_nodes import NotJsonError, resolve_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[
            pytest.param(word, True, id=f"true: {word}")
            for word in ["y", "Y", "yes", "Yes", "YES", "on", "On"]
        ],
        *[
            pytest.param(word, False, id=f"false: {word}")
            for word in ["n", "N", "no", "NO", "off", "OFF"]
        ],
        pytest.param("true", True, id="true"),
        pytest.param("FALSE", False, id="false"),
        pytest.param("tRUE", "tRUE", id="odd capitals are a text"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("~", None, id="tilde is null"),
        pytest.param("Null", None, id="null"),
        pytest.param("0", 0, id="zero"),
        pytest.param("-12", -12, id="negative"),
        pytest.param("+12", 12, id="plus sign"),
        pytest.param("1_000", 1000, id="underscores are left out"),
        pytest.param("0777", 511, id="leading zero is octal"),
        pytest.param("0o777", 511, id="0o is octal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("-0b101", -5, id="binary"),
        pytest.param("08", 8.0, id="a decimal with a leading zero is a float, as Go has it"),
        pytest.param("18446744073709551616", 2**64, id="beyond 64 bits"),
        pytest.param("9" * 5000, "9" * 5000, id="beyond what Python reads it is a text"),
        pytest.param("1.5", 1.5, id="float"),
        pytest.param(".5", 0.5, id="float without a zero"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("1e999", "1e999", id="out of range is a text"),
        pytest.param("1.2.3", "1.2.3", id="version is a text"),
        pytest.param("12:30:45", "12:30:45", id="no sexagesimal"),
        pytest.param("2024-01-31", "2024-01-31", id="date stays a text"),
        pytest.param("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z", id="timestamp stays a text"),
        pytest.param("0xZZ", "0xZZ", id="not hexadecimal"),
        pytest.param("1 2", "1 2", id="two numbers are a text"),
        pytest.param("-", "-", id="dash"),
        pytest.param("١٢", "١٢", id="digits of other scripts are a text"),
        pytest.param("v1", "v1", id="word"),
        pytest.param("0x" + "f" * 3999, "0x" + "f" * 3999, id="no integer that JSON cannot write"),
    ],
)
def test_reads_a_plain_scalar(text: str, value: object) -> None:
    """The value and its type are the ones Kubernetes sees."""
    found = resolve_plain(text)

    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_refuses_what_json_cannot_say(text: str) -> None:
    """Infinities and not-a-number have no JSON."""
    with pytest.raises(NotJsonError):
        resolve_plain(text)
