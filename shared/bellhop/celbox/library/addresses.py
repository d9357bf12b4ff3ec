"""IP addresses and ranges of them, strictly as Kubernetes takes them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from bellhop.celbox.library import Function, field, tested

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _ip(text: str) -> dict[str, str]:
    return {"ip": str(_address(text))}


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("this is not an IP address") from None
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        raise ValueError("IPv4-mapped addresses and zones are not taken")
    return address


def _cidr(text: str) -> dict[str, str]:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or (length[0] == "0" and length != "0"):
        raise ValueError("this is not a range of IP addresses: ADDRESS/LENGTH")
    made = ipaddress.ip_interface(f"{_address(address)}/{length}")
    return {"cidr": str(made)}


def _of_ip(pick: Callable[[Address], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda value: pick(_address(str(field(value, "ip", "an IP address"))))


def _interface(value: dict[str, Any]) -> Any:
    return ipaddress.ip_interface(str(field(value, "cidr", "a range of IP addresses")))


def _network(value: dict[str, Any]) -> Network:
    network: Network = _interface(value).network
    return network


def _contains_ip(value: dict[str, Any], address: str | dict[str, Any]) -> bool:
    text = address if isinstance(address, str) else str(field(address, "ip", "an IP address"))
    return _address(text) in _network(value)


def _contains_cidr(value: dict[str, Any], other: str | dict[str, Any]) -> bool:
    network, inner = _network(value), _network(_cidr(other) if isinstance(other, str) else other)
    return network.version == inner.version and inner.subnet_of(network)  # type: ignore[arg-type]


def _is_global_unicast(ip: Address) -> bool:
    # As Go has it: private addresses count, only the limited broadcast does not.
    special = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local
    return not special and str(ip) != "255.255.255.255"


def _is_link_local_multicast(ip: Address) -> bool:
    if isinstance(ip, ipaddress.IPv4Address):
        return ip in ipaddress.ip_network("224.0.0.0/24")
    return int(ip) >> 112 & 0xFF0F == 0xFF02  # noqa: PLR2004 - ff02, with any flags.


def _masked(value: dict[str, Any]) -> dict[str, str]:
    return {"cidr": str(_network(value))}


def _is_canonical(text: str) -> bool:
    return text == str(_address(text))


FUNCTIONS = (
    Function("ip", ("string",), "map", _ip, method=False),
    Function("isIP", ("string",), "bool", tested(_ip), method=False),
    Function("ip.isCanonical", ("string",), "bool", _is_canonical, method=False),
    Function("family", ("map",), "int", _of_ip(lambda ip: ip.version)),
    Function("isLoopback", ("map",), "bool", _of_ip(lambda ip: ip.is_loopback)),
    Function("isUnspecified", ("map",), "bool", _of_ip(lambda ip: ip.is_unspecified)),
    Function("isLinkLocalUnicast", ("map",), "bool", _of_ip(lambda ip: ip.is_link_local)),
    Function("isLinkLocalMulticast", ("map",), "bool", _of_ip(_is_link_local_multicast)),
    Function("isGlobalUnicast", ("map",), "bool", _of_ip(_is_global_unicast)),
    Function("cidr", ("string",), "map", _cidr, method=False),
    Function("isCIDR", ("string",), "bool", tested(_cidr), method=False),
    Function("containsIP", ("map", "string"), "bool", _contains_ip),
    Function("containsIP", ("map", "map"), "bool", _contains_ip),
    Function("containsCIDR", ("map", "string"), "bool", _contains_cidr),
    Function("containsCIDR", ("map", "map"), "bool", _contains_cidr),
    Function("ip", ("map",), "map", lambda value: _ip(str(_interface(value).ip))),
    Function("masked", ("map",), "map", _masked),
    Function("prefixLength", ("map",), "int", lambda value: _network(value).prefixlen),
)
