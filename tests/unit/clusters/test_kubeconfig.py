"""Only an address and credentials by value come through; nothing secret comes out."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from bellhop.clusters.kubeconfig import Kubeconfig, refuse_passing, sanitise
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import InvalidError, TooLargeError

TOKEN = "eyJhbGciOi.very-secret.token_123"
Change = Callable[[dict[str, Any]], object]


def _pair() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return base64.b64encode(certificate).decode(), base64.b64encode(private).decode()


CERTIFICATE, KEY = _pair()


def _kubeconfig() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "contexts": [
            {"name": "prod", "context": {"cluster": "c1", "user": "u1", "namespace": "web"}},
            {"name": "dev", "context": {"cluster": "c2", "user": "u1"}},
        ],
        "clusters": [
            {
                "name": "c1",
                "cluster": {
                    "server": "https://10.0.0.1:6443/",
                    "certificate-authority-data": CERTIFICATE,
                    "extensions": [{"name": "minikube"}],
                },
            },
            {"name": "c2", "cluster": {"server": "http://127.0.0.1:8080"}},
        ],
        "users": [{"name": "u1", "user": {"token": TOKEN}}],
    }


def _cluster(**fields: Any) -> Change:
    return lambda document: document["clusters"][0]["cluster"].update(fields)


def _user(**fields: Any) -> Change:
    return lambda document: document["users"][0]["user"].update(fields)


def _pem(label: str, body: bytes) -> str:
    text = f"-----BEGIN {label}-----\n{base64.b64encode(body).decode()}\n-----END {label}-----\n"
    return base64.b64encode(text.encode()).decode()


def test_takes_address_and_token_of_the_current_context() -> None:
    """What is kept is the server without its last slash, the authority and the token."""
    kubeconfig = sanitise(_kubeconfig())

    assert kubeconfig == Kubeconfig("https://10.0.0.1:6443", ca_data=CERTIFICATE, token=TOKEN)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(yaml.safe_dump, id="YAML text"),
        pytest.param(json.dumps, id="JSON text"),
        pytest.param(lambda document: yaml.safe_dump(document).encode(), id="bytes"),
        pytest.param(lambda document: document, id="dict"),
    ],
)
def test_reads_every_form(write: Callable[[dict[str, Any]], Any]) -> None:
    """Text, bytes and a dict mean the same."""
    assert sanitise(write(_kubeconfig())).server == "https://10.0.0.1:6443"


def test_a_scheme_is_kept_in_lower_case() -> None:
    """A scheme has no case for kubectl, and the certificate authority counts in each."""
    document = _kubeconfig()
    _cluster(server="HTTPS://10.0.0.1:6443/Path/")(document)

    assert sanitise(document).server == "https://10.0.0.1:6443/Path"


@pytest.mark.parametrize("host", ["localhost:8080", "127.8.9.10", "[::1]:6443"])
def test_takes_http_on_loopback(host: str) -> None:
    """Nobody listens between a machine and itself."""
    document = _kubeconfig()
    _cluster(server=f"http://{host}")(document)

    assert sanitise(document, reach=LOCAL).server == f"http://{host}"


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://127.0.0.1:9001/2018-06-01/runtime", "is the machine that calls itself"),
        ("https://localhost:6443", "is the machine that calls itself"),
        ("https://[::ffff:127.0.0.1]", "is the machine that calls itself"),
    ],
)
def test_loopback_is_taken_only_on_one_machine(server: str, said: str) -> None:
    """A cloud's function would call what runs it; who says nothing runs anywhere."""
    document = _kubeconfig()
    _cluster(server=server)(document)

    assert sanitise(document, reach=LOCAL).server == server
    with pytest.raises(InvalidError, match=f"cluster.server: the host {said}"):
        sanitise(document, reach=PUBLIC)
    with pytest.raises(InvalidError, match=f"cluster.server: the host {said}"):
        sanitise(document)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "Metadata.Google.Internal.",
        "１６９.254.169.254",  # noqa: RUF001 - digits of another width
        "169。254。169。254",
        "0.0.0.0",
        "[::]",
    ],
)
def test_some_addresses_are_taken_nowhere(host: str) -> None:
    """A user who registers a cluster must not get the cloud's own credentials sent somewhere."""
    document = _kubeconfig()
    _cluster(server=f"https://{host}:443/x")(document)

    for reach in (LOCAL, PUBLIC):
        with pytest.raises(InvalidError, match=r"cluster\.server: "):
            sanitise(document, reach=reach)


