"""Certificates and keys for one cluster, as a real one has them.

Every cluster gets an authority of its own, so that a kubeconfig works for its own cluster and
no other. Elliptic keys, because making RSA ones would take a noticeable part of the boot.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 30  # Longer than any lab lives, short enough to be worthless if one leaks.
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def write_certificates(folder: Path, cluster: str, addresses: tuple[str, ...]) -> str:
    """Write `apiserver.crt`, `apiserver.key`, `ca.crt` and `sa.key`; returns the authority's PEM.

    The first two are the names that kube-apiserver looks for in its certificate folder; `sa.key`
    signs the tokens of service accounts.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"bellhop lab {cluster}")
    authority = (
        _builder(name, authority_key.public_key(), name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("kube-apiserver"), key.public_key(), name)
        .add_extension(_alternative_names(addresses), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authority_pem = _pem(authority)
    folder.joinpath("ca.crt").write_text(authority_pem, "ascii")
    folder.joinpath("apiserver.crt").write_text(_pem(certificate), "ascii")
    _write_key(folder / "apiserver.key", key)
    _write_key(folder / "sa.key", ec.generate_private_key(ec.SECP256R1()))
    return authority_pem


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A clock that was set back a little must not make the lab unreachable.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
    )


def _alternative_names(addresses: tuple[str, ...]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    return x509.SubjectAlternativeName(names)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
