"""The module for Google Cloud is valid by its provider's schema, and of one mind with AWS'.

None of this has ever been applied: there is no Google in tests. What Terraform says comes from the
real program, which validates by the schema that `tests/lab/google_schema.py` took from what is
published, and from `terraform test`, where answers are mocked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop import __version__
from bellhop.state.messages import INBOXES
from infra.package.files import SOURCES
from infra.terraform_tables import written
from tests.lab.google_schema import ADDRESS, OLDEST, PLACE
from tests.lab.google_schema_provider import SchemaProvider
from tests.lab.terraform import ROOT
from tests.missing import find_program
from tests.terraform import test_module as aws
from tests.terraform.google_workplace import (
    MODULE,
    Made,
    Workplace,
    first_state,
    plan_of,
    reached,
)

EXAMPLES = sorted((ROOT / "examples").glob("gcp-*"))
SCHEMA = json.loads(PLACE.read_text())
GOOGLE = ">= 7.31, < 9"
VERSIONS = {"google": GOOGLE, "google-beta": GOOGLE, "time": ">= 0.9, < 1"}
LABELLED = ("labels", "user_labels")

ELSEWHERE = {
    "access_log": "Cloud Run logs each request, whatever is asked",
    "architecture": "Cloud Run has one",
    "concurrency": "Google counts `instances`",
    "certificate_arn": "a load balancer has the certificate",
    "domain_name": "a load balancer has the name",
    "ingest_endpoints": "Google's networks have no endpoint that a service must name",
    "ingest_truststore": "a load balancer asks for certificates",
    "eks_clusters": "GKE has gke_clusters",
    "eks_roles": "an account of one project is granted rights in others",
    "kms_key_arn": "Google has kms_key",
    "kubeconfig_store": "a secret of Secret Manager costs $0.06 a month",
    "package_bucket": "sources are built in the project's own bucket",
    "package_prefix": "sources are built in the project's own bucket",
    "package_sums": "sources are built in the project's own bucket",
    "permissions_boundary": "Google has no such bound",
    "role_path": "accounts have no path",
    "table": "Google has database",
    "tags": "Google has labels",
    "ingest_rate": "no gateway counts requests: instances and what each takes at once bound them",
    "snap_start": "Cloud Run keeps no snapshots: `warm` keeps instances",
    "tracing": "Cloud Run traces requests, whatever is asked",
}
"""Variables that only AWS has."""

FILES_ELSEWHERE = tuple(
    f"policies/{name}.json.tftpl"
    for name in ("approver", "operator", "parameter-store", "read-only", "secrets-manager")
)
"""Files that only AWS has: Google grants people their rights itself."""

HERE = {
    "labels": "AWS has tags",
    "readers": "AWS has a policy for them in its output",
    "gke_clusters": "EKS has eks_clusters",
    "database": "AWS has table",
    "instances": "AWS counts `concurrency`",
    "ingest_invokers": "Cloud Run has a check of its own before a service",
    "secret_replication": "Secrets Manager keeps a secret in its region alone",
    "kms_key": "a ring of keys can never be deleted, so that the module cannot make one",
}
"""Variables that only Google has."""


@pytest.fixture(scope="session")
def program() -> str:
    """Terraform."""
    return str(find_program("terraform"))


@pytest.fixture(scope="session")
def provider() -> Iterator[SchemaProvider]:
    """What stands in for Google's provider."""
    with SchemaProvider(PLACE) as provider:
        yield provider


@pytest.fixture(scope="session")
def workplace(
    program: str, provider: SchemaProvider, tmp_path_factory: pytest.TempPathFactory
) -> Workplace:
    """A copy of modules and examples."""
    return Workplace(tmp_path_factory.mktemp("google") / "terraform", program, provider)


@pytest.fixture(scope="session")
def tested(workplace: Workplace) -> str:
    """What the module's own tests said, run once.

    The first test that needs it waits for a minute: Terraform plans the module for each of its
    cases.
    """
    code, output = workplace.run(workplace.module, "test", "-json", "-verbose")
    assert code == 0, [line for line in output.splitlines() if '"@level":"error"' in line]
    return output


@pytest.fixture(scope="session")
def made(tested: str) -> Made:
    """What the first of them has made."""
    return first_state(tested)


def test_has_the_names_that_the_module_for_aws_has() -> None:
    """Who knows one of the modules knows the other: files, variables and outputs."""
    both = (aws.AWS, MODULE)
    files = [sorted(str(each.relative_to(module)) for each in _sources(module)) for module in both]
    variables = [{each.name for each in aws.blocks(module, "variable")} for module in both]
    outputs = [{each.name for each in aws.blocks(module, "output")} for module in both]

    assert [each for each in files[0] if each not in FILES_ELSEWHERE] == files[1]
    assert variables[0] - variables[1] == ELSEWHERE.keys()
    assert variables[1] - variables[0] == HERE.keys()
    assert outputs[0] - outputs[1] == {"domain_target", "policies"}
    assert outputs[1] <= outputs[0]


def _sources(module: Path) -> Iterator[Path]:
    for pattern in ("*.tf", "README.md", "policies/*", "tests/*.hcl"):
        yield from module.glob(pattern)


