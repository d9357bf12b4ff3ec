"""The same command line over an embedded installation, one on AWS and one on Google Cloud.

Nobody measures what waits there but in the `house` of one test: subscriptions have one name in all
projects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from bellhop.cli.contexts import Context
from bellhop.cli.main import cli
from bellhop.cli.providers.provider import OpenInstallation, load_provider
from bellhop.installation import Installation
from bellhop.ports.queue import Delivery, GivenUp, Message
from bellhop.state.messages import INBOXES
from tests.contract.rigs.gcp_queues import make
from tests.functions.gcp_lab import Project
from tests.functions.lab import REGION, Account
from tests.lab.google import Emulator
from tests.lab.google_monitoring import Monitoring
from tests.lab.google_secrets import SecretManager
from tests.lab.google_storage import Storage
from tests.lab.moto import ACCESS_KEY, SECRET_KEY, Moto

STAGES = ("ingest", "schedule", *sorted(set(INBOXES.values())))

NOWHERE = "https://127.0.0.1:9"
"""Where nobody listens."""


@dataclass
class House:
    """An installation, and the command line of somebody who has a context for it."""

    context: Context
    environment: Mapping[str, str]
    monitoring: Monitoring | None = None
    opened: OpenInstallation = field(init=False)

    def __post_init__(self) -> None:
        self.opened = load_provider(self.context).open(self.context, self.environment, create=True)

    @property
    def here(self) -> Installation:
        """The installation as its workers see it."""
        return self.opened.installation

    @property
    def services(self) -> Any:
        """A cloud's services, where the installation is in one."""
        return getattr(self.opened, "services")  # noqa: B009 - an embedded one has none

    def __call__(self, *arguments: str, stdin: str | None = None, **extra: str) -> Result:
        """Run a command line."""
        environment = {**self.environment, **extra}
        return CliRunner(env=environment).invoke(cli, arguments, input=stdin)

    def bury(self, body: Mapping[str, Any], reason: str) -> str:
        """Dead-letter a message of the inbox `deploy`; return its name."""
        queue: Any = self.here.queues["deploy"]
        message = Message(body, "group")
        deliveries = [Delivery(message, "1", "", 1)]
        if self.context.kind != "gcp":
            # Pub/Sub pushes, and knows nothing of what becomes of it.
            queue.publish([message])
            deliveries = list(queue.receive(1, wait=timedelta(seconds=2)))
        assert isinstance(queue.settle(deliveries[0], GivenUp(reason)), GivenUp)
        [letter] = self.here.dead["deploy"].list()
        return f"deploy/{letter.id}"


def outputs(account: Account) -> dict[str, Any]:
    """The outputs of Terraform for an account."""
    given = account.environment
    return {
        "kind": "aws",
        "region": REGION,
        "table": given["BELLHOP_TABLE"],
        "bucket": given["BELLHOP_BUCKET"],
        "queues": json.loads(given["BELLHOP_QUEUES"]),
        "secrets": given["BELLHOP_SECRETS"],
        "key_secret": given["BELLHOP_KEY_SECRET"],
        "ingest_key_secret": given["BELLHOP_INGEST_KEY_SECRET"],
        "ingest_url": NOWHERE,
        "log_groups": {stage: f"/aws/lambda/{account.name}-{stage}" for stage in STAGES},
        "version": "0.1.0",
    }


@dataclass(frozen=True)
class Google:
    """All of Google that a command calls."""

    emulators: Mapping[str, str]
    storage: Storage

    def project(self) -> Project:
        """Make what Terraform would make, in a project of its own."""
        place = {"project": f"bellhop-{uuid4().hex[:12]}", "emulators": dict(self.emulators)}
        project = Project(json.dumps(place), self.storage, tries=5)
        for topic in project.topics.values():
            make(project.services, topic)
        return project


