"""Contexts of installations in a cloud: what Terraform puts out, and how one gets in by it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from bellhop.cli.main import cli
from bellhop.state.messages import INBOXES
from tests.cli.conftest import Google, House, on_gcp, outputs
from tests.cli.test_commands import STDIN
from tests.cli.test_permissions import made_role, policy
from tests.functions.lab import Account
from tests.lab.google_secrets import SecretManager
from tests.lab.moto import Moto

ROLE = "arn:aws:iam::123456789012:role/people/bellhop-operator"
GOOGLE = {
    "kind": "gcp",
    "project": "lab-7",
    "region": "europe-west1",
    "database": "prod",
    "bucket": "prod-lab-7",
    "topics": {inbox: f"prod-{inbox}" for inbox in INBOXES},
    "secrets": "prod",
    "secret_region": "europe-west1",
    "kms_key": "projects/lab-7/locations/europe-west1/keyRings/ring/cryptoKeys/key",
    "key_secret": "prod-sealing-key",
    "ingest_key_secret": "prod-ingest-key",
    "ingest_url": "https://prod-ingest.example",
    "services": {"ingest": "prod-ingest"},
    "accounts": {"ingest": "prod-ingest@lab-7.iam.gserviceaccount.com"},
    "logs": "projects/lab-7",
    "version": "0.1.0",
}
"""What Terraform puts out of an installation on Google Cloud."""


@pytest.fixture
def aws_outputs(moto: Moto) -> dict[str, Any]:
    """The outputs of Terraform for an installation on AWS."""
    account = Account(moto)
    account.close()
    return outputs(account)


def add(
    folder: Path, text: str, *options: str, source: str = "-", kind: str = "aws"
) -> tuple[int, str]:
    """Add a context; return exit code and what was said."""
    run = CliRunner(env={"XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)})
    done = run.invoke(cli, ["context", "add", "prod", f"--{kind}", source, *options], input=text)
    return done.exit_code, done.output


def kept(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((folder / "bellhop/config.yaml").read_text())[
        "contexts"
    ]
    return found


@pytest.mark.parametrize("whole", [True, False], ids=["all outputs", "the value of one"])
@pytest.mark.parametrize("piped", [True, False], ids=["a pipe", "a file"])
def test_adds_what_terraform_puts_out(
    tmp_path: Path, aws_outputs: dict[str, Any], *, whole: bool, piped: bool
) -> None:
    later = {**aws_outputs, "of_a_later_module": 1}
    text = json.dumps({"bellhop": {"value": later, "type": "object"}} if whole else later)
    (tmp_path / "outputs.json").write_text(text)
    source = "-" if piped else str(tmp_path / "outputs.json")
    own = ("--profile", "prod", "--role-arn", ROLE)
    code, said = add(tmp_path, text, *own, source=source)
    [_, context] = kept(tmp_path)

    assert (code, said) == (0, "Context 'prod' added.\n")
    assert context["aws"] == {
        **{name: each for name, each in aws_outputs.items() if name != "kind"},
        "roles": {},
        "profile": "prod",
        "role_arn": ROLE,
    }
    assert stat.S_IMODE((tmp_path / "bellhop/config.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize("whole", [True, False], ids=["all outputs", "the value of one"])
def test_adds_what_terraform_puts_out_on_google(tmp_path: Path, *, whole: bool) -> None:
    """All outputs or the one; what a command shows of it is where the records are."""
    later = {**GOOGLE, "of_a_later_module": 1}
    code, said = add(
        tmp_path, json.dumps({"bellhop": {"value": later}} if whole else later), kind="gcp"
    )
    [_, context] = kept(tmp_path)
    run = CliRunner(env={"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)})

    assert (code, said) == (0, "Context 'prod' added.\n")
    assert context["gcp"] == {name: each for name, each in GOOGLE.items() if name != "kind"}
    assert run.invoke(cli, ["context", "use", "prod"]).exit_code == 0
    shown = run.invoke(cli, ["context", "show"]).output
    assert shown == "prod: gcp, database prod in lab-7\n"


def test_secrets_lie_where_terraform_says(
    google: Google, secret_manager: SecretManager, tmp_path: Path
) -> None:
    project = google.project()
    house = on_gcp(tmp_path, project, secret_region="europe-west1", kms_key="a key")
    house.here.secrets.put("kubeconfig/prod/eu-1", b"opens it")
    replica = {
        "location": "europe-west1",
        "customer_managed_encryption": {"kms_key_name": "a key"},
    }

    assert {"user_managed": {"replicas": [replica]}} in secret_manager.kept(project.name)
    house.opened.close()
    project.close()


def test_changes_lists_shows_and_removes(prod: House, aws_outputs: dict[str, Any]) -> None:
    again = prod("context", "add", "prod", "--aws", "-", stdin=json.dumps(aws_outputs))
    table = aws_outputs["table"]

    assert again.stdout == "Context 'prod' changed.\n"
    listed = [line.split() for line in prod("context", "list").stdout.splitlines()]
    assert ["*", "prod", "aws", table, "in", "eu-west-1"] in listed
    shown = yaml.safe_load(prod("context", "show", "-o", "yaml").stdout)
    assert (shown["kind"], shown["aws"]["table"], shown["there"]) == ("aws", table, True)
    assert prod("context", "show").stdout == f"prod: aws, table {table} in eu-west-1\n"
    current = prod("context", "remove", "prod")
    assert (current.exit_code, "it is the current one" in current.stderr) == (2, True)
    assert prod("context", "use", "local").exit_code == 0
    assert prod("context", "remove", "local").exit_code == 2
    assert prod("context", "remove", "prod").stdout == "Context 'prod' removed.\n"
    assert prod("context", "remove", "prod").exit_code == 1


def on_google(**change: Any) -> str:
    """Write what Terraform puts out on Google Cloud, with changes."""
    return json.dumps({**GOOGLE, **change})


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        pytest.param("aws", "", "it is not JSON", id="empty"),
        pytest.param("aws", "{", "it is not JSON", id="cut short"),
        pytest.param("aws", "[" * 100_000, "it is not JSON", id="deep"),
        pytest.param("aws", "[]", "no output 'bellhop' of kind 'aws'", id="a list"),
        pytest.param("aws", '{"x": {"value": 1}}', "no output 'bellhop' of kind", id="others"),
        pytest.param(
            "aws", '{"bellhop": {"value": {"kind": "gcp"}}}', "of kind 'aws'", id="another"
        ),
        pytest.param(
            "aws",
            '{"kind": "aws", "queues": [], "roles": {"a": 1}}',
            "region, table, bucket, secrets, key_secret, ingest_key_secret, roles, queues of the"
            " output 'bellhop' cannot be used",
            id="half",
        ),
        pytest.param("aws", "x" * 1_100_000, "more than 1048576 bytes", id="huge"),
        pytest.param("gcp", on_google(kind="aws"), "of kind 'gcp'", id="another than Google's"),
        pytest.param(
            "gcp",
            on_google(project="", region=1, topics={"evaluate": ""}, logs={}, accounts=[]),
            "project, region, logs, topics of the output 'bellhop' cannot be used",
            id="wrong types",
        ),
        pytest.param(
            "gcp",
            on_google(topics={"evaluate": "prod-evaluate"}),
            "topics of the output",
            id="of less inboxes",
        ),
    ],
)
def test_refuses_what_is_no_output(tmp_path: Path, kind: str, text: str, said: str) -> None:
    """It says what is wrong with it, and keeps nothing."""
    code, output = add(tmp_path, text, kind=kind)

    assert code == 2
    assert "cannot read 'standard input'" in output
    assert said in output
    assert not (tmp_path / "bellhop").exists()


def test_refuses_an_output_that_lacks_an_inbox(tmp_path: Path, aws_outputs: dict[str, Any]) -> None:
    """A module of an older release has made fewer queues than there are inboxes."""
    del aws_outputs["queues"]["probe"]

    code, said = add(tmp_path, json.dumps(aws_outputs))

    assert code == 2
    assert "queues of the output 'bellhop' cannot be used; apply the Terraform module" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--aws", "/nowhere.json"), "cannot read '/nowhere.json': there is no such file"),
        (("--aws", "-", "--state", "/x"), "name its folder with --state DIR, or what Terraform"),
        ((), "name its folder with --state DIR, or what Terraform"),
        (("--aws", "-", "--gcp", "-"), "name its folder with --state DIR, or what Terraform"),
        (("--gcp", "-", "--endpoint", "http://x"), "--role-arn and --endpoint belong to --aws"),
        (("--state", "/x", "--role-arn", ROLE), "--role-arn and --endpoint belong to --aws"),
        (
            ("--aws", "-", "--role-arn", "operator"),
            "it is not the ARN of a role, such as arn:aws:iam:",
        ),
        (("--aws", "-", "--endpoint", "nine"), "it is not an http or https URL"),
    ],
    ids=[
        *("no file", "both", "neither", "two clouds", "Google's", "for no cloud"),
        *("role", "endpoint"),
    ],
)
def test_refuses(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    run = CliRunner(env={"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)})
    done = run.invoke(cli, ["context", "add", "prod", *options], input="{}")

    assert done.exit_code in {1, 2}
    assert said in done.output


@pytest.mark.parametrize(
    ("kind", "change", "environment", "code", "said"),
    [
        pytest.param(
            "aws",
            {},
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
            1,
            "cannot read the sealing key: AWS does not accept the credentials; log in again",
            id="no credentials",
        ),
        pytest.param(
            "aws",
            {"profile": "nobody"},
            {},
            1,
            "cannot read the sealing key: AWS does not accept the credentials; log in again",
            id="no such profile",
        ),
        pytest.param(
            "aws",
            {"endpoint": "http://127.0.0.1:1"},
            {},
            75,
            "cannot read the sealing key: AWS does not answer",
            id="no network",
        ),
        pytest.param(
            "gcp",
            {},
            {"SECRET_MANAGER_EMULATOR_HOST": "127.0.0.1:9"},
            75,
            "cannot read the sealing key: Google does not answer",
            id="no network to Google",
        ),
        pytest.param(
            "aws",
            {"region": "us-east-1"},
            {},
            1,
            "cannot use context 'prod': the AWS account that was called has no secret",
            id="wrong region",
        ),
        pytest.param(
            "gcp",
            {"project": "another"},
            {},
            1,
            "cannot use context 'prod': the project 'another' has no secret 'lab-sealing-key'",
            id="wrong project",
        ),
        pytest.param(
            "aws",
            {"table": "not-there"},
            {},
            75,
            "a part of the installation is not there; apply Terraform again",
            id="no table",
        ),
        pytest.param("aws", {"queues": {}}, {}, 2, "queues of the output", id="edited for AWS"),
        pytest.param("gcp", {"topics": {}}, {}, 2, "topics of the output", id="edited for Google"),
    ],
)
def test_says_why_it_cannot_get_in(
    house: House,
    kind: str,
    change: dict[str, Any],
    environment: dict[str, str],
    code: int,
    said: str,
) -> None:
    """Each reason is one sentence, and the exit code says whether it may pass."""
    _edit(house, kind, change)
    result = house("get", "clusters", **environment)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: cannot ")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr
    assert code != 2 or "cannot read 'context prod': " in result.stderr


def _edit(house: House, kind: str, change: dict[str, Any]) -> None:
    """Change what a context's file says of its place."""
    file = Path(house.environment["XDG_CONFIG_HOME"]) / "bellhop/config.yaml"
    data = yaml.safe_load(file.read_text())
    data["contexts"][1][kind].update(change)
    file.write_text(yaml.safe_dump(data))


