"""Sprig's keys and certificates, made by `cryptography`."""

from __future__ import annotations

import binascii
import ipaddress
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOWER
from bellhop.gotemplate.printf import brief
from bellhop.gotemplate.values import Struct

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_CERTIFICATE = "sprig.certificate"
_LIST = "[]interface {}"
_RSA_BITS, _CERTIFICATE_RSA_BITS, _DSA_BITS, _EXPONENT = 4096, 2048, 2048, 65537
_LOAD_SECONDS = 0.1
_STEPS_PER_NAME = 50
_LONGEST_KEY = 4096
"""Characters of a private key in PEM: one of RSA with 5,000 bits."""
# What nine keys of ten take on a machine that is half as busy as it can be. How long it takes to
# find primes is luck, and OpenSSL cannot be stopped.
_RSA_SECONDS, _CERTIFICATE_RSA_SECONDS, _DSA_SECONDS = 2.0, 0.25, 1.0


@_add("genPrivateKey", "string", budgeted=True)
def gen_private_key(budget: Budget, kind: str) -> str:
    """Make a private key in PEM: rsa, dsa, ecdsa or ed25519."""
    from cryptography.hazmat.primitives.asymmetric import (  # noqa: PLC0415 - 15 MB of library
        dsa,
        ec,
        ed25519,
        rsa,
    )

    budget.look()
    if kind in ("", "rsa"):
        budget.begin(_RSA_SECONDS)
        return _key_pem(rsa.generate_private_key(_EXPONENT, _RSA_BITS))
    if kind == "dsa":
        budget.begin(_DSA_SECONDS)
        return _key_pem(dsa.generate_private_key(_DSA_BITS))
    if kind == "ecdsa":
        return _key_pem(ec.generate_private_key(ec.SECP256R1()))
    if kind == "ed25519":
        return _key_pem(ed25519.Ed25519PrivateKey.generate())
    return f"Unknown type {kind}"


def _key_pem(key: Any) -> str:
    """Write a key as Go does: the traditional form where there is one."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - as above

    shape = serialization.PrivateFormat.TraditionalOpenSSL
    if isinstance(key, ed25519.Ed25519PrivateKey):
        shape = serialization.PrivateFormat.PKCS8
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, shape, serialization.NoEncryption())
    return pem.decode()


def _load_key(budget: Budget, pem: str, failure: str = "parsing private key") -> Any:
    """Read a private key; to check a large one takes OpenSSL minutes, so its length is bounded."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above

    budget.begin(_LOAD_SECONDS)
    if "-----BEGIN " not in pem:
        raise FunctionError(f"{failure}: no PEM data in input")
    if len(pem) > _LONGEST_KEY:
        raise FunctionError(f"{failure}: a key of more than {_LONGEST_KEY} characters")
    try:
        return serialization.load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise FunctionError(f"{failure}: {error}") from error


def _load_certificate(pem: str) -> Any:
    from cryptography import x509  # noqa: PLC0415 - as above

    if "-----BEGIN " not in pem:
        raise FunctionError("unable to decode certificate")
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as error:
        raise FunctionError(f"error parsing certificate: decodedCert.Bytes: {error}") from error


def _new_key(budget: Budget) -> Any:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - as above

    budget.begin(_CERTIFICATE_RSA_SECONDS)
    return rsa.generate_private_key(_EXPONENT, _CERTIFICATE_RSA_BITS)


def _names(budget: Budget, ips: list[Any], dns: list[Any]) -> Any:
    from cryptography import x509  # noqa: PLC0415 - as above

    budget.spend(_STEPS_PER_NAME * (len(ips) + len(dns)))
    budget.take(sum(len(name) for name in (*ips, *dns) if isinstance(name, str)))
    names: list[Any] = []
    for name in dns:
        if not isinstance(name, str):
            raise FunctionError(
                f"error processing alternate dns name: {brief(name)} is not a string"
            )
        names.append(x509.DNSName(name))
    for address in ips:
        if not isinstance(address, str):
            raise FunctionError(f"error parsing ip: {brief(address)} is not a string")
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError as error:
            raise FunctionError(f"error parsing ip: {address}") from error
    return x509.SubjectAlternativeName(names) if names else None


