"""What a chat or a mail server gets, and what is said when it does not."""

from __future__ import annotations

import smtplib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bellhop.adapters.egress.dialer import Lookups
from bellhop.adapters.notices import Sender
from bellhop.adapters.notices.mail import Deadline, Mail, dial, secure
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    ThrottledError,
    UnreachableError,
)
from tests.fakes.chat import Chat, Post, chat, dripping, mail_server

SLACK = {"SLACK_TOKEN": "xoxb-hidden", "SLACK_CHANNEL_ID": "C1"}
SUBJECT, TEXT = "Cluster a/b is unhealthy (c)", "Cluster a/b is unhealthy (c)\nwhy\nSince then."


@pytest.fixture
def here() -> Iterator[Chat]:
    with chat() as found:
        yield found


@pytest.fixture
def post() -> Iterator[Post]:
    with mail_server() as found:
        yield found


def sender(here: Chat) -> Sender:
    return Sender(LOCAL, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS})


def refused(here: Chat, kind: str, secret: Mapping[str, str]) -> BellhopError:
    with pytest.raises(BellhopError) as raised:
        sender(here).send(kind, secret, SUBJECT, TEXT)
    assert "hidden" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "secret", "path", "token", "field"),
    [
        pytest.param("Slack", SLACK, "/Slack", "Bearer xoxb-hidden", "channel=C1", id="Slack"),
        pytest.param(
            "Webex",
            {"WEBEX_TOKEN": "w-hidden", "WEBEX_ROOM_ID": "R"},
            "/Webex",
            "Bearer w-hidden",
            "roomId=R",
            id="Webex",
        ),
        pytest.param(
            "Discord",
            {"DISCORD_TOKEN": "d-hidden", "DISCORD_CHANNEL_ID": "1/2"},
            "/Discord/1%2F2/messages",
            "Bot d-hidden",
            f"content={TEXT}",
            id="Discord",
        ),
        pytest.param(
            "Telegram",
            {"TELEGRAM_TOKEN": "1:hidden\n", "TELEGRAM_CHAT_ID": "7"},
            "/Telegram/bot1:hidden/sendMessage",
            "",
            "chat_id=7",
            id="Telegram",
        ),
    ],
)
def test_sends_the_format_of_each_chat(
    here: Chat, kind: str, secret: Mapping[str, str], path: str, token: str, field: str
) -> None:
    """With the keys that Sveltos' Secrets have, whatever a line's end in them says."""
    sender(here).send(kind, secret, SUBJECT, TEXT)

    [(where, who, body)] = here.taken
    name, _, value = field.partition("=")
    assert (where, who, body[name]) == (path, token, value)
    assert TEXT in body.values()


def test_sends_a_card_to_teams(here: Chat) -> None:
    """By the address that is the secret itself."""
    secret = {"TEAMS_WEBHOOK_URL": f"{here.url}/hook/hidden?sig=hidden"}
    sender(here).send("Teams", secret, SUBJECT, TEXT)

    [(where, _, body)] = here.taken
    assert where == "/hook/hidden?sig=hidden"
    blocks = body["attachments"][0]["content"]["body"]
    assert [each["text"] for each in blocks] == [SUBJECT, "why\nSince then."]


@pytest.mark.parametrize("token", ["", "w-hidden"])
def test_sends_a_program_the_facts(here: Chat, token: str) -> None:
    """Beside the words that people get; with a token where there is one."""
    secret = {"WEBHOOK_URL": f"{here.url}/hook/hidden", "WEBHOOK_TOKEN": token}
    sender(here).send("Webhook", secret, SUBJECT, TEXT, {"cluster": "a/b", "healthy": False})

    [(where, who, body)] = here.taken
    assert (where, who) == ("/hook/hidden", f"Bearer {token}" if token else "")
    assert body == {"cluster": "a/b", "healthy": False, "subject": SUBJECT, "text": TEXT}