@pytest.mark.parametrize("path", ["/a/../b", "/./x", "/%2e%2e/x", "/a b", "/a\\b", "/x;y=1"])
def test_a_path_is_what_it_looks_like(path: str) -> None:
    """A gateway's path has names between slashes."""
    document = _kubeconfig()
    _cluster(server=f"https://10.0.0.1{path}")(document)

    with pytest.raises(InvalidError, match="has a path that leads elsewhere"):
        sanitise(document)


def test_takes_the_path_of_a_gateway() -> None:
    """Some API servers are below one."""
    document = _kubeconfig()
    _cluster(server="https://rancher.example/k8s/clusters/c-m-4x2")(document)

    assert sanitise(document).server == "https://rancher.example/k8s/clusters/c-m-4x2"


def test_takes_the_context_that_is_named() -> None:
    """A named context wins over the current one."""
    assert sanitise(_kubeconfig(), context="dev", reach=LOCAL).server == "http://127.0.0.1:8080"


def test_takes_the_only_context_by_default() -> None:
    """With one context there is nothing to choose."""
    document = _kubeconfig()
    del document["current-context"], document["contexts"][1]

    assert sanitise(document).server == "https://10.0.0.1:6443"


def test_takes_a_client_certificate() -> None:
    """A certificate with its key is a login, also with EC parameters before the key."""
    document = _kubeconfig()
    parameters = _pem("EC PARAMETERS", bytes.fromhex("06082a8648ce3d030107"))
    both = base64.b64encode(base64.b64decode(parameters) + base64.b64decode(KEY)).decode()
    document["users"][0]["user"] = {"client-certificate-data": CERTIFICATE, "client-key-data": both}

    kubeconfig = sanitise(document)

    assert (kubeconfig.client_certificate_data, kubeconfig.client_key_data) == (CERTIFICATE, both)


def test_what_it_writes_is_taken_again() -> None:
    """The minimal kubeconfig means the same as the one it was made from."""
    document = _kubeconfig()
    _user(**{"client-certificate-data": CERTIFICATE, "client-key-data": KEY})(document)
    _cluster(**{"tls-server-name": "api.example.com"})(document)
    kubeconfig = sanitise(document)

    assert sanitise(kubeconfig.to_dict()) == kubeconfig


def test_takes_a_proxy() -> None:
    """With its login, which is a secret, and with a name that this machine may not know."""
    document = _kubeconfig()
    _cluster(**{"proxy-url": f"http://ada:{TOKEN}@proxy.example:3128/"})(document)
    kubeconfig = sanitise(document)

    assert kubeconfig.proxy_url == f"http://ada:{TOKEN}@proxy.example:3128"
    assert kubeconfig.describe().endswith(", by the proxy proxy.example:3128")
    assert TOKEN not in f"{kubeconfig!r} {kubeconfig.describe()}"
    assert sanitise(kubeconfig.to_dict()) == kubeconfig


def test_takes_no_proxy_that_would_read_the_credentials() -> None:
    """On one machine a server may be called without TLS, and then by nobody else."""
    document = _kubeconfig()
    _cluster(server="http://127.0.0.1:8001", **{"proxy-url": "http://127.0.0.1:1"})(document)

    with pytest.raises(InvalidError, match="would see the credentials"):
        sanitise(document, reach=LOCAL)


def test_writes_no_empty_fields() -> None:
    """What was not given does not appear."""
    user = sanitise(_kubeconfig()).to_dict()["users"][0]["user"]

    assert user == {"token": TOKEN}


