"""What the Secret of Sveltos' agent may say, and what a message of NATS may be."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bellhop.errors import InvalidError
from bellhop.forwarder.nats.receiver import covers, event
from bellhop.forwarder.nats.secret import MOST, Server, Stream
from bellhop.forwarder.nats.secret import parse as parse_secret
from tests.infra.nats_rig import configuration, happened, secret

URL = "nats://nats.nats.svc.cluster.local:4222"
PEM = "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----"


def servers(entry: Any) -> tuple[Server, ...]:
    return parse_secret(secret(entry))


def test_reads_what_the_documentation_of_sveltos_shows() -> None:
    """A server, its subjects, and a user with a password."""
    user = {"user": "admin", "password": "my-password"}
    given = configuration(url=URL, subjects=["test", "foo"], authorization={"user": user})

    [found] = servers(given)

    assert found == Server((URL,), ("test", "foo"), user="admin", password="my-password")
    assert found.place == "nats.nats.svc.cluster.local:4222"


def test_takes_the_subjects_of_jetstream_for_streams() -> None:
    """So the agent reads them; a newer form names a stream's subjects, too."""
    streams = [{"name": "T", "subjects": ["t.>", "t.>"]}, {"name": "U"}]
    given = configuration("jetstream", url=URL, subjects=["S"], streams=streams)

    [found] = servers({**configuration(url=URL, subjects=["s"]), **given})[1:]

    assert found == Server((URL,), (), (Stream("S"), Stream("T", ("t.>",)), Stream("U")))


@pytest.mark.parametrize("written", [PEM, base64.b64encode(PEM.encode()).decode()])
def test_takes_pem_as_it_is_and_as_go_reads_bytes(written: str) -> None:
    """Certificates, keys and authorities, in base64 or not."""
    pair = {"certPem": written, "keyPem": written}
    proof = {"clientCert": pair, "rootCA": written, "token": "t"}

    [found] = servers(configuration(url=URL, subjects=["s"], authorization=proof))

    assert (found.certificate, found.key, found.authority, found.token) == (PEM, PEM, PEM, "t")


def test_takes_several_addresses_of_one_server() -> None:
    """Without a scheme they are of NATS; what an address holds beside its host is not shown."""
    [found] = servers(configuration(url="u:hunter2@one, tls://two:1, nats://[::1]", subjects=["s"]))

    assert found.urls == ("nats://u:hunter2@one", "tls://two:1", "nats://[::1]")
    assert found.place == "one:4222,two:1,[::1]:4222"
    assert "hunter2" not in repr(found)
    assert found.concealed("not hunter2") == "not …"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        pytest.param("{", "its entry is not a JSON object in base64", id="no JSON"),
        pytest.param("[]", "its entry is not a JSON object", id="a list"),
        pytest.param("{}", "it has neither 'nats' nor 'jetstream'", id="nothing"),
        pytest.param({"nats": []}, "it has neither", id="an empty list"),
        pytest.param({"nats": "hunter2"}, "its nats is not an object", id="a text"),
        pytest.param({"nats": {"url": URL}}, "names nothing to subscribe to", id="a level less"),
        pytest.param(configuration(url=URL), "names nothing to subscribe to", id="no subjects"),
        pytest.param(configuration(subjects=["s"]), "has no url", id="no address"),
        pytest.param(configuration(url="http://hunter2", subjects=["s"]), "address", id="http"),
        pytest.param(configuration(url="nats://a:hunter2", subjects=["s"]), "address", id="port"),
        pytest.param(
            configuration(url=URL, subjects="hunter2"), "subjects must be a list", id="text"
        ),
        pytest.param(configuration(url=URL, subjects=[1]), "not a list of names", id="a number"),
        pytest.param(configuration(url=URL, subjects=["s"], authorization=7), "object", id="seven"),
        pytest.param(
            configuration(url=URL, subjects=["s"], authorization={"rootCA": "hunter2"}),
            "authorization.rootCA is not PEM",
            id="an authority that is none",
        ),
        pytest.param(
            configuration("jetstream", url=URL, streams=[{"subjects": ["s"]}]),
            "has no name",
            id="a stream without a name",
        ),
        pytest.param(
            configuration(url=URL, subjects=[f"{number}" for number in range(MOST + 1)]),
            f"more than {MOST}",
            id="too many",
        ),
    ],
)
def test_refuses_a_secret_that_makes_no_sense(entry: Any, why: str) -> None:
    """The sentence names the Secret and the place in it, and never a value."""
    with pytest.raises(InvalidError, match=why) as caught:
        servers(entry)

    assert "'projectsveltos/sveltos-nats'" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_refuses_a_secret_without_the_entry() -> None:
    """Nor does one that is no base64 end in a traceback."""
    with pytest.raises(InvalidError, match="it has no entry 'sveltos-nats'"):
        parse_secret({"data": {"nats": ""}})
    with pytest.raises(InvalidError, match="not a JSON object in base64"):
        parse_secret({"data": {"sveltos-nats": "hunter2!"}})


def test_names_the_subject_of_an_event() -> None:
    """Whatever the event says itself: the subject, and what was asked where that is another."""
    lie = happened(1, messagingsubject="a lie", messagingasked="another")

    assert json.loads(event("s", "s", None, lie)) == {
        **json.loads(happened(1)),
        "messagingsubject": "s",
    }
    assert json.loads(event("s.1", "s.*", {}, lie))["messagingasked"] == "s.*"


def test_reads_the_modes_of_the_binding() -> None:
    """Attributes in headers with any data, or the JSON format, which headers may name."""
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "a%20b", "Ce-Type": "t"}
    binary = json.loads(event("s", "s", {**headers, "content-type": "text/plain"}, b"\xc3\xa4"))
    structured = {"Content-Type": "application/cloudevents+json; charset=utf-8"}

    assert (binary["source"], binary["type"], binary["data"]) == ("a b", "t", "ä")
    assert json.loads(event("s", "s", structured, happened(1)))["id"] == "1"
    assert json.loads(event("s", "s", {"Nats-Msg-Id": "7"}, happened(1)))["id"] == "1"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b"", id="empty"),
        pytest.param({}, b"[]", id="a list"),
        pytest.param({}, b'{"specversion": "1.0"}', id="half"),
        pytest.param({}, happened(1, specversion="0.3"), id="an earlier version"),
        pytest.param({"ce-id": "1"}, b"{}", id="half in headers"),
        pytest.param(
            {"content-type": "application/cloudevents-batch+json"},
            b"[" + happened(1) + b"]",
            id="a batch",
        ),
    ],
)
def test_refuses_what_is_no_event(headers: dict[str, str], body: bytes) -> None:
    """With a sentence that can be said of the subject."""
    with pytest.raises(InvalidError, match=r"^cannot (take|read)"):
        event("s", "s", headers, body)


def test_refuses_no_event_for_its_time() -> None:
    """The sender's clock may be wrong, or ours, and what we refuse is lost."""
    time = "9999-12-31T23:59:59-12:00"

    assert json.loads(event("s", "s", None, happened(1, time=time)))["time"] == time


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.b", "a", False),
        ("a", "a.b", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("*.b", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
    ],
)
def test_knows_the_wildcards_of_nats(pattern: str, subject: str, *, expected: bool) -> None:
    """One word, or all that are left, of which there is at least one."""
    assert covers(pattern, subject) is expected
