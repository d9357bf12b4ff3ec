"""The kubeconfig decides where a request goes, as which user, and how long it may take."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import socket
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube import transport
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Acting, Request, Transport
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import LOCAL
from bellhop.errors import (
    DeniedError,
    InvalidError,
    MissingError,
    UnauthorizedError,
    UnreachableError,
)
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

CALL = Call("prod/eu-1", "read ConfigMap 'web/a'")
GET = Request("GET", "/x")


def test_sends_the_token_and_asks_for_json(api: ScriptedApi) -> None:
    """Each request carries its user, and the impersonated one if that is set."""
    api.script = [Answer()]

    Acting(Transport("prod/eu-1", api.kubeconfig, reach=LOCAL), "team/alice").send(GET, CALL)

    headers = api.seen[0].headers
    assert headers["Authorization"] == "Bearer first"
    assert headers["Accept"] == "application/json"
    assert headers["Impersonate-User"] == "system:serviceaccount:team:alice"


def test_sends_a_body_as_json(api: ScriptedApi) -> None:
    """Integers beyond 2**53 arrive whole, in both directions."""
    api.script = [lambda seen: Answer(body=seen.body)]
    request = Request(
        "PATCH", "/x", {"force": "true"}, {"n": 2**63 - 1}, "application/apply-patch+yaml"
    )

    answer = Transport("a/b", api.kubeconfig, reach=LOCAL).send(request, CALL)

    assert answer == {"n": 2**63 - 1}
    assert api.seen[0].path == "/x?force=true"
    assert api.seen[0].headers["Content-Type"] == "application/apply-patch+yaml"


def test_keeps_one_connection(api: ScriptedApi) -> None:
    """A handshake for each call would cost more than the call."""
    api.script = [Answer(), Answer.status(404), Answer()]
    sender = Transport("a/b", api.kubeconfig, reach=LOCAL)

    for _ in range(3):
        sender.ask(GET, CALL)

    assert api.open == 1


def test_keeps_a_connection_for_each_of_sixteen_threads(
    api: ScriptedApi, caplog: pytest.LogCaptureFixture
) -> None:
    """No connection is thrown away because the pool is full."""
    together = threading.Barrier(16)

    def meet(_: Any) -> Answer:
        together.wait(10)
        return Answer()

    api.script = [meet] * 48
    sender = Transport("a/b", api.kubeconfig, reach=LOCAL)

    with caplog.at_level(logging.DEBUG), ThreadPoolExecutor(16) as threads:
        for _ in range(3):
            list(threads.map(lambda _: sender.ask(GET, CALL), range(16)))

    assert api.open == 16
    assert "Connection pool is full" not in caplog.text


def test_logs_no_body(api: ScriptedApi, caplog: pytest.LogCaptureFixture) -> None:
    """Not even at debug level: it may be a Secret."""
    api.script = [Answer(body={"data": "hunter2"}), Answer.status(422, message="hunter2")]
    sender = Transport("a/b", api.kubeconfig, reach=LOCAL)

    with caplog.at_level(logging.DEBUG):
        sender.ask(GET, CALL)
        sender.ask(GET, CALL)

    assert "hunter2" not in caplog.text
    assert "first" not in caplog.text


def test_unpacks_gzip(api: ScriptedApi) -> None:
    """Large lists come compressed."""
    body = gzip.compress(json.dumps({"a": 1}).encode())
    api.script = [Answer(body=body, headers={"Content-Encoding": "gzip"})]

    assert Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL) == {"a": 1}


def test_follows_no_redirect(api: ScriptedApi) -> None:
    """Another address is another cluster, and gets no credentials."""
    api.script = [Answer(302, headers={"Location": "/elsewhere"})]

    with pytest.raises(UnreachableError, match="it answers 302"):
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)


def test_ignores_the_proxies_and_bundles_of_the_environment(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine does not decide where a cluster's credentials go."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    api.script = [Answer(body={"ok": 1})]

    assert Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL) == {"ok": 1}


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_no_api_server(api: ScriptedApi, body: bytes) -> None:
    """A success that cannot be read is not taken for an answer, nor quoted."""
    api.script = [Answer(body=body)]

    with pytest.raises(UnreachableError, match="is not JSON") as caught:
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)

    assert caught.value.__context__ is None


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_asks_again_when_an_idle_connection_was_closed(api: ScriptedApi, method: str) -> None:
    """Reading and applying may be repeated."""
    api.script = [Answer(drop=True), Answer(body={"ok": 1})]

    assert Transport("a/b", api.kubeconfig, reach=LOCAL).send(Request(method, "/x"), CALL) == {
        "ok": 1
    }


@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_repeats_nothing_that_counts_twice(api: ScriptedApi, method: str) -> None:
    """Whether the object was there is known only to the first deletion."""
    api.script = [Answer(drop=True)]

    with pytest.raises(UnreachableError, match="broke off"):
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(Request(method, "/x"), CALL)


def test_asks_again_only_once(api: ScriptedApi) -> None:
    """Two broken connections are an unreachable cluster."""
    api.script = [Answer(drop=True), Answer(drop=True)]

    with pytest.raises(UnreachableError, match="broke off"):
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)


def test_does_not_repeat_after_a_long_wait(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was at work for long is not sent again."""
    monkeypatch.setattr(transport, "_AT_ONCE_SECONDS", 0)
    api.script = [Answer(drop=True)]

    with pytest.raises(UnreachableError, match="broke off"):
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)


