"""What a real API server says too rarely to wait for: odd 404s, lists that expire, half answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest

from bellhop.adapters.egress import client as egress
from bellhop.adapters.kube import client as kube_client
from bellhop.adapters.kube.client import KubeClient
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import (
    DeniedError,
    InvalidError,
    MissingError,
    StaleError,
    TooLargeError,
    UnreachableError,
)
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi, Seen

CONFIG_MAP = GVK("", "v1", "ConfigMap")
NAMESPACE = GVK("", "v1", "Namespace")
AWAY = GVK("away.example", "v1", "Thing")
READY = Answer(body=b"ok")
STARTING = Answer(500, b"[-]poststarthook/crd-informer-synced failed: reason withheld")
EXPIRED = Answer.status(410, "Expired", "too old resource version")


@pytest.fixture
def kube(api: ScriptedApi) -> KubeClient:
    """Talk to the scripted API server."""
    return KubeClient("prod/eu-1", api.kubeconfig, reach=LOCAL)


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
    """Its kinds are known, only not now; nothing may be taken for deleted."""
    away = Answer(503, b"service unavailable")
    api.script = [away, away, away]

    with pytest.raises(UnreachableError):
        kube.resource(AWAY)
    with pytest.raises(UnreachableError):
        kube.get(AWAY, "default", "a")
    with pytest.raises(UnreachableError):
        kube.remove(AWAY, "default", "a")


@pytest.mark.parametrize("body", [{}, [], {"resources": None}])
def test_an_answer_that_is_no_list_of_kinds_leaves_a_kind_unknown(
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


def test_begins_again_when_a_list_expires(api: ScriptedApi, kube: KubeClient) -> None:
    """What came already comes again only if it changed; nothing is left out."""
    api.script = [_page("a", token="t1"), EXPIRED, _page("a", token="t2"), _page("b")]

    found = [each["metadata"]["name"] for each in kube.list(CONFIG_MAP)]

    assert found == ["a", "b"]
    assert _paths(api)[2] == "GET /api/v1/configmaps?limit=500"


def test_an_object_that_changed_meanwhile_comes_again(api: ScriptedApi, kube: KubeClient) -> None:
    """The later state is the last one seen."""
    api.script = [_page("a", token="t1"), EXPIRED, _page("a", version="2")]

    versions = [each["metadata"]["resourceVersion"] for each in kube.list(CONFIG_MAP)]

    assert versions == ["1", "2"]


def test_gives_up_on_a_list_that_always_expires(api: ScriptedApi, kube: KubeClient) -> None:
    """Later it may be quieter."""
    api.script = [_page("a", token="t1"), EXPIRED] * 4

    with pytest.raises(StaleError, match="changes faster than it can be read"):
        list(kube.list(CONFIG_MAP))


def test_an_error_in_the_middle_of_a_list_is_an_error(api: ScriptedApi, kube: KubeClient) -> None:
    """Half a list is no list."""
    api.script = [_page("a", token="t1"), Answer(503)]

    with pytest.raises(UnreachableError):
        list(kube.list(CONFIG_MAP))


def test_sends_an_apply_as_it_should_be(api: ScriptedApi, kube: KubeClient) -> None:
    """Manager, force and content type; without what only the API server writes."""
    api.script = [lambda _: Answer(body={"metadata": {"uid": "u"}})]
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

    assert kube.remove(NAMESPACE, "ignored", "web", uid="u") == {}
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


SHAPES = [
    pytest.param([], id="list"),
    pytest.param("x", id="text"),
    pytest.param(None, id="null"),
    pytest.param({"metadata": []}, id="metadata is a list"),
    pytest.param({"metadata": {"name": 7}}, id="name is a number"),
    pytest.param({"metadata": {"name": "a", "uid": {}}}, id="uid is a mapping"),
    pytest.param({"metadata": {"name": "a", "resourceVersion": 7}}, id="version is a number"),
]


@pytest.mark.parametrize("body", SHAPES)
def test_what_is_no_object_is_no_answer(api: ScriptedApi, kube: KubeClient, body: Any) -> None:
    """JSON of another shape comes from no API server; it is neither an object nor its absence."""
    api.script = [Answer(body=body)] * 2

    with pytest.raises(UnreachableError, match="the answer is not an object"):
        kube.get(CONFIG_MAP, "default", "a")
    with pytest.raises(UnreachableError, match="the answer is not an object"):
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def test_an_apply_without_a_uid_is_no_answer(api: ScriptedApi, kube: KubeClient) -> None:
    """The applier relies on it to remove just this object later."""
    api.script = [Answer(body={"metadata": {"name": "a"}})]

    with pytest.raises(UnreachableError, match="an object without a uid"):
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


@pytest.mark.parametrize(
    "item", [*SHAPES, pytest.param({}, id="nothing"), pytest.param({"metadata": {}}, id="nameless")]
)
def test_a_list_of_what_is_no_object_is_no_answer(
    api: ScriptedApi, kube: KubeClient, item: Any
) -> None:
    """One item that nobody can name spoils the page, and is not taken for an object."""
    items = [{"metadata": {"name": "a"}}, item]
    api.script = [Answer(body={"metadata": {}, "items": items})]

    with pytest.raises(UnreachableError, match="lists something that is not an object"):
        kube.page(CONFIG_MAP, limit=9)


# Pages ------------------------------------------------------------------------------------------


def test_asks_for_one_page(api: ScriptedApi, kube: KubeClient) -> None:
    """One request, one page; the token is passed on as it came."""
    api.script = [_page("a", token="t&1")]

    page = kube.page(CONFIG_MAP, limit=7, after="x/=", namespace="web", labels="a in (b)")

    assert page.after == "t&1"
    assert _paths(api) == [
        "GET /api/v1/namespaces/web/configmaps?limit=7&labelSelector=a+in+%28b%29&continue=x%2F%3D"
    ]


def test_a_page_that_expired_is_stale(api: ScriptedApi, kube: KubeClient) -> None:
    """The caller begins again."""
    api.script = [EXPIRED]

    with pytest.raises(StaleError, match="cannot list ConfigMap on cluster 'prod/eu-1'"):
        kube.page(CONFIG_MAP, limit=7, after="t")


def _sized(seen: Seen) -> Answer:
    """Answer with as many objects of 100 kB as are asked for."""
    limit = int(seen.path.partition("limit=")[2].partition("&")[0])
    items = [{"metadata": {"name": f"of-{n}"}, "data": "x" * 100_000} for n in range(limit)]
    return Answer(body={"metadata": {"continue": "t"}, "items": items})


def test_a_page_that_is_too_large_is_asked_for_in_parts(
    api: ScriptedApi, kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It halves until a page fits, and begins there the next time."""
    monkeypatch.setattr(egress, "LARGEST", 300_000)
    api.script = [_sized] * 4

    first = kube.page(CONFIG_MAP, limit=10)
    second = kube.page(CONFIG_MAP, limit=10, after=first.after)

    assert [len(first.items), len(second.items)] == [2, 2]
    assert _limits(api) == ["10", "5", "2", "2"]


