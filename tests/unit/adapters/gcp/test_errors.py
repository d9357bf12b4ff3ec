"""No error of Google's or its libraries' leaves the adapters unmapped, nor quotes what was sent."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import grpc
import pytest
import requests
from google.api_core import exceptions as sdk
from google.auth import exceptions as auth
from google.rpc.error_details_pb2 import RetryInfo

from bellhop.adapters.gcp.errors import CLASSES, FAILURES, STATUSES, code_of, translate
from bellhop.core.attempts import PASSING
from bellhop.errors import BellhopError, PermanentError, TemporaryError, ThrottledError

untyped: Any = sdk
DOING = "write the item 'a' 'b'"
PERMANENT = {"BadRequest", "InvalidArgument", "OutOfRange"}


def raised_by(module: ModuleType) -> Iterator[type[Exception]]:
    """Yield the errors that a module defines, of those that are said to be all there are."""
    for _, each in inspect.getmembers(module, inspect.isclass):
        if issubclass(each, FAILURES) and each.__module__ == module.__name__:
            yield each


SDK_CLASSES = [*raised_by(sdk), *raised_by(auth), *raised_by(requests.exceptions)]
# What a mistake in our own code would raise, at once and before anything is sent.
OURS = {"AsyncRestUnsupportedParameterError"}


def made(kind: type[Exception]) -> Exception:
    """Make an exception as its library would, with a word that is nobody's business."""
    if kind is sdk.RetryError:
        retried: Exception = untyped.RetryError("secret", ValueError("secret"))
        return retried
    if issubclass(kind, requests.exceptions.JSONDecodeError):
        return kind("secret", "", 0)
    return kind("secret")


def test_the_modules_list_the_errors() -> None:
    """The enumeration finds what it should."""
    names = {each.__name__ for each in SDK_CLASSES}

    assert {"Aborted", "ResourceExhausted", "RefreshError", "ReadTimeout"} <= names
    assert len(names) > 70


@pytest.mark.parametrize("module", [sdk, auth, requests.exceptions], ids=lambda each: each.__name__)
def test_no_error_is_of_another_family(module: ModuleType) -> None:
    """Whatever a library calls an error is among those that are caught."""
    for name, each in inspect.getmembers(module, inspect.isclass):
        foreign = each.__module__ != module.__name__ or issubclass(each, Warning)
        if issubclass(each, Exception) and not foreign:
            assert issubclass(each, FAILURES) or name in OURS, name


@pytest.mark.parametrize("kind", SDK_CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_becomes_one_sentence(kind: type[Exception]) -> None:
    """It says what was being done, repeats no word of Google's, and has a temperament."""
    error = translate(made(kind), DOING)

    assert str(error).startswith("cannot write the item 'a' 'b': ")
    assert "secret" not in str(error)
    assert error.context["reason"]
    assert isinstance(error, PermanentError) == (kind.__name__ in PERMANENT)


@pytest.mark.parametrize("status", grpc.StatusCode, ids=lambda status: status.name)
def test_every_status_of_grpc_is_mapped(status: grpc.StatusCode) -> None:
    """By its name, with a class of its own but for the one that means success."""
    found = untyped.from_grpc_status(status, "secret")

    assert status is grpc.StatusCode.OK or code_of(found) == status.name
    assert isinstance(translate(found, DOING), (PermanentError, TemporaryError))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CANCELLED", "Unreachable"),
        ("UNKNOWN", "Unreachable"),
        ("INVALID_ARGUMENT", "Invalid"),
        ("DEADLINE_EXCEEDED", "Unreachable"),
        ("NOT_FOUND", "Temporary"),
        ("ALREADY_EXISTS", "Stale"),
        ("PERMISSION_DENIED", "CloudDenied"),
        ("RESOURCE_EXHAUSTED", "Throttled"),
        ("FAILED_PRECONDITION", "Temporary"),
        ("ABORTED", "Busy"),
        ("OUT_OF_RANGE", "Invalid"),
        ("UNIMPLEMENTED", "Temporary"),
        ("INTERNAL", "Unreachable"),
        ("UNAVAILABLE", "Unreachable"),
        ("DATA_LOSS", "Unreachable"),
        ("UNAUTHENTICATED", "CloudDenied"),
    ],
)
def test_the_status_decides(name: str, expected: str) -> None:
    """What the installation lacks may pass; only what the request is refused for may not."""
    error = translate(untyped.from_grpc_status(grpc.StatusCode[name], ""), DOING)

    assert error.code == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((307, "Temporary"), (400, "Invalid"), (401, "CloudDenied"), (403, "CloudDenied")),
        *((404, "Temporary"), (408, "Unreachable"), (409, "Stale"), (412, "Stale")),
        *((413, "TooLarge"), (418, "Temporary"), (429, "Throttled"), (500, "Unreachable")),
        *((502, "Unreachable"), (503, "Unreachable"), (504, "Unreachable"), (599, "Unreachable")),
    ],
)
def test_the_status_of_http_decides(status: int, expected: str) -> None:
    """Also one that has no class of its own."""
    found: Any = untyped.from_http_status(status, "secret")

    assert translate(found, DOING).code == expected


@pytest.mark.parametrize(("retryable", "expected"), [(True, "Unreachable"), (False, "CloudDenied")])
def test_tokens_that_may_come_in_a_moment_are_waited_for(expected: str, *, retryable: bool) -> None:
    """The machine's own source of them may be away; a key that was deleted stays so."""
    found = auth.RefreshError("secret", retryable=retryable)  # type: ignore[no-untyped-call]

    assert translate(found, DOING).code == expected


@pytest.mark.parametrize(("seconds", "delay"), [(None, 2), (0, 1), (7, 8), (999_999, 300)], ids=str)
def test_a_throttled_request_gets_its_delay(seconds: int | None, delay: int) -> None:
    """By Google's own word where it has one, within reason."""
    details = []
    if seconds is not None:
        details.append(RetryInfo(retry_delay={"seconds": seconds}))
    error = translate(untyped.ResourceExhausted("secret", details=details), DOING)

    assert isinstance(error, ThrottledError)
    assert error.delay == timedelta(seconds=delay)


@pytest.mark.parametrize("kind", SDK_CLASSES, ids=lambda kind: kind.__name__)
def test_tries_again_what_the_network_did(kind: type[Exception]) -> None:
    """A class that speaks of the line is not taken for a wrong setting."""
    words = ("Connect", "Timeout", "Chunked", "ContentDecoding", "SSLError", "Transport", "Stalled")
    if any(word in kind.__name__ for word in words):
        assert isinstance(translate(made(kind), DOING), PASSING)


def test_every_row_has_one_temperament() -> None:
    """No row is neither temporary nor permanent."""
    rows = [*CLASSES.values(), *STATUSES.values()]

    assert all(issubclass(kind, (PermanentError, TemporaryError)) for kind, _ in rows)
    assert all(issubclass(kind, BellhopError) and why for kind, why in rows)