@pytest.mark.parametrize("show", [repr, str, Kubeconfig.describe])
def test_shows_no_secret(show: Callable[[Kubeconfig], str]) -> None:
    """Neither token nor key nor certificate is in any text form; the server is."""
    document = _kubeconfig()
    _user(**{"client-certificate-data": CERTIFICATE, "client-key-data": KEY})(document)

    shown = show(sanitise(document))

    assert "https://10.0.0.1:6443" in shown
    assert not [secret for secret in (TOKEN, CERTIFICATE, KEY) if secret[:12] in shown]


def test_describes_login_and_trust() -> None:
    """One line says where it leads, how it logs in and which authority it trusts."""
    description = sanitise(_kubeconfig()).describe()

    assert (
        description == "https://10.0.0.1:6443 with a token, trusting its own certificate authority"
    )


REFUSED = [
    pytest.param(
        _user(exec={"command": "aws"}), "runs a program", "kubectl create token", id="exec"
    ),
    pytest.param(
        _user(**{"auth-provider": {"name": "gcp"}}),
        "runs code",
        "kubectl create token",
        id="provider",
    ),
    pytest.param(_user(tokenFile="/run/t"), "names a file", "in `token`", id="tokenFile"),
    pytest.param(_user(**{"client-certificate": "/c"}), "file", "--flatten", id="certificate file"),
    pytest.param(_user(**{"client-key": "/k"}), "names a file", "--flatten", id="key file"),
    pytest.param(_user(username="root"), "password login", "kubectl create token", id="username"),
    pytest.param(_user(password=TOKEN), "password login", "kubectl create token", id="password"),
    pytest.param(_user(**{"as": "root"}), "acts as somebody else", "that user", id="as"),
    pytest.param(_user(**{"as-groups": ["a"]}), "acts as", "that user", id="as-groups"),
    pytest.param(_user(**{"as-uid": "1"}), "acts as", "that user", id="as-uid"),
    pytest.param(
        _user(**{"as-user-extra": {"a": []}, "as": "x"}), "acts as", "user", id="as-extra"
    ),
    pytest.param(
        _cluster(**{"certificate-authority": "/ca"}),
        "names a file",
        "--flatten",
        id="authority file",
    ),
    pytest.param(
        _cluster(**{"insecure-skip-tls-verify": True}),
        "any server that answers",
        "certificate-authority-data",
        id="insecure",
    ),
]


@pytest.mark.parametrize(("change", "reason", "advice"), REFUSED)
def test_refuses_what_acts_on_the_reader(change: Change, reason: str, advice: str) -> None:
    """Each is refused with its reason and with what to do instead."""
    document = _kubeconfig()
    change(document)

    with pytest.raises(InvalidError) as caught:
        sanitise(document)

    assert reason in str(caught.value)
    assert advice in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_cluster(**{"insecure-skip-tls-verify": False}), id="insecure is false"),
        pytest.param(_cluster(**{"certificate-authority": ""}), id="no file"),
        pytest.param(_user(exec=None), id="no exec"),
        pytest.param(_user(username="", password=""), id="no password"),
        pytest.param(_cluster(**{"disable-compression": True}), id="compression"),
    ],
)
def test_takes_what_is_empty_or_harmless(change: Change) -> None:
    """A field that says nothing is no reason to refuse."""
    document = _kubeconfig()
    change(document)

    assert sanitise(document) == sanitise(_kubeconfig())


@pytest.mark.parametrize(
    ("token", "advice"),
    [
        pytest.param("k8s-aws-v1.aHR0cHM6", "`bellhop register cluster-eks`", id="of EKS"),
        pytest.param("ya29.c.c0ASRK0Ga", "`bellhop register cluster-gke`", id="of Google"),
    ],
)
def test_refuses_a_token_that_ends_within_the_hour(token: str, advice: str) -> None:
    """What a cloud makes for a person is none to store; a function that has a new one takes it."""
    kubeconfig = replace(sanitise(_kubeconfig()), token=token)

    with pytest.raises(InvalidError, match=r"user\.token: is one that .* ends within") as caught:
        refuse_passing(kubeconfig)
    assert advice in str(caught.value)
    assert "`kubectl create token`" in str(caught.value)
    assert token not in str(caught.value)
    assert sanitise(kubeconfig.to_dict()).token == token