def test_gives_up_on_a_server_that_says_nothing(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading ends in time, and is not tried again."""
    monkeypatch.setattr(transport, "READ_SECONDS", 0.2)
    wake = threading.Event()
    api.script = [lambda _: Answer(drop=wake.wait(60))]

    with pytest.raises(UnreachableError, match="does not answer in time"):
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)
    wake.set()

    assert len(api.seen) == 1


def test_gives_up_on_a_server_that_takes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full backlog is as good as a host that swallows packets."""
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.2)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = deaf.getsockname()
        with socket.create_connection(address), socket.socket() as filler:
            filler.settimeout(0)
            filler.connect_ex(address)
            sender = Transport(
                "a/b", Kubeconfig(f"http://127.0.0.1:{address[1]}", token="t"), reach=LOCAL
            )

            with pytest.raises(UnreachableError, match="takes no connection in time"):
                sender.send(GET, CALL)


def test_says_nothing_of_a_token_that_no_header_takes(api: ScriptedApi) -> None:
    """The library's error quotes the header."""
    sender = Transport("a/b", replace(api.kubeconfig, token="se\ncret"), reach=LOCAL)

    with pytest.raises(InvalidError, match="cannot be made") as caught:
        sender.send(GET, CALL)

    assert "cret" not in "".join(traceback.format_exception(caught.value))


def test_an_unknown_host_is_unreachable() -> None:
    """DNS may come back."""
    sender = Transport("a/b", Kubeconfig("https://nowhere.invalid", token="t"), reach=LOCAL)

    with pytest.raises(UnreachableError, match="its host name is not known"):
        sender.send(GET, CALL)


