"""Whatever urllib3 or an API server reports becomes one of our errors."""

from __future__ import annotations

import inspect
import json
from datetime import timedelta
from typing import Any

import pytest
import urllib3.exceptions
from msgspec.structs import replace

from bellhop.adapters.kube.errors import TRANSPORT, refusal_error, transport_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.errors import (
    BellhopError,
    ConflictError,
    DeniedError,
    InvalidError,
    MissingError,
    StaleError,
    TemporaryError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)

APPLY = Call("prod/eu-1", "apply ConfigMap 'web/a'", "web")
SECRET = Call("prod/eu-1", "apply Secret 'web/a'", "web", private=True)
# Roots that nothing raises themselves; each of their subclasses is asked for.
ROOTS = {urllib3.exceptions.HTTPError}


def _classes(module: Any) -> list[type[Exception]]:
    return [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if value.__module__ == module.__name__
        and issubclass(value, Exception)
        and not issubclass(value, Warning)
        and value not in ROOTS
    ]


@pytest.mark.parametrize("foreign", _classes(urllib3.exceptions), ids=lambda c: c.__name__)
def test_every_class_of_urllib3_is_mapped(foreign: type[Exception]) -> None:
    """A class that a new release adds must be given a meaning here."""
    assert any(issubclass(foreign, known) for known in TRANSPORT)

    error = transport_error(foreign.__new__(foreign), APPLY)

    assert type(error) in {UnreachableError, InvalidError}
    assert "the answer" in str(error) or ": " in str(error)
    assert foreign.__name__ not in str(error)


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(ConnectionResetError("x"), id="reset"),
        pytest.param(BrokenPipeError("x"), id="broken pipe"),
        pytest.param(RuntimeError("x"), id="anything else"),
    ],
)
def test_what_breaks_beneath_is_temporary(foreign: Exception) -> None:
    """The environment is guilty until proven otherwise."""
    assert type(transport_error(foreign, APPLY)) is UnreachableError


def _status(code: int, reason: str = "", message: str = "", **details: Any) -> Refusal:
    status = {"kind": "Status", "reason": reason, "message": message, "details": details}
    return Refusal.read(code, json.dumps(status).encode(), {})


TYPED = "failed to create typed patch object: .spec.bogus: field not declared in schema"
TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
OWNED = {"causes": [{"reason": "FieldManagerConflict", "field": ".data.a"}]}

STATUSES: list[Any] = [
    pytest.param(_status(401, "Unauthorized"), UnauthorizedError, "not accepted", id="401"),
    pytest.param(_status(403, "Forbidden", "no right"), DeniedError, ": no right", id="403"),
    pytest.param(Refusal(403), DeniedError, "forbidden", id="403 without words"),
    pytest.param(
        _status(403, "Forbidden", "x", **TERMINATING),
        StaleError,
        "'web' is being deleted",
        id="dying",
    ),
    pytest.param(
        _status(404, "NotFound", "x", name="web", kind="namespaces"),
        MissingError,
        "namespace 'web' is not there",
        id="404 of the namespace",
    ),
    pytest.param(_status(404, "NotFound"), MissingError, "does not serve", id="404 of the kind"),
    pytest.param(
        _status(404, "NotFound", "no sa", name="sa"), MissingError, ": no sa", id="404 of another"
    ),
    pytest.param(Refusal(404), MissingError, "does not serve", id="404 page"),
    pytest.param(_status(405, message="m"), InvalidError, ": m", id="405"),
    pytest.param(Refusal(408), UnreachableError, "408", id="408"),
    pytest.param(_status(409, "Conflict", "mod"), StaleError, ": mod", id="409 lost race"),
    pytest.param(_status(409, "AlreadyExists"), StaleError, "meanwhile", id="409 exists"),
    pytest.param(_status(409, "Conflict", "f", **OWNED), ConflictError, ": f", id="409 owner"),
    pytest.param(_status(410, "Expired"), StaleError, "too old", id="410"),
    pytest.param(Refusal(413), TooLargeError, "larger", id="413"),
    pytest.param(_status(415, message="m"), InvalidError, ": m", id="415"),
    pytest.param(_status(422, "Invalid", "bad\n port"), InvalidError, ": bad port", id="422"),
    pytest.param(_status(400, "BadRequest", "b"), InvalidError, ": b", id="400"),
    pytest.param(Refusal(429), ThrottledError, "slow down", id="429"),
    pytest.param(_status(500, "", TYPED), InvalidError, "spec.bogus", id="500 about the object"),
    pytest.param(_status(500, "InternalError", "etcd"), UnreachableError, "500: etcd", id="500"),
    pytest.param(Refusal(502), UnreachableError, "502", id="502 of a proxy"),
    pytest.param(Refusal(503), UnreachableError, "503", id="503"),
    pytest.param(Refusal(504), UnreachableError, "504", id="504"),
    pytest.param(Refusal(302), UnreachableError, "302", id="redirect"),
]