def _jwt(claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        pytest.param(_jwt({"exp": 1795348800}), datetime(2026, 11, 22, 12, tzinfo=UTC), id="ends"),
        pytest.param(_jwt({"sub": "x"}), None, id="does not end"),
        pytest.param(_jwt({"exp": "soon"}), None, id="no number"),
        pytest.param(_jwt({"exp": 1e300}), None, id="no time"),
        pytest.param(_jwt([1]), None, id="no claims"),
        pytest.param("e30.!!.c2ln", None, id="no base 64"),
        pytest.param("plain", None, id="no JWT"),
    ],
)
def test_reads_when_a_token_ends(token: str, expected: datetime | None) -> None:
    """As far as it says so itself."""
    assert replace(sanitise(_kubeconfig()), token=token).ends_at == expected


def test_other_contexts_do_not_matter() -> None:
    """What the chosen context does not use may be anything."""
    document = _kubeconfig()
    document["users"].append({"name": "u2", "user": {"exec": {"command": "gcloud"}}})

    assert sanitise(document).token == TOKEN


INVALID = [
    pytest.param(_cluster(server=""), "cluster.server: is not an address", id="no server"),
    pytest.param(_cluster(server="10.0.0.1:6443"), "is not an address", id="no scheme"),
    pytest.param(_cluster(server="ftp://a"), "is not an address", id="another scheme"),
    pytest.param(_cluster(server="https://a:port"), "is not an address", id="no port number"),
    pytest.param(_cluster(server="https://[::1"), "is not an address", id="broken address"),
    pytest.param(_cluster(server=["https://a"]), "is not a text", id="server is a list"),
    pytest.param(_cluster(server="http://10.0.0.1"), "in clear", id="http elsewhere"),
    pytest.param(_cluster(server="http://localhost.example.com"), "in clear", id="http lookalike"),
    pytest.param(_cluster(server="https://u:p@10.0.0.1"), "nothing else", id="password in it"),
    pytest.param(_cluster(server="https://a?x=1"), "nothing else", id="query in it"),
    pytest.param(_cluster(color="red"), "`color` is not known", id="unknown in cluster"),
    pytest.param(_user(tocken="x"), "`tocken` is not known", id="unknown in user"),
    pytest.param(_user(token="two\nlines"), "cannot stand in a header", id="token of two lines"),
    pytest.param(_user(token="two words"), "cannot stand in a header", id="token of two words"),
    pytest.param(_user(token="tökén"), "cannot stand in a header", id="token is not ASCII"),
    pytest.param(_user(token=""), "has no credentials", id="no login"),
    pytest.param(_user(token=17), "`token` is not a text", id="token is a number"),
    pytest.param(_user(**{"client-key-data": KEY}), "needs both", id="key alone"),
    pytest.param(_user(**{"client-certificate-data": CERTIFICATE}), "needs both", id="cert alone"),
    pytest.param(
        _user(**{"client-certificate-data": CERTIFICATE, "client-key-data": CERTIFICATE}),
        "has no PEM block `PRIVATE KEY`",
        id="certificate for a key",
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": "%%%"}), "is not base64", id="not base64"
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": base64.b64encode(b"\xff\xfe").decode()}),
        "is not base64 of a PEM file",
        id="base64 of bytes",
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": base64.b64encode(b"hello").decode()}),
        "has no PEM block",
        id="base64 of something else",
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": _pem("CERTIFICATE", b"hello")}),
        "cut or damaged",
        id="PEM of something else",
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": _pem("CERTIFICATE", b"\x30\x82\x01\x00abc")}),
        "cut or damaged",
        id="DER is cut",
    ),
    pytest.param(
        _cluster(**{"certificate-authority-data": _pem("CERTIFICATE", b"\x30")}),
        "cut or damaged",
        id="DER has no length",
    ),
    pytest.param(
        _cluster(
            **{
                "certificate-authority-data": base64.b64encode(
                    base64.b64decode(CERTIFICATE) + base64.b64decode(CERTIFICATE)[:60]
                ).decode()
            }
        ),
        "cut or damaged",
        id="second of a bundle is cut",
    ),
    pytest.param(
        _cluster(
            **{
                "certificate-authority-data": base64.b64encode(
                    b"-----BEGIN CERTIFICATE-----\nMIIB=A\n-----END CERTIFICATE-----\n"
                ).decode()
            }
        ),
        "cut or damaged",
        id="PEM is not base64",
    ),
    pytest.param(_cluster(**{"tls-server-name": "a b"}), "is not a host name", id="server name"),
    *(
        pytest.param(_cluster(**{"proxy-url": url}), words, id=f"proxy {url!r}")
        for url, words in (
            ("proxy:3128", "other kinds of proxies are not supported"),
            ("https://proxy:3128", "other kinds of proxies are not supported"),
            ("socks5://proxy:1080", "other kinds of proxies are not supported"),
            ("http://", "is not an address"),
            ("http://[::1", "is not an address"),
            ("http://proxy:0", "is not an address"),
            ("http://proxy/path", "nothing else"),
            ("http://proxy?a=b", "nothing else"),
            (f"http://u:{TOKEN}%0d%0aX@proxy", "cannot stand in a header"),
            ("http://169.254.169.254", "is link-local"),
            ("http://127.0.0.1:3128", "is the machine that calls itself"),
        )
    ),
    pytest.param(
        lambda document: document["contexts"][0]["context"].update(user="nobody"),
        "has no user 'nobody'",
        id="user is not there",
    ),
    pytest.param(
        lambda document: document["contexts"][0]["context"].pop("cluster"),
        "has no cluster ''",
        id="context names no cluster",
    ),
    pytest.param(
        lambda document: document.update(clusters={"c1": {}}),
        "clusters: is not a list",
        id="no list",
    ),
    pytest.param(
        lambda document: document.update(users=[17]), "users[0]: is not a mapping", id="no mapping"
    ),
    pytest.param(
        lambda document: document.update(users=[{"name": "u1", "user": "x"}]),
        "users[0]: is not a mapping",
        id="user is a text",
    ),
    pytest.param(
        lambda document: document.update(contexts=[]), "has no contexts", id="no contexts"
    ),
]


