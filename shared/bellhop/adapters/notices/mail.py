"""Mail by the standard library: each address is checked, and no password is sent in the clear.

A server may answer one byte every few seconds, so a time-out of each read limits nothing: every
mail has one deadline as a whole, from the lookup of the name to the last byte.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import getaddresses, make_msgid
from ipaddress import ip_address
from typing import ClassVar, Self

from bellhop.adapters.egress.answer import happened
from bellhop.adapters.egress.dialer import LOOKUPS, CrowdedError
from bellhop.adapters.notices.posting import SECONDS, WHOLE_SECONDS
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.structs import Redacted
from bellhop.errors import BellhopError, DeniedError, InvalidError, UnreachableError

_IMPLICIT = 465
"""The port where TLS comes first."""

_PERMANENT = 500


class Mail(Redacted, frozen=True):
    """Where mail goes and who sends it; addresses are lists with commas."""

    secret_fields: ClassVar[Collection[str]] = ("password",)
    host: str
    port: int
    sender: str
    recipients: str
    copies: str = ""
    hidden: str = ""
    identity: str = ""
    password: str = ""


class _Client(smtplib.SMTP):
    """A client that connects where it may."""

    def __init__(self, mail: Mail, reach: AddressPolicy, deadline: Deadline) -> None:
        self._reach = reach
        self._deadline = deadline
        super().__init__(timeout=SECONDS)
        self.connect(mail.host, mail.port)

    def _get_socket(self, host: str, port: int, _: float) -> socket.socket:
        there = dial(host, port, self._reach, self._deadline)
        if port != _IMPLICIT:
            return there
        return ssl.create_default_context().wrap_socket(there, server_hostname=host)


def send(
    mail: Mail, subject: str, text: str, reach: AddressPolicy, seconds: float = WHOLE_SECONDS
) -> None:
    """Send one mail; what is said of an error has the server's code, and none of its words.

    Raises:
        InvalidError: an address is none, or the server may not be called or is not safe.
        DeniedError: it refuses the credentials, the sender or a recipient.
        UnreachableError: it does not answer, or not now, or not in time.
    """
    message, recipients = _write(mail, subject, text)
    with Deadline(seconds) as deadline:
        try:
            with _Client(mail, reach, deadline) as client:
                secure(client, mail)
                client.send_message(message, mail.sender, recipients)
        except BellhopError:
            raise
        except OSError as error:  # SMTPException is one
            if deadline.has_passed:
                said = f"cannot send mail by '{mail.host}': {deadline.reason}"
                raise UnreachableError(said) from None
            raise _map(mail, error) from None


def _write(mail: Mail, subject: str, text: str) -> tuple[EmailMessage, list[str]]:
    message = EmailMessage()
    try:
        message["From"], message["To"], message["Subject"] = mail.sender, mail.recipients, subject
        if mail.copies:
            message["Cc"] = mail.copies
        message["Message-ID"] = make_msgid(domain="bellhop.invalid")
        message.set_content(text)
    except (MessageError, ValueError) as error:
        raise InvalidError("cannot send mail: an address in the Secret is invalid") from error
    every = getaddresses([mail.recipients, mail.copies, mail.hidden])
    return message, [address for _, address in every if address]


def secure(client: smtplib.SMTP, mail: Mail) -> None:
    """Begin TLS where the server has it, and log in where there is a password.

    Raises:
        InvalidError: the password would go out in the clear.
    """
    client.ehlo_or_helo_if_needed()
    if client.has_extn("starttls"):
        client.starttls(context=ssl.create_default_context())
        client.ehlo()
    elif mail.password and mail.port != _IMPLICIT and not _is_local(client):
        raise InvalidError(
            f"cannot send mail by '{mail.host}': it has no TLS, and its password would go out in"
            " the clear; use a port where it has"
        )
    if mail.password:
        client.login(mail.identity or mail.sender, mail.password)


def _is_local(client: smtplib.SMTP) -> bool:
    """Say whether the server is on this machine: nobody reads what goes there."""
    assert client.sock
    return ip_address(client.sock.getpeername()[0]).is_loopback


def _map(mail: Mail, error: OSError) -> BellhopError:
    said = f"cannot send mail by '{mail.host}'"
    match error:
        case smtplib.SMTPAuthenticationError():
            return DeniedError(f"{said}: it refuses the credentials ({error.smtp_code})")
        case smtplib.SMTPRecipientsRefused():
            return DeniedError(f"{said}: it refuses the recipients")
        case smtplib.SMTPResponseException() if error.smtp_code >= _PERMANENT:
            return DeniedError(f"{said}: it answers {error.smtp_code}")
        case smtplib.SMTPResponseException():
            return UnreachableError(f"{said}: it answers {error.smtp_code}")
    return UnreachableError(f"{said}: {happened(error)}")


class Deadline:
    """The end of one call; its connection is shut down then, whatever it is waiting for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._guards = ExitStack()

    def __enter__(self) -> Self:
        """Begin; leaving the block stops what watches the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        self._guards.close()

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self._end

    @property
    def seconds(self) -> float:
        """Return how long the next step may take; at least a moment, for 0 means for ever."""
        return max(min(SECONDS, self._end - time.monotonic()), 0.001)

    @property
    def reason(self) -> str:
        """Say what happened, as the end of an error."""
        return f"it took longer than {self._seconds:g} s"

    def guard(self, there: socket.socket) -> None:
        """Shut a connection down at the deadline, also under TLS that begins later."""
        twin = there.dup()  # TLS takes the socket over; its twin has the same connection.
        timer = threading.Timer(self._end - time.monotonic(), _shut, (twin,))
        timer.daemon = True
        self._guards.callback(twin.close)
        self._guards.callback(timer.join)
        self._guards.callback(timer.cancel)
        timer.start()


def _shut(there: socket.socket) -> None:
    with suppress(OSError):
        there.shutdown(socket.SHUT_RDWR)


def dial(
    host: str,
    port: int,
    reach: AddressPolicy,
    deadline: Deadline,
    resolve: Callable[[str, float], list[str]] = LOOKUPS.addresses,
) -> socket.socket:
    """Connect to a host that may be called, at an address that was checked.

    Raises:
        InvalidError: it may not be, or one of its addresses may not.
        UnreachableError: it does not answer.
    """
    refused = reach.refusal(host)
    if refused:
        raise InvalidError(f"cannot send a notice to '{host}': it {refused}")
    try:
        addresses = resolve(host, deadline.seconds)
    except (TimeoutError, CrowdedError) as error:
        raise UnreachableError(
            f"cannot reach '{host}': looking its name up takes too long"
        ) from error
    except (OSError, UnicodeError) as error:
        raise UnreachableError(f"cannot reach '{host}': its name is not known") from error
    for address in addresses:
        if refused := reach.refusal_of(ip_address(address)):
            raise InvalidError(f"cannot send a notice to '{host}': its address {refused}")
    try:
        there = socket.create_connection((addresses[0], port), timeout=deadline.seconds)
    except OSError as error:
        raise UnreachableError(f"cannot reach '{host}:{port}': it does not answer") from error
    deadline.guard(there)
    return there
