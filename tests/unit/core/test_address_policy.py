"""An address is what it leads to, however it is written."""

from __future__ import annotations

import ipaddress

import pytest

from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import InvalidError

LOOPBACK = [
    "127.0.0.1",
    "127.255.1.2",
    "127.0.0.1.",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::127.0.0.1",
    "2002:7f00:1::",
    "fd12::5efe:127.0.0.1",
    "localhost",
    "LocalHost.",
    "api.localhost",
    "ip6-localhost",
]
LINK_LOCAL = [
    "169.254.169.254",
    "169.254.0.0",
    "169.254.255.255",
    "169.254.169.254.",
    "fe80::1",
    "febf:ffff::1",
    "FE80::1",
    "fe80::1%eth0",
    "fd12::1%eth0",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "fd12::200:5efe:169.254.169.254",
]
METADATA = [
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2:0:0:0:0:0:23",
    "fd20:ce::254",
    "::ffff:100.100.100.200",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "metadata",
    "instance-data",
]
NOBODY = ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255"]
MISSPELLED = [
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "10.1",
    "0xA9FEA9FE",
    "１２７.0.0.1",  # noqa: RUF001 - digits of another width
    "127。0。0。1",
    "①②⑦.0.0.1",
    "metadata。google.internal",
    "127.0.0.1 ",
    "127.0.0.1%00",
    "a..b",
    "a..",
    "",
    ".",
]
FREE = [
    "10.0.0.1",
    "192.168.1.1",
    "172.31.0.1",
    "100.64.0.1",
    "203.0.113.7",
    "fd12:3456::1",
    "2001:db8::1",
    "64:ff9b::a00:1",
    "api.example.com",
    "api.example.com.",
    "eu_1.internal",
    "xn--bcher-kva.example",
    "localhost.example.com",
    "face",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_for_one_machine(host: str) -> None:
    """A laboratory's clusters listen there, and in a cloud the function's own runtime does."""
    assert LOCAL.refusal(host) == ""
    assert PUBLIC.refusal(host) == "is the machine that calls itself"


@pytest.mark.parametrize("host", LINK_LOCAL)
def test_link_local_is_for_nobody(host: str) -> None:
    """A metadata server gives credentials to every client."""
    for reach in (LOCAL, PUBLIC):
        assert reach.refusal(host) == "is link-local, where clouds hand out credentials"


@pytest.mark.parametrize("host", METADATA)
def test_metadata_services_are_for_nobody(host: str) -> None:
    """Some clouds have them at other addresses, all by a name."""
    for reach in (LOCAL, PUBLIC):
        assert reach.refusal(host) == "is a cloud's metadata service"


@pytest.mark.parametrize("host", NOBODY)
def test_what_is_no_host_is_not_called(host: str) -> None:
    """The unspecified address is this machine by another name."""
    for reach in (LOCAL, PUBLIC):
        assert reach.refusal(host) == "is not the address of one host"


@pytest.mark.parametrize("host", MISSPELLED)
def test_an_address_has_one_spelling(host: str) -> None:
    """What libraries read in different ways is not taken at all."""
    for reach in (LOCAL, PUBLIC):
        assert reach.refusal(host).startswith(("is a number", "is not a host name"))


@pytest.mark.parametrize("host", FREE)
def test_the_rest_is_free(host: str) -> None:
    """Private networks are where clusters are."""
    for reach in (LOCAL, PUBLIC):
        assert reach.refusal(host) == ""


UNLISTED = "is not among the hosts and ranges of the setting BELLHOP_EGRESS_ALLOW"


@pytest.mark.parametrize(
    ("allow", "host", "address", "refusal"),
    [
        pytest.param("", "a.example", "10.0.0.1", "", id="no list"),
        pytest.param("a.example", "A.Example.", "10.0.0.1", "", id="a name, wherever it leads"),
        pytest.param("a.example", "b.a.example", "203.0.113.7", UNLISTED, id="below a name"),
        pytest.param("*.example", "b.a.example", "10.0.0.1", "", id="below a wildcard"),
        pytest.param("*.example", "example", "9.9.9.9", UNLISTED, id="a wildcard itself"),
        pytest.param("*.example", "badexample", "9.9.9.9", UNLISTED, id="another ending"),
        pytest.param("10.8.0.0/16", "a.example", "10.8.1.1", "", id="in a range"),
        pytest.param("10.8.0.0/16", "a.example", "10.9.1.1", UNLISTED, id="in no range"),
        pytest.param("10.8.0.0/16", "a.example", "::ffff:10.8.1.1", "", id="carried"),
        pytest.param("public", "a.example", "9.9.9.9", "", id="public"),
        pytest.param("public", "a.example", "10.0.0.1", UNLISTED, id="private"),
        pytest.param("public", "a.example", "64:ff9b::a00:1", UNLISTED, id="private, carried"),
        pytest.param("public", "a.example", "fd12::1", UNLISTED, id="private, of IPv6"),
        pytest.param("public, 10.0.0.0/8", "a.example", "10.0.0.1", "", id="both"),
        pytest.param(
            "a.example,169.254.0.0/16",
            "a.example",
            "169.254.169.254",
            "is link-local, where clouds hand out credentials",
            id="what nobody may call",
        ),
        pytest.param(
            "127.0.0.0/8", "a.example", "127.0.0.1", "is the machine that calls itself", id="itself"
        ),
    ],
)
def test_contents_come_from_what_a_list_names(
    allow: str, host: str, address: str, refusal: str
) -> None:
    """A name counts as written, a range for each address; none opens a metadata service."""
    reach = PUBLIC.within(allow)

    assert reach.refusal_of(ipaddress.ip_address(address), host) == refusal


def test_a_name_that_is_not_listed_is_not_even_looked_up() -> None:
    """Unless there are ranges: then its addresses decide."""
    assert PUBLIC.within("a.example").refusal("b.example") == UNLISTED
    assert PUBLIC.within("a.example").refusal("9.9.9.9") == UNLISTED
    assert PUBLIC.within("a.example,10.0.0.0/8").refusal("b.example") == ""
    assert LOCAL.within("a.example").refusal("localhost") == UNLISTED
    assert LOCAL.within("localhost").refusal("localhost") == ""


@pytest.mark.parametrize("wrong", ["https://a.example", "10.0.0.1/8", "*", "a.*", "10.1", "a b"])
def test_a_list_names_only_hosts_and_ranges(wrong: str) -> None:
    """The sentence says which entry is neither."""
    with pytest.raises(InvalidError, match=r"BELLHOP_EGRESS_ALLOW: '.*' is neither a host"):
        PUBLIC.within(f"a.example, {wrong}")


def test_every_address_of_loopback_and_link_local_is_refused_in_every_carrier() -> None:
    """An address that embeds an IPv4 address is checked as that."""
    carriers = ("::{}", "::ffff:{}", "::ffff:0:{}", "64:ff9b::{}", "64:ff9b:1:2:3:4:{}")
    for text in ("127.0.0.1", "127.200.3.4", "169.254.169.254", "169.254.170.2"):
        for carrier in carriers:
            address = ipaddress.ip_address(carrier.format(text))
            assert PUBLIC.refusal_of(address), address
