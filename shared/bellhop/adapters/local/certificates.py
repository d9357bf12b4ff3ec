"""Certificates for what listens on HTTPS: a small authority, and what it issues.

An API server trusts a webhook by the authority that its configuration names, so nothing public is
needed: one authority a deployment, one certificate a server. Keys are EC P-256: quick to make, and
a handshake costs a fraction of RSA's.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from bellhop.errors import InvalidError

_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
"""When certificates begin: long ago, so that a clock which is late, or was ahead, harms nobody."""

_COMMON_NAME_LENGTH = 64
_DIGEST = hashes.SHA256()


class Authority(Struct, frozen=True):
    """A signing authority; `key_pem` is secret, and clients must trust `certificate_pem`."""

    certificate_pem: bytes
    key_pem: bytes


def make_authority(common_name: str, *, now: datetime, validity: timedelta) -> Authority:
    """Make an authority that may sign servers' certificates and no other authority's.

    Raises:
        InvalidError: the name is empty or longer than 64 characters.
    """
    if not 0 < len(common_name) <= _COMMON_NAME_LENGTH:
        raise InvalidError(
            f"cannot make the authority {common_name!r}: its name must have 1 to"
            f" {_COMMON_NAME_LENGTH} characters"
        )
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    certificate = (
        _builder(name, name, key, now, validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, _DIGEST)
    )
    return Authority(_pem(certificate), _key_pem(key))


def issue(
    authority: Authority, names: Sequence[str], *, now: datetime, validity: timedelta
) -> tuple[bytes, bytes]:
    """Issue a server's certificate for DNS names and IP addresses; return it and its key as PEM.

    It ends no later than the authority does.

    Raises:
        InvalidError: there is no name, one is not a name, or the authority cannot be read.
    """
    alternatives = _alternatives(names)
    signer, key = _load(authority)
    ends = min(validity, signer.not_valid_after_utc - now)
    own_key = ec.generate_private_key(ec.SECP256R1())
    # For people only: clients look at the alternative names, which have no limit of 64 characters.
    subject = _name(names[0][:_COMMON_NAME_LENGTH])
    certificate = (
        _builder(subject, signer.subject, own_key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternatives, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .sign(key, _DIGEST)
    )
    return _pem(certificate), _key_pem(own_key)


def life(pem: bytes) -> tuple[datetime, datetime]:
    """Return when the first certificate of a PEM begins and ends.

    Raises:
        InvalidError: there is none.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise InvalidError("cannot read the validity of a certificate: it is not PEM") from error
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def together(pems: Sequence[str], *, at_most: int) -> str:
    """Return the first ones of some PEM certificates as one PEM, each once.

    Raises:
        InvalidError: one of them is not PEM.
    """
    found = [each for pem in pems if pem for each in _certificates(pem)]
    return "".join(_pem(each).decode() for each in [*dict.fromkeys(found)][:at_most])


def issuers(authorities: str, certificate: str) -> str:
    """Return those of some PEM authorities that issued a PEM certificate; none if it is not PEM.

    Raises:
        InvalidError: the authorities are not PEM.
    """
    try:
        issued = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError:
        return ""
    return "".join(
        _pem(each).decode() for each in _certificates(authorities) if _has_issued(each, issued)
    )


def _certificates(pem: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise InvalidError("cannot read certificates: they are not PEM") from error


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    validity: timedelta,
) -> x509.CertificateBuilder:
    if validity <= timedelta(0):
        raise InvalidError("cannot issue a certificate: it would have ended already")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(_BEGIN, now - timedelta(hours=1)))
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _load(authority: Authority) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate_pem)
        key = serialization.load_pem_private_key(authority.key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidError(
            "cannot issue a certificate: the authority's certificate or key is not PEM"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidError("cannot issue a certificate: the authority's key is not EC")
    return certificate, key


def _alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    if not names:
        raise InvalidError("cannot issue a certificate: it has no name")
    return x509.SubjectAlternativeName([_alternative(name) for name in names])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        # What is not ASCII is written in Punycode, as browsers and API servers ask for it.
        encoded = name.encode("idna").decode() if not name.isascii() else name
        if not encoded.strip() or any(character in encoded for character in " /:,"):
            raise ValueError(name)  # noqa: TRY301 - one sentence for every way to be no name
        return x509.DNSName(encoded)
    except ValueError as error:
        raise InvalidError(
            f"cannot issue a certificate: {name!r} is neither a DNS name nor an IP address"
        ) from error


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
