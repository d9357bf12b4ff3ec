"""One installation in a session, applied by the real Terraform on a moto server of its own.

An apply takes a minute and a half, so that all tests share it. Each leaves it as it was found; who
comes after one that has destroyed it applies it again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infra.demo.stand import Registered, Stand
from infra.demo.user import User as Someone
from infra.lab.processes import Nursery
from infra.package.interpreter import machine_architecture
from tests.lab.moto import ACCESS_KEY, SECRET_KEY, Moto
from tests.lab.terraform import Stack, find_terraform
from tests.missing import required
from tests.terraform.cloud import Cloud
from tests.terraform.proxy import Proxy
from tests.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
_PATIENCE = 90.0

HURRIED = {
    "attempts": 6,
    "ledger_days": 30,
    "retry_first": 1,
    "retry_longest": 1,
    "sweep_interval": 600,
    "visibility": 5,
}
"""The example's settings, but for the pauses between tries, and for how long a lease lasts."""


@pytest.fixture(scope="session")
def _terraform() -> None:
    """Terraform with its provider."""
    with required():
        find_terraform()


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    """An AWS account that has nothing yet."""
    with Moto(tmp_path_factory.mktemp("account")) as moto:
        yield moto


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Terraform takes packages from."""
    return tmp_path_factory.mktemp("built") / "dist"


@pytest.fixture(scope="session")
def _stack(
    _terraform: None,
    account: Moto,
    packages: dict[str, Path],
    dist: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Stack:
    """The complete example; pauses are shorter, so that a test sees their end."""
    shutil.copytree(packages["ingest"].parent, dist)
    variables = {"packages": str(dist), "architecture": machine_architecture()}
    return Stack(
        tmp_path_factory.mktemp("stack") / "checkout",
        "aws-complete",
        account.url,
        variables,
        settings=HURRIED,
    )


@pytest.fixture(scope="class")
def stack(_stack: Stack) -> Stack:
    """The complete example, applied.

    The first test that needs it waits for minutes: packages are built, and Terraform applies the
    example resource by resource.
    """
    if not _outputs(_stack):
        _stack.run("apply", "-auto-approve")
    return _stack


def _outputs(stack: Stack) -> dict[str, dict[str, Any]]:
    """Read the outputs from the state, which has none before an apply and after a destroy."""
    state = stack.place / "terraform.tfstate"
    found: dict[str, dict[str, Any]] = {}
    if state.exists():
        found = json.loads(state.read_text())["outputs"]
    return found


@pytest.fixture(scope="class")
def cloud(account: Moto, stack: Stack) -> Iterator[Cloud]:
    """What AWS does with it."""
    one = Cloud(account.url, _outputs(stack)["bellhop"]["value"])
    yield one
    one.close()


class Fleet:
    """An operator with the CLI, two clusters with who works in them, and AWS at work between."""

    def __init__(
        self, folder: Path, nursery: Nursery, cloud: Cloud, endpoint: str, proxy: Proxy
    ) -> None:
        self.cloud = cloud
        self.stand = Stand(folder, nursery)
        del self.stand.environment["BELLHOP_STATE"]
        self.stand.environment |= {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.endpoint = endpoint
        self.more = ("--ingest-url", proxy.address, "--ingest-ca", str(proxy.ca))
        self._people: dict[str, Someone] = {}
        self._examples: list[str] = []
        outputs = json.dumps({"bellhop": {"value": dict(cloud.bellhop)}})
        self.do("context", "add", "prod", "--aws", "-", "--endpoint", endpoint, stdin=outputs)
        self.do("context", "use", "prod")

    def do(self, *arguments: str, stdin: str = "") -> str:
        return self.stand.do(*arguments, stdin=stdin)

    def register(self, cluster: Registered, labels: str, *, forward: bool = True) -> Someone:
        """Register a cluster; return who works in it."""
        self.stand.register(
            cluster,
            *(self.more if forward else ()),
            namespace="fleet",
            labels=labels,
            forward=forward,
        )
        self._people[cluster.name] = Someone(cluster.kubeconfig())
        return self._people[cluster.name]

    def apply(self, example: str) -> None:
        """Apply an example of the docs."""
        self.do("apply", "-f", str(EXAMPLES / example))
        self._examples.append(example)

    def rings(self, cluster: str) -> None:
        """Wait until a cluster was resynced after the last apply."""
        asked = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.do("resync", cluster)
        self.until("it is swept", lambda: asked <= self.swept_at(cluster))

    def swept_at(self, cluster: str) -> str:
        """Return when a cluster was last resynced; empty if it never was."""
        namespace, name = cluster.split("/")
        described = json.loads(self.do("get", "cluster", name, "-n", namespace, "-o", "json"))
        return str(described["status"].get("lastSweepTime", ""))

    def leave(self) -> None:
        """Take back all that was declared and registered."""
        for example in self._examples:
            self.do("delete", "-f", str(EXAMPLES / example))
        for name, someone in self._people.items():
            self.do("deregister", "cluster", f"fleet/{name}")
            someone.close()

    def until(self, what: str, done: Callable[[], object]) -> None:
        """Wait until something is so, or fail saying what never was."""
        eventually(
            lambda: f"{what}: {self.cloud.words()}",
            done,
            patience=_PATIENCE,
        )


@contextmanager
def open_fleet(folder: Path, account: Moto, cloud: Cloud) -> Iterator[Fleet]:
    """Open the proxy for an operator; its registrations and manifests are taken back in the end."""
    folder.joinpath("door").mkdir()
    with Nursery() as nursery, Proxy(folder / "door", cloud) as proxy:
        one = Fleet(folder / "stand", nursery, cloud, account.url, proxy)
        yield one
        one.leave()


@pytest.fixture
def fleet(tmp_path: Path, account: Moto, cloud: Cloud) -> Iterator[Fleet]:
    """An operator, and AWS at work; no role is denied anything meanwhile."""
    account.forget_access()
    with open_fleet(tmp_path, account, cloud) as one, cloud.running():
        yield one
    assert [each for each in account.access() if not each["allowed"]] == []
