"""The answer to any input is data or an error, never a crash."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bellhop.api.fields import fields_of
from bellhop.api.kinds import KINDS, InvalidDocuments, of, read_documents
from bellhop.errors import InvalidError
from tests.unit.api.schemas import mistakes_of

WORDS = sorted({name for model, _ in KINDS.values() for name in fields_of(model)})
SPEC = sorted(
    {
        name
        for model, _ in KINDS.values()
        for part in (model.model_fields.get("spec"),)
        if part is not None and hasattr(part.annotation, "model_fields")
        for name in fields_of(part.annotation)  # type: ignore[type-var,arg-type]
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(
        ["ConfigMap", "env=fv", "{{ .x }}", "Continuous", "aGk=", "", "a in (b", "5%"]
    )
)
KEYS = st.sampled_from([*WORDS, *SPEC, "name", "namespace", "key", "matchLabels", "odd"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
MANIFESTS = st.builds(
    lambda kind, fields, spec: {
        "apiVersion": KINDS[kind][1][0],
        "metadata": {"name": "x"},
        **fields,
        "kind": kind,
        **({"spec": spec} if kind not in {"ConfigMap", "Secret"} else {}),
    },
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(SPEC), VALUES, max_size=6),
)


@settings(deadline=None)
@given(st.text() | st.binary() | st.text("{}[]:,-&*!|>'\"%@`#?\n \tab1~<="))
@example('{"a": "\\ud800"}')
@example("\ud800")
@example("a: !!int [1]\n")
@example("!!seq {}")
@example("? |\n x\n: - a\n")
@example("--- !!set {a}\n")
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    """What is read can be said in UTF-8, and what is refused says where."""
    where, documents = "", []
    try:
        documents = read_documents(text, source="f")
    except InvalidError as error:
        where = error.where

    assert not where or where.startswith("f")
    assert all(str(document.data).encode() + b"." for document in documents)


def without_nulls(value: Any) -> Any:
    """Leave out fields without a value, which no schema accepts where there is no such field."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(MANIFESTS)
def test_any_manifest_is_read_or_refused(manifest: dict[str, Any]) -> None:
    """Each mistake has its place and a sentence of its own; no schema refuses what is read."""
    sentences: list[str] = []
    kind = None
    try:
        kind = of(manifest, source="f")
    except InvalidDocuments as error:
        sentences = [str(problem) for problem in error.problems]

    assert (kind is None) == bool(sentences)
    assert kind is None or of(kind.manifest()) == kind
    assert kind is None or mistakes_of(without_nulls(manifest)) == []
    assert all(sentence.startswith("f") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)
    assert not any("Input should" in sentence for sentence in sentences)
