"""What is not built yet is refused with its own sentence, and is a field that exists."""

from typing import Any

import pytest

from bellhop.api.fields import choices_of, field_at
from bellhop.api.kinds import KINDS, InvalidDocuments, parse
from bellhop.api.problems import refusals
from bellhop.api.unsupported import NOT_YET
from bellhop.documents.document import Document

ENTRIES = [(kind, place) for kind, places in NOT_YET.items() for place in places]


def manifest(kind: str, place: str, value: Any) -> dict[str, Any]:
    """Nest a value at a place such as `spec.policyRefs[].kind`."""
    for step in reversed(place.split(".")):
        value = {step.removesuffix("[]"): [value] if step.endswith("[]") else value}
    return {"apiVersion": KINDS[kind][1][0], "kind": kind, "metadata": {"name": "x"}, **value}


@pytest.mark.parametrize(("kind", "spelled"), ENTRIES)
def test_refuses_what_is_asked_for(kind: str, spelled: str) -> None:
    """A value other than the default is refused at its place, whatever else is wrong."""
    place, _, value = spelled.partition("=")

    with pytest.raises(InvalidDocuments) as raised:
        parse(Document(manifest(kind, place, value or ["asked for"]), "f"))

    where = f"f, {place.replace('[]', '[0]')}"
    assert f"{where}: {NOT_YET[kind][spelled]}" in map(str, raised.value.problems)


@pytest.mark.parametrize(("kind", "spelled"), ENTRIES)
def test_names_a_field_that_exists(kind: str, spelled: str) -> None:
    """A refusal whose field was renamed or built would rot unseen."""
    place, _, value = spelled.partition("=")

    field = field_at(KINDS[kind][0], tuple(place.replace("[]", "").split(".")))

    assert field is not None
    assert not value or value in choices_of(field.annotation)


@pytest.mark.parametrize(("kind", "spelled"), ENTRIES)
def test_takes_the_default(kind: str, spelled: str) -> None:
    """A default that is written asks for nothing."""
    place, _, value = spelled.partition("=")
    model = KINDS[kind][0]
    field = field_at(model, tuple(place.replace("[]", "").split(".")))
    assert field is not None

    for nothing in (None, [], "", False, field.get_default(call_default_factory=True)):
        written = manifest(kind, place, nothing if not value else field.default)
        assert not list(refusals(kind, model, written))


@pytest.mark.parametrize(
    "sentence", sorted({said for places in NOT_YET.values() for said in places.values()})
)
def test_says_what_to_do(sentence: str) -> None:
    """A refusal ends with what to do instead."""
    assert "; " in sentence or ", which" in sentence
    assert sentence[0].islower() or sentence.startswith(("Helm", "Flux", "CEL", "CloudEvents"))
    assert not sentence.endswith(".")
