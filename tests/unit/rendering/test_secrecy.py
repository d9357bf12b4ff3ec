"""What no name may be made of, and what names may share with a value all the same."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellhop.errors import InvalidError, TemporaryError
from bellhop.rendering.secrecy import (
    Withheld,
    has_values,
    kept,
    names,
    replace_values,
    withhold_unforeseen,
)

VALUE = "Correct-Horse battery"


def secret(name: str = "db", value: str = VALUE, **metadata: Any) -> dict[str, Any]:
    data = {"key": base64.b64encode(value.encode()).decode()}
    metadata = {"name": name, "namespace": "shop", **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def refused(withheld: Withheld, name: str) -> bool:
    try:
        withheld.refuse_names([("metadata.name", name)], "here")
    except InvalidError as error:
        text = str(error)
    else:
        return False
    assert text.startswith("here: 'metadata.name' is made of a value of a Secret")
    assert name not in text
    return True


@pytest.mark.parametrize(
    ("name", "made"),
    [
        pytest.param("correct-horse-battery", True, id="whole, as a name is written"),
        pytest.param("x-correc", True, id="six letters"),
        pytest.param("x-corre", False, id="five letters may be chance"),
        pytest.param("x.Horse.Battery", True, id="another cut and case"),
        pytest.param(base64.b64encode(VALUE.encode()).decode().lower(), True, id="base64"),
        pytest.param(VALUE.encode().hex()[8:20], True, id="hexadecimal"),
        pytest.param("db-in-shop", False, id="of the metadata"),
        pytest.param("key", False, id="an entry's name"),
    ],
)
def test_knows_values_in_other_spellings(name: str, made: bool) -> None:  # noqa: FBT001
    """Case, marks between words and encodings hide no value; what is not secret may be said."""
    assert refused(Withheld.of({"Resource": secret()}), name) == made
    assert refused(Withheld.of({"Resources": [{"kind": "Pod"}, secret()]}), name) == made


@pytest.mark.parametrize(
    ("value", "name", "made"),
    [
        pytest.param("root", "db-root", True, id="a short value as a whole"),
        pytest.param("abc", "db-abc", False, id="three letters are no value"),
        pytest.param("", "db", False, id="nothing"),
        pytest.param("\x00\xff", "db", False, id="bytes"),
        pytest.param("x" * 5000 + "correcthorse", "correcthorse", True, id="a long value, by 12"),
        pytest.param("x" * 5000 + "correcthorse", "correcthors", False, id="a long value, by 11"),
    ],
)
def test_asks_for_a_run_that_is_no_chance(value: str, name: str, *, made: bool) -> None:
    """A short value counts as a whole; of a long one a longer part is asked for."""
    assert refused(Withheld.of({"Resource": secret(value=value)}), name) == made


def test_values_in_the_copy_of_kubectl_count() -> None:
    """The annotation in which kubectl keeps the whole Secret holds values, not metadata."""
    copy = json.dumps(secret(value="Correct-Horse"))
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": copy, "team": "fronts"}
    manifest = secret(value="changed-since", annotations=annotations)
    withheld = Withheld.of({"Resource": manifest})

    assert refused(withheld, "correct-horse")
    assert not refused(withheld, "fronts")
    broken = {"kubectl.kubernetes.io/last-applied-configuration": "{Correct-Horse"}
    assert refused(Withheld.of({"Resource": secret(annotations=broken)}), "correct-horse")
    text = {**secret(), "data": None, "stringData": {"a": "Other-Horse"}}
    assert refused(Withheld.of({"Resource": text}), "other-horse")


def test_a_value_known_from_other_texts_may_be_in_a_name() -> None:
    """A template's own words and the cluster's name are no secret, though a value has them."""
    withheld = Withheld.of({"Resource": secret(value="postgres://orders-primary.east")})

    assert refused(withheld, "orders-primary")
    assert not refused(withheld.knowing("name: orders-primary"), "orders-primary")
    parts = withheld.knowing("name: orders-primary").parts()
    assert not refused(kept(parts), "orders-primary")
    assert refused(kept(parts), "postgres")
    assert not refused(kept(parts, '{"name": "postgres"}'), "postgres")


def test_other_values_have_their_length_and_nothing_else() -> None:
    """The second rendering sees Secrets like the first one's, with nothing of them."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "x", "a": "b"}
    root = {"Resource": secret(annotations=annotations), "Resources": [secret(), {"kind": "Pod"}]}
    changed = replace_values(root)

    assert root["Resource"] == secret(annotations=annotations)
    assert base64.b64decode(changed["Resource"]["data"]["key"]) == b"q" * len(VALUE)
    assert changed["Resource"]["metadata"]["annotations"] == {"a": "b"}
    assert changed["Resources"][1] == {"kind": "Pod"}


@settings(deadline=None)
@given(st.text(alphabet="abcdefghij-. ", max_size=40), st.text(alphabet="abcdefghij-", max_size=30))
def test_parts_are_checked_as_values_are(value: str, known: str) -> None:
    """What is kept for deploy time refuses what the values themselves refuse, and no more."""
    withheld = Withheld.of({"Resource": secret("s", value)}).knowing(known)
    later = kept(withheld.parts())

    for name in (value[:10], value[-10:], known, f"a{known[:9]}"):
        assert refused(withheld, name) == refused(later, name) or not refused(withheld, name)


@pytest.mark.clocked
def test_many_secrets_and_objects_are_checked_in_one_pass() -> None:
    """Thousands of each cost seconds, not the product of the two."""
    root = {"Resources": [secret(f"s-{n}", f"value-number-{n}-of-many") for n in range(3000)]}
    objects = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{n}"}} for n in range(5000)
    ]
    begun = time.process_time()
    withheld = Withheld.of(root)
    withheld.refuse_names(names(objects), "here")
    assert withheld.parts()

    assert time.process_time() - begun < 20


def test_an_unforeseen_exception_is_located_and_not_quoted() -> None:
    """Its place is named; without a Secret in reach it stays what it is."""
    with (
        pytest.raises(TemporaryError, match=r"^cannot x: internal error in \w+, line") as raised,
        withhold_unforeseen("cannot x", secret=True),
    ):
        raise ValueError(VALUE)
    assert VALUE not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    with pytest.raises(ValueError, match=VALUE), withhold_unforeseen("cannot x", secret=False):
        raise ValueError(VALUE)


def test_only_secrets_are_in_reach() -> None:
    """A root without Secrets withholds nothing and costs nothing."""
    root = {"Resource": {"kind": "ConfigMap", "data": {"a": VALUE}}, "Resources": []}

    assert not has_values(root)
    assert Withheld.of(root) == Withheld()
    assert not refused(Withheld.of(root), "correct-horse")
