"""Installations of one name do not collide: two regions of one account, and two in a row in one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.services import Services
from infra.package.interpreter import machine_architecture
from tests.lab.moto import ACCESS_KEY, SECRET_KEY, Moto
from tests.lab.terraform import Stack

DUBLIN, VIRGINIA = "eu-west-1", "us-east-1"
CERTIFICATE = f"arn:aws:acm:{VIRGINIA}:123456789012:certificate/1"
DOMAIN = {
    "domain_name": "bellhop.example.com",
    "certificate_arn": CERTIFICATE,
    "ingest_from": "domain",
    "ingest_truststore": {"uri": "s3://certificates/ca.pem"},
}
ENDPOINT = "vpce-0123456789abcdef0"
PRIVATE = {"ingest_from": "network", "ingest_endpoints": [ENDPOINT]}
OUTPUTS = ("domain_target", "policies")
SECRET = "kubeconfig/fleet/eu-1"

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("_terraform"), pytest.mark.timeout(900)]


@pytest.fixture
def empty_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    """An account that no other test uses."""
    with Moto(tmp_path_factory.mktemp("account")) as one:
        yield one


class Regional:
    """The minimal example in one region, and what it has there."""

    def __init__(self, folder: Path, moto: Moto, region: str, **arguments: object) -> None:
        self.region = region
        self._moto = moto
        self._session = botocore.session.Session()
        self.stack = Stack(folder / region, "aws-minimal", moto.url, {}, region=region)
        self._packages = str(folder / "dist")
        self.configure(**arguments)
        others = {each: {"value": f"${{module.bellhop.{each}}}"} for each in OUTPUTS}
        self._write("outputs", {"output": others})

    def configure(self, **arguments: object) -> None:
        """Give the module these arguments, and none that were given before."""
        module = {
            "packages": self._packages,
            "architecture": machine_architecture(),
            **arguments,
        }
        self._write("module_override", {"module": {"bellhop": module}})

    def _write(self, name: str, content: object) -> None:
        (self.stack.place / f"{name}.tf.json").write_text(json.dumps(content))

    def apply(self) -> dict[str, Any]:
        """Apply it; return what it put out."""
        self.stack.run("apply", "-auto-approve")
        outputs: dict[str, Any] = self.stack.outputs()
        return outputs

    def ask(self, service: str, operation: str, **asked: Any) -> Any:
        """Ask AWS in this region."""
        with closing(
            self._session.create_client(
                service,
                self.region,
                endpoint_url=self._moto.url,
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET_KEY,
            )
        ) as client:
            return getattr(client, operation)(**asked)

    def secrets(self, bellhop: dict[str, Any]) -> ManagedSecrets:
        """Return the secrets of an installation, as the CLI and the functions write them."""
        keys = (ACCESS_KEY, SECRET_KEY)
        services = Services(region=self.region, endpoint=self._moto.url, keys=keys)
        return ManagedSecrets(services, bellhop["secrets"], key=bellhop["kms_key"])

    def users_of_the_key(self, bellhop: dict[str, Any]) -> set[str]:
        """Return the accounts that the policy of the installation's key lets use it."""
        policy = self.ask("kms", "get_key_policy", KeyId=bellhop["kms_key"], PolicyName="default")
        statements = {each["Sid"]: each for each in json.loads(policy["Policy"])["Statement"]}
        assert statements["Administer"]["Principal"]["AWS"] == "arn:aws:iam::123456789012:root"
        return set(statements["UseThroughServices"]["Condition"]["ArnLike"]["aws:PrincipalArn"])


def test_is_made_in_two_regions_and_again_in_one(
    empty_account: Moto, packages: dict[str, Path], tmp_path: Path
) -> None:
    """A second region fails at nothing, and neither does a second apply after a destroy.

    The names of what a destroy leaves are taken for a month: the sealing key's, and those of
    clusters that were not deregistered. It takes minutes: Terraform applies three times.
    """
    shutil.copytree(packages["ingest"].parent, tmp_path / "dist")
    dublin = Regional(tmp_path, empty_account, DUBLIN)
    virginia = Regional(tmp_path, empty_account, VIRGINIA, **DOMAIN)
    with ThreadPoolExecutor(2) as threads:
        outputs = list(threads.map(Regional.apply, (dublin, virginia)))
    here, there = (each["bellhop"] for each in outputs)

    assert {here["table"], there["table"]} == {"bellhop"}
    assert there["ingest_url"] == "https://bellhop.example.com"
    assert outputs[1]["domain_target"] == {"name": "d-bellhop.example.com", "zone_id": "Z1"}
    assert set(here["roles"].values()).isdisjoint(there["roles"].values())
    dashboards = dublin.ask("cloudwatch", "list_dashboards")["DashboardEntries"]
    dashboards += virginia.ask("cloudwatch", "list_dashboards")["DashboardEntries"]
    assert {each["DashboardName"] for each in dashboards} == {
        f"bellhop-{DUBLIN}",
        f"bellhop-{VIRGINIA}",
    }
    for each, bellhop in ((dublin, here), (virginia, there)):
        assert each.users_of_the_key(bellhop) == set(bellhop["roles"].values())
    for policy in outputs[0]["policies"].values():
        assert VIRGINIA not in policy

    dublin.secrets(here).put(SECRET, b"of the first")
    (api,) = virginia.ask("apigatewayv2", "get_apis")["Items"]
    assert api["DisableExecuteApiEndpoint"] is True

    dublin.stack.run("destroy", "-auto-approve")
    dublin.configure(**PRIVATE)
    again = dublin.apply()["bellhop"]
    (api,) = dublin.ask("apigateway", "get_rest_apis")["items"]
    assert api["endpointConfiguration"]["types"] == ["PRIVATE"]
    assert ENDPOINT in api["policy"]
    host = f"{api['id']}-{ENDPOINT}.execute-api.{DUBLIN}.amazonaws.com"
    assert again["ingest_url"] == f"https://{host}/live"
    assert dublin.ask("apigatewayv2", "get_apis")["Items"] == []
    dublin.secrets(again).put(SECRET, b"of the second")

    assert again["key_secret"] != here["key_secret"]
    assert dublin.secrets(here).read(SECRET) == b"of the first"
    made = dublin.ask("secretsmanager", "describe_secret", SecretId=f"{again['secrets']}/{SECRET}")
    assert made["KmsKeyId"] == again["kms_key"]
    for each in (dublin, virginia):
        assert "No changes" in each.stack.run("plan", "-detailed-exitcode")