@pytest.mark.parametrize(("change", "message"), INVALID)
def test_says_what_is_wrong(change: Change, message: str) -> None:
    """Each mistake is named, and no secret is quoted."""
    document = copy.deepcopy(_kubeconfig())
    change(document)

    with pytest.raises(InvalidError) as caught:
        sanitise(document)

    assert message in str(caught.value)
    assert not [secret for secret in (TOKEN, CERTIFICATE, KEY) if secret[:12] in str(caught.value)]


def test_lists_the_contexts_when_one_is_unknown() -> None:
    """The person sees at once what there is to choose from."""
    with pytest.raises(InvalidError) as caught:
        sanitise(_kubeconfig(), context="prd")

    assert str(caught.value) == ("the kubeconfig has no context 'prd'; choose one of 'prod', 'dev'")


def test_asks_for_a_context_when_there_is_no_current_one() -> None:
    """With several contexts and none chosen, it does not guess."""
    document = _kubeconfig()
    del document["current-context"]

    with pytest.raises(InvalidError, match="has no current context; choose one of 'prod', 'dev'"):
        sanitise(document)


def test_says_where_the_yaml_breaks_without_quoting_it() -> None:
    """Line and column, and nothing of the document: the line may be the token."""
    text = yaml.safe_dump(_kubeconfig()) + f'- "{TOKEN}\n'

    with pytest.raises(InvalidError) as caught:
        sanitise(text)

    assert str(caught.value).startswith("the kubeconfig is not valid YAML at line ")
    assert TOKEN not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("just text", "is not a kubeconfig", id="text"),
        pytest.param("", "is not a kubeconfig", id="nothing"),
        pytest.param("!!python/object/apply:os.system [ls]", "is not valid YAML", id="code"),
        pytest.param(b"\xff\xfe\xff", "is not valid YAML", id="not text"),
        pytest.param("a: 2026-99-99", "is not valid YAML", id="not a date"),
    ],
)
def test_refuses_what_is_no_document(text: str | bytes, message: str) -> None:
    """Anything but a mapping is refused in one sentence."""
    with pytest.raises(InvalidError, match=message):
        sanitise(text)


