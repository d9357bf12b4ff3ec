"""The part of an unauthenticated client's text that may reach a screen."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellhop.core.printable import escaped_json, steers, visible, visible_lines
from bellhop.documents.document import dump, read_documents


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("web-1", "web-1", id="plain"),
        pytest.param("größe 東京 ✓ 😀", "größe 東京 ✓ 😀", id="other scripts"),
        pytest.param("\x1b[2J\x1b]0;t\x07", "\\x1b[2J\\x1b]0;t\\x07", id="escape sequences"),
        pytest.param("\x9b2J\x7f\x08", "\\x9b2J\\x7f\\x08", id="C1, DEL and backspace"),
        pytest.param("a\u202eb\u2066c", "a\\u202eb\\u2066c", id="turned round"),
        pytest.param("a\u200bb\ufeff\U000e0041", "a\\u200bb\\ufeff\\U000e0041", id="unseen"),
        pytest.param("a\r\nb\tc", "a\\r\\nb\\tc", id="line ends"),
        pytest.param("a\ud800", "a\\ud800", id="half a character"),
    ],
)
def test_spells_out_what_steers_a_terminal(text: str, shown: str) -> None:
    """What can be seen stays, what cannot is spelled."""
    assert visible(text) == shown
    assert visible(shown) == shown


MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@settings(deadline=None)
@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    """No control, mark of direction or separator of lines survives, wherever it stands."""
    left = {unicodedata.category(each) for each in visible(text)}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(visible(text)) & set(MARKS)
    assert set(visible_lines(text)) <= set(visible(text)) | {"\n", "\t"} | set(text)


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.text()))
def test_json_and_yaml_keep_what_they_escape(data: dict[str, str]) -> None:
    """Both are read back as they were, and hold nothing that steers."""
    document = escaped_json(json.dumps(data, ensure_ascii=False))
    assert json.loads(document) == data
    assert not steers(document)
    written = dump(data)
    found = read_documents(written, source="f", expand_lists=False)
    assert found[0].data == data
    assert not steers(written)
