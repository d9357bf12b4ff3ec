"""Which addresses a cluster may have: where a stored kubeconfig may make us call.

A kubeconfig comes from whoever registers a cluster, and what calls it runs inside a cloud. There,
loopback is the function's own runtime, and link-local addresses hand out the cloud's credentials.
On one machine loopback is where laboratory clusters are; link-local is what it is anywhere.

Addresses are judged by what they lead to, in whatever spelling: IPv6 carries IPv4 addresses in
several forms, and a number such as 2130706433 is 127.0.0.1 to the C library. A name is judged
twice: here if it is known, and by each address that it has when it is called.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator

from msgspec import Struct

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LETTERS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_LOOPBACK_NAMES = {"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"}
_METADATA_NAMES = {
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
}
_METADATA = [
    ipaddress.ip_network(text)
    for text in (
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle Cloud
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254",  # Google Cloud
    )
]
_NOBODY = [
    ipaddress.ip_network(text)
    for text in ("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8")
]
# Prefixes whose last 32 bits are an IPv4 address: compatible, mapped, translated, NAT64 twice.
_CARRIERS = [
    ipaddress.IPv6Network(text)
    for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
]
_ISATAP = {0x0000_5EFE, 0x0200_5EFE}
_WORD = 0xFFFF_FFFF


class Reach(Struct, frozen=True):
    """How far calls may go; `loopback` lets them stay on this machine."""

    loopback: bool = False

    def refusal(self, host: str) -> str:
        """Say why a host, as it is written, may not be called; empty if nothing shows."""
        try:
            return self.refusal_of(ipaddress.ip_address(host.removesuffix(".")))
        except ValueError:
            return self._refusal_of_name(host)

    def refusal_of(self, address: Address) -> str:
        """Say why an address may not be called; empty if it may."""
        faces = (address, *_carried(address))
        for face in faces:
            if any(face in network for network in _METADATA):
                return "is a cloud's metadata service"
            if face.is_link_local or getattr(face, "scope_id", None):
                return "is link-local, where clouds hand out credentials"
        if any(face.is_loopback for face in faces):
            return "" if self.loopback else "is the machine that calls itself"
        nobody = any(face in network for face in faces for network in _NOBODY)
        return "is not the address of one host" if nobody else ""

    def _refusal_of_name(self, host: str) -> str:
        name = host.removesuffix(".").lower()
        if not _LETTERS.fullmatch(host):
            return "is not a host name in letters, digits, dots and hyphens"
        if name in _METADATA_NAMES:
            return "is a cloud's metadata service"
        if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
            return "" if self.loopback else "is the machine that calls itself"
        # Octal, hexadecimal and shortened numbers mean one thing here and another there.
        return "is a number; write four decimal numbers with dots" if _number(name) else ""


HERE = Reach(loopback=True)
"""One machine: laboratory clusters listen on loopback."""

ABROAD = Reach()
"""A cloud's function: nothing of what runs it may be called."""


def _carried(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address leads to."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    bits = int(address)
    # `::` and `::1` are themselves.
    if bits > 1 and any(address in network for network in _CARRIERS):
        yield ipaddress.IPv4Address(bits & _WORD)
    if (bits >> 32) & _WORD in _ISATAP:
        yield ipaddress.IPv4Address(bits & _WORD)
    if address.sixtofour:
        yield address.sixtofour
    yield from address.teredo or ()


def _number(name: str) -> bool:
    try:
        socket.inet_aton(name)
    except (OSError, ValueError):
        return False
    return True
