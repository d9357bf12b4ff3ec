"""Certificates: what clients that verify accept, and what is refused."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from bellhop.adapters.local.certificates import Authority, issue, make_authority
from bellhop.errors import InvalidError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def authority() -> Authority:
    return make_authority("Bellhop fleet", now=NOW, validity=365 * DAY)


def load(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def verify(authority: Authority, certificate: bytes, name: str, at: datetime) -> None:
    """Verify as a client does, by somebody else's rules for public authorities."""
    try:
        subject: x509.IPAddress | x509.DNSName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    (
        PolicyBuilder()
        .store(Store([load(authority.certificate_pem)]))
        .time(at)
        .build_server_verifier(subject)
        .verify(load(certificate), [])
    )


@pytest.mark.parametrize("name", ["bellhop.bellhop.svc", "localhost", "127.0.0.1", "::1"])
def test_a_client_accepts_each_of_its_names(authority: Authority, name: str) -> None:
    """Every DNS name and address is good for a client that trusts the authority."""
    names = ["bellhop.bellhop.svc", "localhost", "127.0.0.1", "::1"]
    certificate, _ = issue(authority, names, now=NOW, validity=30 * DAY)

    verify(authority, certificate, name, NOW)


def test_a_client_refuses_another_name(authority: Authority) -> None:
    """A name that the certificate has not is not accepted."""
    certificate, _ = issue(authority, ["localhost"], now=NOW, validity=DAY)

    with pytest.raises(VerificationError):
        verify(authority, certificate, "example.org", NOW)


def test_a_client_of_another_authority_refuses(authority: Authority) -> None:
    """The same name from another authority of the same name is not accepted."""
    certificate, _ = issue(authority, ["localhost"], now=NOW, validity=DAY)
    other = make_authority("Bellhop fleet", now=NOW, validity=365 * DAY)

    with pytest.raises(VerificationError):
        verify(other, certificate, "localhost", NOW)


def test_is_valid_for_as_long_as_asked(authority: Authority) -> None:
    """It begins long before, whatever clock made it, and ends when asked."""
    certificate, _ = issue(authority, ["localhost"], now=NOW, validity=30 * DAY)

    assert load(certificate).not_valid_before_utc < NOW - 365 * DAY
    assert load(certificate).not_valid_after_utc == NOW + 30 * DAY


def test_ends_no_later_than_its_authority(authority: Authority) -> None:
    """What outlives its authority would be refused; so it does not."""
    certificate, _ = issue(authority, ["localhost"], now=NOW + 300 * DAY, validity=90 * DAY)

    assert load(certificate).not_valid_after_utc == NOW + 365 * DAY


def test_an_authority_that_has_ended_issues_nothing(authority: Authority) -> None:
    """A certificate that has ended before it begins is refused."""
    with pytest.raises(InvalidError, match="would have ended already"):
        issue(authority, ["localhost"], now=NOW + 366 * DAY, validity=DAY)


def test_keys_are_p256_and_belong_to_their_certificates(authority: Authority) -> None:
    """Authority and certificate have a P-256 key each, which openssl can load with them."""
    certificate, key = issue(authority, ["localhost"], now=NOW, validity=DAY)
    for pem, private in ((authority.certificate_pem, authority.key_pem), (certificate, key)):
        loaded = serialization.load_pem_private_key(private, password=None)

        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        assert isinstance(loaded.curve, ec.SECP256R1)
        assert loaded.public_key() == load(pem).public_key()


def test_openssl_takes_the_authority_as_a_root(authority: Authority) -> None:
    """Python's ssl, as clients use it, loads the authority's certificate as a trusted one."""
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())

    assert context.cert_store_stats()["x509_ca"] >= 1


def test_a_certificate_signs_no_other() -> None:
    """A server's key cannot be used as an authority's: clients refuse what it signs."""
    authority = make_authority("Bellhop", now=NOW, validity=365 * DAY)
    certificate, key = issue(authority, ["localhost"], now=NOW, validity=300 * DAY)
    forged, _ = issue(Authority(certificate, key), ["example.org"], now=NOW, validity=DAY)

    with pytest.raises(VerificationError):
        verify(authority, forged, "example.org", NOW)


def test_a_long_name_is_cut_where_it_is_for_people(authority: Authority) -> None:
    """A DNS name beyond the 64 characters of a common name is accepted whole."""
    name = ".".join(["a" * 40] * 5)
    certificate, _ = issue(authority, [name], now=NOW, validity=DAY)

    verify(authority, certificate, name, NOW)


def test_a_name_beyond_ascii_is_written_as_clients_ask_for_it(authority: Authority) -> None:
    """An international name stands in the certificate in Punycode."""
    certificate, _ = issue(authority, ["glöckchen.example"], now=NOW, validity=DAY)

    verify(authority, certificate, "xn--glckchen-o4a.example", NOW)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([], id="none"),
        pytest.param([""], id="empty"),
        pytest.param(["https://example.org"], id="a URL"),
        pytest.param(["example.org:443"], id="with a port"),
        pytest.param(["a b"], id="with a space"),
        pytest.param(["localhost", "ü" * 80], id="a label that is too long"),
    ],
)
def test_refuses_what_is_no_name(authority: Authority, names: list[str]) -> None:
    """What is neither a DNS name nor an address is invalid."""
    with pytest.raises(InvalidError, match="cannot issue a certificate"):
        issue(authority, names, now=NOW, validity=DAY)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_refuses_an_authority_without_a_fitting_name(name: str) -> None:
    """An authority's name has 1 to 64 characters."""
    with pytest.raises(InvalidError, match="1 to 64"):
        make_authority(name, now=NOW, validity=DAY)


def test_refuses_an_authority_that_is_not_pem(authority: Authority) -> None:
    """Garbage in place of certificate or key is said without repeating it."""
    for broken in (
        Authority(b"garbage", authority.key_pem),
        Authority(authority.certificate_pem, b"garbage"),
    ):
        with pytest.raises(InvalidError, match="is not PEM") as caught:
            issue(broken, ["localhost"], now=NOW, validity=DAY)

        assert "garbage" not in str(caught.value)


def test_refuses_an_authority_with_a_key_of_another_kind(authority: Authority) -> None:
    """An RSA key is refused by name."""
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

    with pytest.raises(InvalidError, match="is not EC"):
        issue(Authority(authority.certificate_pem, key), ["localhost"], now=NOW, validity=DAY)


def test_serial_numbers_differ(authority: Authority) -> None:
    """Two certificates of one authority are distinguished."""
    serials = {
        load(issue(authority, ["localhost"], now=NOW, validity=DAY)[0]).serial_number
        for _ in range(3)
    }

    assert len(serials) == 3
