"""The modules are in order: formatted, valid, described, and of one mind with the code."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import fields

from bellhop import __version__
from bellhop.errors import InvalidError
from bellhop.settings import Settings
from bellhop.settings import read as read_settings
from bellhop.state.messages import CHARTS, INBOXES
from infra.package.files import SOURCES, build_id
from infra.terraform_tables import Block, read, written
from tests.functions.lab import SHARED
from tests.lab import aws_schema
from tests.lab.google_schema_provider import SchemaProvider
from tests.lab.moto import REGION, Moto
from tests.lab.terraform import ROOT, Stack
from tests.terraform.cloud import Cloud
from tests.terraform.google_workplace import Workplace

AWS = ROOT / "modules" / "aws"
EXAMPLES = sorted((ROOT / "examples").glob("aws-*"))
FOLDERS = [AWS, *EXAMPLES]
LOCK = ".terraform.lock.hcl"
SCHEMA = json.loads(aws_schema.PLACE.read_text())


def named(path: Path) -> str:
    return path.name


def text(module: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(module.glob("*.tf")))


def blocks(module: Path, kind: str) -> list[Block]:
    return [each for each in read(module) if each.kind == kind]


def words(value: str) -> set[str]:
    return set(re.findall(r'"([\w-]+)"', value))


def local(name: str) -> str:
    """Return how the module defines a local value."""
    found = re.search(rf"^  {name} += (.*?)(?=^  \w|^\}})", text(AWS), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("module", FOLDERS, ids=named)
def test_says_what_each_variable_and_output_is(module: Path) -> None:
    """Each has a description that is a sentence, and each variable a type."""
    declared = [*blocks(module, "variable"), *blocks(module, "output")]

    assert [each.name for each in declared if not each.text("description").endswith(".")] == []
    assert [each.name for each in blocks(module, "variable") if "type" not in each.attributes] == []


@pytest.mark.parametrize("module", FOLDERS, ids=named)
def test_uses_what_it_declares(module: Path) -> None:
    """No variable, local value or data source is left over."""
    whole = text(module)
    variables = [f"var.{each.name}" for each in blocks(module, "variable")]
    data = [".".join(("data", *each.labels)) for each in blocks(module, "data")]
    inside = re.findall(r"^locals \{\n(.*?)^\}", whole, re.MULTILINE | re.DOTALL)
    values = [
        f"local.{name}"
        for body in inside
        for name in re.findall(r"^  (\w+) +=", body, re.MULTILINE)
    ]

    unused = [each for each in [*variables, *data, *values] if not re.search(rf"\b{each}\b", whole)]
    assert unused == []


@pytest.mark.parametrize("module", FOLDERS, ids=named)
def test_pins_terraform_and_the_provider(module: Path) -> None:
    """A run next year takes no major version that nobody has looked at."""
    assert 'required_version = ">= 1.11"' in text(module)
    assert re.findall(r"^ {6}version = (.*)$", text(module), re.MULTILINE) == ['">= 5.100, < 7.0"']


def test_labels_all_that_takes_labels() -> None:
    """A bill's reader finds what it is for."""
    without = {
        *("aws_api_gateway_deployment", "aws_api_gateway_integration", "aws_api_gateway_method"),
        *("aws_api_gateway_method_settings", "aws_api_gateway_resource"),
        "aws_api_gateway_rest_api_policy",
        *("aws_apigatewayv2_api_mapping", "aws_apigatewayv2_integration", "aws_apigatewayv2_route"),
        *("aws_cloudwatch_dashboard", "aws_cloudwatch_query_definition"),
        *("aws_cloudwatch_event_target", "aws_sqs_queue_policy"),
        *("aws_iam_role_policy", "aws_kms_alias", "aws_lambda_alias", "aws_lambda_invocation"),
        *("aws_lambda_function_event_invoke_config", "aws_lambda_layer_version"),
        *("aws_lambda_function_recursion_config", "aws_lambda_permission"),
        *("aws_scheduler_schedule", "aws_secretsmanager_secret_version", "terraform_data"),
    }
    bare = {
        each.labels[0]
        for each in blocks(AWS, "resource")
        if each.attributes.get("tags") != "local.labels"
        and not each.labels[0].startswith("aws_s3_bucket_")
    }

    assert bare == without


def test_knows_the_settings() -> None:
    """A setting that Terraform does not know could not be set, and one too many would be silent."""
    names = {each.name for each in fields(Settings)}
    numbers = {each.name for each in fields(Settings) if not isinstance(each.default, str)}

    assert words(local("known_settings")) == names
    assert words(local("may_be_zero")) == {name for name in numbers if _may_be_zero(name)}


def _may_be_zero(name: str) -> bool:
    try:
        read_settings({f"BELLHOP_{name.upper()}": "0"})
    except InvalidError:
        return False
    return True


def test_knows_the_inboxes_and_who_works_on_them() -> None:
    """Each inbox, its stage and its queue, as the tests of the functions have them; and charts."""
    inbox = r'(\w+) += \{ stage = "(\w+)", queue = "(\w+)" \}'
    found = re.findall(inbox, local("inboxes"))

    assert {inbox: stage for inbox, stage, _ in found} == dict(INBOXES)
    assert {inbox: queue for inbox, _, queue in found if queue != inbox} == SHARED
    assert "for each in local.charts : each => { stage = each, queue = each }" in local("inboxes")
    assert local("charts").split("\n")[0] == f'var.charts ? ["{CHARTS}"] : []'


