"""A first apply to a new project of Google finds what it needs, in this order.

Nothing is applied here: Terraform plans the complete example with mocked answers, and prints what
each resource waits for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.google_schema import OLDEST, PLACE
from tests.lab.google_schema_provider import SchemaProvider
from tests.lab.terraform import ROOT
from tests.missing import find_program
from tests.terraform import test_module as aws
from tests.terraform.google_workplace import Workplace, reached

COMPLETE = Path(__file__).with_name("google_complete.tftest.hcl")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """A copy of modules and examples."""
    with SchemaProvider(PLACE) as provider:
        folder = tmp_path_factory.mktemp("google") / "terraform"
        yield Workplace(folder, str(find_program("terraform")), provider)


@pytest.fixture(scope="module")
def complete(workplace: Workplace) -> Path:
    """The complete example, initialized."""
    place = workplace.examples / "gcp-complete"
    (place / COMPLETE.name).write_text(COMPLETE.read_text())
    assert workplace.run(place, "init")[0] == 0
    return place


@pytest.fixture(scope="module")
def edges(workplace: Workplace) -> dict[str, set[str]]:
    """What each resource of the module depends on."""
    return workplace.edges(workplace.module)


@pytest.mark.parametrize("schemas", [PLACE, OLDEST], ids=["newest", "oldest"])
def test_is_valid(tmp_path: Path, schemas: Path) -> None:
    """Terraform accepts both examples, by the schemas of the oldest and the newest providers."""
    with SchemaProvider(schemas) as provider:
        workplace = Workplace(tmp_path / "terraform", str(find_program("terraform")), provider)
        for place in sorted(workplace.examples.glob("gcp-*")):
            assert workplace.run(place, "init")[0] == 0

            code, output = workplace.run(place, "validate", "-no-color")
            assert "Success!" in output, output
            assert code == 0


def test_the_complete_example_applies_from_nothing(workplace: Workplace, complete: Path) -> None:
    """A plan knows all that it must, and the options fit the quota of a new project."""
    code, output = workplace.run(complete, "test", "-no-color")

    assert code == 0, output[-3000:]


def test_the_subnetwork_of_the_example_has_addresses_for_all_instances() -> None:
    """Two an instance, twice as many while a revision replaces another, and four of Google's."""
    text = aws.text(ROOT / "examples" / "gcp-complete")
    ((prefix, instances),) = zip(
        re.findall(r'ip_cidr_range = "[\d.]+/(\d+)"', text),
        re.findall(r"^  instances = (\d+)$", text, re.MULTILINE),
        strict=True,
    )

    assert 2 ** (32 - int(prefix)) - 4 >= max(60, 4 * int(instances))


def test_enables_services_before_they_are_called(
    workplace: Workplace, complete: Path, edges: dict[str, set[str]]
) -> None:
    """Each resource of the module and of the example follows the services' activation."""
    for each in (edges, workplace.edges(complete)):
        called = {name for name in each if name.startswith("google_")}
        called.remove("google_project_service.this")

        assert called
        late = {name for name in called if "time_sleep.services" not in reached(each, {name})}
        assert late == set()


@pytest.mark.parametrize(
    ("resource", "waits_for"),
    [
        ("google_artifact_registry_repository.images", "time_sleep.keys"),
        ("google_cloud_run_v2_service.ingest", "google_cloudfunctions2_function.stage"),
        ("google_cloudfunctions2_function.stage", "time_sleep.grants"),
        ("google_eventarc_trigger.this", "google_project_iam_member.bucket_events"),
        ("google_eventarc_trigger.this", "google_project_service_identity.agent"),
        ("google_firestore_database.records", "time_sleep.keys"),
        ("google_kms_crypto_key_iam_member.agent", "google_project_service_identity.agent"),
        ("google_logging_project_bucket_config.own", "time_sleep.keys"),
        ("google_pubsub_subscription_iam_member.postman", "google_project_service_identity.agent"),
        ("google_pubsub_topic.dead", "time_sleep.keys"),
        ("google_pubsub_topic.inbox", "time_sleep.keys"),
        ("google_pubsub_topic_iam_member.postman", "google_project_service_identity.agent"),
        ("google_secret_manager_secret.key", "time_sleep.keys"),
        ("google_service_account_iam_member.postman", "google_project_service_identity.agent"),
        ("google_storage_bucket.blobs", "time_sleep.keys"),
        ("google_storage_bucket.source", "time_sleep.keys"),
        ("time_sleep.grants", "google_project_iam_member.build"),
        ("time_sleep.grants", "google_storage_bucket_iam_member.blobs"),
        ("time_sleep.keys", "google_kms_crypto_key_iam_member.agent"),
    ],
)
def test_waits_for_accounts_and_grants(
    edges: dict[str, set[str]], resource: str, waits_for: str
) -> None:
    """Google refuses what it needs an account or a grant for, until it knows them everywhere."""
    assert waits_for in reached(edges, {resource})