def _doubling(first: str, step: str) -> str:
    lines = [first, *(step.format(each, each - 1, each - 1) for each in range(1, 60))]
    return "\n".join(lines) + "\ncurrent-context: *a59\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 500_000, "line 1 of the kubeconfig is nested deeper", id="depth"),
        pytest.param("a:\n- " + "- " * 90_000, "line 2 .*is nested deeper", id="depth of a block"),
        pytest.param("{a: " * 200_000, "nested deeper than 50 levels", id="depth of mappings"),
        pytest.param("? " * 90_000, "is nested deeper|is not valid YAML", id="depth of keys"),
        pytest.param(
            _doubling("a0: &a0 [x]", "a{0}: &a{0} [*a{1}, *a{2}]"),
            "line 2 of the kubeconfig refers to an anchor; write the value out",
            id="laughs",
        ),
        pytest.param(
            _doubling("a0: &a0 {k: 1}", "a{0}: &a{0} {{<<: [*a{1}, *a{2}]}}"),
            "line 2 of the kubeconfig refers to an anchor",
            id="merges",
        ),
        pytest.param("a: &a [*a]", "refers to an anchor", id="itself"),
        pytest.param("# Notes\n\n*When it rains*", "is not a kubeconfig; give", id="Markdown"),
        pytest.param("notes " * 2000 + "why: none", "is not a kubeconfig", id="prose"),
        pytest.param("a: 1" + ":1" * 300_000, "long text with colons", id="base of 60"),
        pytest.param("a: 1" + ":1" * 300_000 + ".0", "long text with colons", id="fraction of 60"),
    ],
)
def test_refuses_what_only_makes_a_reader_work(text: str, message: str) -> None:
    """A few bytes that cost gigabytes, hours or the process are refused by what they are."""
    assert len(text) < 1 << 20
    with pytest.raises(InvalidError, match=message):
        sanitise(text)


def test_takes_what_others_add_below_extensions() -> None:
    """Wrappers of kubectl nest a little."""
    document = _kubeconfig()
    extension: dict[str, Any] = {"name": "context_info"}
    for _ in range(20):
        extension = {"extension": extension}
    _cluster(extensions=[extension])(document)

    assert sanitise(yaml.safe_dump(document)).server == "https://10.0.0.1:6443"


def test_refuses_a_huge_document() -> None:
    """It is not even parsed."""
    with pytest.raises(TooLargeError):
        sanitise("a" * (1 << 20) + "a")


def test_what_is_stored_is_read_without_yaml() -> None:
    """Credentials are stored as JSON, and a cold stage that reads them loads nothing for YAML."""
    program = (
        "import sys\n"
        "from bellhop.clusters.kubeconfig import sanitise\n"
        f"print(sanitise({json.dumps(sanitise(_kubeconfig()).to_dict())!r}).server)\n"
        "assert 'yaml' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.stdout.strip() == sanitise(_kubeconfig()).server


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5_000, "\xff"])
def test_json_that_only_makes_a_reader_work_is_refused(text: str) -> None:
    """What is no JSON that can be read is read as YAML, which refuses it in one sentence."""
    with pytest.raises(InvalidError):
        sanitise(text)
