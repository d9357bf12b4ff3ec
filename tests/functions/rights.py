"""The rights of roles, as rights.json lists them, and an installation where they count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from bellhop.adapters.aws.queue import DEAD
from tests.functions.lab import SHARED, Account, User
from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import LEADING, OTHERS, PARTITIONS, REGION, Moto


class Right(NamedTuple):
    """One action on one resource, as rights.json names them: of a table also in some partitions."""

    role: str
    action: str
    resource: str

    def __str__(self) -> str:
        return f"{self.role} {self.action} {self.resource.partition(' ')[2] or self.resource}"


_BY_PARAMETERS = {
    "secretsmanager:CreateSecret": "ssm:PutParameter",
    "secretsmanager:DeleteSecret": "ssm:DeleteParameter",
    "secretsmanager:GetSecretValue": "ssm:GetParameter",
    "secretsmanager:PutSecretValue": "ssm:PutParameter",
    "secretsmanager:RestoreSecret": "ssm:PutParameter",
}
"""The rights to kubeconfigs where they are parameters, as the module's tests have them."""


def with_parameters(right: Right) -> Right:
    """Return a right as it is where kubeconfigs are parameters."""
    _, secret, name = right.resource.partition("secretsmanager secret:NAME/")
    if not secret:
        return right
    return Right(right.role, _BY_PARAMETERS[right.action], f"ssm parameter/bellhop/NAME/{name}")


def rights() -> list[Right]:
    """Read what each role may do."""
    path = Path(__file__).parents[1] / "terraform" / "rights.json"
    listed = json.loads(path.read_text())
    return [
        Right(role, action, resource)
        for role, resources in listed.items()
        for resource, actions in resources.items()
        for action in actions
    ]


def needs_configuration_cluster(right: Right) -> bool:
    """Return whether a role has a right only where the module has `configuration_cluster`."""
    place, _, name = right.resource.partition(" ")
    return (
        (right.role, place) == ("sweep", "secretsmanager")
        and name.endswith("/kubeconfig/*")
        and right.action != "secretsmanager:GetSecretValue"
    )


class RoleSite:
    """An installation on moto whose functions get the rights of their roles.

    With `parameters` kubeconfigs are in Parameter Store; without `configuration` the functions
    may not write them.
    """

    def __init__(
        self,
        moto: Moto,
        *,
        parameters: bool = False,
        configuration: bool = True,
        **settings: object,
    ) -> None:
        self.moto = moto
        self.account = Account(moto, charts=True, **settings)
        self.rights = [
            each for each in rights() if configuration or not needs_configuration_cluster(each)
        ]
        if parameters:
            self.account.environment["BELLHOP_SECRETS"] = f"/bellhop/{self.account.name}"
            self.rights = sorted({with_parameters(each) for each in self.rights})
        self.user = User(self.account)
        self.here = self.user.here

    def close(self) -> None:
        """Close what was opened."""
        self.account.close()

    def arns(self, resource: str) -> list[str]:
        """Write a resource of rights.json as this installation has it: a queue for each inbox."""
        queue, dead = resource.removesuffix(DEAD), resource[len(resource.removesuffix(DEAD)) :]
        return [
            self._arn(resource),
            *(
                self._arn(f"sqs NAME-{inbox}{dead}")
                for inbox, shared in SHARED.items()
                if queue == f"sqs NAME-{shared}"
            ),
        ]

    def _arn(self, resource: str) -> str:
        name, key = self.account.name, self.account.environment["BELLHOP_KEY_SECRET"]
        place, *whats = resource.split(" ")
        if not whats:
            return place
        what = whats[0]
        what = what.replace("NAME-sealing-key-DRAWN", f"{key}-??????")
        what = what.replace("NAME-ingest-key-DRAWN", f"{name}-ingest-key-??????")
        what = what.replace("NAME-ACCOUNT-REGION", name).replace("NAME", name)
        where = ":" if place == "s3" else f"{REGION}:{ACCOUNT}"
        return f"arn:aws:{place}:{where}:{what}"


def condition_of(right: Right) -> dict[str, Any]:
    """Return the condition of a right that counts in some partitions, or in all others."""
    names, others = _partitions(right)
    return {"Condition": {OTHERS if others else PARTITIONS: {LEADING: names}}} if names else {}


def counts_in(right: Right, partition: str) -> bool:
    """Return whether a right counts in a partition of the table."""
    names, others = _partitions(right)
    return not names or any(fnmatchcase(partition, each) for each in names) != others


def _partitions(right: Right) -> tuple[Sequence[str], bool]:
    """Return the partitions of a table that a right names, and whether it counts in others."""
    words = right.resource.partition(" ")[2].partition(" ")[2]
    return words.removeprefix("not ").split(",") if words else (), words.startswith("not ")
