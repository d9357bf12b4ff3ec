"""What a real API server says too rarely to wait for: odd 404s, lists that expire, half answers."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.errors import DeniedError, InvalidError, MissingError, StaleError, UnreachableError
from bellhop.model.gvk import GVK
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

CONFIG_MAP = GVK("", "v1", "ConfigMap")
NAMESPACE = GVK("", "v1", "Namespace")
AWAY = GVK("away.example", "v1", "Thing")
READY = Answer(body=b"ok")
STARTING = Answer(500, b"[-]poststarthook/crd-informer-synced failed: reason withheld")
GONE = Answer.status(410, "Expired", "too old resource version")


@pytest.fixture
def kube(api: ScriptedApi) -> KubeClient:
    """Talk to the scripted API server."""
    return KubeClient("prod/eu-1", api.kubeconfig)


def _page(*names: str, token: str = "", version: str = "1") -> Answer:
    items = [
        {"metadata": {"name": n, "uid": f"uid-{n}", "resourceVersion": version}} for n in names
    ]
    return Answer(body={"kind": "ConfigMapList", "metadata": {"continue": token}, "items": items})


def _paths(api: ScriptedApi) -> list[str]:
    return [f"{seen.method} {seen.path}" for seen in api.seen]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(404, b"404 page not found\n"), id="page"),
        pytest.param(Answer.status(404, "NotFound", "no such resource"), id="no details"),
        pytest.param(
            Answer.status(404, "NotFound", "x", name="b", kind="configmaps"), id="another object"
        ),
        pytest.param(
            Answer.status(404, "NotFound", "x", name="a", kind="services"), id="another kind"
        ),
    ],
)
def test_a_404_that_does_not_name_the_object_is_no_absence(
    api: ScriptedApi, kube: KubeClient, answer: Answer
) -> None:
    """A proxy's 404, or that of a kind that went, says nothing about the object."""
    api.script = [answer, READY]

    with pytest.raises(MissingError):
        kube.get(CONFIG_MAP, "default", "a")


@pytest.mark.parametrize(
    ("answer", "ours"),
    [
        pytest.param(Answer(404, b"404 page not found\n"), MissingError, id="404"),
        pytest.param(Answer.status(403, "Forbidden", "no"), DeniedError, id="403"),
    ],
)
def test_a_starting_server_is_not_believed(
    api: ScriptedApi, kube: KubeClient, answer: Answer, ours: type[Exception]
) -> None:
    """Before it has read kinds and roles it denies what it will grant."""
    api.script = [answer, STARTING, answer, READY]

    with pytest.raises(UnreachableError, match="not ready yet"):
        kube.get(CONFIG_MAP, "default", "a")
    with pytest.raises(ours):
        kube.get(CONFIG_MAP, "default", "a")


def test_readiness_that_may_not_be_asked_counts_as_ready(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """Some platforms forbid the question."""
    api.script = [Answer(404, b"404 page not found\n"), Answer(403)]

    assert kube.resource(AWAY) is None


def test_an_aggregated_api_that_is_away_is_unreachable(api: ScriptedApi, kube: KubeClient) -> None:
    """Its kinds are known to somebody, only not now; nothing may be taken for gone."""
    away = Answer(503, b"service unavailable")
    api.script = [away, away, away]

    with pytest.raises(UnreachableError):
        kube.resource(AWAY)
    with pytest.raises(UnreachableError):
        kube.get(AWAY, "default", "a")
    with pytest.raises(UnreachableError):
        kube.remove(AWAY, "default", "a")


@pytest.mark.parametrize("body", [{}, [], {"resources": None}])
def test_what_is_no_list_of_kinds_leaves_a_kind_unknown_to_us_alone(
    api: ScriptedApi, kube: KubeClient, body: Any
) -> None:
    """That the cluster does not serve a kind takes an answer that says so."""
    api.script = [Answer(body=body)]

    with pytest.raises(UnreachableError, match="not a list of kinds"):
        kube.remove(AWAY, "default", "a")


def test_reads_pages_until_there_is_no_more(api: ScriptedApi, kube: KubeClient) -> None:
    """Each page is asked for with the token of the one before."""
    api.script = [_page("a", "b", token="t1"), _page(token="t/2"), _page("c")]

    found = [each["metadata"]["name"] for each in kube.list(CONFIG_MAP, labels="app=web")]

    assert found == ["a", "b", "c"]
    assert _paths(api) == [
        "GET /api/v1/configmaps?limit=500&labelSelector=app%3Dweb",
        "GET /api/v1/configmaps?limit=500&labelSelector=app%3Dweb&continue=t1",
        "GET /api/v1/configmaps?limit=500&labelSelector=app%3Dweb&continue=t%2F2",
    ]


def test_fills_in_what_items_of_a_list_lack(api: ScriptedApi, kube: KubeClient) -> None:
    """API servers send items without apiVersion and kind."""
    api.script = [_page("a")]

    (item,) = kube.list(CONFIG_MAP)

    assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_may_be_null(api: ScriptedApi, kube: KubeClient, items: Any) -> None:
    """Some API servers write null."""
    api.script = [Answer(body={"kind": "ConfigMapList", "metadata": {}, "items": items})]

    assert list(kube.list(CONFIG_MAP)) == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "ConfigMapList", "metadata": {}}, id="without items"),
        pytest.param({"kind": "Status", "status": "Success"}, id="a status"),
        pytest.param([], id="a list"),
    ],
)
def test_what_is_no_list_is_not_an_empty_one(api: ScriptedApi, kube: KubeClient, body: Any) -> None:
    """Half an answer must not let anything be withdrawn."""
    api.script = [Answer(body=body)]

    with pytest.raises(UnreachableError, match="the answer is not a list"):
        list(kube.list(CONFIG_MAP))


