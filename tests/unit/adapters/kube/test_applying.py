"""Applies on conditions, where a server says no: what it is looked for, and what is tried again."""

from __future__ import annotations

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError, MissingError, StaleError, UnreachableError
from bellhop.ports.kube import Manifest
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

MANIFEST: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
MADE = Answer(body={**MANIFEST, "metadata": {"name": "a", "uid": "mine"}})
ANOTHER = Answer(body={**MANIFEST, "metadata": {"name": "a", "uid": "theirs"}})
NONE = Answer.status(404, "NotFound", "x", name="a", kind="configmaps")
LACKING = Answer.status(404, "NotFound", "x", name="default", kind="namespaces")
READY = Answer(body=b"ok")
ODD = Answer.status(500, "", "resourceVersion should not be set on objects to be created")
LOOKS = ["PATCH", "GET"]


@pytest.fixture
def kube(api: ScriptedApi) -> KubeClient:
    """Talk to the scripted API server."""
    return KubeClient("prod/eu-1", api.kubeconfig, reach=LOCAL)


def methods(api: ScriptedApi) -> list[str]:
    return [seen.method for seen in api.seen]


def conditions(api: ScriptedApi) -> list[set[str]]:
    """Return the conditions of each apply."""
    applies = [seen.body["metadata"] for seen in api.seen if seen.method == "PATCH"]
    return [{"uid", "resourceVersion"}.intersection(each) for each in applies]


def test_a_condition_is_let_go_where_a_look_finds_that_it_holds(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """None is there, or just the life that is meant: only then it is applied without."""
    api.script = [ODD, NONE, MADE, ODD, MADE, MADE]

    kube.apply(MANIFEST, uid="")
    kube.apply(MANIFEST, uid="mine")

    assert methods(api) == [*LOOKS, "PATCH"] * 2
    assert conditions(api) == [{"resourceVersion"}, set(), {"uid"}, set()]


def test_a_server_that_cannot_take_conditions_is_looked_at_first(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """What it refused of one new object it would refuse of the next, but not of one that is there.

    Who cannot look then is asked as ever.
    """
    none = Answer.status(404, "NotFound", "x", name="b", kind="configmaps")
    another = {**MANIFEST, "metadata": {"name": "b"}}
    api.script = [ODD, NONE, MADE, none, MADE, MADE, Answer.status(403, "Forbidden", "no"), MADE]

    kube.apply(MANIFEST, uid="")
    kube.apply(another, uid="")
    kube.apply(MANIFEST, uid="mine")
    kube.apply(another, uid="")

    assert methods(api) == [*LOOKS, "PATCH", *LOOKS[::-1], "PATCH", *LOOKS[::-1]]
    assert conditions(api) == [
        {"resourceVersion"},
        set(),
        set(),
        {"uid"},
        {"resourceVersion"},
    ]


def test_what_such_a_server_has_is_not_written_to(api: ScriptedApi, kube: KubeClient) -> None:
    """It is looked for at once, and found."""
    api.script = [ODD, NONE, MADE, ANOTHER]
    kube.apply(MANIFEST, uid="")

    with pytest.raises(StaleError):
        kube.apply(MANIFEST, uid="")

    assert methods(api) == [*LOOKS, "PATCH", "GET"]


def test_who_stumbles_once_is_given_conditions(api: ScriptedApi, kube: KubeClient) -> None:
    """A refusal that does not speak of the condition says nothing of the next one."""
    api.script = [Answer.status(500, "", "etcdserver: no leader"), NONE, MADE, MADE]

    kube.apply(MANIFEST, uid="")
    kube.apply(MANIFEST, uid="")

    assert conditions(api) == [{"resourceVersion"}, set(), {"resourceVersion"}]


@pytest.mark.parametrize(("uid", "there"), [("", ANOTHER), ("mine", ANOTHER), ("mine", NONE)])
def test_what_is_not_as_it_was_known_is_not_written_to(
    api: ScriptedApi, kube: KubeClient, uid: str, there: Answer
) -> None:
    """Whatever the apply was refused with: who asked looks, and decides again."""
    api.script = [ODD, there]

    with pytest.raises(StaleError):
        kube.apply(MANIFEST, uid=uid)

    assert methods(api) == LOOKS


@pytest.mark.parametrize("there", ["7", "8"])
def test_a_version_is_a_condition_of_its_own(
    api: ScriptedApi, kube: KubeClient, there: str
) -> None:
    """Of the life that is meant another version is as good as another life."""
    metadata = {"name": "a", "uid": "mine", "resourceVersion": there}
    refused = Answer.status(409, "Conflict", "the object has been modified")
    api.script = [refused, Answer(body={**MANIFEST, "metadata": metadata})]

    if there == "7":
        api.script.append(MADE)
        kube.apply(MANIFEST, uid="mine", version="7")
    else:
        with pytest.raises(StaleError):
            kube.apply(MANIFEST, uid="mine", version="7")

    both = {"uid", "resourceVersion"}
    assert conditions(api) == ([both, set()] if there == "7" else [both])


def test_what_has_no_uid_is_somebodys(api: ScriptedApi, kube: KubeClient) -> None:
    """It is there, and so it is not to be made."""
    api.script = [ODD, Answer(body=MANIFEST)]

    with pytest.raises(StaleError):
        kube.apply(MANIFEST, uid="")


@pytest.mark.parametrize(
    "there",
    [
        Answer.status(403, "Forbidden", "no"),
        Answer.status(404, "NotFound", "x", name="a", kind="services"),
        Answer(404, b"404 page not found\n"),
    ],
)
def test_who_cannot_look_does_not_try_again(
    api: ScriptedApi, kube: KubeClient, there: Answer
) -> None:
    """A refusal, or a 404 that does not name the object, is not an absence."""
    api.script = [ODD, there]

    with pytest.raises(UnreachableError, match="resourceVersion should not be set"):
        kube.apply(MANIFEST, uid="")


REFUSED = [
    pytest.param(
        Answer.status(422, "Invalid", "no", causes=[{"field": "data", "message": "no"}]),
        InvalidError,
        id="of a field",
    ),
    pytest.param(
        LACKING,
        MissingError,
        id="for want of a namespace",
    ),
    pytest.param(Answer.status(503, "ServiceUnavailable", "x"), UnreachableError, id="not served"),
]


@pytest.mark.parametrize(("answer", "ours"), REFUSED)
def test_what_is_refused_for_another_reason_is_asked_once(
    api: ScriptedApi, kube: KubeClient, answer: Answer, ours: type[Exception]
) -> None:
    """Nobody looks for an object whose field, namespace or server is the matter."""
    api.script = [answer, READY] if answer is LACKING else [answer]

    with pytest.raises(ours):
        kube.apply(MANIFEST, uid="")

    assert "/configmaps/a" not in "".join(each.path for each in api.seen[1:])


def test_a_namespace_is_made_where_no_version_is_taken(api: ScriptedApi, kube: KubeClient) -> None:
    """A refusal that names it is about itself, and not about one that it lacks."""
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    answer = Answer.status(409, "Conflict", "x", name="a", kind="namespaces")
    none = Answer.status(404, "NotFound", "x", name="a", kind="namespaces")
    api.script = [answer, none, MADE]

    kube.apply(space, uid="")

    assert methods(api) == [*LOOKS, "PATCH"]


def test_what_anybody_may_have_made_is_asked_for_once(api: ScriptedApi, kube: KubeClient) -> None:
    """Without a condition there is none to look for."""
    api.script = [ODD]

    with pytest.raises(UnreachableError):
        kube.apply(MANIFEST)
