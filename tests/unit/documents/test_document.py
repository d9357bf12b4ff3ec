"""YAML is read as kubectl reads it, with a line for every mistake and a bound for everything."""

import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellhop.documents.document import Bounds, Document, dump, read_documents, spell
from bellhop.errors import InvalidError, TooLargeError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcyn01.-~é {#:\n", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(text: str | bytes) -> list[Any]:
    return [document.data for document in read_documents(text, source="f.yaml")]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="several documents"),
        pytest.param("---\n---\n# only words\n---\na: 1\n...\n", [{"a": 1}], id="empty ones"),
        pytest.param("", [], id="nothing at all"),
        pytest.param('{"a": [1, "x", null]}', [{"a": [1, "x", None]}], id="JSON"),
        pytest.param('{"a": "\\ud83d\\ude00"}', [{"a": "😀"}], id="JSON with surrogates"),
        pytest.param('{\n\t"a":\n\t1}', [{"a": 1}], id="JSON with tabs"),
        pytest.param("\ufeffa: 1", [{"a": 1}], id="byte order mark"),
        pytest.param("a: '1'\nb: \"no\"", [{"a": "1", "b": "no"}], id="quotes make texts"),
        pytest.param("a: !!str 1\nb: !!int 2", [{"a": "1", "b": 2}], id="core tags"),
        pytest.param("a: !!float 1", [{"a": 1.0}], id="a whole number tagged as float"),
        pytest.param("a: !!timestamp 2024-01-01", [{"a": "2024-01-01"}], id="timestamp tag"),
        pytest.param("a: |\n  1\n", [{"a": "1\n"}], id="a block is a text"),
        pytest.param("a: >-\n  b\n  c\n", [{"a": "b c"}], id="folded"),
        pytest.param("1: a\nyes: b\n1.5: c", [{"1": "a", "true": "b", "1.5": "c"}], id="keys"),
        pytest.param("false: a", [{"false": "a"}], id="a key that is false"),
        pytest.param("a: &x [1]\nb: *x", [{"a": [1], "b": [1]}], id="alias"),
        pytest.param(
            "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}",
            [{"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}}],
            id="merge",
        ),
        pytest.param(
            "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc:\n  <<: [*x, *y]",
            [{"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"p": 1, "q": 2}}],
            id="the first of several merged wins",
        ),
        pytest.param('"<<": 1', [{"<<": 1}], id="a quoted merge key is a key"),
    ],
)
def test_reads(text: str, data: list[Any]) -> None:
    """Each text has the data that kubectl would send."""
    assert read(text) == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3",
            "f.yaml, document 1, line 3: the key 'a' is already on line 1; keep one of them",
            id="duplicate key",
        ),
        pytest.param(
            "a: 1\n---\n\tb: 1",
            "f.yaml, document 2, line 3: a tab indents this line; YAML is indented with spaces",
            id="tab",
        ),
        pytest.param(
            "a:\n  b: 1\n \tc: 1",
            "f.yaml, document 1, line 3: a tab indents this line; YAML is indented with spaces",
            id="tab after spaces",
        ),
        pytest.param(
            "a: {{ .Values.x }}",
            "f.yaml, document 1, line 1: a key must be a text; "
            "put quotes around a text that begins with {{",
            id="template without quotes",
        ),
        pytest.param(
            "a: {{ .Values.x }} y",
            "f.yaml, document 1, line 1: this is not YAML: did not find expected key; "
            "put quotes around a text that begins with {{",
            id="template without quotes, and more",
        ),
        pytest.param(
            "a: b: c",
            "f.yaml, document 1, line 1: this is not YAML: mapping values are not allowed in this "
            "context; quote a text that holds ': ', or put the key at its parents' indentation",
            id="colon in a text",
        ),
        pytest.param(
            "a:\n  b: 1\n c: 2",
            "f.yaml, document 1, line 3: this is not YAML: did not find expected key; "
            "look at the indentation of this line and of the one before",
            id="indentation",
        ),
        pytest.param(
            "a: *x",
            "f.yaml, document 1, line 1: this is not YAML: found undefined alias",
            id="unknown alias",
        ),
        pytest.param(
            "a: &x [*x]",
            "f.yaml, document 1, line 1: this anchor contains an alias of itself",
            id="an anchor in itself",
        ),
        pytest.param(
            "a: .inf",
            "f.yaml, document 1, line 1: '.inf' cannot be said in JSON; quote it if it is a text",
            id="infinity",
        ),
        pytest.param(
            "a: !!binary aGk=",
            "f.yaml, document 1, line 1: the tag '!!binary' has no meaning in a manifest",
            id="binary",
        ),
        pytest.param(
            "a: !!python/object:os.system {}",
            "f.yaml, document 1, line 1: the tag '!!python/object:os.system' has no meaning "
            "in a manifest",
            id="a tag of Python's",
        ),
        pytest.param(
            "a: !mine [1]",
            "f.yaml, document 1, line 1: the tag '!mine' has no meaning in a manifest",
            id="a tag of one's own",
        ),
        pytest.param(
            "a: !!int x",
            "f.yaml, document 1, line 1: 'x' is not what its tag '!!int' says",
            id="a tag that lies",
        ),
        pytest.param(
            '{"a": 1, "a": "\\ud83d\\ude00"}',
            "f.yaml, document 1, line 1: this is not YAML: "
            "found invalid Unicode character escape code",
            id="JSON with a key twice",
        ),
        pytest.param("? [a]\n: 1", "f.yaml, document 1, line 1: a key must be a text", id="key"),
        pytest.param(
            "<<: 1", "f.yaml, document 1, line 1: '<<' merges mappings only", id="bad merge"
        ),
        pytest.param(
            "a: \x07",
            "f.yaml, document 1, line 1: this is not YAML: control characters are not allowed",
            id="control character",
        ),
        pytest.param(
            "a: 1\n".encode("utf-16"), "f.yaml: the file is UTF-16; save it as UTF-8", id="UTF-16"
        ),
        pytest.param("\ud800", "f.yaml: the text holds half of a character", id="half a character"),
        pytest.param(
            b"a: 1\nb: \xe9\n",
            "f.yaml, line 2: the file is not UTF-8 here; save it as UTF-8",
            id="Latin-1",
        ),
        pytest.param(
            "[" * 200_000, "f.yaml, document 1: the document nests deeper than 100 levels", id="["
        ),
        pytest.param(
            '{"a":' * 500 + "1" + "}" * 500,
            "f.yaml, document 1: the document nests deeper than 100 levels",
            id="deep JSON",
        ),
        pytest.param(
            "- " * 200_000, "f.yaml, document 1: the document nests deeper than 100 levels", id="-"
        ),
    ],
)
def test_refuses(text: str | bytes, message: str) -> None:
    """Each mistake is one sentence that says where."""
    with pytest.raises(InvalidError) as raised:
        read(text)

    assert str(raised.value) == message