def _limits(api: ScriptedApi) -> list[str]:
    return [path.partition("limit=")[2].partition("&")[0] for path in _paths(api)]


def _one_large(large: int, total: int) -> Callable[[Seen], Answer]:
    """Answer as a server that has so many objects, one of which is too large."""

    def answer(seen: Seen) -> Answer:
        asked = dict(each.split("=") for each in seen.path.partition("?")[2].split("&"))
        start = int(asked.get("continue", "0"))
        end = min(start + int(asked["limit"]), total)
        partial = "as=PartialObjectMetadataList" in seen.headers["Accept"]
        items = [
            {
                "metadata": {"name": f"of-{n}", "uid": f"uid-{n}"},
                **({} if partial else {"data": "x" * (100_000 if n == large else 10)}),
            }
            for n in range(start, end)
        ]
        after = str(end) if end < total else ""
        return Answer(body={"metadata": {"continue": after}, "items": items})

    return answer


def test_one_object_that_is_too_large_is_named_and_left_out(
    api: ScriptedApi, kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are read, and pages grow again after it."""
    monkeypatch.setattr(egress, "LARGEST", 50_000)
    api.script = [_one_large(3, 40)] * 14
    after, names, unread = "", [], []
    for _ in range(40):
        page = kube.page(CONFIG_MAP, limit=8, after=after)
        names += [each["metadata"]["name"] for each in page.items]
        unread += list(map(str, page.unread))
        after = page.after
        if not after:
            break

    assert names == [f"of-{n}" for n in range(40) if n != 3]
    assert unread == ["ConfigMap 'of-3' is left out: larger than 8 MiB as JSON"]
    assert _limits(api) == list("84221111248888")
    api.script = [_one_large(0, 1), Answer.status(406, "NotAcceptable")]
    with pytest.raises(TooLargeError, match="an object is larger than 8 MiB"):
        kube.page(CONFIG_MAP, limit=1)


@pytest.mark.parametrize("levels", [200, 5000])
def test_one_object_nested_too_deep_is_named_and_left_out(
    api: ScriptedApi, kube: KubeClient, levels: int
) -> None:
    """Also where Python's decoder fails on the whole page; read by itself it is too large."""
    spec = '{"a": [' * (levels // 2) + '"}]"' + "]}" * (levels // 2)
    deep = '{"metadata": {"name": "deep"}, "spec": {"b": ' + spec + "}}"
    others = [f'{{"metadata": {{"name": "{name}"}}}}' for name in "az"]
    page = '{"metadata": {}, "items": [' + f", {deep}, ".join(others) + "]}"
    api.script = [Answer(body=page.encode()), Answer(body=deep.encode())]

    found = kube.page(CONFIG_MAP, limit=9)

    assert [each["metadata"]["name"] for each in found.items] == ["a", "z"]
    assert list(map(str, found.unread)) == [
        "ConfigMap 'deep' is left out: nested deeper than 200 levels"
    ]
    with pytest.raises(TooLargeError, match=r"read ConfigMap 'web/deep' .* deeper than 200"):
        kube.get(CONFIG_MAP, "web", "deep")


def test_what_managers_note_of_an_object_is_no_depth_of_it(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """An object that is just not too deep has managedFields that are."""
    spec: Any = reduce(lambda inner, _: {"a": inner}, range(198), 1)
    fields = reduce(lambda inner, _: {"f:a": inner}, range(205), {})
    deep = {"metadata": {"name": "a", "managedFields": [{"fieldsV1": fields}]}, "spec": spec}
    api.script = [Answer(body={"metadata": {}, "items": [deep]}), Answer(body=deep)]

    assert kube.page(CONFIG_MAP, limit=9).unread == ()
    assert kube.get(CONFIG_MAP, "web", "a") == deep


def test_an_answer_that_is_deep_and_broken_is_no_json(api: ScriptedApi, kube: KubeClient) -> None:
    """Nothing is made of a part of it."""
    api.script = [Answer(body=b'{"a":' * 5000 + b"1"), Answer(body=b'{"a":' * 5000 + b"}]" * 5000)]

    for _ in range(2):
        with pytest.raises(UnreachableError, match="the answer is not JSON"):
            kube.page(CONFIG_MAP, limit=9)


def test_a_token_for_the_next_page_has_an_end(api: ScriptedApi, kube: KubeClient) -> None:
    """It is kept in messages, where no megabyte of untrusted origin belongs."""
    api.script = [_page("a", token="t" * 5000)]

    with pytest.raises(UnreachableError, match="token for the next page is too long"):
        kube.page(CONFIG_MAP, limit=7)


@pytest.mark.parametrize("token", [7, ["t"], {"t": 1}])
def test_a_token_is_a_text(api: ScriptedApi, kube: KubeClient, token: Any) -> None:
    """Anything else ends no list."""
    api.script = [Answer(body={"metadata": {"continue": token}, "items": []})]

    with pytest.raises(UnreachableError, match="the answer is not a list"):
        kube.page(CONFIG_MAP, limit=7)


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_a_list_without_end_ends(
    api: ScriptedApi, kube: KubeClient, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that always has one more page does not keep a resync for ever."""
    monkeypatch.setattr(kube_client, "_MOST", 9)
    monkeypatch.setattr(kube_client, "_BARREN", 4)
    api.script = [_page(*names, token="t")] * 5

    with pytest.raises(UnreachableError, match="the list has no end"):
        list(kube.list(CONFIG_MAP))


# Versions ---------------------------------------------------------------------------------------

SHOP = "shop.example"
OLD, NEW = GVK(SHOP, "v1beta1", "Cart"), GVK(SHOP, "v1", "Cart")
CARTS = Answer(body={"resources": [{"name": "carts", "kind": "Cart", "namespaced": True}]})
NOTHING = Answer(404, b"404 page not found\n")
VERSIONS = Answer(
    body={
        "kind": "APIGroup",
        "versions": [{"version": "v1beta1"}, {"version": "v1"}, {"version": "../x"}, 7, {}],
        "preferredVersion": {"version": "v1"},
    }
)
CART = Answer(body={"apiVersion": NEW.api_version, "metadata": {"name": "a", "uid": "u"}})


def test_names_versions_that_serve_the_kind(api: ScriptedApi, kube: KubeClient) -> None:
    """The preferred one is first, one without the kind is left out, and so is what is no name."""
    api.script = [VERSIONS, CARTS, Answer(body={"resources": []}), READY]

    assert kube.versions(SHOP, "Cart") == ("v1",)
    assert _paths(api) == [
        f"GET /apis/{SHOP}",
        f"GET /apis/{SHOP}/v1",
        f"GET /apis/{SHOP}/v1beta1",
        "GET /readyz",
    ]


def test_a_group_that_is_away_has_not_lost_its_versions(api: ScriptedApi, kube: KubeClient) -> None:
    """An error is never an empty answer."""
    api.script = [Answer(503), Answer(body={}), NOTHING, STARTING]

    for _ in range(3):
        with pytest.raises(UnreachableError):
            kube.served(SHOP, "Cart")


def test_removes_by_a_version_that_is_served(api: ScriptedApi, kube: KubeClient) -> None:
    """That the old path leads nowhere does not mean that the object is deleted."""
    api.script = [CARTS, CART]
    assert kube.get(OLD, "default", "a") is not None

    # The version that was known is not served any more.
    api.script = [NOTHING, READY, NOTHING, READY, VERSIONS, CARTS, Answer()]
    assert kube.remove(OLD, "default", "a", uid="u") == {}
    assert _paths(api)[-1] == f"DELETE /apis/{SHOP}/v1/namespaces/default/carts/a"


def test_a_kind_without_any_version_has_no_objects(api: ScriptedApi, kube: KubeClient) -> None:
    """With its definition went every object, which a removal counts as done."""
    gone = [NOTHING, READY, NOTHING, READY]
    api.script = [*gone, *gone, *gone]

    with pytest.raises(MissingError, match=r"does not serve shop\.example/v1beta1/Cart in any"):
        kube.get(OLD, "default", "a")
    assert kube.remove(OLD, "default", "a") is None


def test_a_lost_race_over_a_uid_is_distinguished_from_other_conflicts(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """The object is looked at: another uid is not ours, the same one is worth another try."""
    conflict = Answer.status(409, "Conflict", "the UID in the precondition")
    absent = Answer.status(404, "NotFound", "x", name="a", kind="configmaps")
    api.script = [conflict, Answer(body={"metadata": {"name": "a", "uid": "another"}})]
    assert kube.remove(CONFIG_MAP, "default", "a", uid="u") is None

    api.script = [conflict, absent]
    assert kube.remove(CONFIG_MAP, "default", "a", uid="u") is None

    api.script = [conflict, Answer(body={"metadata": {"name": "a", "uid": "u"}})]
    with pytest.raises(StaleError):
        kube.remove(CONFIG_MAP, "default", "a", uid="u")

    api.script = [conflict]
    with pytest.raises(StaleError):
        kube.remove(CONFIG_MAP, "default", "a")


# Paths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        pytest.param({"name": "carts", "kind": "Cart"}, True, id="good"),
        pytest.param({"name": "../../api/v1/secrets", "kind": "Cart"}, False, id="path"),
        pytest.param({"name": "carts?x=", "kind": "Cart"}, False, id="query"),
        pytest.param({"name": "carts%2f", "kind": "Cart"}, False, id="escape"),
        pytest.param({"name": "*", "kind": "Cart"}, False, id="everything"),
        pytest.param({"name": "", "kind": "Cart"}, False, id="nothing"),
        pytest.param({"name": "c" * 999, "kind": "Cart"}, False, id="long"),
        pytest.param({"name": ["carts"], "kind": "Cart"}, False, id="list"),
    ],
)
def test_a_plural_is_a_name(
    api: ScriptedApi,
    kube: KubeClient,
    entry: dict[str, Any],
    known: bool,  # noqa: FBT001
) -> None:
    """It becomes a path, a right of the forwarder and a rule of a webhook."""
    api.script = [Answer(body={"resources": [{**entry, "namespaced": True}]})]
    api.script += [] if known else [READY]

    assert (kube.resource(NEW) is not None) is known


@pytest.mark.parametrize(
    "gvk",
    [
        GVK("..", "v1", "Secret"),
        GVK("a/b", "v1", "Secret"),
        GVK("a.example", "..", "Secret"),
        GVK("a.example", "v1/../../v1", "Secret"),
        GVK("a.example", "v1?x", "Secret"),
        GVK("a.example", "v1%2f", "Secret"),
        GVK("a.example", "", "Secret"),
        GVK("a.example", "v1", ""),
        GVK("a.example", "v1", "S/x"),
        GVK("a\r\nX: b", "v1", "Secret"),
        GVK("ä.example", "v1", "Secret"),
    ],
)
def test_a_kind_leads_nowhere_else(api: ScriptedApi, kube: KubeClient, gvk: GVK) -> None:
    """What cannot be a kind is served by nobody, and nothing is asked."""
    assert kube.resource(gvk) is None
    assert api.seen == []


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("a?b", "a%3Fb"),
        ("a#b", "a%23b"),
        ("a b", "a%20b"),
        ("a&b=c", "a%26b%3Dc"),
        ("a\r\nX: b", "a%0D%0AX%3A%20b"),
        ("a;b,c", "a%3Bb%2Cc"),
        ("system:role", "system%3Arole"),
        ("ä", "%C3%A4"),
        ("...", "..."),
        ("\x00", "%00"),
    ],
)
def test_a_name_is_one_segment(api: ScriptedApi, kube: KubeClient, name: str, segment: str) -> None:
    """Whatever is in it, the request goes to just this path."""
    absent = Answer.status(404, "NotFound", "x", name=name, kind="configmaps")
    api.script = [absent, absent]

    assert kube.get(CONFIG_MAP, name, name) is None
    assert kube.remove(CONFIG_MAP, name, name) is None
    path = f"/api/v1/namespaces/{segment}/configmaps/{segment}"
    assert _paths(api) == [f"GET {path}", f"DELETE {path}"]


@pytest.mark.parametrize(
    "name", ["", "a/b", ".", "..", "../..", "%2e%2e", "\ud800", "a" * 2000], ids=repr
)
def test_a_name_leads_nowhere_else(kube: KubeClient, name: str) -> None:
    """What is no name is not sent."""
    with pytest.raises(InvalidError):
        kube.get(CONFIG_MAP, "default", name)


@pytest.mark.parametrize("namespace", ["..", ".", "../..", "a/b", "%2e", "\udfff"], ids=repr)
def test_a_namespace_leads_nowhere_else(kube: KubeClient, namespace: str) -> None:
    """A list of one namespace does not become one of all."""
    with pytest.raises(InvalidError):
        list(kube.list(CONFIG_MAP, namespace=namespace))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("v1.31.2-gke.100+x_y", "v1.31.2-gke.100+x_y"),
        ("v1\x1b[2J", "unknown"),
        ("v" * 99, "unknown"),
        ({"v": 1}, "unknown"),
        (None, "unknown"),
    ],
)
def test_a_version_is_a_word(api: ScriptedApi, kube: KubeClient, given: Any, shown: str) -> None:
    """It is kept with the cluster, and shown."""
    api.script = [Answer(body={"gitVersion": given})]

    assert kube.version() == shown


@pytest.mark.parametrize("status", [None, [], "x", {}, {"token": 7}, {"allowed": "yes"}])
def test_half_a_status_grants_nothing(api: ScriptedApi, kube: KubeClient, status: Any) -> None:
    """Neither a token nor a right is read out of what is none."""
    api.script = [Answer(body={"status": status})] * 2

    with pytest.raises(UnreachableError, match="the answer holds no token"):
        kube.token_request("default", "bellhop")
    assert len(kube.rights([("get", "", "pods", "", "")])) == 1


@pytest.mark.parametrize(
    "live",
    [
        [],
        {},
        {"metadata": []},
        {"metadata": {"name": "a"}, "data": {"m": {"k": "v"}}},
        {"metadata": {"resourceVersion": "1", "managedFields": ["x"]}, "data": {"m": {"k": "v"}}},
        {"metadata": {"resourceVersion": "1", "managedFields": {"x": 1}}, "data": {"m": {}}},
    ],
)
def test_an_odd_object_leaves_the_refusal_as_it_is(
    api: ScriptedApi, kube: KubeClient, live: Any
) -> None:
    """What is read to get past a defect is untrusted, too."""
    causes = [{"field": "data.m", "message": LEFT_NULL}]
    api.script = [Answer.status(422, "Invalid", "is null", causes=causes), Answer(body=live)]

    with pytest.raises(InvalidError, match="is null"):
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def test_a_refusals_words_do_nothing_to_a_terminal(api: ScriptedApi, kube: KubeClient) -> None:
    """Escapes of untrusted origin are left out."""
    api.script = [Answer.status(422, "Invalid", "a\x1b[2Jb\x07\u202ec\nd")]

    with pytest.raises(InvalidError) as caught:
        kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    assert str(caught.value).isprintable()
    assert str(caught.value).endswith("it is refused: a [2Jb c d")


DEPLOYMENT = GVK("apps", "v1", "Deployment")


def test_what_is_everywhere_the_same_is_not_looked_up(api: ScriptedApi, kube: KubeClient) -> None:
    """A Deployment is applied by the first call that its cluster gets."""
    api.script = [Answer(body={"metadata": {"name": "a", "uid": "u"}})]

    kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}})

    assert [path.partition("?")[0] for path in _paths(api)] == [
        "PATCH /apis/apps/v1/namespaces/default/deployments/a"
    ]


def test_a_built_in_kind_that_is_not_served_is_looked_up(
    api: ScriptedApi, kube: KubeClient
) -> None:
    """An API server may have it switched off: its 404 leads to discovery, which says so."""
    api.script = [NOTHING, READY, NOTHING, READY]

    with pytest.raises(MissingError):
        kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}})

    assert kube.resource(DEPLOYMENT) is None
    assert _paths(api)[2] == "GET /apis/apps/v1"
