"""AWS with the secrets of clusters in Parameter Store, as a moto server has it."""

from __future__ import annotations

from typing import ClassVar

from bellhop.adapters.aws import parameters
from bellhop.ports.store import Secrets
from tests.contract.rigs import aws


class Rig(aws.Rig):
    """An installation of its own, which has its secrets as parameters."""

    ports: ClassVar[frozenset[str]] = frozenset({"secrets"})
    secret_limit: ClassVar[int] = parameters.LIMIT
    where: ClassVar[str] = "parameters_place"

    def secrets(self) -> Secrets:
        return self.parameters()
