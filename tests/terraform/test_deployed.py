"""The complete example, applied: it works, from an event of a cluster to another cluster.

All tests here share one installation; first, plans look at its packages. Registered through the
CLI, two real API servers call real forwarders; functions run from their packages, fed and
ticked as AWS says it would.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest

from bellhop.core.gvk import GVK, ObjectKey
from infra.lab.cluster import Cluster
from infra.package.build import STAGES
from tests.functions.lab import event
from tests.functions.roles import noise
from tests.lab.lineages import ALLOW
from tests.lab.moto import Moto
from tests.lab.terraform import Stack
from tests.terraform.cloud import TICK, Cloud
from tests.terraform.conftest import Fleet, open_fleet
from tests.terraform.mappings import FailedError
from tests.terraform.newer import VERSION, make_newer
from tests.terraform.recovery import TABLE, Recovery
from tests.terraform.siege import Siege

pytestmark = pytest.mark.timeout(900)

REFUSED = "Run `make package` in the checkout that the module is part of"
KILLED = "Runtime.ExitError"
SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")
TWIN = ObjectKey(SERVICE, "external", "external-web")
ADDRESSES = ObjectKey(ENDPOINTS, "external", "external-web")
WEB = ObjectKey(SERVICE, "default", "web")
THROTTLED = 30
"""Receives of one message: far more than it has attempts, and twice as many."""


@pytest.fixture(scope="class")
def siege(
    tmp_path_factory: pytest.TempPathFactory,
    account: Moto,
    cloud: Cloud,
    both_clusters: tuple[Cluster, Cluster],
) -> Iterator[Siege]:
    """An installation that all tests of a class beset."""
    folder = tmp_path_factory.mktemp("siege")
    with open_fleet(folder, account, cloud) as fleet:
        one = Siege(fleet, account, both_clusters)
        yield one
        one.close()


def service(name: str, port: int = 80, kind: str = "ClusterIP", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "type": kind,
            "selector": {"app": name},
            "ports": [{"port": port, "targetPort": 9376}],
        },
    }


@contextmanager
def absent(packages: Path) -> Iterator[None]:
    """Be a machine on which nobody has built packages."""
    aside = packages.with_name("aside")
    packages.rename(aside)
    try:
        yield
    finally:
        aside.rename(packages)


@contextmanager
def changed(path: Path) -> Iterator[None]:
    """Change a file by one byte."""
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    try:
        yield
    finally:
        path.write_bytes(content)


@contextmanager
def newer(checkout: Path, packages: Path, kept: Path) -> Iterator[None]:
    """Have newer sources, and packages of them."""
    source = checkout / "shared" / "bellhop" / "__init__.py"
    content = source.read_bytes()
    shutil.copytree(packages, kept)
    make_newer(checkout, packages, "9.9.10")
    try:
        yield
    finally:
        source.write_bytes(content)
        shutil.rmtree(packages)
        kept.rename(packages)


AS_APPLIED = "-refresh=false"
"""Takes the state for what is there: to ask for every resource takes half of a plan's time."""


def changes(stack: Stack, *more: str) -> dict[str, list[str]]:
    """Return what a plan would do to what it would change, by the addresses of the resources."""
    stack.run("plan", "-out=plan", AS_APPLIED, *more)
    plan = json.loads(stack.run("show", "-json", "plan"))
    actions = {
        each["address"]: each["change"]["actions"]
        for each in plan["resource_changes"]
        if each["mode"] == "managed"
    }
    return {address: each for address, each in actions.items() if each != ["no-op"]}


def test_a_second_plan_is_empty_and_needs_no_packages(stack: Stack, dist: Path) -> None:
    """What was applied is what is there."""
    with absent(dist):
        assert "No changes" in stack.run("plan", "-detailed-exitcode")


def test_stale_packages_are_refused(stack: Stack) -> None:
    """Those of other sources than the checkout's, before anything is changed; a destroy is not."""
    with changed(stack.root / "shared" / "bellhop" / "errors.py"):
        output = " ".join(stack.run("apply", "-auto-approve", AS_APPLIED, expect=(1,)).split())
        assert REFUSED in output
        assert len(changes(stack, "-destroy")) > len(STAGES)


