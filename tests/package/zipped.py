"""Functions as `tests.functions.lab` has them, but run from their zips by Lambda's own runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.functions.lab import Account, Lambda
from tests.lab.lambdas import Function, Lambdas, Outcome
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY


class Zipped(Lambda):
    """The functions of an account, deployed from zips, with layers beside those of some stages."""

    def __init__(
        self,
        account: Account,
        lambdas: Lambdas,
        packages: Mapping[str, Path],
        layers: Mapping[str, Sequence[Path]] = MappingProxyType({}),
    ) -> None:
        super().__init__(account)
        self._lambdas = lambdas
        self.outcomes: list[tuple[str, Outcome]] = []
        for stage, package in packages.items():
            handler = f"functions.{stage}.aws.handle"
            beside = layers.get(stage, ())
            variables = environment(account)
            function = Function(package, handler, variables, layers=beside, region=REGION)
            lambdas.replace(stage, function)
        self.handlers = {stage: self._through(stage) for stage in packages}
        self.front = self._through("ingest")  # type: ignore[assignment]
        self.tick = self._through("schedule")  # type: ignore[assignment]

    def lines(self) -> list[dict[str, Any]]:
        """Return what all functions have logged."""
        written = "".join(self._lambdas.logs(stage) for stage in self.handlers)
        return [json.loads(line) for line in written.splitlines()]

    def _through(self, stage: str) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
        def handle(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
            outcome = self._lambdas.invoke(stage, event)
            self.outcomes.append((stage, outcome))
            if outcome.error:
                raise RuntimeError(outcome.answer)
            answer: dict[str, Any] = outcome.answer
            return answer

        return handle


def environment(account: Account) -> dict[str, str]:
    """Return what a function finds in its environment, credentials among it."""
    return {
        **account.environment,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": account.moto.url,
    }
