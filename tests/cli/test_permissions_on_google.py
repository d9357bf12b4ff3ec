"""People are granted the calls of each command on Google Cloud, and no more."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.cli.conftest import Google, House, on_gcp
from tests.cli.test_commands import CHANGING, READING, STDIN, populate
from tests.cli.test_permissions import WRITING
from tests.functions import google_grants
from tests.functions.gcp_lab import Project
from tests.functions.google_grants import OPERATOR, READER
from tests.lab.google_access import Access, Asked, allowed
from tests.lab.google_container import Gke
from tests.lab.google_logging import Logging
from tests.unit.cli import fleet

pytest_plugins = ["tests.kube_fixtures"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/gcp-permissions.md").read_text()

LOOKING = [
    *{tuple(line.split()[:2]): line for line in reversed(READING)}.values(),
    *("status", "doctor", "logs"),
]
"""Of all forms of a command one: forms differ in what is printed."""

CALLING = ("doctor", "explain", "delete orphans")
"""Commands that call clusters, for which they read kubeconfigs."""

KEY = "secretmanager.versions.access"
"""What a reader is granted only on the two keys of records."""

WIDE = {"logging.logEntries.list", "monitoring.timeSeries.list", "secretmanager.secrets.create"}
"""What Google knows no narrower place for than a project."""

NOT_ASKED = {
    "storage.objects.list": "without it Cloud Storage says of what is not there that it is denied",
}
"""Rights that commands need at times, not always in these tests, and what they are for."""

DENIED = "Google denies it"
CLUSTERS = "container.clusters.get"


def granted(who: str, house: House, name: str = "", database: str = "") -> dict[str, Any]:
    """Return what somebody is granted, with `gke_clusters`; of another installation by its name."""
    place = house.context.place
    project = place["project"]
    own = google_grants.granted(
        who, project, name or place["secrets"], database or place["database"]
    )
    clusters = f"projects/{project}/locations/europe-west1/clusters/"
    return own if who == READER else {**own, CLUSTERS: (clusters,)}


def reached_by_others(asked: Iterable[Asked], who: str, house: House) -> set[str]:
    """Return which of these rights people of installations of like names have, too."""
    place = house.context.place
    names = place["secrets"], place["database"]
    others = [
        granted(who, house, *(each[:-1] for each in names)),
        granted(who, house, *(f"{each}-two" for each in names)),
    ]
    return {each.right for each in asked for other in others if allowed(each, other)}


@pytest.fixture
def logging() -> Iterator[Logging]:
    with Logging() as served:
        yield served


@pytest.fixture
def gke() -> Iterator[Gke]:
    with Gke() as served:
        yield served


@pytest.fixture
def access(google: Google, logging: Logging, gke: Gke) -> Iterator[Access]:
    """The proxies before all of Google that commands call."""
    own = {"LOGGING_EMULATOR_HOST": logging.address, "CONTAINER_EMULATOR_HOST": gke.address}
    with Access({**google.emulators, **own}) as doors:
        yield doors


@pytest.fixture
def project(google: Google, logging: Logging) -> Iterator[Project]:
    one = google.project()
    logging.places.add(f"projects/{one.name}")
    yield one
    one.close()


@pytest.fixture
def crowded(project: Project, tmp_path: Path) -> Iterator[House]:
    """An installation in which there is something of everything."""
    made = on_gcp(tmp_path, project)
    populate(made)
    made.here.records.pulses.put(WorkerHeartbeat(fleet.now(), fleet.now()))
    made.bury({"kind": "sweep", "cluster": "a/b"}, "why")
    made.here.publisher.publish([Resync("default/workload")])
    yield made
    made.opened.close()


def test_who_reads_needs_a_readers_grants(crowded: House, access: Access) -> None:
    """Commands that look are denied nothing, and ask for all that is granted, which others lack.

    It takes seconds: all reading commands of the CLI run once.
    """
    given, asked = granted(READER, crowded), set[Asked]()
    for line in LOOKING:
        access.may(None if line.startswith(CALLING) else given)
        done = crowded(*line.split(), **access.environment)

        assert DENIED not in done.output, line
        assert done.exit_code != 70, line
        asked |= access.asked()
    assert {each.right for each in asked} - NOT_ASKED.keys() == given.keys() - NOT_ASKED.keys()
    assert reached_by_others(asked, READER, crowded) == WIDE & given.keys()


def test_who_changes_things_needs_an_operators_grants(
    crowded: House,
    access: Access,
    gke: Gke,
    source_cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All others are denied nothing, and ask for all that is granted, which is of no other name.

    It takes seconds: all commands of the CLI run once.
    """
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(gke.key_file(tmp_path)))
    describe(gke, crowded, source_cluster)
    letter = crowded.bury({"kind": "sweep", "cluster": "a/b"}, "why")
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    (tmp_path / "secret").write_text("four words and a number 7")
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}}
    noise = "".join(f"{number:x}" for number in range(200_000))
    (tmp_path / "large.json").write_text(json.dumps({**large, "data": {"a": noise}}))
    register = f"register cluster prod/eu-1 --kubeconfig {tmp_path / 'kubeconfig'} --no-forwarder"
    given = granted(OPERATOR, crowded)
    access.may(given)
    for line in (
        *(line for line in LOOKING if line.startswith(CALLING)),
        f"dead-letters replay {letter}",
        f"apply -f {tmp_path / 'large.json'}",
        register,
        register,
        *(change for change, _ in CHANGING),
        # Its API server takes no token of Google's: to find it is what is asked for.
        "register cluster-gke prod/eu-2 --gke own",
        f"backup {tmp_path / 'archive'} --passphrase-file {tmp_path / 'secret'}",
        "deregister cluster prod/eu-1",
    ):
        done = crowded(*line.split(), stdin=STDIN, **access.environment)

        assert DENIED not in done.output, line
        assert done.exit_code != 70, f"{line}: {done.output}"
    asked = access.asked()
    rights = {each.right for each in asked} | granted(READER, crowded).keys()
    assert rights - NOT_ASKED.keys() == given.keys() - NOT_ASKED.keys()
    # The variable `gke_clusters` names clusters, whatever an installation is called.
    assert reached_by_others(asked, OPERATOR, crowded) <= WIDE | {CLUSTERS}