def google_outputs(project: Project) -> dict[str, Any]:
    """The outputs of Terraform for a project."""
    given = project.environment
    return {
        "kind": "gcp",
        "project": project.name,
        "region": "europe-west1",
        "database": given["BELLHOP_DATABASE"],
        "bucket": given["BELLHOP_BUCKET"],
        "topics": project.topics,
        "secrets": given["BELLHOP_SECRETS"],
        "key_secret": given["BELLHOP_KEY_SECRET"],
        "ingest_key_secret": given["BELLHOP_INGEST_KEY_SECRET"],
        "ingest_url": NOWHERE,
        "services": {stage: f"lab-{stage}" for stage in STAGES},
        "accounts": {
            stage: f"lab-{stage}@{project.name}.iam.gserviceaccount.com" for stage in STAGES
        },
        "logs": f"projects/{project.name}",
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
    folder: Path, account: Account, environment: Mapping[str, str] | None = None, **more: Any
) -> House:
    """Make a command line with a context of Terraform's outputs; `environment` takes priority."""
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
    place = {**outputs(account), **more}
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


def on_gcp(
    folder: Path, project: Project, environment: Mapping[str, str] | None = None, **more: Any
) -> House:
    """Make a command line whose context is what Terraform has put out of a project."""
    environment = {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder),
        **project.emulators,
        **(environment or {}),
    }
    place = {**google_outputs(project), **more}
    text = json.dumps({"bellhop": {"value": place, "sensitive": False}, "other": {"value": 1}})
    run = CliRunner(env=environment)
    added = run.invoke(cli, ["context", "add", "prod", "--gcp", "-"], input=text)
    assert added.exit_code == 0, added.output
    assert run.invoke(cli, ["context", "use", "prod"]).exit_code == 0
    return House(Context("prod", "gcp", place=place), environment)


def waiting(house: House, inbox: str) -> int:
    """Count the messages in an inbox; Google reports them some minutes late."""
    queue = house.here.queues[inbox]
    if house.context.kind != "gcp":
        return queue.backlog().waiting
    project, topic = house.context.place["project"], house.context.place["topics"][inbox]
    request = {
        "subscription": f"projects/{project}/subscriptions/{topic}",
        "max_messages": 100,
        "return_immediately": True,
    }
    answer = house.services.call("subscriber", "pull", request, doing="test")
    return len(answer.received_messages)


@pytest.fixture(scope="session")
def google(
    firestore: Emulator, pubsub: Emulator, secret_manager: SecretManager, _storage: Storage
) -> Iterator[Google]:
    """Google, as far as it is called by commands."""
    with Monitoring() as monitoring:
        emulators = {
            "FIRESTORE_EMULATOR_HOST": firestore.address,
            "PUBSUB_EMULATOR_HOST": pubsub.address,
            "SECRET_MANAGER_EMULATOR_HOST": secret_manager.address,
            "STORAGE_EMULATOR_HOST": _storage.address,
            "MONITORING_EMULATOR_HOST": monitoring.address,
        }
        yield Google(emulators, _storage)


@pytest.fixture
def house(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[House]:
    """An empty installation of each kind."""
    with ExitStack() as end:
        if kind == "embedded":
            made = embedded(tmp_path)
        elif kind == "aws":
            account = Account(request.getfixturevalue("moto"))
            end.callback(account.close)
            made = on_aws(tmp_path, account)
        else:
            project = request.getfixturevalue("google").project()
            end.callback(project.close)
            monitoring = end.enter_context(Monitoring())
            measured = {"MONITORING_EMULATOR_HOST": monitoring.address}
            made = on_gcp(tmp_path, project, environment=measured)
            made.monitoring = monitoring
        end.callback(made.opened.close)
        yield made


@pytest.fixture(params=["embedded", "aws", "gcp"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of installation."""
    found: str = request.param
    return found


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


@pytest.fixture
def google_house(google: Google, tmp_path: Path) -> Iterator[House]:
    """An empty installation on Google Cloud."""
    project = google.project()
    made = on_gcp(tmp_path, project)
    yield made
    made.opened.close()
    project.close()