def test_begins_anew_when_a_list_expires(api: ScriptedApi, kube: KubeClient) -> None:
    """What came already comes again only if it changed; nothing is left out."""
    api.script = [_page("a", token="t1"), GONE, _page("a", token="t2"), _page("b")]

    found = [each["metadata"]["name"] for each in kube.list(CONFIG_MAP)]

    assert found == ["a", "b"]
    assert _paths(api)[2] == "GET /api/v1/configmaps?limit=500"


def test_an_object_that_changed_meanwhile_comes_again(api: ScriptedApi, kube: KubeClient) -> None:
    """The later state is the last one seen."""
    api.script = [_page("a", token="t1"), GONE, _page("a", version="2")]

    versions = [each["metadata"]["resourceVersion"] for each in kube.list(CONFIG_MAP)]

    assert versions == ["1", "2"]


def test_gives_up_on_a_list_that_always_expires(api: ScriptedApi, kube: KubeClient) -> None:
    """Later it may be quieter."""
    api.script = [_page("a", token="t1"), GONE] * 4

    with pytest.raises(StaleError, match="changes faster than it can be read"):
        list(kube.list(CONFIG_MAP))


def test_an_error_in_the_middle_of_a_list_is_an_error(api: ScriptedApi, kube: KubeClient) -> None:
    """Half a list is no list."""
    api.script = [_page("a", token="t1"), Answer(503)]

    with pytest.raises(UnreachableError):
        list(kube.list(CONFIG_MAP))


def test_sends_an_apply_as_it_should_be(api: ScriptedApi, kube: KubeClient) -> None:
    """Manager, force and content type; without what only the API server writes."""
    api.script = [lambda seen: Answer(body=seen.body)]
    metadata = {
        "name": "a",
        "labels": {"l": "1"},
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "t",
        "managedFields": [],
    }

    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, dry_run=True)

    seen = api.seen[0]
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=bellhop&force=true&dryRun=All"
    assert (seen.method, seen.path) == ("PATCH", path)
    assert seen.headers["Content-Type"] == "application/apply-patch+yaml"
    assert seen.body["metadata"] == {"name": "a", "labels": {"l": "1"}, "namespace": "default"}


def test_sends_a_removal_as_it_should_be(api: ScriptedApi, kube: KubeClient) -> None:
    """In the background, and only of the object that was meant."""
    api.script = [Answer()]

    assert kube.remove(NAMESPACE, "ignored", "web", uid="u") is True
    assert (api.seen[0].method, api.seen[0].path) == ("DELETE", "/api/v1/namespaces/web")
    assert api.seen[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
    }


def test_a_404_that_does_not_name_the_object_is_no_removal(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """The kind is served still, so that the answer is somebody else's."""
    api.script = [Answer(404, b"404 page not found\n"), READY]

    with pytest.raises(MissingError):
        kube.remove(CONFIG_MAP, "default", "a")


LEFT_NULL = 'Invalid value: "null": spec.items[0].m in body must be of type object: "null"'


@pytest.mark.parametrize(
    "causes",
    [
        pytest.param([{"field": "data.items[0].m", "message": LEFT_NULL}], id="below a list"),
        pytest.param([{"field": "data.gone", "message": LEFT_NULL}], id="not there"),
    ],
)
def test_a_map_that_cannot_be_taken_out_stays_refused(
    api: ScriptedApi, kube: KubeClient, causes: list[Any]
) -> None:
    """A merge patch reaches no map below a list; the API server's words stand."""
    live = {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "data": {"items": [{"m": {"k": "v"}}]},
    }
    api.script = [Answer.status(422, "Invalid", "is null", causes=causes), Answer(body=live)]

    with pytest.raises(InvalidError, match="is null"):
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def test_a_map_that_somebody_changed_meanwhile_is_left(api: ScriptedApi, kube: KubeClient) -> None:
    """It is taken out of exactly the state that was read, or not at all."""
    live = {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"m": {"k": "v"}}}
    causes = [{"field": "data.m", "message": LEFT_NULL}]
    api.script = [
        Answer.status(422, "Invalid", "is null", causes=causes),
        Answer(body=live),
        Answer.status(409, "Conflict", "modified"),
    ]

    with pytest.raises(InvalidError, match="is null"):
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    assert api.seen[2].body["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("body", [[], "x", None])
def test_what_is_no_object_is_no_answer(api: ScriptedApi, kube: KubeClient, body: Any) -> None:
    """JSON of another shape comes from no API server."""
    api.script = [Answer(body=body)]

    with pytest.raises(UnreachableError, match="the answer is not an object"):
        kube.get(CONFIG_MAP, "default", "a")


@pytest.mark.parametrize("name", ["", "a/b", "..", "%2e%2e"])
def test_a_name_leads_nowhere_else(kube: KubeClient, name: str) -> None:
    """What is no name is not sent."""
    with pytest.raises(InvalidError):
        kube.get(CONFIG_MAP, "default", name)


@pytest.mark.parametrize("namespace", ["..", "a/b", "%2e"])
def test_a_namespace_leads_nowhere_else(kube: KubeClient, namespace: str) -> None:
    """A list of one namespace does not become one of all."""
    with pytest.raises(InvalidError):
        list(kube.list(CONFIG_MAP, namespace=namespace))