def test_a_refused_connection_is_unreachable() -> None:
    """Nobody listens there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        kubeconfig = Kubeconfig(f"http://127.0.0.1:{held.getsockname()[1]}", token="t")

        with pytest.raises(UnreachableError, match="refused or has no route"):
            Transport("a/b", kubeconfig, reach=LOCAL).send(GET, CALL)


def test_https_to_a_plain_server_is_unreachable(api: ScriptedApi) -> None:
    """What is no TLS says so."""
    kubeconfig = Kubeconfig(api.url.replace("http:", "https:"), token="t")

    with pytest.raises(UnreachableError, match="TLS failed"):
        Transport("a/b", kubeconfig, reach=LOCAL).send(GET, CALL)


def _pem(label: str) -> str:
    body = base64.b64encode(b"\x30\x03\x02\x01\x01").decode()
    text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        pytest.param({"ca_data": _pem("CERTIFICATE")}, "certificate-authority-data", id="CA"),
        pytest.param(
            {
                "client_certificate_data": _pem("CERTIFICATE"),
                "client_key_data": _pem("PRIVATE KEY"),
            },
            "client-certificate-data or client-key-data",
            id="client",
        ),
    ],
)
def test_damaged_certificates_are_invalid(fields: dict[str, str], part: str) -> None:
    """What has the shape of a certificate and is none shows when it is used."""
    with pytest.raises(InvalidError, match=f"of cluster 'a/b': {part} is damaged"):
        Transport("a/b", Kubeconfig("https://127.0.0.1", **fields), reach=LOCAL)


def test_reads_the_credentials_again_when_they_are_refused(api: ScriptedApi) -> None:
    """A rotated token costs one more request, and no failure."""
    api.script = [Answer(401), Answer(body={"ok": 1}), Answer(body={"ok": 2})]
    sender = Transport(
        "a/b", api.kubeconfig, renew=lambda _: Kubeconfig(api.url, token="second"), reach=LOCAL
    )

    assert [sender.send(GET, CALL), sender.send(GET, CALL)] == [{"ok": 1}, {"ok": 2}]
    assert [seen.headers["Authorization"] for seen in api.seen] == [
        "Bearer first",
        "Bearer second",
        "Bearer second",
    ]


@pytest.mark.parametrize("token", ["first", None], ids=["the same", "none"])
def test_is_denied_when_there_are_no_other_credentials(api: ScriptedApi, token: str | None) -> None:
    """The same credentials are not sent twice."""
    api.script = [Answer(401)]
    renewed = Kubeconfig(api.url, token=token) if token else None

    with pytest.raises(UnauthorizedError, match="credentials are not accepted"):
        Transport("a/b", api.kubeconfig, renew=lambda _: renewed, reach=LOCAL).send(GET, CALL)


def test_is_denied_when_the_new_credentials_are_refused_too(api: ScriptedApi) -> None:
    """They are read again once for a request."""
    api.script = [Answer(401), Answer(401)]

    with pytest.raises(UnauthorizedError):
        Transport(
            "a/b", api.kubeconfig, renew=lambda _: Kubeconfig(api.url, token="x"), reach=LOCAL
        ).send(GET, CALL)


def test_what_a_webhook_refuses_is_not_the_credentials(api: ScriptedApi) -> None:
    """An admission webhook, or an aggregated API server, may answer 401 of its own."""
    api.accepts = True
    message = 'admission webhook "a.example" denied the request: Unauthorized'
    api.script = [Answer.status(401, "Unauthorized", message)]

    with pytest.raises(DeniedError, match="denied the request") as caught:
        Transport("a/b", api.kubeconfig, reach=LOCAL).send(GET, CALL)

    assert not isinstance(caught.value, UnauthorizedError)


def test_threads_that_are_refused_together_renew_once(api: ScriptedApi) -> None:
    """One reads the credentials; the others go with what it found."""
    together = threading.Barrier(8)
    renewals: list[int] = []

    def answer(seen: Any) -> Answer:
        if seen.headers["Authorization"] == "Bearer first":
            together.wait(10)
            return Answer(401)
        return Answer(body={"ok": 1})

    def renew(_refused: Kubeconfig) -> Kubeconfig:
        renewals.append(1)
        return Kubeconfig(api.url, token="second")

    api.script = [answer] * 16
    sender = Transport("a/b", api.kubeconfig, renew=renew, reach=LOCAL)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: sender.send(GET, CALL), range(8)))

    assert answers == [{"ok": 1}] * 8
    assert renewals == [1]


def test_a_failure_to_renew_is_what_is_said(api: ScriptedApi) -> None:
    """A cluster whose secret is deleted is no longer registered."""

    def gone(_refused: Kubeconfig) -> Kubeconfig:
        raise MissingError("cluster 'a/b' has no stored credentials; register it")

    api.script = [Answer(401)]

    with pytest.raises(MissingError, match="register it"):
        Transport("a/b", api.kubeconfig, renew=gone, reach=LOCAL).send(GET, CALL)