@pytest.mark.parametrize(("refusal", "ours", "words"), STATUSES)
def test_every_status_has_its_error(refusal: Refusal, ours: type[BellhopError], words: str) -> None:
    """One class for each status, naming the cluster and the object."""
    error = refusal_error(refusal, APPLY)

    assert type(error) is ours
    assert str(error).startswith("cannot apply ConfigMap 'web/a' on cluster 'prod/eu-1': ")
    assert words in str(error)


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize(
    ("header", "delay"),
    [
        pytest.param("7", timedelta(seconds=7), id="seconds"),
        pytest.param("999999", timedelta(hours=1), id="a week is cut"),
        pytest.param("Sat, 21 Nov 2026 02:00:00 GMT", None, id="a date"),
        pytest.param("-1", None, id="negative"),
        pytest.param("²", None, id="a digit that is no number"),
    ],
)
def test_waits_as_long_as_the_server_asks(code: int, header: str, delay: timedelta | None) -> None:
    """Retry-After becomes the delay, within reason."""
    error = refusal_error(Refusal.read(code, b"", {"Retry-After": header}), APPLY)

    assert isinstance(error, TemporaryError)
    assert error.delay == delay


def test_reads_the_delay_from_the_status_too() -> None:
    """API servers put it into the details."""
    error = refusal_error(_status(429, retryAfterSeconds=3), APPLY)

    assert isinstance(error, ThrottledError)
    assert error.delay == timedelta(seconds=3)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>Bad gateway</html>", id="a page"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b'{"kind": "Pod", "message": "x"}', id="another kind"),
        pytest.param(b'{"kind": "Status", "details": 3}', id="odd details"),
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(b"[" * 100_000, id="a tower"),
        pytest.param(None, id="nothing"),
    ],
)
def test_takes_any_body(body: bytes | None) -> None:
    """What is not a Status says nothing beyond its code, and quotes nothing."""
    error = refusal_error(Refusal.read(500, body, {}), APPLY)

    assert str(error) == "cannot apply ConfigMap 'web/a' on cluster 'prod/eu-1': it answers 500"