def test_is_of_one_version_with_the_package() -> None:
    """The output says which version the packages are of."""
    assert words(local("version").replace(".", "-")) == {__version__.replace(".", "-")}


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_examples_have_the_source_that_the_readme_shows(example: Path) -> None:
    """A copy in another repository finds the module, at the version that the example is of."""
    source = r'source += "(git::.*)"'
    [shown] = re.findall(source, (AWS / "README.md").read_text())

    assert re.findall(source, text(example)) == [shown]
    assert shown.endswith(f"//terraform/modules/aws?ref=v{__version__}")


def test_has_tables_in_its_readme_that_are_current() -> None:
    """`make terraform` writes them."""
    assert (AWS / "README.md").read_text() == written(AWS)


def test_names_each_of_its_files_in_its_readme() -> None:
    """Who looks for something finds the file."""
    readme = (AWS / "README.md").read_text()
    silent = {each.name for each in AWS.glob("*.tf") if f"`{each.name}`" not in readme}

    assert silent == {"outputs.tf", "variables.tf", "versions.tf"}


def test_names_packages_after_the_same_sources_as_the_builder() -> None:
    """One list more or less, and the module would ask for packages that nobody builds."""
    body = re.search(r"package_sources = \{\n(.*?)\n  \}", text(AWS), re.DOTALL)
    assert body
    lists = re.findall(r"(\w+) += \[(.*)\]", body[1])
    listed = {kind: set(re.findall(r'"([^"]+)"', patterns)) for kind, patterns in lists}

    assert listed == {kind: set(patterns) for kind, patterns in SOURCES.items()}


@pytest.mark.usefixtures("_terraform")
def test_is_formatted() -> None:
    """As `terraform fmt` writes it."""
    program = shutil.which("terraform")
    assert program
    done = subprocess.run(
        [program, "fmt", "-check", "-recursive", "-list=true", str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.usefixtures("_terraform")
def test_is_valid(tmp_path: Path) -> None:
    """Terraform and the provider take all as it is written, and warn of nothing deprecated."""
    stack = Stack(tmp_path / "stack", "aws-complete", "http://127.0.0.1:9", {})

    assert stack.run("validate").strip() == "Success! The configuration is valid."


def test_has_the_schema_of_what_modules_and_examples_use() -> None:
    """Of version 6: `tests/lab/aws_schema.py` says how to make it again."""
    (provider,) = SCHEMA["provider_schemas"].values()
    kinds = aws_schema.KINDS.items()

    assert {kind: set(provider[key]) for kind, (key, _) in kinds} == aws_schema.used()
    assert f"schema of {SCHEMA['provider_version']}" in (AWS / "README.md").read_text()


@pytest.mark.usefixtures("_terraform")
@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_is_valid_by_the_newest_provider(example: Path, tmp_path: Path) -> None:
    """Version 6 knows each argument, block and type, and misses none."""
    program = shutil.which("terraform")
    assert program
    with SchemaProvider(aws_schema.PLACE) as provider:
        workplace = Workplace(tmp_path / "terraform", program, provider)
        place = workplace.examples / example.name
        module = {"module": {"bellhop": {"source": "../../modules/aws"}}}
        (place / "source_override.tf.json").write_text(json.dumps(module))
        code, output = workplace.run(place, "init", "-no-color", "-backend=false")
        assert code == 0, output
        code, output = workplace.run(place, "validate", "-no-color")

    assert output.strip() == "Success! The configuration is valid."


@pytest.mark.usefixtures("_terraform")
def test_locks_a_provider_that_the_examples_take_on_all_platforms(tmp_path: Path) -> None:
    """Init changes nothing in the lock, which lists 14 platforms and the manifest."""
    (lock,) = {(example / LOCK).read_text() for example in EXAMPLES}
    stack = Stack(tmp_path / "stack", "aws-complete", "http://127.0.0.1:9", {})
    (stack.place / LOCK).write_text(lock)

    assert "successfully initialized" in stack.run("init", "-lockfile=readonly")
    assert (stack.place / LOCK).read_text() == lock
    assert len(set(re.findall(r'"zh:[0-9a-f]{64}"', lock))) == 15


def release_packages(stack: Stack, moto: Moto) -> None:
    """Put packages into a bucket, others below changed/, and the sums beside the module's tests."""
    cloud = Cloud(moto.url, {})
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="releases", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_versioning(Bucket="releases", VersioningConfiguration={"Status": "Enabled"})
    sums = ""
    for kind, package in (("functions", "functions-arm64"), ("layer", "layer-cel-arm64")):
        name = f"{package}-{build_id(kind, stack.root)}.zip"
        for prefix, content in (("bellhop", package), ("changed", "changed")):
            s3.put_object(
                Bucket="releases",
                Key=f"{prefix}/{name}",
                Body=content.encode(),
                ChecksumAlgorithm="SHA256",
            )
        sums += f"{hashlib.sha256(package.encode()).hexdigest()}  {name}\n"
    folder = stack.root / "terraform/modules/aws/tests/packages"
    folder.mkdir()
    (folder / "SHA256SUMS").write_text(sums)
    cloud.close()


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_terraform")
def test_passes_its_own_tests(moto: Moto, tmp_path: Path) -> None:
    """`terraform test`: what follows from the variables, and which values are refused.

    It takes over a minute: Terraform plans the module once for each of its cases.
    """
    stack = Stack(tmp_path / "stack", "aws-minimal", moto.url, {})
    release_packages(stack, moto)
    output = stack.test("aws", moto.url)

    assert re.search(r"Success! \d+ passed, 0 failed", output)
