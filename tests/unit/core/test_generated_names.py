"""Names of profiles: short, distinct, and the same each time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellhop.core.identity import profile_kind, profile_name, profile_shown

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
_part = st.text("abc-./:", min_size=0, max_size=80)
_trigger = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True)


def test_names_stay_as_they_are() -> None:
    """A name that changed would orphan what was applied under it."""
    name = profile_name("service-policy", "fleet/east", "/v1/Service/default/web")

    assert name == "service-policy-a931bede9cc8"


@given(_trigger, _part, _part)
def test_a_name_can_be_a_label(trigger: str, cluster: str, key: str) -> None:
    """At most 63 characters of those that labels take, whatever the trigger is called."""
    name = profile_name(trigger, cluster, key)

    assert len(name) <= 63
    assert _LABEL.match(name)


@given(st.sets(st.tuples(_trigger, _part, _part), min_size=2, max_size=8))
def test_no_two_profiles_have_one_name(parts: set[tuple[str, str, str]]) -> None:
    """Nor can a part that moves from one field to the next make two equal."""
    assert len({profile_name(*each) for each in parts}) == len(parts)


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("web", "ClusterProfile", "ClusterProfile/web"),
        ("team/web", "Profile", "Profile/team/web"),
        ("rolerequest/web", "Profile", "Profile/rolerequest/web"),
        ("RoleRequest:web", "RoleRequest", "RoleRequest/web"),
    ],
)
def test_a_name_says_of_which_kind_it_is(name: str, kind: str, shown: str) -> None:
    """And is shown as users wrote it."""
    assert (profile_kind(name), profile_shown(name)) == (kind, shown)


def test_kinds_of_one_name_have_two_profiles() -> None:
    """The key names the kind."""
    names = {profile_name("t", "c", f"/v1/{kind}/ns/web") for kind in ("Service", "Pod")}

    assert len(names) == 2