def test_cuts_long_words() -> None:
    """A webhook's essay ends after 512 characters."""
    error = refusal_error(_status(422, message="x" * 9999), APPLY)

    assert str(error).endswith("x" * 512 + " …")
    assert "x" * 513 not in str(error)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        pytest.param(_status(400, "BadRequest", "illegal base64 hunter2"), "BadRequest", id="400"),
        pytest.param(
            _status(422, "Invalid", "hunter2", causes=[{"field": "data[key]"}]),
            "Invalid, data",
            id="422 with its field",
        ),
        pytest.param(_status(500, "", TYPED + " hunter2"), "it is refused", id="500"),
        pytest.param(
            _status(403, "Forbidden", 'admission webhook "x" denied: hunter2'),
            "Forbidden",
            id="hook",
        ),
        pytest.param(
            _status(
                403,
                "Forbidden",
                'secrets "a" is forbidden: User "bob" cannot patch resource "secrets" in API group '
                '"" in the namespace "web": hunter2',
            ),
            'User "bob" cannot patch resource "secrets" in API group "" in the namespace "web"',
            id="missing right",
        ),
    ],
)
def test_of_secrets_only_fields_and_rights_are_said(refusal: Refusal, said: str) -> None:
    """The API server's words on a Secret may quote it."""
    error = refusal_error(refusal, SECRET)

    assert str(error).endswith(said)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            'User "system:serviceaccount:team:ann" cannot patch resource "configmaps"',
            "cannot patch resource \"configmaps\"; the rights of service account 'team/ann' count:"
            " grant it this one",
            id="its own right",
        ),
        pytest.param(
            'User "bellhop" cannot impersonate resource "serviceaccounts" in API group ""',
            "Bellhop's credentials there may not act for service account 'team/ann', whose rights"
            " count; grant them the verb impersonate on serviceaccounts, or register the cluster"
            " with others",
            id="ours to act for it",
        ),
        pytest.param(
            'User "bellhop" cannot impersonate-on:serviceaccount:patch resource "configmaps" in'
            ' API group "" in the namespace "default"',
            "Bellhop's credentials there may not act for service account 'team/ann', whose rights"
            " count; grant them the verb impersonate on serviceaccounts, or register the cluster"
            " with others",
            id="ours to act for it, since 1.36",
        ),
        pytest.param(
            'user "ann" is attempting to grant RBAC permissions not currently held: {Verbs:["*"]}',
            "nobody may grant what he may not do himself: give service account 'team/ann' these"
            " rights, or the verbs escalate and bind on roles and clusterroles",
            id="what it may not do itself",
        ),
    ],
)
def test_says_whose_right_is_missing(words: str, said: str) -> None:
    """The account's own is the tenant's to ask for; that of acting for it is the operator's."""
    refusal = replace(_status(403, "Forbidden", words), account="team/ann")

    error = refusal_error(refusal, APPLY)

    assert isinstance(error, DeniedError)
    assert str(error).endswith(said)


@pytest.mark.parametrize(
    ("account", "call", "whose"),
    [
        pytest.param("", APPLY, "Bellhop's credentials there", id="ours"),
        pytest.param("team/ann", APPLY, "service account 'team/ann'", id="a tenant's"),
        pytest.param("", SECRET, "Bellhop's credentials there", id="ours, of a Secret"),
    ],
)
def test_says_who_may_change_and_not_create(account: str, call: Call, whose: str) -> None:
    """An API server ends in the midst of its sentence, and names no right."""
    refusal = replace(_status(403, "Forbidden", 'things "a" is forbidden: '), account=account)
    error = refusal_error(refusal, call)

    assert isinstance(error, DeniedError)
    assert str(error) == (
        f"{call}: it is not there, and {whose} may not create it; grant the verb create, too"
    )


def test_says_what_bellhop_needs_to_give_rights() -> None:
    """Though the roles come from a Secret, no word of the server is shown."""
    words = "attempting to grant RBAC permissions not currently held: {secret}"
    error = refusal_error(_status(403, "Forbidden", words), replace(APPLY, private=True))

    assert "give Bellhop's credentials there these rights, or the verbs escalate" in str(error)
    assert "{secret}" not in str(error)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(_status(404, "NotFound", name="a", kind="configmaps"), True, id="plural"),
        pytest.param(_status(404, "NotFound", name="a", kind="ConfigMap"), True, id="kind"),
        pytest.param(_status(404, "NotFound", name="b", kind="configmaps"), False, id="name"),
        pytest.param(_status(404, "NotFound", name="a", kind="namespaces"), False, id="namespace"),
        pytest.param(_status(404, "NotFound"), False, id="no details"),
        pytest.param(Refusal(404), False, id="a page"),
        pytest.param(_status(410, "NotFound", name="a", kind="configmaps"), False, id="code"),
        pytest.param(_status(404, "Gone", name="a", kind="configmaps"), False, id="reason"),
    ],
)
def test_knows_a_not_found_of_this_very_object(refusal: Refusal, expected: bool) -> None:  # noqa: FBT001
    """Anything less than the object's own name and kind is no proof of absence."""
    assert refusal.names("configmaps", "ConfigMap", "a") is expected