def test_says_that_a_program_has_no_address(here: Chat) -> None:
    """As of any key, and of what it refuses the status only."""
    assert "no WEBHOOK_URL" in str(refused(here, "Webhook", {"WEBHOOK_TOKEN": "hidden"}))
    here.status, here.answer = 403, b"hidden"
    secret = {"WEBHOOK_URL": f"{here.url}/hidden"}
    assert "403" in str(refused(here, "Webhook", secret))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param(401, DeniedError, id="the token is refused"),
        pytest.param(404, InvalidError, id="there is no such channel"),
        pytest.param(429, ThrottledError, id="too many"),
        pytest.param(503, UnreachableError, id="not now"),
        pytest.param(302, InvalidError, id="a redirect is not followed"),
    ],
)
def test_says_what_was_refused(here: Chat, status: int, kind: type[BellhopError]) -> None:
    """With the status, and without a word of the Secret or of the answer."""
    here.status, here.answer = status, b"your token is xoxb-hidden"
    error = refused(here, "Slack", SLACK)

    assert type(error) is kind
    assert str(status) in str(error)
    assert len(here.taken) == 1


def test_slack_refuses_with_a_word(here: Chat) -> None:
    """It answers 200 all the same."""
    here.answer = b'{"ok": false, "error": "channel_not_found"}'

    assert "channel_not_found" in str(refused(here, "Slack", SLACK))


@pytest.mark.parametrize("answer", [b"", b"<html>sign in</html>", b"[]", b"\xff"])
def test_what_is_no_answer_of_slack_is_a_refusal(here: Chat, answer: bytes) -> None:
    """A proxy before it may answer 200 with a page of its own: nobody was notified."""
    here.answer = answer

    assert "no reason" in str(refused(here, "Slack", SLACK))


def test_says_which_key_is_missing(here: Chat) -> None:
    """Nothing is sent."""
    assert "no SLACK_CHANNEL_ID" in str(refused(here, "Slack", {"SLACK_TOKEN": "hidden"}))
    assert here.taken == []


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest/hidden",
        "https://localhost:PORT/hidden",
        "https://127.0.0.1:PORT/hidden",
        "https://[::ffff:127.0.0.1]:PORT/hidden",
        "http://example.com/hidden",
        "file:///etc/hidden",
        "https://2130706433/hidden",
    ],
)
def test_calls_nobody_that_runs_it(here: Chat, url: str) -> None:
    """In a cloud neither its metadata nor the machine itself, wherever the Secret comes from."""
    secret = {"TEAMS_WEBHOOK_URL": url.replace("PORT", str(here.port))}
    with pytest.raises(InvalidError) as raised:
        Sender(PUBLIC).send("Teams", secret, SUBJECT, TEXT)

    assert "hidden" not in str(raised.value)
    assert here.taken == []


def test_says_that_nobody_answers() -> None:
    """It may do so later."""
    with chat() as gone:
        pass
    assert isinstance(refused(gone, "Slack", SLACK), UnreachableError)


def mail(post: Post, **more: str) -> dict[str, str]:
    there = {
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(post.port),
        "SMTP_SENDER": "bellhop@example.com",
        "SMTP_RECIPIENTS": "ann@example.com, Bob <bob@example.com>",
        "SMTP_BCC": "eve@example.com",
    }
    return there | more


def test_sends_mail(post: Post) -> None:
    """To all recipients; hidden ones are not named in it."""
    Sender(LOCAL).send("SMTP", mail(post), SUBJECT, TEXT)

    [(recipients, text)] = post.mails
    assert recipients == ["ann@example.com", "bob@example.com", "eve@example.com"]
    assert f"Subject: {SUBJECT}" in text
    assert "why" in text
    assert "eve" not in text


def test_sends_mail_with_a_password(post: Post) -> None:
    """A wrong one is reported by the server's code, without its words."""
    post.password = "pass-hidden"
    secret = mail(post, SMTP_IDENTITY="bell", SMTP_PASSWORD="pass-hidden")
    Sender(LOCAL).send("SMTP", secret, SUBJECT, TEXT)
    assert len(post.mails) == 1

    with pytest.raises(DeniedError) as raised:
        Sender(LOCAL).send("SMTP", {**secret, "SMTP_PASSWORD": "old"}, SUBJECT, TEXT)
    assert str(raised.value) == (
        "cannot send mail by '127.0.0.1': it refuses the credentials (535)"
    )


