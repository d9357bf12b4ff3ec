"""The same command line over an embedded installation and over one on AWS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellhop.cli.contexts import Context
from bellhop.cli.main import cli
from bellhop.cli.places import Opened, place_of
from bellhop.fleet.installation import Installation
from bellhop.messages import INBOXES
from bellhop.ports.queue import Delivery, GivenUp, Message
from infra.lab.moto import ACCESS_KEY, SECRET_KEY, Moto
from tests.functions.lab import REGION, Account

NOWHERE = "https://127.0.0.1:9"
"""Where nobody listens."""


@dataclass
class House:
    """An installation, and the command line of somebody who has a context for it."""

    context: Context
    environment: Mapping[str, str]
    opened: Opened = field(init=False)

    def __post_init__(self) -> None:
        self.opened = place_of(self.context).opened(self.context, self.environment, create=True)

    @property
    def here(self) -> Installation:
        """The installation, as whoever works in it sees it."""
        return self.opened.installation

    @property
    def services(self) -> Any:
        """AWS' services, where the installation is there."""
        return getattr(self.opened, "services")  # noqa: B009 - an embedded one has none

    def __call__(self, *arguments: str, stdin: str | None = None, **extra: str) -> Result:
        """Run a command line."""
        environment = {**self.environment, **extra}
        return CliRunner(env=environment).invoke(cli, arguments, input=stdin)

    def bury(self, body: Mapping[str, Any], reason: str) -> str:
        """Have a message of the inbox `deploy` given up; return its name."""
        queue: Any = self.here.queues["deploy"]
        queue.publish([Message(body, "group")])
        deliveries: list[Delivery] = []
        deliveries += queue.receive(1, wait=timedelta(seconds=2))
        assert isinstance(queue.settle(deliveries[0], GivenUp(reason)), GivenUp)
        [letter] = self.here.dead["deploy"].list()
        return f"deploy/{letter.id}"


def outputs(account: Account) -> dict[str, Any]:
    """What Terraform would put out of an account."""
    given = account.environment
    return {
        "kind": "aws",
        "region": REGION,
        "table": given["BELLHOP_TABLE"],
        "bucket": given["BELLHOP_BUCKET"],
        "queues": json.loads(given["BELLHOP_QUEUES"]),
        "secrets": given["BELLHOP_SECRETS"],
        "key_secret": given["BELLHOP_KEY_SECRET"],
        "ingest_url": NOWHERE,
        "log_groups": {
            stage: f"/aws/lambda/{account.name}-{stage}"
            for stage in ("ingest", "schedule", *sorted(set(INBOXES.values())))
        },
        "version": "0.1.0",
    }


Build = Callable[[str], House]


def embedded(folder: Path) -> House:
    """Make a state folder, and a command line that is led to it by its context."""
    environment = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder)}
    run = CliRunner(env=environment)
    for words in (["add", "lab", "--state", str(folder / "state")], ["use", "lab"]):
        assert run.invoke(cli, ["context", *words]).exit_code == 0
    return House(Context("lab", "embedded", folder / "state"), environment)


def on_aws(
    folder: Path, account: Account, environment: Mapping[str, str] | None = None, **told: Any
) -> House:
    """Make a command line whose context is what Terraform has put out of an account.

    What AWS' SDK finds in an `environment` goes before the endpoint of a context.
    """
    own = environment
    environment = {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        **(own or {}),
    }
    place = {**outputs(account), **told}
    text = json.dumps({"bellhop": {"value": place, "sensitive": False}, "other": {"value": 1}})
    run = CliRunner(env=environment)
    endpoint = {} if own else {"endpoint": account.moto.url}
    add = ["add", "prod", "--aws", "-", *(f"--endpoint={each}" for each in endpoint.values())]
    added = run.invoke(cli, ["context", *add], input=text)
    assert added.exit_code == 0, added.output
    assert run.invoke(cli, ["context", "use", "prod"]).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        context = Context("prod", "aws", place={**place, **endpoint})
        house = House(context, environment)
        for service in ("dynamodb", "secretsmanager", "sqs", "s3", "cloudwatch", "logs", "eks"):
            # While the environment is that of the command line.
            house.services.client(service)
        for region in (REGION,):
            for service in ("eks", "sts"):
                house.services.client(service, region)
    return house


@pytest.fixture(params=["embedded", "aws"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """An empty installation of each kind."""
    if request.param == "embedded":
        made = embedded(tmp_path)
        yield made
        made.opened.close()
        return
    account = Account(request.getfixturevalue("moto"))
    made = on_aws(tmp_path, account)
    yield made
    made.opened.close()
    account.close()


@pytest.fixture
def bellhop_local(tmp_path: Path) -> Iterator[House]:
    """An empty embedded installation."""
    made = embedded(tmp_path)
    yield made
    made.opened.close()


@pytest.fixture
def prod(moto: Moto, tmp_path: Path) -> Iterator[House]:
    """An empty installation on AWS."""
    account = Account(moto)
    made = on_aws(tmp_path, account)
    yield made
    made.opened.close()
    account.close()
