"""A real AWS account for the contract suites, only on demand.

    pytest tests/contract -k aws --live PREFIX --live-account ID --live-region REGION

All that is made has a name that begins with the prefix, and is deleted when its test is over. The
account is asked who it is before anything is made: another one than was named ends the run. Without
the option no test can reach AWS: its names are not looked up.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from bellhop.adapters.aws.services import Services
from tests.contract.rigs.aws import LIVE, Rig

_PREFIX = re.compile(r"[a-z][a-z0-9-]{3,19}")
_ACCOUNT = re.compile(r"\d{12}")
_FORBIDDEN = (
    *("amazonaws.com", "amazonaws.com.cn", "api.aws", "169.254.169.254", "fd00:ec2::254"),
    *("googleapis.com", "google.internal"),
)


@dataclass(frozen=True)
class Live:
    """Which account is meant, and what may be made in it."""

    prefix: str
    account: str
    region: str

    @property
    def endpoint(self) -> str:
        """Return the endpoint of a place in this account."""
        return f"{LIVE}{self.region}"

    def confirm(self) -> None:
        """Check that the present credentials are those of the named account; end the run if not."""
        services = Services(region=self.region)
        who = services.call("sts", "get_caller_identity", {}, doing="ask which account this is")
        services.close()
        if who["Account"] != self.account:
            pytest.exit(f"these are credentials of the account {who['Account']}: nothing was made")


def add_options(parser: pytest.Parser) -> None:
    """Let a run name an account."""
    group = parser.getgroup("live", "a real AWS account, for the contract suites")
    group.addoption("--live", metavar="PREFIX", help="how all names begin that are made")
    group.addoption("--live-account", metavar="ID", help="the account that is meant: 12 digits")
    group.addoption("--live-region", metavar="REGION", help="the region there")


def chosen(config: pytest.Config) -> Live | None:
    """Return which account a run is to use; None where it is to use none.

    Raises:
        UsageError: it is not said which, or with what names.
    """
    if config.getoption("--live-project"):
        return None
    account, region = (config.getoption(f"--live-{name}") for name in ("account", "region"))
    if config.getoption("--live") is None and account is None:
        return None
    begins = prefix(config)
    if not (_ACCOUNT.fullmatch(account or "") and region):
        raise pytest.UsageError(
            "--live makes things that cost money: say in which account, by --live-account and"
            " --live-region, or in which project, by --live-project and --live-region"
        )
    return Live(begins, account, region)


def prefix(config: pytest.Config) -> str:
    """Return how all names begin that a run makes.

    Raises:
        UsageError: there is none, or it is none that every service takes.
    """
    found: str = config.getoption("--live") or ""
    if not _PREFIX.fullmatch(found):
        raise pytest.UsageError("--live takes a prefix of 4 to 20 letters, digits and hyphens")
    return found


def forbid() -> None:
    """Have this process look up none of the clouds' names from now on.

    No audit hook: it would be asked, too, when a thread begins to be traced. Another that begins
    meanwhile is refused by Python 3.11, and ends unseen before it has done anything.
    """
    look_up, connect = socket.getaddrinfo, socket.socket.connect

    def looked_up(host: Any, *rest: Any, **more: Any) -> Any:
        _refuse(host)
        return look_up(host, *rest, **more)

    def connected(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple):
            _refuse(address[0])
        connect(self, address)

    socket.getaddrinfo = looked_up
    socket.socket.connect = connected  # type: ignore[method-assign]


def _refuse(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name.endswith(_FORBIDDEN):
        raise RuntimeError(f"a test reaches for a cloud: {name}")


def remove(place: str) -> None:
    """Delete all that was made at a place."""
    rig = Rig(place)
    client = rig.services.client
    for store in (rig.secrets(), rig.parameters()):
        for secret in list(store.names()):
            store.delete(secret)
    for url in client("sqs").list_queues(QueueNamePrefix=rig.name).get("QueueUrls", ()):
        client("sqs").delete_queue(QueueUrl=url)
    while found := client("s3").list_objects_v2(Bucket=rig.name).get("Contents"):
        for each in found:
            client("s3").delete_object(Bucket=rig.name, Key=each["Key"])
    client("s3").delete_bucket(Bucket=rig.name)
    client("dynamodb").delete_table(TableName=rig.name)
    rig.close()
