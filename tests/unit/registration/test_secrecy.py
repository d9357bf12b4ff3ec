"""Secrets of a registration are in no error, log line or representation."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.records import InstallationId
from bellhop.errors import InvalidError
from bellhop.installation import Inbound, Installation
from bellhop.registration import instructions as ringing
from bellhop.registration.forwarder_manifests import redact_paths
from bellhop.registration.registration import register
from bellhop.registration.renewal import renew
from infra.lab.cluster import Cluster
from tests.fakes.clock import START, FakeClock
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.unit.registration.conftest import Wished


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation over fakes."""
    made = Fleet(tmp_path)
    yield made
    made.close()


KEY = "prod/eu-1"
INBOUND = Inbound("https://ingest.example", "")


def secrets(instructions: ringing.Instructions) -> list[str]:
    """Return the values that must not be shown."""
    entries = instructions.entries
    return [entries["token"], entries["path"], entries["tls.key"][40:80]]


def test_instructions_do_not_show_themselves() -> None:
    """Neither the present nor the former ones, wherever they are printed."""
    made = ringing.make_instructions(KEY, "", INBOUND, START, ringing.Former())
    former = ringing.Former(made.record, made.entries)
    shown = repr(made) + repr(former) + str(made)

    assert not [each for each in secrets(made) if each in shown]


def test_a_refused_configuration_is_quoted_without_its_path() -> None:
    """API servers quote the URL that they do not like, and the path is a secret."""
    made = ringing.make_instructions(KEY, "https://10.0.0.5", INBOUND, START, ringing.Former())
    kube = FakeKube()
    url = f"https://10.0.0.5{made.record['path']}"
    kube.fail_with(InvalidError(f'clientConfig.url: Invalid value: "{url}": no'), "apply")
    with pytest.raises(InvalidError) as caught:
        ringing.configure_webhook(kube, [], made.record, InstallationId("one"))

    assert str(caught.value) == 'clientConfig.url: Invalid value: "https://10.0.0.5/…": no'
    assert caught.value.__context__ is None


def test_a_resync_conceals_the_path(fleet: Fleet) -> None:
    """Neither the cluster's health nor the log has it."""
    kube = fleet.register("east")
    cluster = value_of(fleet.records.clusters.get("fleet/east"))
    assert cluster is not None
    record = {"url": "https://10.0.0.5", "ca": "", "path": "/ring/unguessable"}
    fleet.declare.register(replace(cluster, forwarder=record))
    kube.fail_with(InvalidError('Invalid value: "https://10.0.0.5/ring/unguessable"'), "apply")
    fleet.pump()
    message = fleet.records.health.get("fleet/east").value.message

    assert message.endswith('only resyncs find events: Invalid value: "https://10.0.0.5/…"')
    assert "unguessable" not in fleet.output.getvalue()
    assert redact_paths("nothing", {}) == "nothing"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:word@10.0.0.5",
        "https://10.0.0.5?key=word",
        "https://10.0.0.5#word",
        "http://a",
    ],
)
def test_an_odd_url_is_refused_and_not_quoted(url: str) -> None:
    """API servers would refuse it later, in their words."""
    with pytest.raises(InvalidError, match="API servers only call https") as caught:
        ringing.make_instructions(KEY, url, INBOUND, START, ringing.Former())

    assert "word" not in str(caught.value)


def test_a_registration_and_its_renewal_speak_of_no_secret(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """Results, and the record as it is printed, have neither token, path nor key."""
    output = io.StringIO()
    print(register(here, wished(source_cluster)), file=output)
    first = ringing.read_entries(source)
    clock.advance(ringing.OVERLAP + timedelta(seconds=1))
    print(renew(here, KEY), file=output)
    print(register(here, wished(source_cluster)), wished(source_cluster), file=output)
    second = ringing.read_entries(source)
    admin = source_cluster.kubeconfig()["users"][0]["user"]["token"]

    for entries in (first, second):
        assert entries["token"] not in output.getvalue()
        assert entries["path"] not in output.getvalue()
        assert entries["tls.key"][40:80] not in output.getvalue()
    assert admin not in output.getvalue()
