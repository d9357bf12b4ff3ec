"""What the forwarder starts from, and what it shows of itself."""

from __future__ import annotations

import base64
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3

from bellhop.adapters.local.status_server import StatusServer
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.forwarder import backoff, cluster
from bellhop.forwarder.__main__ import main
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.instructions import parse
from bellhop.registration.forwarder_manifests import forwarder_secret
from infra.lab.cluster import Cluster

NAMESPACE = GVK("", "v1", "Namespace")

ENTRIES = {
    "ingest-url": "https://bellhop.example.com/in/",
    "ingest-ca": "",
    "cluster": "fleet/source",
    "token": "secret-token",
    "path": "/secret-path",
    "tls.crt": "secret-certificate",
    "tls.key": "secret-key",
}


def test_reads_its_instructions() -> None:
    """The address is that of its very cluster, and nothing secret shows."""
    instructions = parse(forwarder_secret(ENTRIES))

    assert instructions.ingest_url == "https://bellhop.example.com/in/clusters/fleet/source"
    assert (instructions.token, instructions.path) == ("secret-token", "/secret-path")
    assert "secret" not in repr(instructions)


def test_knows_the_former_path() -> None:
    """The webhook configuration may follow the Secret later; a restarted forwarder knows both."""
    instructions = parse(forwarder_secret({**ENTRIES, "former-path": "/secret-former"}))

    assert instructions.former_path == "/secret-former"
    assert parse(forwarder_secret(ENTRIES)).former_path == ""
    assert "secret" not in repr(instructions)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"token": ""}, "token", id="no token"),
        pytest.param({"token": "a\nb"}, "'token'", id="a token of two lines"),
        pytest.param({"path": "secret-path"}, "'path'", id="a path without slash"),
        pytest.param({"path": "/"}, "'path'", id="a path that anybody guesses"),
        pytest.param({"cluster": "source"}, "'cluster'", id="a cluster without namespace"),
        pytest.param({"ingest-url": "bellhop.example.com"}, "'ingest-url'", id="no scheme"),
        pytest.param({"ingest-url": "http://bellhop.example.com"}, "https", id="http"),
        pytest.param({"ingest-url": "https://a:b"}, "'ingest-url'", id="an odd port"),
        pytest.param({"ingest-ca": "secret-pem"}, "'ingest-ca'", id="an authority that is not PEM"),
    ],
)
def test_refuses_instructions_that_make_no_sense(changes: dict[str, str], named: str) -> None:
    """The message names the entry and never its value."""
    with pytest.raises(InvalidError, match=named) as caught:
        parse(forwarder_secret(ENTRIES | changes))

    assert "secret-" not in str(caught.value)


def test_takes_http_on_loopback() -> None:
    """On one machine nobody listens in."""
    entries = ENTRIES | {"ingest-url": "http://127.0.0.1:8080"}

    assert parse(forwarder_secret(entries)).ingest_url.startswith("http://127.0.0.1:8080/")


def test_a_scheme_is_kept_in_lower_case() -> None:
    """`HTTPS` means https, with the certificate authority that belongs to it."""
    entries = ENTRIES | {"ingest-url": "HTTPS://bellhop.example.com/In"}

    assert parse(forwarder_secret(entries)).ingest_url.startswith("https://bellhop.example.com/In/")


def test_refuses_entries_that_are_not_base64() -> None:
    """What an API server would not have stored is not guessed at."""
    with pytest.raises(InvalidError, match="'token'"):
        parse({"data": {"token": "?"}})


def test_finds_its_cluster_from_within_a_pod(tmp_path: Path) -> None:
    """The service account's files and the environment lead to the API server."""
    (tmp_path / "token").write_text("secret-token\n")
    (tmp_path / "ca.crt").write_text("PEM")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    found = cluster._read_account(environ, tmp_path)

    assert (found.server, found.token) == ("https://[fd00::1]:443", "secret-token")
    assert base64.b64decode(found.ca_data) == b"PEM"