@pytest.mark.parametrize(("code", "kind"), [(451, UnreachableError), (550, DeniedError)])
def test_says_what_a_mail_server_refuses(post: Post, code: int, kind: type[BellhopError]) -> None:
    """By its code it may pass or not."""
    post.refuses = code
    with pytest.raises(kind, match=str(code)):
        Sender(LOCAL).send("SMTP", mail(post), SUBJECT, TEXT)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("SMTP_PORT", "none", "SMTP_PORT is not a port"),
        ("SMTP_SENDER", "a\nBcc: x@example.com", "an address in the Secret is invalid"),
        ("SMTP_HOST", "metadata.google.internal", "metadata service"),
    ],
)
def test_refuses_what_no_mail_has(post: Post, key: str, value: str, message: str) -> None:
    """Nothing is sent."""
    with pytest.raises(InvalidError, match=message):
        Sender(LOCAL).send("SMTP", mail(post) | {key: value}, SUBJECT, TEXT)
    assert post.mails == []


class Elsewhere:
    """A connection to another machine, as its address says."""

    def __init__(self, there: Any) -> None:
        self._there = there

    def getpeername(self) -> tuple[str, int]:
        return "203.0.113.7", 25

    def __getattr__(self, name: str) -> Any:
        return getattr(self._there, name)


def test_no_password_goes_out_in_the_clear(post: Post) -> None:
    """A server without TLS on another machine gets none; without a password it may be used."""
    there = Mail("mail.example", post.port, "a@example.com", "b@example.com", password="hidden")
    with smtplib.SMTP("127.0.0.1", post.port) as client:
        client.sock = Elsewhere(client.sock)
        with pytest.raises(InvalidError, match="its password would go out in the clear"):
            secure(client, there)
        secure(client, Mail("mail.example", post.port, "a@example.com", "b@example.com"))


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254"])
def test_calls_no_name_that_leads_home(address: str) -> None:
    """One address of several is enough: cannot find out which one would be called."""
    with Deadline(5) as deadline, pytest.raises(InvalidError, match="its address is"):
        dial("chat.example", 443, PUBLIC, deadline, lambda *_: ["203.0.113.7", address])


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"a", id="in a header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b"a", id="in an answer without a length"),
    ],
)
@pytest.mark.parametrize("kind", ["Teams", "Webhook", "Slack"])
def test_a_receiver_that_drips_holds_nobody(kind: str, head: bytes, drop: bytes) -> None:
    """One deadline ends the whole call, although no single read takes long."""
    with dripping(head, drop) as port:
        url = f"http://127.0.0.1:{port}/hidden"
        secret = {**SLACK, "TEAMS_WEBHOOK_URL": url, "WEBHOOK_URL": url}
        with pytest.raises(UnreachableError, match=r"it took longer than 0\.3 s") as raised:
            Sender(LOCAL, {"Slack": url}, seconds=0.3).send(kind, secret, SUBJECT, TEXT)

    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("head", [b"220 ", b"220 here\r\n250-", b"220 here\r\n250-a\r\n250-"])
def test_a_mail_server_that_drips_holds_nobody(post: Post, head: bytes) -> None:
    """Neither in its greeting nor in an answer."""
    with dripping(head, b"a") as port:
        secret = mail(post, SMTP_PORT=str(port))
        with pytest.raises(UnreachableError, match=r"it took longer than 0\.3 s"):
            Sender(LOCAL, seconds=0.3).send("SMTP", secret, SUBJECT, TEXT)


def test_a_handshake_that_drips_holds_nobody() -> None:
    """TLS takes the connection over, and the deadline still ends it."""
    record = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"
    with dripping(record, b"a") as port:
        secret = {"TEAMS_WEBHOOK_URL": f"https://127.0.0.1:{port}/hidden"}
        with pytest.raises(UnreachableError, match=r"it took longer than 0\.3 s"):
            Sender(LOCAL, seconds=0.3).send("Teams", secret, SUBJECT, TEXT)


def test_a_name_that_is_never_found_holds_nobody() -> None:
    """The look-up is left behind when the call's time is up."""
    never = threading.Event()
    lookups = Lookups(lambda _: [str(never.wait(5))])
    with Deadline(0.1) as deadline, pytest.raises(UnreachableError, match="its name up takes too"):
        dial("chat.example", 443, PUBLIC, deadline, lookups.addresses)
    never.set()