@pytest.mark.parametrize("folder", [MODULE, *EXAMPLES], ids=aws.named)
def test_is_described_and_used(folder: Path) -> None:
    """Each variable and output is a sentence, and nothing is left over, as in the one for AWS."""
    aws.test_says_what_each_variable_and_output_is(folder)
    aws.test_uses_what_it_declares(folder)


@pytest.mark.parametrize("folder", [MODULE, *EXAMPLES], ids=aws.named)
def test_pins_terraform_and_the_provider(folder: Path) -> None:
    """Each provider has the versions between the two whose schemas all is valid by."""
    assert 'required_version = ">= 1.11"' in aws.text(folder)
    named = re.compile(r'^ {6}source  = "hashicorp/(.*)"\n {6}version = "(.*)"$', re.MULTILINE)
    pinned = dict(named.findall(aws.text(folder)))
    assert pinned == {each: VERSIONS[each] for each in pinned}
    assert "google" in pinned


def test_has_the_schemas_of_the_oldest_and_the_newest_provider() -> None:
    """The first version that the module accepts, and one of the last major version."""
    oldest = json.loads(OLDEST.read_text())["provider_version"]
    first, last = re.findall(r"[\d.]+", GOOGLE)

    assert oldest == f"{first}.0"
    assert int(SCHEMA["provider_version"].partition(".")[0]) == int(last) - 1


@pytest.mark.parametrize("example", EXAMPLES, ids=aws.named)
def test_examples_have_the_source_that_the_readme_shows(example: Path) -> None:
    """A copy in another repository finds the module, at the version that the example is of."""
    source = r'source += "(git::.*)"'
    [shown] = re.findall(source, (MODULE / "README.md").read_text())

    assert re.findall(source, aws.text(example)) == [shown]
    assert shown.endswith(f"//terraform/modules/gcp?ref=v{__version__}")


@pytest.mark.parametrize(
    "name", ["version", "charts", "judging", "known_settings", "may_be_zero", "reaching"]
)
def test_knows_what_the_module_for_aws_knows(name: str) -> None:
    """What AWS' tests hold against the code is the same here."""
    defined = rf"^  {name} += (.*?)(?=^  \w|^\}}|^  #|^$)"
    both = [
        re.findall(defined, aws.text(module), re.MULTILINE | re.DOTALL)
        for module in (aws.AWS, MODULE)
    ]

    assert [len(each) for each in both] == [1, 1]
    assert both[0][0].split() == both[1][0].split()


def test_knows_the_inboxes_and_who_works_on_them() -> None:
    """A topic for each inbox, and the stage that it feeds."""
    inboxes = r"^  inboxes += merge\((.*?)^  \}"
    [body] = re.findall(inboxes, aws.text(MODULE), re.MULTILINE | re.DOTALL)

    assert dict(re.findall(r'(\w+) += "(\w+)"', body)) == dict(INBOXES)


def test_names_packages_after_the_same_sources_as_the_builder() -> None:
    """One pattern more or less, and the module would ask for packages that nobody builds."""
    [patterns] = re.findall(r"package_sources += \[(.*)\]", aws.text(MODULE))

    assert set(re.findall(r'"([^"]+)"', patterns)) == set(SOURCES["functions"])


def test_has_tables_in_its_readme_that_are_current() -> None:
    """`make terraform` writes them."""
    assert (MODULE / "README.md").read_text() == written(MODULE)


def test_names_each_of_its_files_in_its_readme() -> None:
    """Who looks for something finds the file."""
    readme = (MODULE / "README.md").read_text()
    silent = {each.name for each in MODULE.glob("*.tf") if f"`{each.name}`" not in readme}

    assert silent == {"outputs.tf", "variables.tf"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("", "", id="nothing wrong"),
        pytest.param('region = "here"', 'An argument named "region" is not expected', id="unknown"),
        pytest.param("cmek_config {}", '"kms_key_name" is required', id="missing"),
        pytest.param("tags = 7", 'Inappropriate value for attribute "tags"', id="another type"),
        pytest.param(
            'concurrency_mode = "HOPEFUL"',
            'concurrency_mode is "HOPEFUL", and may be',
            id="unlisted",
        ),
        pytest.param("concurrency_mode = var.mode", "", id="not known yet"),
        pytest.param("nothing {}", 'Blocks of type "nothing" are not expected', id="no such block"),
    ],
)
def test_validates(workplace: Workplace, tmp_path: Path, line: str, said: str) -> None:
    """The real Terraform finds what the provider's schema would not have."""
    variable = 'variable "mode" {\n  type = string\n}\n' * ("var.mode" in line)
    (tmp_path / "a.tf").write_text(_HEAD + variable + _DATABASE.replace("LINE", line))

    code, output = workplace.run(tmp_path, "validate", "-no-color")
    assert (code == 0) == (said == "")
    assert said in " ".join(output.split())