@pytest.mark.parametrize("command", ["get clusters", "status -o json", "status"])
def test_says_that_the_token_has_expired(prod: House, moto: Moto, command: str) -> None:
    moto.fail("secretsmanager:GetSecretValue", code="ExpiredTokenException", status=400)
    result = prod(*command.split())

    assert result.exit_code == 1
    assert "AWS does not accept the credentials; log in again" in result.output
    assert "as told" not in result.output


def test_calls_by_the_role_that_a_context_names(prod: House, moto: Moto) -> None:
    role = made_role(prod, policy("read-only", prod))
    across = ["--aws", "-", "--endpoint", moto.url, "--role-arn", role]
    own = json.dumps({**prod.context.place, "kind": "aws"})
    assert prod("context", "add", "across", *across, stdin=own).exit_code == 0
    moto.forget_access()
    looked = prod("--context", "across", "get", "clusters")
    changed = prod("--context", "across", "apply", "-f", "-", stdin=STDIN)
    lost = prod("--context", "across", "status", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")

    assert (looked.exit_code, looked.stderr) == (0, "No clusters found.\n")
    assert {each["role"] for each in moto.access()} == {role.rpartition("/")[2]}
    assert (changed.exit_code, "AWS denies it" in changed.stderr) == (1, True)
    assert f"cannot assume the role '{role}': AWS does not accept the credentials" in lost.output
