"""Requests to the webhook: it refuses no write, and answers other clients with 404."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellhop import __version__
from bellhop.adapters.local.http_app import Admission, Answer
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.webhook import BODY_BYTES, Webhook
from bellhop.ingest.admission import KNOCKER, Hint, changes_nothing
from bellhop.logs import Log
from bellhop.registration.forwarder_manifests import NAME, NAMES

PATH = "/ring/abc"
CREATE = {
    "uid": "u-1",
    "operation": "CREATE",
    "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
    "name": "a",
    "namespace": "default",
    "object": {"metadata": {"name": "a", "uid": "o-1"}},
}

NAMESPACE = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?)?")
"""Names that Kubernetes allows; none for an object of the cluster."""

texts = st.sampled_from(
    ["", "a", "default", "../..", "\ud800", "\x1b[31m", "9" * 30, "uid", "name"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "name", "uid", "resourceVersion", "group", "kind"]), inner
        )
    ),
    max_leaves=5,
)


class Visitor:
    """A handler with a list behind it."""

    def __init__(self, paths: tuple[str, ...] = (PATH,)) -> None:
        self.hints: list[Hint] = []
        self.strangers = 0
        self.written = io.StringIO()
        self.counts = Counts()
        self.fails = False
        log = Log(self.written)
        self.webhook = Webhook(self._add, lambda: paths, self._on_wrong_path, self.counts, log)

    def send(self, body: bytes, path: str = PATH, **environ: Any) -> tuple[str, dict[str, Any]]:
        status = []
        given = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        answer = self.webhook({**given, **environ}, lambda line, _: status.append(line))
        return status[0], json.loads(b"".join(answer))

    def _add(self, hint: Hint, reported_at: str) -> None:
        if self.fails:
            raise RuntimeError(reported_at)
        self.hints.append(hint)

    def _on_wrong_path(self) -> None:
        self.strangers += 1


def review(request: Any) -> bytes:
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def test_allows_and_notes_a_write() -> None:
    """The answer names the request's uid; the hint names the object."""
    visitor = Visitor()

    status, answer = visitor.send(review(CREATE))

    assert status == "200 OK"
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }
    assert [str(hint.key) for hint in visitor.hints] == ["/v1/ConfigMap/default/a"]


@pytest.mark.parametrize(
    ("changes", "answered"),
    [
        pytest.param({"dryRun": True, "options": {"fieldManager": KNOCKER}}, True, id="a knock"),
        pytest.param({"dryRun": True, "options": {"fieldManager": "kubectl"}}, False, id="another"),
        pytest.param({"dryRun": True, "options": KNOCKER}, False, id="options are a text"),
        pytest.param({"options": {"fieldManager": KNOCKER}}, False, id="no dry run"),
    ],
)
def test_answers_a_dry_run_with_a_warning(changes: dict[str, Any], *, answered: bool) -> None:
    """Only a dry-run call is answered that the forwarder is there; nothing follows."""
    visitor = Visitor()

    _, answer = visitor.send(review({**CREATE, **changes}))

    expected = [f"{NAME} {__version__} was called"] if answered else None
    assert answer["response"].get("warnings") == expected
    assert answer["response"]["allowed"]
    assert len(visitor.hints) == (0 if changes.get("dryRun") else 1)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"uid": "u"}, id="nothing but a uid"),
        pytest.param({"uid": "u", "kind": "ConfigMap"}, id="kind is a text"),
        pytest.param({"uid": "u", "kind": []}, id="kind is a list"),
        pytest.param({**CREATE, "object": []}, id="object is a list"),
        pytest.param({**CREATE, "object": {"metadata": 7}}, id="metadata is a number"),
        pytest.param({**CREATE, "name": None, "object": None}, id="no name"),
        pytest.param(
            {**CREATE, "operation": "UPDATE", "object": {"metadata": 7}, "oldObject": {}},
            id="update with odd metadata",
        ),
        pytest.param({**CREATE, "dryRun": True}, id="dry run"),
        pytest.param({**CREATE, "namespace": "../.."}, id="a namespace that is a path"),
        pytest.param({**CREATE, "name": "\ud800"}, id="half a character"),
        pytest.param({**CREATE, "object": {"metadata": {"uid": 7}}}, id="uid is a number"),
        pytest.param(
            {**CREATE, "oldObject": {"metadata": {"name": "a", "resourceVersion": "9" * 99}}},
            id="a version beyond all",
        ),
    ],
)
def test_allows_what_it_cannot_read(request_: dict[str, Any]) -> None:
    """Whatever is odd about a review with a uid, the write goes on."""
    status, answer = Visitor().send(review(request_))

    assert status == "200 OK"
    assert answer["response"] == {"uid": request_["uid"], "allowed": True}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"{", id="not JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"7", id="a number"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{}", id="no request"),
        pytest.param(review(None), id="request is null"),
        pytest.param(review([]), id="request is a list"),
        pytest.param(review({"uid": 7}), id="uid is a number"),
        pytest.param(b"[" * 100_000, id="too deep"),
    ],
)
def test_refuses_what_has_no_uid(body: bytes) -> None:
    """Without a uid there is nothing that could be answered."""
    visitor = Visitor()

    status, _ = visitor.send(body)

    assert status == "400 Bad Request"
    assert visitor.hints == []


