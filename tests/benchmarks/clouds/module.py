"""Read from a cloud's Terraform module what it makes: functions, queues and alarms, by number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from infra.terraform_tables import MODULES, read


@dataclass(frozen=True)
class Module:
    """What the module makes by default, with no optional part."""

    folder: Path

    @property
    def queues(self) -> int:
        """Count the queues that functions take messages from.

        In AWS the inboxes of a function share one by default; in Google Cloud each has its own.
        """
        inboxes = self._local("queues.tf", "inboxes")
        return len(set(re.findall(r'stage = "(\w+)"', inboxes)) or _names(inboxes))

    @property
    def memory(self) -> dict[str, int]:
        """Return the megabytes of each stage's function."""
        found = re.findall(
            r"^    (\w+) += \{ memory = (\d+)", self._text("functions.tf"), re.MULTILINE
        )
        return {stage: int(megabytes) for stage, megabytes in found}

    @property
    def alarms(self) -> dict[str, int]:
        """Return by alarm how many metrics it reads; each of these is billed."""
        several = {
            "aws_sqs_queue.dead": self.queues,
            "aws_sqs_queue.inbox": self.queues,
            "aws_lambda_function.stage": len(self.memory),
            "aws_lambda_function_recursion_config.this": self.queues,
        }
        found = re.findall(
            r"^    ([a-z-]+) += (?:merge\([^\n]*)?\{\n(.*?)^    \}\)?$",
            self._text("alarms.tf"),
            re.MULTILINE | re.DOTALL,
        )
        return {
            name: next((n for each, n in several.items() if f"in {each} :" in body), 1)
            for name, body in found
        }

    def default(self, variable: str) -> str:
        """Return a variable's default, where that is text."""
        blocks = (each for each in read(self.folder) if each.labels == (variable,))
        return next(each.text("default") for each in blocks if each.kind == "variable")

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Return the services that need an interface endpoint in a network, by the README."""
        found = re.search(r"each of (.*) is an interface endpoint", self._text("README.md"))
        assert found
        return tuple(re.findall(r"`(\w+)`", found[1]))

    def _local(self, file: str, name: str) -> str:
        found = re.search(rf"^  {name} += (.*?)^  \}}", self._text(file), re.MULTILINE | re.DOTALL)
        assert found, f"{file} has no local value {name}"
        return found[1]

    def _text(self, file: str) -> str:
        return (self.folder / file).read_text()


def _names(body: str) -> list[str]:
    return re.findall(r"^    (\w+) +=", body, re.MULTILINE)


AWS, GOOGLE = Module(MODULES / "aws"), Module(MODULES / "gcp")