def describe(gke: Gke, house: House, cluster: Cluster) -> None:
    """Have a GKE cluster where there is one."""
    name = f"projects/{house.context.place['project']}/locations/europe-west1/clusters/own"
    authority = base64.b64encode(cluster.ca_pem.encode()).decode()
    endpoint = cluster.server.removeprefix("https://")
    gke.describe(name, {"endpoint": endpoint, "masterAuth": {"clusterCaCertificate": authority}})


TAKING = {
    "datastore.entities.get": "get clusters",
    "datastore.entities.list": "get clusters",
    "storage.objects.get": "explain trigger service-network-policy",
    KEY: "get clusters",
    "monitoring.timeSeries.list": "status",
    "logging.logEntries.list": "logs",
}
"""The rights of who reads, and a command that is denied without."""


@pytest.mark.thorough
def test_no_right_of_who_reads_is_one_too_many(crowded: House, access: Access) -> None:
    """Without each of them a command says that it is denied."""
    given = granted(READER, crowded)
    assert given.keys() - NOT_ASKED.keys() == TAKING.keys()
    for right, line in TAKING.items():
        crowded(*line.split())  # Who may write lays the rules together, which others read so.
        access.may({each: on for each, on in given.items() if each != right})

        assert DENIED in crowded(*line.split(), **access.environment).output, right


def test_who_reads_changes_nothing(crowded: House, access: Access) -> None:
    """Nor does he get kubeconfigs, or call clusters by them."""
    crowded.here.secrets.put("kubeconfig/default/workload", b"{}")
    access.may(granted(READER, crowded))
    refused = [crowded(*line.split(), stdin=STDIN, **access.environment) for line in WRITING]
    words = "explain default/workload Service default/my-service"
    looked = crowded(*words.split(), **access.environment).stdout

    assert [each.exit_code for each in refused] == [1, 1, 1]
    for each in refused:
        assert f"{DENIED}; give the service account or the user this right" in each.stderr
    assert "nobody could look" in looked
    assert "cannot read the secret 'kubeconfig/default/workload': Google denies it" in looked


def test_logs_in_a_bucket_of_their_own_need_the_right_to_its_view(
    project: Project, access: Access, logging: Logging, tmp_path: Path
) -> None:
    """As Terraform puts it out where lines are kept for another time than 30 days."""
    view = f"projects/{project.name}/locations/europe-west1/buckets/lab/views/_AllLogs"
    logging.places.add(view)
    house = on_gcp(tmp_path, project, logs=view)
    given = granted(READER, house)
    del given["logging.logEntries.list"]
    access.may({**given, "logging.views.access": (f"{view}$",)})
    shown = house("logs", **access.environment)
    access.may({**given, "logging.views.access": (view.replace("/lab/", "/la/") + "$",)})
    denied = house("logs", **access.environment)
    house.opened.close()

    assert (shown.exit_code, DENIED in shown.stderr) == (0, False)
    assert DENIED in denied.stderr


def test_a_reader_may_read_two_secrets(crowded: House) -> None:
    """Those are the keys of records, and an operator may do all that a reader may."""
    operator, reader = granted(OPERATOR, crowded), granted(READER, crowded)
    start = f"projects/{crowded.context.place['project']}/secrets/lab-"

    assert reader.keys() < operator.keys()
    assert {each: on for each, on in reader.items() if each.startswith("secretmanager")} == {
        KEY: (f"{start}ingest-key/", f"{start}sealing-key/")
    }


def test_the_page_names_every_command_that_changes_something() -> None:
    """Among those that publish messages: all of these may."""
    [row] = re.findall(r"^\| `pubsub.topics.publish` .*$", PAGE, re.MULTILINE)

    assert [line for line, _ in CHANGING if f"`{line.split()[0]}" not in row] == []


def test_the_page_names_every_right() -> None:
    """And none that is not granted, but those of the roles that Google has."""
    named = set(re.findall(r"`([a-z]+\.[a-zA-Z]+\.[a-zA-Z]+)`", PAGE.partition("## What")[0]))

    operator = google_grants.granted(OPERATOR, "acme", "lab", "lab")
    assert named == operator.keys() | {CLUSTERS, "logging.views.access"}