@settings(max_examples=300, deadline=None, derandomize=True)
@given(given_=st.fixed_dictionaries({}, optional=dict.fromkeys([*CREATE, "oldObject"], anything)))
def test_allows_whatever_a_review_holds(given_: dict[str, Any]) -> None:
    """A write goes on whatever its review says; what is noted has names of Kubernetes."""
    visitor = Visitor()

    status, _ = visitor.send(review({**CREATE, **given_, "uid": "u"}))

    assert status == "200 OK"
    assert all(NAMESPACE.fullmatch(hint.key.namespace) for hint in visitor.hints)
    assert "ERROR" not in visitor.written.getvalue()


def test_allows_when_noting_fails() -> None:
    """A bug behind the handler is logged and stops nobody's write."""
    visitor = Visitor()
    visitor.fails = True

    status, answer = visitor.send(review(CREATE))

    assert (status, answer["response"]["allowed"]) == ("200 OK", True)
    assert "Failed to note a hint" in visitor.written.getvalue()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/ring",
        "/ring/ab",
        "/ring/abcd",
        "/ring/abc/",
        "/RING/ABC",
        "/ring/\xe4",
        "//ring/abc",
    ],
)
def test_knows_nobody_at_another_path(path: str) -> None:
    """An unauthenticated client learns nothing, and may be a sign that the path was changed."""
    visitor = Visitor()

    status, _ = visitor.send(review(CREATE), path)

    assert status == "404 Not Found"
    assert (visitor.strangers, visitor.hints) == (1, [])


@pytest.mark.parametrize(
    ("path", "named", "status"),
    [
        pytest.param(PATH, [False], "200 OK", id="the object"),
        pytest.param(PATH + NAMES, [True], "200 OK", id="its name"),
        pytest.param("/ring/ab" + NAMES, [], "404 Not Found", id="a wrong path"),
        pytest.param(NAMES, [], "404 Not Found", id="no path"),
        pytest.param(PATH + NAMES + NAMES, [], "404 Not Found", id="twice"),
        pytest.param(PATH + NAMES + "/", [], "404 Not Found", id="more behind it"),
    ],
)
def test_notes_only_the_name_at_the_path_for_names(
    path: str, named: list[bool], status: str
) -> None:
    visitor = Visitor()

    answered, _ = visitor.send(review(CREATE), path)

    assert (answered, [hint.named for hint in visitor.hints]) == (status, named)


def test_answers_at_each_of_its_paths() -> None:
    """While the path is being changed, both work."""
    visitor = Visitor(("/new", PATH))

    assert [visitor.send(review(CREATE), path)[0] for path in ("/new", PATH)] == ["200 OK"] * 2


def test_takes_only_posts() -> None:
    """Another method is no admission request."""
    assert Visitor().send(b"", REQUEST_METHOD="GET")[0] == "405 Method Not Allowed"


def test_takes_no_more_than_its_limit() -> None:
    """A body over the limit is refused, though the server should have refused it before."""
    visitor = Visitor()

    status, _ = visitor.send(b"x" * (BODY_BYTES + 1))

    assert status == "413 Request Entity Too Large"
    assert visitor.hints == []


@pytest.mark.parametrize(
    ("path", "verb", "expected"),
    [
        pytest.param("/elsewhere", "POST", 404, id="another path"),
        pytest.param(PATH, "GET", 405, id="another verb"),
    ],
)
def test_refuses_other_clients_by_their_head(path: str, verb: str, expected: int) -> None:
    """Path and verb are looked at before there is a body."""
    visitor = Visitor()

    found = visitor.webhook.admit({"PATH_INFO": path, "REQUEST_METHOD": verb})

    assert isinstance(found, Answer)
    assert found.code == expected


def test_lets_api_servers_in_by_their_path() -> None:
    """Who knows the path may send a review, up to the limit."""
    found = Visitor().webhook.admit({"PATH_INFO": PATH, "REQUEST_METHOD": "POST"})

    assert isinstance(found, Admission)
    assert found.limit == BODY_BYTES


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"data": {"a": 1}}, {"data": {"a": 1}}, True, id="equal"),
        pytest.param({"data": {"a": 1}}, {"data": {"a": 2}}, False, id="other data"),
        pytest.param({"spec": {"a": 1}}, {"spec": {"a": True}}, False, id="another type"),
        pytest.param({"spec": {"a": 1}}, {"spec": {"a": 1.0}}, False, id="another number"),
        pytest.param(
            {"metadata": {"name": "a"}},
            {"metadata": {"name": "a", "managedFields": [{}]}},
            True,
            id="managedFields alone",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["f"]}}, {"metadata": {}}, False, id="a finalizer less"
        ),
        pytest.param({}, {"status": {}}, False, id="a status more"),
        pytest.param(None, {}, False, id="nothing before"),
        pytest.param({}, None, False, id="nothing after"),
    ],
)
def test_recognizes_updates_that_change_nothing(before: Any, after: Any, expected: bool) -> None:  # noqa: FBT001
    """Only managedFields do not count."""
    request = {"operation": "UPDATE", "oldObject": before, "object": after}

    assert changes_nothing(request) is expected