def _usage(*, is_ca: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415 - as above

    unused = dict.fromkeys(
        (
            "content_commitment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(
        digital_signature=True, key_encipherment=True, key_cert_sign=is_ca, **unused
    )


def _issue(
    name: str,
    days: int,
    key: Any,
    alternatives: Any,
    issuer: tuple[Any, Any] | None,
    *,
    is_ca: bool = False,
) -> Struct:
    """Make a certificate, signed by the issuer's certificate and key, or by its own."""
    from cryptography import x509  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - as above
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415 - as above

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
    signer = key if issuer is None else issuer[1]
    start = datetime.now(UTC)
    try:
        end = start + timedelta(days=days)
    except OverflowError as error:
        raise FunctionError("error creating certificate: too many days") from error
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(_usage(is_ca=is_ca), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    digest = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    signed = builder.sign(signer, digest)
    pem = signed.public_bytes(serialization.Encoding.PEM).decode()
    return Struct({"Cert": pem, "Key": _key_pem(key)}, _CERTIFICATE)


def _issued(*arguments: Any, is_ca: bool = False) -> Struct:
    try:
        return _issue(*arguments, is_ca=is_ca)
    except (ValueError, TypeError) as error:
        raise FunctionError(f"error creating certificate: {error}") from error


@_add("genCA", "string", "int", budgeted=True, most=SLOWER)
def gen_ca(budget: Budget, name: str, days: int) -> Struct:
    """Make a certificate authority; .Cert and .Key are PEM."""
    return _issued(name, days, _new_key(budget), None, None, is_ca=True)


@_add("genCAWithKey", "string", "int", "string", budgeted=True, most=SLOWER)
def gen_ca_with_key(budget: Budget, name: str, days: int, pem: str) -> Struct:
    return _issued(name, days, _load_key(budget, pem), None, None, is_ca=True)


@_add("genSelfSignedCert", "string", _LIST, _LIST, "int", budgeted=True, most=SLOWER)
def gen_self_signed_cert(
    budget: Budget, name: str, ips: list[Any], dns: list[Any], days: int
) -> Struct:
    alternatives = _names(budget, ips, dns)
    return _issued(name, days, _new_key(budget), alternatives, None)


@_add(
    "genSelfSignedCertWithKey", "string", _LIST, _LIST, "int", "string", budgeted=True, most=SLOWER
)
def gen_self_signed_cert_with_key(
    budget: Budget, name: str, ips: list[Any], dns: list[Any], days: int, pem: str
) -> Struct:
    return _issued(name, days, _load_key(budget, pem), _names(budget, ips, dns), None)


def _issuer(budget: Budget, authority: Struct) -> tuple[Any, Any]:
    key = _load_key(budget, authority["Key"], "error parsing private key")
    return _load_certificate(authority["Cert"]), key


@_add("genSignedCert", "string", _LIST, _LIST, "int", _CERTIFICATE, budgeted=True, most=SLOWER)
def gen_signed_cert(
    budget: Budget, name: str, ips: list[Any], dns: list[Any], days: int, authority: Struct
) -> Struct:
    issuer, alternatives = _issuer(budget, authority), _names(budget, ips, dns)
    return _issued(name, days, _new_key(budget), alternatives, issuer)


@_add(
    "genSignedCertWithKey",
    "string",
    _LIST,
    _LIST,
    "int",
    _CERTIFICATE,
    "string",
    budgeted=True,
    most=SLOWER,
)
def gen_signed_cert_with_key(
    budget: Budget,
    name: str,
    ips: list[Any],
    dns: list[Any],
    days: int,
    authority: Struct,
    pem: str,
) -> Struct:
    issuer, alternatives = _issuer(budget, authority), _names(budget, ips, dns)
    return _issued(name, days, _load_key(budget, pem), alternatives, issuer)


@_add("buildCustomCert", "string", "string", budgeted=True, most=SLOWER)
def build_custom_cert(budget: Budget, certificate: str, key: str) -> Struct:
    """Take a certificate and a key, each PEM in base64."""
    try:
        plain = b64decode(certificate, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise FunctionError("unable to decode base64 certificate") from error
    try:
        plain_key = b64decode(key, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise FunctionError("unable to decode base64 private key") from error
    _load_certificate(plain)
    _load_key(budget, plain_key, "error parsing private key")
    return Struct({"Cert": plain, "Key": plain_key}, _CERTIFICATE)