@pytest.mark.clocked
def test_escapes_of_json_take_little_memory() -> None:
    """A text of escapes is read in a few times its size; JSON that is no YAML is counted first."""
    text = '{"b": "\\ud83d\\ude00", "a": "' + "\\n" * 200_000 + '"}'

    tracemalloc.start()
    try:
        (data,) = read(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(data["a"]) == 200_000
    assert peak < 20 * len(text)


@pytest.mark.clocked
def test_refuses_aliases_that_multiply() -> None:
    """A few lines that stand for a billion nodes are refused before they cost anything."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *levels]
    began = time.process_time()

    with pytest.raises(InvalidError, match="expand without measure"):
        read("\n".join(lines))

    assert time.process_time() - began < 5


def test_refuses_more_values_than_are_read() -> None:
    """The bound counts every document of a text, and says where it was passed."""
    bounds = Bounds(nodes=10, documents=2)
    assert read_documents("[1, 2]\n---\n[3, 4]", source="f", bounds=bounds)

    with pytest.raises(TooLargeError) as raised:
        read_documents("[1, 2]\n---\n[1, 2,\n3, 4, 5, 6, 7]\n---\n8\n", source="f", bounds=bounds)
    assert (
        str(raised.value) == "f, document 2, line 4: this has more than the 10 values that are read"
    )
    with pytest.raises(TooLargeError, match="document 3, line 5: this has more than the 2 docu"):
        read_documents("1\n---\n2\n---\n3\n", source="f", bounds=bounds)


def test_refuses_a_text_that_is_too_large() -> None:
    """The limit counts bytes, not characters."""
    with pytest.raises(TooLargeError) as raised:
        read_documents("a: éé", source="f.yaml", largest=6)

    assert str(raised.value) == ("f.yaml: the file has 7 bytes and at most 6 are read; split it")
    assert read_documents("a: éé", source="f.yaml", largest=7)


def test_counts_documents_and_lines() -> None:
    """Positions are those an editor shows, empty documents included."""
    documents = read_documents("# words\na: 1\n---\n---\n\nb:\n  - c: 1\n    d: 2\n", source="f")

    assert [(document.index, document.line) for document in documents] == [(1, 2), (3, 6)]
    assert documents[1].line_of(("b", 0, "d")) == 8
    assert documents[1].line_of(("b", 0, "missing", "deeper")) == 7
    assert documents[1].line_of(("b", 5)) == 6
    assert documents[1].line_of(("nowhere",)) == 6


def test_finds_the_line_of_a_merged_key() -> None:
    """A key that came in by a merge has the line where it was written."""
    (document,) = read_documents("a: &x\n  p: 1\nb:\n  <<: *x\n", source="f")

    assert document.line_of(("b", "p")) == 2


def test_unpacks_lists() -> None:
    """What `kubectl get -o yaml` puts into a List are documents, and their paths say so."""
    text = "apiVersion: v1\nkind: List\nitems:\n- a: 1\n- a: 2\n  b:\n  - c\n"

    first, second = read_documents(text, source="f")

    assert (first.data, second.data) == ({"a": 1}, {"a": 2, "b": ["c"]})
    assert second.where(("b", 0)) == "f, document 1, line 7, items[1].b[0]"
    assert len(read_documents(text, source="f", expand_lists=False)) == 1


def test_unpacks_lists_in_lists() -> None:
    """A List may hold Lists."""
    inner = {"apiVersion": "v1", "kind": "List", "items": [{"a": 1}]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, {"b": 1}]}

    documents = read_documents(json.dumps(outer), source="f")

    assert [document.data for document in documents] == [{"a": 1}, {"b": 1}]
    assert spell(documents[0].prefix) == "items[0].items[0]"


def test_says_where_without_a_file() -> None:
    """What comes from the store has no lines to name."""
    assert Document({}, "store").where(("spec", "x.y/z", 0)) == "store, spec['x.y/z'][0]"


@pytest.mark.clocked
def test_reads_two_hundred_documents_quickly() -> None:
    """A file of two hundred ConfigMaps takes seconds on a slow machine, and not half a minute."""
    body = "    some text\n" * 20 + "".join(f"  key{n}: value{n}\n" for n in range(10))
    one = f"---\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  text: |\n{body}"
    began = time.process_time()

    assert len(read(one * 200)) == 200
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param({"b": 1, "a": [{"x": 1}]}, "b: 1\na:\n- x: 1\n", id="order and lists"),
        pytest.param({"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="block"),
        pytest.param({"a": "x\ny"}, "a: |-\n  x\n  y\n", id="block without an end of line"),
        pytest.param({"y": "n"}, '"y": "n"\n', id="letters that are booleans elsewhere"),
        pytest.param({"a": "0o17"}, 'a: "0o17"\n', id="a text that is a number elsewhere"),
        pytest.param({"a": ".inf"}, 'a: ".inf"\n', id="a text that is infinite elsewhere"),
        pytest.param({"a": "word " * 40}, f"a: '{'word ' * 40}'\n", id="long lines stay"),
        pytest.param({"a": "é"}, "a: é\n", id="letters stay"),
    ],
)
def test_writes(data: Any, text: str) -> None:
    """What is shown is what people would have written."""
    assert dump(data) == text


@settings(deadline=None)
@given(JSON)
def test_reads_what_it_writes(data: Any) -> None:
    """Every JSON value survives being written and read."""
    assert read(dump({"data": data})) == [{"data": data}]


@settings(deadline=None)
@given(JSON)
def test_reads_json(data: Any) -> None:
    """JSON is YAML, whatever it holds."""
    assert read(json.dumps({"data": data})) == [{"data": data}]
