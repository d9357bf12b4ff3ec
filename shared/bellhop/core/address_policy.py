"""Addresses that clusters and contents may have: users choose them, and Bellhop calls them.

Users write kubeconfigs, and functions in a cloud call their servers. In a function,
loopback is the function's own runtime, and link-local addresses hand out the cloud's credentials.
On one machine loopback is where laboratory clusters are; link-local is what it is anywhere.

Addresses are checked by where they lead, in any spelling: IPv6 carries IPv4 addresses in
several forms, and a number such as 2130706433 is 127.0.0.1 to the C library. A name is checked
twice: here if it is known, and by each address that it has when it is called.

An operator may hold contents to a list of hosts and ranges. A host in it is trusted by its name,
wherever that leads but to a cloud's metadata service.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import InvalidError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Range = ipaddress.IPv4Network | ipaddress.IPv6Network

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
_LISTED = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)
_PUBLIC = "public"
_UNLISTED = "is not among the hosts and ranges of the setting BELLHOP_EGRESS_ALLOW"


class Allowed(Struct, frozen=True):
    """The entries of a list: hosts (`*.` before one for all below it), ranges, public addresses."""

    hosts: tuple[str, ...]
    ranges: tuple[Range, ...]
    public: bool

    def has_host(self, host: str) -> bool:
        """Return whether the list names a host, as it is written."""
        name = host.removesuffix(".").lower()
        return any(
            name.endswith(each[1:]) if each.startswith("*") else name == each for each in self.hosts
        )

    def has_address(self, address: Address) -> bool:
        """Return whether an address is in one of the ranges, or is public where these are named."""
        return (self.public and address.is_global) or any(address in each for each in self.ranges)


class AddressPolicy(Struct, frozen=True):
    """How far calls may go; `loopback` lets them stay on this machine, `only` nowhere but there."""

    loopback: bool = False
    only: Allowed | None = None

    def within(self, text: str) -> AddressPolicy:
        """Return the same for contents, which come only from what a list names; an empty one, all.

        Raises:
            InvalidError: something in the list is neither a host nor a range.
        """
        return replace(self, only=listed(text))

    def refusal(self, host: str) -> str:
        """Say why a host, as it is written, may not be called; empty if nothing shows."""
        try:
            return self.refusal_of(ipaddress.ip_address(host.removesuffix(".")))
        except ValueError:
            return self._refusal_of_name(host)

    def refusal_of(self, address: Address, host: str = "") -> str:
        """Say why an address, which a host has, may not be called; empty if it may."""
        faces = (address, *_embedded_addresses(address))
        for face in faces:
            if any(face in network for network in _METADATA):
                return "is a cloud's metadata service"
            if face.is_link_local or getattr(face, "scope_id", None):
                return "is link-local, where clouds hand out credentials"
        loopback = any(face.is_loopback for face in faces)
        if loopback and not self.loopback:
            return "is the machine that calls itself"
        if not loopback and any(face in network for face in faces for network in _NOBODY):
            return "is not the address of one host"
        if self.only is None or self.only.has_host(host):
            return ""
        return "" if all(map(self.only.has_address, faces[1:] or faces)) else _UNLISTED

    def _refusal_of_name(self, host: str) -> str:
        name = host.removesuffix(".").lower()
        if not _LETTERS.fullmatch(host):
            return "is not a host name in letters, digits, dots and hyphens"
        if name in _METADATA_NAMES:
            return "is a cloud's metadata service"
        if not self.loopback and (name in _LOOPBACK_NAMES or name.endswith(".localhost")):
            return "is the machine that calls itself"
        # Octal, hexadecimal and shortened numbers mean one thing here and another there.
        if _number(name):
            return "is a number; write four decimal numbers with dots"
        only = self.only
        # Where there are ranges its addresses decide.
        undecided = only is None or only.has_host(name) or only.ranges or only.public
        return "" if undecided else _UNLISTED


LOCAL = AddressPolicy(loopback=True)
"""One machine: laboratory clusters listen on loopback."""

PUBLIC = AddressPolicy()
"""A cloud's function: nothing of what runs it may be called."""


def listed(text: str) -> Allowed | None:
    """Parse a list of hosts and ranges with commas between; None for an empty one.

    Raises:
        InvalidError: something in it is neither a host nor a range.
    """
    hosts: list[str] = []
    ranges: list[Range] = []
    words = [each for word in text.split(",") if (each := word.strip().lower())]
    for word in words:
        if word == _PUBLIC:
            continue
        try:
            ranges.append(ipaddress.ip_network(word))
        except ValueError:
            if not _LISTED.fullmatch(word) or _number(word):
                raise InvalidError(
                    f"cannot read the setting BELLHOP_EGRESS_ALLOW: '{word}' is neither a host,"
                    " such as charts.example.com or *.example.com, nor a range of addresses, such"
                    " as 203.0.113.0/24, nor `public`"
                ) from None
            hosts.append(word)
    return Allowed(tuple(hosts), tuple(ranges), _PUBLIC in words) if words else None


def _embedded_addresses(address: Address) -> Iterator[ipaddress.IPv4Address]:
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