@pytest.mark.timeout(600)
def test_validates_the_contents_of_blocks(workplace: Workplace, tmp_path: Path) -> None:
    """A value that is not listed is found however deep it is."""
    block = 'service_config {\n    ingress_settings = "NOWHERE"\n  }'
    (tmp_path / "a.tf").write_text(_HEAD + _FUNCTION.replace("LINE", block))

    code, output = workplace.run(tmp_path, "validate", "-no-color")
    assert code == 1
    assert 'ingress_settings is "NOWHERE", and may be ALLOW_ALL' in output


_HEAD = """\
terraform {
  required_providers {
    google = {
      source = "hashicorp/google"
    }
  }
}
"""
_FUNCTION = """
resource "google_cloudfunctions2_function" "this" {
  name     = "bellhop"
  location = "europe-west1"
  LINE
}
"""
_DATABASE = """
resource "google_firestore_database" "this" {
  name        = "bellhop"
  location_id = "europe-west1"
  type        = "FIRESTORE_NATIVE"
  LINE
}
"""


@pytest.mark.timeout(600)
def test_passes_its_own_tests(tested: str) -> None:
    """`terraform test`: what follows from the variables, and which values are refused."""
    assert re.search(r"Success! \d+ passed, 0 failed", tested)


@pytest.mark.timeout(600)
def test_a_second_plan_is_empty(tested: str) -> None:
    """An applied sealing key stays the desired one: above all it is not drawn again."""
    plan = plan_of(tested, "does_nothing_the_second_time")
    actions = {each["address"]: each["change"]["actions"] for each in plan["resource_changes"]}

    assert 'google_secret_manager_secret_version.key["sealing"]' in actions
    assert {address for address, each in actions.items() if each != ["no-op"]} == set()


@pytest.mark.timeout(600)
def test_gives_each_account_what_its_stage_does(made: Made) -> None:
    """Each action, role and place of each account is one that somebody has written down."""
    rights = json.loads(Path(__file__).with_name("google_rights.json").read_text())

    assert made.rights() == rights


@pytest.mark.timeout(600)
def test_labels_all_that_takes_labels(made: Made) -> None:
    """A bill's reader finds what it is for."""
    provider = SCHEMA["provider_schemas"][ADDRESS.format("google")]
    for address, values in made.resources.items():
        known = provider["resource_schemas"].get(address.partition(".")[0], _UNLABELLED)
        for name in LABELLED:
            if known["block"]["attributes"].get(name, {}).get("optional"):
                assert values[name] == {"bellhop": "bellhop"}, address


_UNLABELLED: Mapping[str, Any] = {"block": {"attributes": {}}}
"""The schema of a resource of another provider."""


@pytest.mark.timeout(600)
def test_functions_get_the_values_of_the_output(made: Made) -> None:
    """The CLI and the functions work with the same things."""
    output = made.outputs["bellhop"]
    given = {
        address: values["service_config"][0]["environment_variables"]
        for address, values in made.of("google_cloudfunctions2_function")
    }

    assert len(given) == len(output["services"]) == 5
    for address, each in given.items():
        # Ingest has only its own key.
        own = {"key_secret": output["ingest_key_secret"]} if '"ingest"' in address else {}
        assert {name: each[f"BELLHOP_{name.upper()}"] for name in _SHARED} == {
            name: own.get(name, output[name]) for name in _SHARED
        }
        assert json.loads(each["BELLHOP_TOPICS"]) == output["topics"]


_SHARED = ("project", "database", "bucket", "secrets", "key_secret")


@pytest.mark.timeout(600)
def test_hides_the_sealing_key(made: Made) -> None:
    """It is an argument that Terraform writes and never keeps."""
    version = made.resources['google_secret_manager_secret_version.key["sealing"]']

    assert (version["secret_data_wo"], version["secret_data"]) == (None, None)


@pytest.mark.timeout(600)
def test_asks_before_anything_is_destroyed(workplace: Workplace) -> None:
    """The guard depends on all the rest, so that a destroy begins with it."""
    edges = workplace.edges(workplace.module)

    assert len(edges) > 40
    assert edges.keys() == reached(edges, {"google_storage_bucket.guard"})


def test_watches_for_lines_that_are_written() -> None:
    """An alarm that waits for a line which nobody writes any more would never fire."""
    alarms = "".join((MODULE / name).read_text() for name in ("alarms.tf", "logs.tf"))
    code = "\n".join(path.read_text() for path in (ROOT.parent / "shared").rglob("*.py"))
    lines = re.findall(r'jsonPayload\.(?:message|what)=\\"(.+?)\\"', alarms)

    assert len(lines) == 6
    compared = ["pendingSeconds", "since_ring_ms", "stage_seconds"]
    assert re.findall(r"jsonPayload\.(\w+)>", alarms) == compared
    assert "pendingSeconds=" in code
    assert [each for each in lines if f'"{each}"' not in code] == []


def test_the_page_names_variables_that_there_are() -> None:
    """What is typed from the page is what the smallest example asks for."""
    page = (ROOT.parent / "docs" / "how-to" / "run-on-gcp.md").read_text()
    variables = {each.name for each in aws.blocks(ROOT / "examples" / "gcp-minimal", "variable")}

    assert set(re.findall(r"-var (\w+)=", page)) == variables