def test_a_package_that_is_not_as_it_was_built_is_refused(stack: Stack, dist: Path) -> None:
    """Its sum is not the one in the list beside it."""
    [package] = dist.glob("functions-*.zip")
    with changed(package):
        assert REFUSED in " ".join(stack.run("plan", AS_APPLIED, expect=(1,)).split())


def test_two_machines_plan_the_same(stack: Stack, dist: Path, tmp_path: Path) -> None:
    """One that has built the packages of newer sources, and one that has not."""
    with newer(stack.root, dist, tmp_path / "kept"):
        planned = changes(stack)
        with absent(dist):
            assert changes(stack) == planned

    functions = {each for each in planned if "aws_lambda_function.stage" in each}
    assert len(functions) == len(STAGES)
    assert {tuple(each) for each in planned.values()} == {("update",)}


def test_carries_a_service_to_the_other_cluster_and_takes_it_away(
    fleet: Fleet, account: Moto, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """A balanced Service appears in the destination, and goes with its source; every role works.

    The other examples need nothing more of a cloud; tests/flow/test_examples.py plays them.
    It takes long: packaged functions start cold, and work off the resyncs of two clusters beside
    the events.
    """
    destination = fleet.register(destination_cluster, "dep=eng", forward=False)
    source = fleet.register(source_cluster, "env=production")
    fleet.apply("service-discovery")
    fleet.rings("fleet/source")
    source.create(service("web", 60000, "LoadBalancer"))
    source.give_address(WEB, "34.172.32.172")
    fleet.until("both are there", lambda: destination.get(TWIN) and destination.get(ADDRESSES))
    there = destination.get(ADDRESSES)
    assert there
    assert there["subsets"][0]["addresses"] == [{"ip": "34.172.32.172"}]

    source.delete(WEB)
    fleet.until(
        "both are gone", lambda: not destination.get(TWIN) and not destination.get(ADDRESSES)
    )

    output = fleet.do("show", "events")
    for word in ("changed", "matched", "rendered", "applied"):
        assert word in output
    asked = {each["role"].rpartition("-")[2] for each in account.access()}
    assert asked >= set(fleet.cloud.bellhop["log_groups"])


def test_functions_in_the_network_have_a_way_out(cloud: Cloud) -> None:
    """A route leads from each subnet to a NAT gateway, and one from there to the Internet."""
    ec2 = cloud.client("ec2")

    def route(subnet: str) -> dict[str, Any]:
        asked = [{"Name": "association.subnet-id", "Values": [subnet]}]
        (table,) = ec2.describe_route_tables(Filters=asked)["RouteTables"]
        ways = [each for each in table["Routes"] if "DestinationCidrBlock" in each]
        (found,) = [each for each in ways if each["DestinationCidrBlock"] == "0.0.0.0/0"]
        return dict(found)

    placed = {}
    for stage in cloud.bellhop["log_groups"]:
        configuration = cloud.client("lambda").get_function_configuration(
            FunctionName=f"{cloud.bellhop['table']}-{stage}", Qualifier="live"
        )
        if subnets := configuration.get("VpcConfig", {}).get("SubnetIds"):
            placed[stage] = subnets
    gateways = {route(subnet)["NatGatewayId"] for each in placed.values() for subnet in each}
    (nat,) = ec2.describe_nat_gateways(NatGatewayIds=[*gateways])["NatGateways"]

    assert placed.keys() == {"charts", "deploy", "sweep"}
    assert route(nat["SubnetId"])["GatewayId"].startswith("igw-")


IMAGES = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: images}
spec:
  messagingMatchCriteria:
  - cloudEventSource: ^aws[.]ecr$
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: announce}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: images
  oneForEvent: true
  cloudEventAction: '{{ if eq .CloudEvent.data.type "DELETE" }}Delete{{ else }}Create{{ end }}'
  policyRefs: [{kind: ConfigMap, namespace: default, name: image}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: image
  namespace: default
  annotations: {projectsveltos.io/instantiate: ok}
data:
  image.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "image-{{ .CloudEvent.subject }}", namespace: default}
    data: {tag: "{{ .CloudEvent.data.tag }}"}
