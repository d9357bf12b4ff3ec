"""The names that an object in a request may have."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import LARGEST_VERSION, check_key, check_uid, check_version
from bellhop.errors import InvalidError


def key(**changes: Any) -> ObjectKey:
    parts = {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        **changes,
    }
    gvk = GVK(parts["group"], parts["version"], parts["kind"])
    return ObjectKey(gvk, parts["namespace"], parts["name"])


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"group": ""}, id="the core group"),
        pytest.param({"group": "rbac.authorization.k8s.io"}, id="a long group"),
        pytest.param({"version": "v1beta1"}, id="a beta"),
        pytest.param({"kind": "My-Kind"}, id="a kind with a hyphen, as definitions may have it"),
        pytest.param({"namespace": ""}, id="no namespace"),
        pytest.param({"namespace": "n" * 63}, id="the longest namespace"),
        pytest.param({"name": "system:node:Some Node"}, id="the name of a role"),
        pytest.param({"name": "n" * 253}, id="the longest name"),
        pytest.param({"name": "...", "namespace": ""}, id="dots that are no path"),
    ],
)
def test_takes_what_api_servers_have(changes: dict[str, Any]) -> None:
    """What Kubernetes allows is allowed."""
    check_key(key(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"group": ".."},
        {"group": "Apps"},
        {"group": "a/b"},
        {"group": "a." * 127 + "a"},
        {"group": None},
        {"version": ""},
        {"version": "1"},
        {"version": "v1\n"},
        {"version": "v" * 64},
        {"kind": ""},
        {"kind": "../Secret"},
        {"kind": "K" * 64},
        {"kind": "Kind\n"},
        {"namespace": "../.."},
        {"namespace": "."},
        {"namespace": "Default"},
        {"namespace": "n" * 64},
        {"namespace": "a\x1b[31m"},
        {"namespace": "a\n"},
        {"namespace": 5},
        {"name": ""},
        {"name": "."},
        {"name": ".."},
        {"name": "a/b"},
        {"name": "%2e%2e"},
        {"name": "a\x00b"},
        {"name": "a\x1b[31m"},
        {"name": "\u202egnp"},
        {"name": "\ud800"},
        {"name": "n" * 254},
        {"name": ["web"]},
    ],
    ids=repr,
)
def test_refuses_what_no_api_server_has(changes: dict[str, Any]) -> None:
    """What could be another path, another line or another key is no name; the part is said."""
    [part] = changes
    text = isinstance(changes[part], str)

    with pytest.raises(
        InvalidError, match=f"not a valid {part}" if text else "must be a string"
    ) as raised:
        check_key(key(**changes))

    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("7", 7),
        (7, 7),
        ("", 0),
        (None, 0),
        (str(LARGEST_VERSION), LARGEST_VERSION),
        ("007", 7),
    ],
)
def test_reads_a_version(version: Any, expected: int) -> None:
    """A text of digits, as API servers write it, or a number."""
    assert check_version(version) == expected


@pytest.mark.parametrize(
    "version",
    ["x", "-1", "1.5", "\u00b2", "\u0665", str(2**63), "9" * 5000, -1, 2**63, 1.5, True, [], {}],
    ids=lambda version: repr(version)[:12],
)
def test_refuses_a_version_beyond_all(version: Any) -> None:
    """Nothing may be newer than everything that an API server will ever write."""
    with pytest.raises(InvalidError, match="resourceVersion"):
        check_version(version)


@pytest.mark.parametrize("uid", ["", None, "8b0f3c1e-6a8c-4a63-8f0e-0d1c2b3a4f5e", "u" * 128])
def test_takes_a_uid(uid: Any) -> None:
    """Any printable one, or none."""
    assert check_uid(uid) == (uid or "")


@pytest.mark.parametrize("uid", ["u" * 129, "a\n", "\u00e4", 7, ["u"]], ids=repr)
def test_refuses_a_uid_that_is_none(uid: Any) -> None:
    """What is no short ASCII text names no life of an object."""
    with pytest.raises(InvalidError):
        check_uid(uid)