@pytest.mark.parametrize(
    ("environ", "advice"),
    [
        pytest.param({}, "--kubeconfig", id="no pod"),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"},
            "mount",
            id="no token",
        ),
    ],
)
def test_says_what_a_pod_lacks(environ: dict[str, str], advice: str, tmp_path: Path) -> None:
    """Without an address or a token it cannot begin, and says what to do."""
    with pytest.raises(MissingError, match=advice):
        cluster.connect(None, environ, tmp_path)


def test_reads_a_token_again_that_has_changed(source_cluster: Cluster, tmp_path: Path) -> None:
    """A pod's token lasts an hour: one that is refused is read once more, if it is there still."""
    address = urlsplit(source_cluster.server)
    environ = {
        "KUBERNETES_SERVICE_HOST": address.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    (tmp_path / "token").write_text("of-an-hour-ago")
    (tmp_path / "ca.crt").write_text(source_cluster.ca_pem)
    kube = cluster.connect(None, environ, tmp_path)
    (tmp_path / "token").unlink()
    with pytest.raises(DeniedError):
        kube.get(NAMESPACE, "", "default")
    (tmp_path / "token").write_text(source_cluster.token)

    assert kube.get(NAMESPACE, "", "default") is not None
    kube.close()


def test_says_that_a_kubeconfig_cannot_be_read(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(InvalidError, match="absent"):
        cluster.connect(tmp_path / "absent")


def test_ends_with_a_sentence_where_it_cannot_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pod's log says why, and its exit status that it failed."""
    status = main(["--kubeconfig", str(tmp_path / "absent"), "--spool", str(tmp_path / "spool")])

    assert status == 1
    assert "The forwarder cannot run" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["8443", "host:", "host:port", ""])
def test_refuses_what_is_no_address(capsys: pytest.CaptureFixture[str], address: str) -> None:
    """A misspelled option is an error of usage."""
    with pytest.raises(SystemExit) as ended:
        main(["--spool", "spool", "--listen", address])

    assert ended.value.code == 2
    assert f"'{address}' is not HOST:PORT" in capsys.readouterr().err


def test_pauses_longer_each_time_up_to_a_limit() -> None:
    """Random within its bounds, never below what the other side asked for."""
    for failures in range(1, 40):
        longest = min(backoff.LONGEST_SECONDS, backoff.FIRST_SECONDS * 2.0 ** min(failures, 10))
        assert longest / 2 <= backoff.pause(failures) <= longest
    assert backoff.pause(1, at_least=7) == 7


def test_counts_in_the_format_of_prometheus() -> None:
    """Counters, gauges and a histogram whose buckets add up."""
    counts = Counts()
    counts.add("hints", 3)
    counts.took(0.007)
    counts.took(100)
    lines = counts.text({"spooled": ("Owed.", 2)}).splitlines()

    assert "bellhop_forwarder_hints_total 3" in lines
    assert "bellhop_forwarder_spooled 2" in lines
    assert 'bellhop_forwarder_seconds_bucket{le="0.005"} 0' in lines
    assert 'bellhop_forwarder_seconds_bucket{le="0.01"} 1' in lines
    assert 'bellhop_forwarder_seconds_bucket{le="+Inf"} 2' in lines
    assert "bellhop_forwarder_seconds_count 2" in lines


def test_answers_probes() -> None:
    """Each path asks its function; others are not there."""
    health = StatusServer(
        ("127.0.0.1", 0), {"/ok": lambda: (HTTPStatus.SERVICE_UNAVAILABLE, "no")}, "health"
    )
    try:
        with urllib3.PoolManager() as pool:
            found = pool.request("GET", f"http://127.0.0.1:{health.port}/ok?verbose", retries=False)
            other = pool.request("GET", f"http://127.0.0.1:{health.port}/", retries=False)
    finally:
        health.stop()

    assert (found.status, found.data) == (503, b"no")
    assert other.status == 404


def test_says_that_a_port_is_taken() -> None:
    """Two cannot listen at one address."""
    health = StatusServer(("127.0.0.1", 0), {}, "health")
    try:
        with pytest.raises(InvalidError, match="health"):
            StatusServer(("127.0.0.1", health.port), {}, "health")
    finally:
        health.stop()