"""


def test_an_event_of_aws_deploys_an_add_on_and_another_removes_it(
    fleet: Fleet, source_cluster: Cluster
) -> None:
    """The example's rule has it counted for its cluster, by the subject that the rule names.

    It takes long: packaged functions start cold, and work off a resync beside the events.
    """
    source = fleet.register(source_cluster, "env=production")
    fleet.do("apply", "-f", "-", stdin=IMAGES)
    made = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "image-shop")

    def happens(number: int, what: str, **more: str) -> int:
        detail = {"repository-name": "shop", "type": what, "tag": f"v{number}"}
        found = {"id": str(number), "time": f"2026-01-31T12:00:0{number}Z", "detail": detail}
        return fleet.cloud.announce({**event("eventbridge"), **found, **more})

    assert happens(1, "PUSH") == 1
    assert happens(2, "PUSH", source="aws.s3") == 0
    fleet.until("it is there", lambda: source.get(made))
    stored = source.get(made)
    assert stored
    assert stored["data"] == {"tag": "v1"}
    assert happens(3, "DELETE") == 1
    fleet.until("it is gone", lambda: source.get(made) is None)
    fleet.do("delete", "-f", "-", stdin=IMAGES)


@pytest.mark.thorough
class TestSiege:
    """Faults of only a deployed function: Lambda ends it, has no free instance, or replaces it.

    All tests share one siege. What AWS' services refuse is in tests/functions/test_faults.py.
    """

    def test_only_a_poison_message_fails_and_can_be_replayed(self, siege: Siege) -> None:
        """Of a batch only what failed is published again, and dead-lettered in the end."""
        names = ("sound-1", "poison", "sound-2")
        siege.create(*names)
        siege.await_events(*names)
        heal = siege.spoil("poison")
        batches = siege.pump(lambda: siege.dead() and siege.quiet())
        assert {"for-sound-1", "for-sound-2"} <= siege.there().keys()
        evaluated = [each for each in batches if each.queue.endswith("-evaluate")]
        seen = Counter(each["MessageId"] for batch in evaluated for each in batch.messages)
        assert sorted(seen.values()) == [1] * 8
        assert [len(batch.failed) for batch in evaluated] == [0] * 6
        (letter,) = json.loads(siege.fleet.do("dead-letters", "list", "-o", "json"))
        assert letter["attempts"] == 6
        assert letter["reason"] == "an unforeseen failure, which the log has: 'rv'"

        heal()
        siege.fleet.do("dead-letters", "replay", letter["id"])
        siege.pump(siege.done)
        siege.held()

    def test_who_is_killed_on_the_way_is_followed(self, siege: Siege) -> None:
        """Each stage dies when it has written, and before it has published; another one publishes.

        It takes seconds: functions start cold again, and messages in flight come back after their
        timeout.
        """
        for stage in ("ingest", "evaluate", "deploy"):
            siege.moto.kill(siege.role(stage), "sqs:SendMessageBatch")
        siege.create("killed")
        batches = siege.pump(siege.done)

        assert [each.error for each in batches if each.error] == [KILLED, KILLED]
        siege.held()

    def test_who_runs_out_of_time_is_followed(self, siege: Siege) -> None:
        """A cluster holds up its call until Lambda ends the function; the lease ends later."""
        siege.create("late")
        siege.pump(lambda: siege.waiting("apply"), "evaluate", "deploy")
        siege.moto.hurry(siege.function("deploy"), 4)
        siege.destination.freeze()
        try:
            batches = siege.pump(lambda: siege.mappings.batches[-1].error, "apply", ticks=False)
        finally:
            siege.destination.thaw()
        assert batches[-1].error == "Sandbox.Timedout"

        siege.pump(siege.done)
        siege.held()

    def test_a_throttled_event_is_handled_later(self, siege: Siege) -> None:
        """No function may run for a while: forwarders and queues keep what they have.

        A message is received more often than it may be tried, and does not end by that.
        """
        functions = siege.cloud.client("lambda")
        siege.create("crowded-1")
        siege.await_events("crowded-1")
        for stage in siege.cloud.bellhop["log_groups"]:
            functions.put_function_concurrency(
                FunctionName=siege.function(stage), ReservedConcurrentExecutions=0
            )
        siege.create("crowded-2")
        turned_away = siege.pump(lambda: siege.receives() > THROTTLED, ticks=False)
        turned_away += siege.pump(siege.passed(TICK))
        with pytest.raises(FailedError, match="TooManyRequests"):
            siege.cloud.tick()
        for stage in siege.cloud.bellhop["log_groups"]:
            functions.delete_function_concurrency(FunctionName=siege.function(stage))
        siege.pump(siege.done)

        assert {each.error for each in turned_away} == {"TooManyRequestsException"}
        siege.held()

    def test_credentials_that_a_cluster_refuses_are_read_again(self, siege: Siege) -> None:
        """Functions that have a connection find the newer secret, without a failure.

        It takes seconds: events go through packaged functions and queues of moto, which are
        polled.
        """
        siege.remote.renew()
        place = f"{siege.cloud.bellhop['secrets']}/kubeconfig/fleet/destination"
        siege.cloud.client("secretsmanager").put_secret_value(
            SecretId=place, SecretBinary=json.dumps(siege.remote.kubeconfig()).encode()
        )
        read = siege.moto.requests()["secretsmanager:GetSecretValue"]
        siege.create("renewed")
        siege.pump(siege.done)

        assert siege.moto.requests()["secretsmanager:GetSecretValue"] > read
        siege.held()

    def test_a_newer_version_takes_over_while_messages_are_under_way(
        self, siege: Siege, stack: Stack, dist: Path
    ) -> None:
        """Nothing is lost, neither waiting messages nor those in flight.

        It takes over a minute: Terraform applies twice, and whatever is created meanwhile is
        deployed.
        """
        before = siege.cloud.versions()
        siege.create("waits-1", "waits-2")
        siege.await_events("waits-1", "waits-2")
        make_newer(stack.root, dist)
        with siege.cloud.running(pollers=2), ThreadPoolExecutor(1) as threads:
            applied = threads.submit(stack.run, "apply", "-auto-approve")
            number, pause = itertools.count(), TICK
            while not applied.done():
                siege.create(f"meanwhile-{next(number)}")
                wait([applied], pause)
                # More seldom the longer it takes: all of them are still to be carried through.
                pause *= 1.5
            assert re.search(r" 0 added, \d+ changed, 0 destroyed", applied.result())
        siege.pump(siege.done)
        after = siege.cloud.versions()
        assert {
            stage: int(each) - int(before[stage]) for stage, each in after.items()
        } == dict.fromkeys(before, 1)
        assert "No changes" in stack.run("plan", "-detailed-exitcode")
        siege.cloud.tick()
        heartbeat = siege.here().records.pulses.get()
        assert heartbeat
        assert heartbeat.version == VERSION
        siege.held()


def test_gives_each_function_what_its_stage_does(cloud: Cloud) -> None:
    """Each action and resource of each role is one that somebody has written down, and no other."""
    rights = json.loads(Path(__file__).with_name("rights.json").read_text())

    assert cloud.rights() == rights


def test_functions_that_feed_themselves_may_do_so_as_often_as_they_do(cloud: Cloud) -> None:
    """Lambda would refuse the seventeenth turn or attempt of others."""
    client = cloud.client("lambda")
    found = client.list_event_source_mappings()["EventSourceMappings"]
    fed = {each["FunctionArn"].split(":")[6] for each in found} - {
        f"{cloud.bellhop['table']}-ingest"
    }

    assert fed
    assert {
        client.get_function_recursion_config(FunctionName=each)["RecursiveLoop"] for each in fed
    } == {ALLOW}


def test_terraform_gets_the_same_answer_however_often_it_asks(cloud: Cloud) -> None:
    """The lab's, where a fast answer may be dropped; another client's second request is another."""
    client = cloud.client("ec2")

    def set_id(request: AWSPreparedRequest, **_: object) -> None:
        request.headers["User-Agent"] = "terraform-provider-aws/5.100.0"
        request.headers["amz-sdk-invocation-id"] = next(identities)

    identities = iter(("one", "two", "one", "two"))
    made = {client.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]}
    client.meta.events.register("before-send.ec2", set_id)
    for _ in range(4):
        made.add(client.create_internet_gateway()["InternetGateway"]["InternetGatewayId"])
    client.meta.events.unregister("before-send.ec2", set_id)
    made.add(client.create_internet_gateway()["InternetGateway"]["InternetGatewayId"])

    assert len(made) == 4
    for each in made:
        client.delete_internet_gateway(InternetGatewayId=each)


def test_no_client_of_another_address_may_send(cloud: Cloud) -> None:
    """The example lets one range of addresses in: who is not in it learns nothing."""
    path = "/clusters/fleet/nobody"

    assert cloud.send(path, {}, b"{}", address="198.51.100.1")["statusCode"] == 403
    assert cloud.send(path, {}, b"{}")["statusCode"] == 401


LARGE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "large", "namespace": "default"},
    "data": {"noise": noise(400_000)},
}
"""A manifest whose payload lies in the bucket."""


def test_is_not_destroyed_while_a_cluster_is_registered_and_works_on_a_restored_table(
    stack: Stack, account: Moto, cloud: Cloud, source_cluster: Cluster, tmp_path: Path
) -> None:
    """Terraform gets the reason; the next apply, which finds everything there, is a recovery's.

    Moto restores a table as it is at that time, so the page's first lines come before the loss.
    It takes over a minute: Terraform plans a destroy and applies again, resource by resource.
    """
    with open_fleet(tmp_path, account, cloud) as fleet:
        fleet.register(source_cluster, "env=fv", forward=False)
        fleet.do("apply", "-f", "-", stdin=json.dumps(LARGE))

        secrets = fleet.cloud.client("secretsmanager")
        name = f"{fleet.cloud.bellhop['secrets']}/kubeconfig/fleet/source"
        kept = secrets.describe_secret(SecretId=name)
        assert kept["KmsKeyId"] == fleet.cloud.bellhop["kms_key"]

        output = " ".join(stack.run("destroy", "-auto-approve", expect=(1,)).split())
        assert "clusters are registered, such as 'fleet/source'" in output

        before, page = fleet.cloud.bellhop, Recovery(stack, fleet.cloud, account.url)
        page.type("aws dynamodb restore-table-to-point-in-time")
        page.type("aws dynamodb wait")
        fleet.do("delete", "-f", "-", stdin=json.dumps(LARGE))
        page.lose_blobs()
        page.configure()
        page.type("terraform state rm")
        applied = page.type("terraform apply")
        assert re.search(r" 1 imported, 0 added, \d+ changed, 0 destroyed", applied)
        assert stack.outputs()["bellhop"] == {**before, "table": TABLE}
        assert page.settings(TABLE) == page.settings(before["table"])
        page.type("aws s3api")
        _, _, context = page.line("terraform output -json").partition("| bellhop ")
        outputs = stack.run("output", "-json")
        fleet.do(*context.split(), "--endpoint", account.url, stdin=outputs)
        kept_manifest = json.loads(
            fleet.do("get", "configmap", "large", "-n", "default", "-o", "json")
        )
        assert kept_manifest["data"] == LARGE["data"]

        account.forget_access()
        asked = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fleet.do(*page.line("bellhop resync").split()[1:])
        with cloud.running():
            fleet.until("it is swept", lambda: asked <= fleet.swept_at("fleet/source"))
        fleet.do(*page.line("bellhop dead-letters").split()[1:])
        fleet.do(*page.line("bellhop status").split()[1:])
        page.type("aws dynamodb delete-table")
        assert page.rest() == []
    assert [each for each in account.access() if not each["allowed"]] == []


def test_a_destroy_needs_no_packages_and_leaves_nothing(
    stack: Stack, dist: Path, cloud: Cloud
) -> None:
    """Another machine may destroy it.

    It takes long: Terraform destroys the example, resource by resource. This is the last test
    because one that came after it would apply the example again.
    """
    with absent(dist):
        stack.run("destroy", "-auto-approve")

    assert cloud.left() == {}
