"""An installation goes from one machine to Google, to another machine, and to AWS.

Deployed objects are neither made again nor touched by a move, and the next event of a cluster comes
to the address that its forwarder was given: nobody registers anything again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.cli.conftest import NOWHERE, House, embedded, on_aws, on_gcp
from tests.functions.gcp_lab import Project, Stand, balanced, ports
from tests.functions.gcp_lab import gone as gone_item
from tests.functions.lab import Account, Lambda
from tests.functions.sender import ClusterSender, Post, by_https, to_lambda
from tests.functions.test_moving import PASSPHRASE, leave
from tests.scenarios import ADDRESSES, EXAMPLES, TWIN, WEB
from tests.waiting import eventually

pytestmark = pytest.mark.thorough

Wait = Callable[[Callable[[], object]], None]


class Fleet:
    """Two clusters, who works in them, and who sends for the first."""

    def __init__(self, source: Cluster, destination: Cluster, folder: Path) -> None:
        self._folder = folder
        self._clusters = source, destination
        self._source, self._destination = (Someone(each.kubeconfig()) for each in self._clusters)
        self.sender = ClusterSender(source)
        (folder / "secret").write_text(PASSPHRASE)

    def join(self, house: House) -> None:
        """Register both, and declare an example."""
        said = {"env=production": ("--forwarder-url", NOWHERE), "dep=eng": ("--no-forwarder",)}
        for cluster, (labels, how) in zip(self._clusters, said.items(), strict=True):
            path = self._folder / cluster.name
            cluster.kubeconfig(path)
            place = ("register", "cluster", f"fleet/{cluster.name}", "--kubeconfig", str(path))
            done = house(*place, "--labels", labels, *how)
            assert done.exit_code == 0, done.stderr
        done = house("apply", "-f", str(EXAMPLES / "service-discovery"))
        assert done.exit_code == 0, done.stderr

    def move(self, old: House, new: House) -> None:
        """Do as the how-to says; what waits until functions have seen the mark is left out."""
        archive = self._folder / f"{len(list(self._folder.iterdir()))}.archive"
        archive.write_text(leave(old.here).read())
        secret = ("--passphrase-file", str(self._folder / "secret"))
        done = new("restore", str(archive), *secret)

        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith("restored 2 clusters, ")
        assert "name: web" in new("get", "eventreport", "-o", "yaml").stdout
        assert "external-web" in new("show", "addons").stdout

    def sends_to(self, url: str) -> bool:
        """Say whether the forwarder knows where it is to send now."""
        return (
            self.sender.read_instructions().ingest_url
            == f"{url}/clusters/fleet/{self._clusters[0].name}"
        )

    def make(self) -> None:
        """Make a balanced Service, which sends no event yet."""
        self._source.create(balanced(60000))
        self._source.give_address(WEB, "34.172.32.172")

    def change(self, port: int) -> dict[str, Any]:
        """Change the Service, and return what a forwarder sends of it."""
        return {"object": self._source.patch(WEB, {"spec": {"ports": [{"port": port}]}})}

    def delete(self) -> dict[str, Any]:
        """Delete the Service, and return what a forwarder sends of it."""
        stored = self._source.get(WEB)
        assert stored
        self._source.delete(WEB)
        return {"gone": gone_item(stored)}

    def there(self, port: int) -> bool:
        return self.ports(TWIN) == [port] == self.ports(ADDRESSES)

    def ports(self, key: ObjectKey) -> list[int]:
        return ports(self._destination, key)

    def lives(self) -> list[tuple[str, str]]:
        """Return the uid and the last change of the deployed object."""
        found = [self._destination.get(key) or {"metadata": {}} for key in (TWIN, ADDRESSES)]
        return [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]

    def close(self) -> None:
        for each in (self._source, self._destination, self.sender):
            each.close()


@pytest.fixture
def fleet(source_cluster: Cluster, destination_cluster: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    one = Fleet(source_cluster, destination_cluster, tmp_path)
    yield one
    one.close()


def wait(until: Callable[[], object]) -> None:
    """Wait where the installation works by itself."""
    eventually("the fleet goes on", until, patience=60)


def goes_on(fleet: Fleet, url: str, wait: Wait, port: int, by: Post = by_https) -> None:
    """See that a place to which the fleet has moved touches nothing, and takes the next event."""
    before = fleet.lives()
    wait(lambda: fleet.sends_to(url))
    assert fleet.lives() == before

    fleet.sender.send(fleet.change(port), by)
    wait(lambda: fleet.there(port))
    assert [uid for uid, _ in fleet.lives()] == [uid for uid, _ in before]


@contextmanager
def served(house: House) -> Iterator[str]:
    """Have an installation on one machine be served."""
    with running(house.context.state, Settings(), Log(io.StringIO()), "127.0.0.1", 0) as url:
        yield url


@pytest.mark.timeout(600)
def test_goes_from_a_machine_to_google_to_a_machine_and_to_aws(
    fleet: Fleet,
    project: Project,
    google_sources: Path,
    google_installed: Path,
    account: Account,
    tmp_path: Path,
) -> None:
    """Each place finds what is applied, and the cluster's events find each place.

    It takes long: an installation moves three times, and works off events at each place.
    """
    one, google, two, aws = (tmp_path / name for name in ("one", "google", "two", "aws"))
    for folder in (one, google, two, aws):
        folder.mkdir()
    first = embedded(one)
    with served(first):
        fleet.join(first)
        fleet.make()
        fleet.sender.send(fleet.change(60001))
        wait(lambda: fleet.there(60001))

    stand = Stand(project, google_sources, google_installed, google)
    second = on_gcp(google, project)
    fleet.move(first, second)
    goes_on(fleet, stand.functions["ingest"].url, stand.wait, 60002)

    third = embedded(two)
    fleet.move(second, third)
    stand.close()
    with served(third) as url:
        goes_on(fleet, url, wait, 60003)

    functions, fourth = Lambda(account), on_aws(aws, account)
    fleet.move(third, fourth)
    by, url = to_lambda(functions), account.environment["BELLHOP_INGEST_URL"]
    goes_on(fleet, url, lambda until: functions.pump(until=until), 60004, by)
    fleet.sender.send(fleet.delete(), by)
    functions.pump(until=lambda: not fleet.ports(TWIN) and not fleet.ports(ADDRESSES))
    for house in (first, second, third, fourth):
        house.opened.close()
