"""A client certificate logs in, a server name is checked, and no key stays on a disk."""

from __future__ import annotations

import base64
import gc
import json
import ssl
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.errors import UntrustedError
from bellhop.adapters.kube.tls import Contexts
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError, UnreachableError

NAME = "api.example.com"


@dataclass(frozen=True, slots=True)
class Party:
    """A name with its key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_data(self) -> str:
        """Return the certificate as kubeconfigs have it."""
        return base64.b64encode(self.certificate.public_bytes(serialization.Encoding.PEM)).decode()

    def key_data(self, password: bytes = b"") -> str:
        """Return the key as kubeconfigs have it."""
        return base64.b64encode(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(password)
                if password
                else serialization.NoEncryption(),
            )
        ).decode()


def _party(name: str, issuer: Party | None = None) -> Party:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    signer = issuer.key if issuer else key
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    if issuer is None:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    return Party(key, builder.sign(signer, hashes.SHA256()))


class _Greeter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.connection, ssl.SSLSocket)
        certificate = self.connection.getpeercert() or {}
        ((_, name),) = certificate["subject"][0]
        body = b'{"gitVersion": "hello-' + str(name).encode() + b'"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of handshakes that a test lets fail."""


@pytest.fixture
def authority() -> Party:
    """Sign everybody."""
    return _party("authority")


@pytest.fixture
def server(authority: Party, tmp_path: Path) -> Iterator[str]:
    """Greet those whose certificate the authority signed."""
    own = _party(NAME, authority)
    chain = tmp_path / "server.pem"
    chain.write_bytes(base64.b64decode(own.certificate_data) + base64.b64decode(own.key_data()))
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=base64.b64decode(authority.certificate_data).decode()
    )
    context.load_cert_chain(chain)
    context.verify_mode = ssl.CERT_REQUIRED
    listening = _Server(("127.0.0.1", 0), _Greeter)
    listening.socket = context.wrap_socket(
        listening.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield f"https://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    listening.server_close()
    thread.join()


def _kubeconfig(server: str, authority: Party, user: Party, password: bytes = b"") -> Kubeconfig:
    return sanitise(
        Kubeconfig(
            server,
            ca_data=authority.certificate_data,
            client_certificate_data=user.certificate_data,
            client_key_data=user.key_data(password),
            tls_server_name=NAME,
        ).to_dict(),
        reach=LOCAL,
    )


def test_logs_in_with_a_client_certificate(
    server: str, authority: Party, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sees who it is; the key was on a disk for a moment only."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    client = KubeClient(
        "a/b", _kubeconfig(server, authority, _party("alice", authority)), reach=LOCAL
    )

    assert client.version() == "hello-alice"
    assert list(folder.iterdir()) == []
    client.close()


def test_checks_the_server_name(server: str, authority: Party) -> None:
    """Without the name that the certificate is for, the address would not do."""
    alice = _party("alice", authority)
    kubeconfig = Kubeconfig(
        server,
        ca_data=authority.certificate_data,
        client_certificate_data=alice.certificate_data,
        client_key_data=alice.key_data(),
    )

    with pytest.raises(UnreachableError, match="or is for another host"):
        KubeClient("a/b", kubeconfig, reach=LOCAL).version()


def test_no_spelling_of_the_scheme_loses_authority_and_key(server: str, authority: Party) -> None:
    """Authority, server name and client certificate count, however `https` is written."""
    written = server.replace("https", "HTTPS")
    right = _kubeconfig(server, authority, _party("alice", authority))
    wrong = _kubeconfig(server, _party("authority"), _party("alice", authority))

    with closing(KubeClient("a/b", replace(right, server=written), reach=LOCAL)) as client:
        assert client.version() == "hello-alice"
    with pytest.raises(UnreachableError, match="certificate authority of the stored kubeconfig"):
        KubeClient("a/b", replace(wrong, server=written), reach=LOCAL).version()


def test_a_client_certificate_has_its_end(authority: Party) -> None:
    """As a token does; the first of both counts."""
    alice = _party("alice", authority)
    kubeconfig = _kubeconfig("https://10.0.0.1", authority, alice)
    ends = alice.certificate.not_valid_after_utc
    claims = json.dumps({"exp": int((ends - timedelta(hours=1)).timestamp())}).encode()
    token = f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"

    assert kubeconfig.ends_at == ends
    assert replace(kubeconfig, token=token).ends_at == ends - timedelta(hours=1)
    assert KubeClient("a/b", kubeconfig, reach=LOCAL).ends_at == ends


def test_checks_the_authority(server: str, authority: Party) -> None:
    """A server that another authority signed gets no request; the error names what to do."""
    kubeconfig = _kubeconfig(server, _party("authority"), _party("alice", authority))

    with pytest.raises(UntrustedError) as caught:
        KubeClient("a/b", kubeconfig, reach=LOCAL).version()
    assert str(caught.value).endswith(
        "its certificate is not signed by the certificate authority of the stored kubeconfig, or is"
        " for another host; if that changed, `bellhop register cluster a/b --kubeconfig FILE` with"
        " its present one"
    )


def test_a_client_certificate_that_is_refused_is_unreachable(server: str, authority: Party) -> None:
    """A server that breaks the handshake off says no more than that."""
    kubeconfig = _kubeconfig(server, authority, _party("mallory"))

    with pytest.raises(UnreachableError):
        KubeClient("a/b", kubeconfig, reach=LOCAL).version()


@pytest.mark.parametrize("password", [b"secret", b""], ids=["encrypted key", "key of another"])
def test_a_key_that_does_not_fit_is_invalid(authority: Party, password: bytes) -> None:
    """Nothing asks for a password on a terminal."""
    alice = _party("alice", authority)
    key = alice if password else _party("bob", authority)

    with pytest.raises(InvalidError, match="client-certificate-data or client-key-data"):
        KubeClient(
            "a/b",
            _kubeconfig(
                "https://127.0.0.1", authority, Party(key.key, alice.certificate), password
            ),
            reach=LOCAL,
        )


def test_clients_of_one_authority_and_key_share_a_context(authority: Party) -> None:
    """Whatever their server, name and token are; another key pair or authority has its own."""
    alice, contexts = _party("alice", authority), Contexts()
    first = _kubeconfig("https://127.0.0.1:1", authority, alice)
    same = contexts.of("a/b", first)

    assert contexts.of("c/d", replace(first, server="https://127.0.0.1:2", token="x")) is same
    assert contexts.of("a/b", _kubeconfig(first.server, _party("authority"), alice)) is not same
    bob = _kubeconfig(first.server, authority, _party("bob", authority))
    assert contexts.of("a/b", bob) is not same


def test_a_context_that_nobody_has_is_let_go(authority: Party) -> None:
    """Credentials that are no more are not kept for their context's sake."""
    contexts, kubeconfig = Contexts(), _kubeconfig("https://127.0.0.1:1", authority, _party("x"))
    kubeconfig = replace(kubeconfig, client_certificate_data="", client_key_data="")
    released = weakref.ref(contexts.of("a/b", kubeconfig))
    gc.collect()

    assert released() is None


def test_threads_share_one_context(server: str, authority: Party) -> None:
    """What urllib3 sets on a context before each handshake is set once, before the first."""
    context = Contexts().of("a/b", _kubeconfig(server, authority, _party("alice", authority)))
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(theirs, ours, server_hostname=NAME).do_handshake()

    hello = ours.read()
    assert b"http/1.1" in hello
    assert b"\x02h2" not in hello
