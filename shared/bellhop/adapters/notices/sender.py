"""One notice to one place, by the keys that Sveltos gives its Secrets.

A webhook, which Sveltos lacks, receives facts in JSON, as a program needs them. So are the incident
managers, each in its own format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from bellhop.adapters.notices.posting import FORMATS, WHOLE_SECONDS, post
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.errors import DeniedError, InvalidError

ENDPOINTS: Mapping[str, str] = {
    "Slack": "https://slack.com/api/chat.postMessage",
    "Webex": "https://webexapis.com/v1/messages",
    "Discord": "https://discord.com/api/v10/channels",
    "Telegram": "https://api.telegram.org",
    "PagerDuty": "https://events.pagerduty.com/v2/enqueue",
    "Opsgenie": "https://api.opsgenie.com",
}
"""The services that have one address for everybody."""


class Sender:
    """Sends notices; `endpoints` are for who has a chat of his own, as laboratories do.

    One notice takes at most so many `seconds`, whatever its receiver does.
    """

    def __init__(
        self,
        reach: AddressPolicy = PUBLIC,
        endpoints: Mapping[str, str] = ENDPOINTS,
        seconds: float = WHOLE_SECONDS,
    ) -> None:
        self._reach = reach
        self._endpoints = endpoints
        self._seconds = seconds
        self._ways: Mapping[str, Callable[[Mapping[str, str], str, str], None]] = {
            "Slack": self._slack,
            "Webex": self._webex,
            "Discord": self._discord,
            "Teams": self._teams,
            "Telegram": self._telegram,
            "SMTP": self._mail,
        }

    def send(
        self,
        kind: str,
        secret: Mapping[str, str],
        subject: str,
        text: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Send one notice; a program gets the facts beside it.

        Raises:
            InvalidError: the Secret lacks a key, or names what may not be called.
            DeniedError: its credentials are refused.
            TemporaryError: the other side does not answer, or not now.
        """
        stripped = {key: value.strip() for key, value in secret.items()}
        known = {**(facts or {}), "subject": subject, "text": text}
        if kind == "Webhook":
            self._webhook(stripped, known)
        elif kind in FORMATS:
            request = FORMATS[kind](stripped, known, self._endpoints.get(kind, ""))
            self._post(request.url, request.body, request.headers)
        else:
            self._ways[kind](stripped, subject, text)

    def _slack(self, secret: Mapping[str, str], _: str, text: str) -> None:
        body = {"channel": _key(secret, "SLACK_CHANNEL_ID"), "text": text}
        headers = {"Authorization": f"Bearer {_key(secret, 'SLACK_TOKEN')}"}
        answer = _read(self._post(self._endpoints["Slack"], body, headers))
        if answer.get("ok") is not True:
            # It answers 200 whatever becomes of it.
            said = answer.get("error")
            word = said if isinstance(said, str) and said.isidentifier() else "no reason"
            raise DeniedError(f"cannot send a notice to Slack: it refuses, and says '{word[:64]}'")

    def _webex(self, secret: Mapping[str, str], _: str, text: str) -> None:
        body = {"roomId": _key(secret, "WEBEX_ROOM_ID"), "text": text}
        headers = {"Authorization": f"Bearer {_key(secret, 'WEBEX_TOKEN')}"}
        self._post(self._endpoints["Webex"], body, headers)

    def _discord(self, secret: Mapping[str, str], _: str, text: str) -> None:
        channel = quote(_key(secret, "DISCORD_CHANNEL_ID"), safe="")
        headers = {"Authorization": f"Bot {_key(secret, 'DISCORD_TOKEN')}"}
        url = f"{self._endpoints['Discord']}/{channel}/messages"
        # Nobody is called by what a cluster has said.
        body = {"content": text[:2000], "allowed_mentions": {"parse": []}}
        self._post(url, body, headers)

    def _teams(self, secret: Mapping[str, str], subject: str, text: str) -> None:
        rest = text.partition("\n")[2]
        body: list[dict[str, Any]] = [
            {"type": "TextBlock", "text": subject, "weight": "bolder", "wrap": True}
        ]
        body += [{"type": "TextBlock", "text": rest, "wrap": True}] if rest else []
        card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
        sent = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        message = {"type": "message", "attachments": [sent]}
        self._post(_key(secret, "TEAMS_WEBHOOK_URL"), message, {})

    def _telegram(self, secret: Mapping[str, str], _: str, text: str) -> None:
        token = quote(_key(secret, "TELEGRAM_TOKEN"), safe=":")
        body = {"chat_id": _key(secret, "TELEGRAM_CHAT_ID"), "text": text[:4096]}
        self._post(f"{self._endpoints['Telegram']}/bot{token}/sendMessage", body, {})

    def _webhook(self, secret: Mapping[str, str], body: Mapping[str, Any]) -> None:
        token = secret.get("WEBHOOK_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._post(_key(secret, "WEBHOOK_URL"), body, headers)

    def _mail(self, secret: Mapping[str, str], subject: str, text: str) -> None:
        from bellhop.adapters.notices.mail import Mail, send  # noqa: PLC0415 - few send mail

        recipients = _key(secret, "SMTP_RECIPIENTS")
        mail = Mail(
            host=_key(secret, "SMTP_HOST"),
            port=_port(secret.get("SMTP_PORT") or "587"),
            sender=_key(secret, "SMTP_SENDER"),
            recipients=recipients,
            copies=secret.get("SMTP_CC", ""),
            hidden=secret.get("SMTP_BCC", ""),
            identity=secret.get("SMTP_IDENTITY", ""),
            password=secret.get("SMTP_PASSWORD", ""),
        )
        send(mail, subject, text, self._reach, self._seconds)

    def _post(self, url: str, body: Any, headers: dict[str, str]) -> bytes:
        if any(not each.isprintable() or not each.isascii() for each in headers.values()):
            raise InvalidError("cannot send a notice: its token has characters that no token has")
        return post(url, json.dumps(body).encode(), headers, self._reach, self._seconds)


def _read(answer: bytes) -> dict[str, Any]:
    """Read an answer's JSON; of what is none nothing is known."""
    try:
        found = json.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _key(secret: Mapping[str, str], name: str) -> str:
    if not secret.get(name):
        raise InvalidError(f"cannot send a notice: its Secret has no {name}; put it in")
    return secret[name]


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise InvalidError("cannot send a notice: its SMTP_PORT is not a port")
    return int(text)
