"""What every secret store keeps to: the sentences of bellhop.ports.store."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.errors import InvalidError, MissingError, TooLargeError
from bellhop.ports.store import Secrets

PORT = "secrets"
NAME = "kubeconfig/ns/name"


@pytest.fixture
def secrets(rig: Any) -> Secrets:
    found: Secrets = rig.secrets()
    return found


def test_reading_what_was_never_written_is_missing(secrets: Secrets) -> None:
    """A name without a secret is said to be missing, by its name."""
    with pytest.raises(MissingError, match="'kubeconfig/ns/name'"):
        secrets.read(NAME)


@settings(
    max_examples=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(value=st.binary(min_size=1, max_size=2000))
def test_reads_back_any_bytes(secrets: Secrets, value: bytes) -> None:
    """What was written is read back, byte for byte."""
    secrets.put(NAME, value)

    assert secrets.read(NAME) == value


def test_the_last_value_written_is_read(rig: Any, secrets: Secrets) -> None:
    """Another client writes over a secret, and both read the newer value."""
    other = rig.secrets()
    secrets.put(NAME, b"one")
    assert other.read(NAME) == b"one"
    other.put(NAME, b"two")

    assert secrets.read(NAME) == other.read(NAME) == b"two"


def test_forgets_a_secret(secrets: Secrets) -> None:
    """A deleted secret is missing and has no name; written again it has only its new value."""
    secrets.put(NAME, b"one")
    secrets.put(NAME, b"two")
    secrets.delete(NAME)

    with pytest.raises(MissingError):
        secrets.read(NAME)
    assert list(secrets.names()) == []
    secrets.put(NAME, b"three")
    assert secrets.read(NAME) == b"three"


def test_deleting_what_is_not_there_is_fine(secrets: Secrets) -> None:
    """A delete of an unknown name does nothing."""
    secrets.delete(NAME)

    assert list(secrets.names()) == []


def test_yields_the_names_that_start_with_a_prefix_in_order(secrets: Secrets) -> None:
    """Names come sorted, each once, and only those of the prefix."""
    names = ["kubeconfig/b/two", "kubeconfig/a/one", "kubeconfig/ab/one", "key/one", "kubeconfigs"]
    for name in [*names, names[0]]:
        secrets.put(name, b"x")

    assert list(secrets.names()) == sorted(names)
    assert list(secrets.names("kubeconfig/")) == sorted(names[:3])
    assert list(secrets.names("kubeconfig/a")) == ["kubeconfig/a/one", "kubeconfig/ab/one"]
    assert list(secrets.names("none")) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("kubeconfig/prod/eu-1", id="slashes"),
        pytest.param("kubeconfig/a.b/c.d-e", id="dots and dashes"),
        pytest.param("kubeconfig/" + "n" * 63 + "/" + "c" * 253, id="the longest cluster"),
        pytest.param("a/b", id="two parts"),
        pytest.param("a-b", id="no confusion with slashes"),
        pytest.param("a_b", id="no confusion with underscores"),
        pytest.param("A/b", id="case"),
    ],
)
def test_keeps_names_apart(secrets: Secrets, name: str) -> None:
    """Names that look alike are different secrets, listed as they were written."""
    others = {"a/b", "a-b", "a_b", "a.b", "a/b/c", "A/b"} - {name}
    for other in others:
        secrets.put(other, b"other")
    secrets.put(name, b"mine")

    assert secrets.read(name) == b"mine"
    assert set(secrets.names()) == others | {name}
    secrets.delete(name)
    assert set(secrets.names()) == others


def test_takes_secrets_up_to_its_limit(rig: Any, secrets: Secrets) -> None:
    """What fills the limit is written; what exceeds it is refused and changes nothing."""
    secrets.put(NAME, b"x" * rig.secret_limit)

    with pytest.raises(TooLargeError, match="'kubeconfig/ns/name'"):
        secrets.put(NAME, b"y" * (rig.secret_limit + 1))

    assert secrets.read(NAME) == b"x" * rig.secret_limit


def test_refuses_a_name_that_is_not_unicode(secrets: Secrets) -> None:
    """A lone surrogate is no name."""
    with pytest.raises(InvalidError):
        secrets.put("\ud800", b"x")


def test_readers_never_see_half_a_value(rig: Any, secrets: Secrets) -> None:
    """While threads write over a secret, a reader gets one whole value or another."""
    size = rig.secret_limit // 2
    secrets.put(NAME, b"\0" * size)

    def write(byte: int) -> None:
        client = rig.secrets()
        for _ in range(10):
            client.put(NAME, bytes([byte]) * size)

    writers = [threading.Thread(target=write, args=(byte,)) for byte in range(1, 4)]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(secrets.read(NAME))
    for writer in writers:
        writer.join()

    assert {(len(value), len(set(value))) for value in seen} <= {(size, 1)}


def test_a_killed_writer_leaves_a_whole_secret(
    rig: Any, secrets: Secrets, other_process: Any
) -> None:
    """After kill -9 the secret has the last acknowledged value, or the one being written."""
    writer = other_process("put_secrets")
    for _ in range(20):
        writer.stdout.readline()
    writer.kill()
    last = 19 + len(writer.stdout.read().splitlines())

    value = secrets.read("kubeconfig/busy/one")
    size = rig.secret_limit // 2
    assert value in {bytes([byte % 256]) * size for byte in (last, last + 1)}
    assert list(secrets.names()) == ["kubeconfig/busy/one"]
