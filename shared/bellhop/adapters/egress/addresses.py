"""Addresses that may be called: what is looked up is checked, and what was checked is called."""

from __future__ import annotations

import ipaddress

from bellhop.adapters.egress.lookups import Lookups
from bellhop.core.address_policy import AddressPolicy


class ForbiddenAddressError(Exception):
    """A host has no address that may be called; the words say of the first one why."""


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def allowed_addresses(
    host: str, reach: AddressPolicy, lookups: Lookups, seconds: float
) -> list[str]:
    """Return the addresses of a host that may be called, in the order of the resolver.

    Raises:
        ForbiddenAddressError: it has addresses, and none may be called.
        TimeoutError: looking it up takes longer than so many seconds.
        CrowdedError: it was not looked up, since too many others take long.
        OSError, UnicodeError: its name is not known, or is none.
    """
    found = [host] if is_address(host) else lookups.addresses(host, seconds)
    refusals = {each: reach.refusal_of(ipaddress.ip_address(each), host) for each in found}
    allowed = [each for each, refusal in refusals.items() if not refusal]
    if refusals and not allowed:
        address, refusal = next(iter(refusals.items()))
        raise ForbiddenAddressError(f"its address {address} {refusal}")
    return allowed
