"""What the page about backups says to type after a restore from point-in-time recovery."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY
from tests.lab.terraform import Stack
from tests.missing import find_program
from tests.terraform.cloud import Cloud

_PAGE = Path(__file__).parents[2] / "docs/how-to/back-up-and-restore.md"
HEADING = "## Restore from point-in-time recovery"
_SECTION = re.compile(rf"^{HEADING}$(.*?)^## ", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```shell\n(.*?)^```$", re.DOTALL | re.MULTILINE)

TABLE = "bellhop-restored"

NOT_TYPED = {
    "bellhop backup spoiled.archive --leave": "waits half a minute: tests/functions/test_moving.py",
    "aws dynamodb list-backups": "moto keeps no backup of a table that was deleted",
    "aws dynamodb restore-table-from-backup": "the same",
    "gcloud ": "asks Google: tests/contract/test_gcp_store.py copies a database",
    "terraform state rm module.bellhop.google": "asks Google",
    "terraform output -json | bellhop context add prod --gcp": "tests/cli has contexts of Google",
}
"""Lines of the page that no test types, by how they begin, and why."""


def lines() -> list[str]:
    """Return what the page says to type, in its order."""
    found = _SECTION.search(_PAGE.read_text())
    assert found
    return [line for block in _BLOCK.findall(found[1]) for line in block.splitlines()]


def untyped(line: str) -> str:
    """Return the beginning by which a line is left out; empty if a test types it."""
    return next((each for each in NOT_TYPED if line.startswith(each)), "")


class Recovery:
    """Somebody who follows the page, for an installation on moto."""

    def __init__(self, stack: Stack, cloud: Cloud, endpoint: str) -> None:
        self._stack, self._cloud = stack, cloud
        self._name, self._bucket = cloud.bellhop["table"], cloud.bellhop["bucket"]
        self._environment = {
            "PATH": os.pathsep.join([str(find_program("aws").parent), os.environ["PATH"]]),
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION,
        }
        self._left = [line for line in lines() if not untyped(line)]

    def line(self, beginning: str) -> str:
        """Take the page's next line that begins so."""
        line = next(each for each in self._left if each.startswith(beginning))
        self._left.remove(line)
        return line

    def type(self, beginning: str) -> str:
        """Type the page's next line that begins so, and return what it says."""
        line = self.line(beginning)
        if line.startswith("terraform "):
            words = shlex.split(line)[1:]
            if words[0] == "state":
                return self._stack.run("state rm", *words[2:])
            return self._stack.run(*words, "-auto-approve")
        line = line.replace("--source-table-name bellhop ", f"--source-table-name {self._name} ")
        line = re.sub(r"--table-name bellhop$", f"--table-name {self._name}", line)
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", line.replace("BUCKET", self._bucket)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def configure(self) -> None:
        """Add to the configuration what the page shows."""
        place = self._stack.place
        override = place / "arguments_override.tf.json"
        content = json.loads(override.read_text())
        content["module"]["bellhop"]["table"] = TABLE
        override.write_text(json.dumps(content))
        address = "module.bellhop.aws_dynamodb_table.records"
        (place / "import.tf").write_text(f'import {{\n  to = {address}\n  id = "{TABLE}"\n}}\n')

    def settings(self, table: str) -> dict[str, Any]:
        """Return what a restored table lacks at first, and the module sets."""
        dynamodb, names = self._cloud.client("dynamodb"), {"TableName": table}
        described = dynamodb.describe_table(**names)["Table"]
        tags = dynamodb.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"]
        backups = dynamodb.describe_continuous_backups(**names)["ContinuousBackupsDescription"]
        return {
            "backups": backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"],
            "expiry": dynamodb.describe_time_to_live(**names)["TimeToLiveDescription"],
            "key": described["SSEDescription"],
            "mode": described["BillingModeSummary"]["BillingMode"],
            "protected": described["DeletionProtectionEnabled"],
            "tags": {each["Key"]: each["Value"] for each in tags},
        }

    def lose_blobs(self) -> None:
        """Delete all payloads of the bucket, as the tidying of a later day deletes some."""
        s3 = self._cloud.client("s3")
        for each in s3.list_objects_v2(Bucket=self._bucket, Prefix="blobs/")["Contents"]:
            s3.delete_object(Bucket=self._bucket, Key=each["Key"])

    def rest(self) -> list[str]:
        """Return what nobody has typed yet; what is common to both clouds is typed once."""
        return [each for each in self._left if each != "terraform apply"]
