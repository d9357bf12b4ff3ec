"""AWS for tests: one moto server in a session, started by the first test that needs it.

With `--live` the contract suites run in a real account instead (live.py), and whatever needs the
moto server itself is skipped. Nothing in it is emptied between tests: each makes what it needs
under a name of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import boto3
import pytest
from botocore.config import Config

from bellhop.adapters.aws.services import Services
from tests import live
from tests.contract.rigs.aws import Rig, install
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

Asked = Callable[[], dict[str, int]]

_LOADED_SECONDS = 120


@pytest.fixture(scope="session")
def _moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    with Moto(tmp_path_factory.mktemp("moto")) as moto:
        yield moto


@pytest.fixture(scope="session")
def live_account(pytestconfig: pytest.Config) -> live.Live | None:
    """The account that a run is to use, if it is, once it was asked who it is."""
    found = live.chosen(pytestconfig)
    if found:
        found.confirm()
    return found


@pytest.fixture
def moto(live_account: live.Live | None, request: pytest.FixtureRequest) -> Iterator[Moto]:
    """The session's moto server, which fails in no way that another test asked for."""
    if live_account:
        pytest.skip("it is about the moto server, and this run is about AWS")
    server: Moto = request.getfixturevalue("_moto")
    yield server
    server.forgive()


@pytest.fixture
def moto_place(live_account: live.Live | None, request: pytest.FixtureRequest) -> Iterator[str]:
    """The place of an installation that nobody else uses.

    It takes seconds on a busy machine: moto makes each resource by a request of its own.
    """
    if live_account is None:
        yield install(request.getfixturevalue("moto").url)
        return
    place = install(live_account.endpoint, live_account.prefix)
    yield place
    live.remove(place)


@pytest.fixture(scope="session")
def _parameters(_moto: Moto) -> None:
    """Have moto load Parameter Store, and half of EC2 for it: an SDK waits no longer than 5 s."""
    client = boto3.client(
        "ssm",
        region_name=REGION,
        endpoint_url=_moto.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(read_timeout=_LOADED_SECONDS),
    )
    client.describe_parameters()
    client.close()


@pytest.fixture
def parameters_place(
    live_account: live.Live | None, moto_place: str, request: pytest.FixtureRequest
) -> str:
    """The place of an installation where Parameter Store answers at once."""
    if live_account is None:
        request.getfixturevalue("_parameters")
    return moto_place


@pytest.fixture
def aws(moto_place: str) -> Iterator[Rig]:
    """An installation that nobody else uses."""
    rig = Rig(moto_place)
    yield rig
    rig.close()


@pytest.fixture
def hurried(moto: Moto) -> Iterator[Services]:
    """Services that rest no time between two tries."""
    services = Services(
        region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY), sleep=lambda _: None
    )
    yield services
    services.close()


@pytest.fixture
def asked(moto: Moto, aws: Rig) -> Asked:  # noqa: ARG001 - made before the count begins
    """Say which requests there were since this was asked last."""
    seen = Counter(moto.requests())

    def since() -> dict[str, int]:
        now = Counter(moto.requests())
        found = dict(now - seen)
        seen.update(found)
        return found

    return since
