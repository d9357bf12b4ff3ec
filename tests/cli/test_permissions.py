"""The documented policies allow the calls of each command on AWS, and nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from string import Template
from typing import Any

import pytest

from bellhop.adapters.aws.queue import DEAD
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.cli.conftest import House, on_aws
from tests.cli.promotions import DECISIONS, add_promotion
from tests.cli.test_commands import CHANGING, READING, STDIN, populate, report_waiting
from tests.functions.lab import Account
from tests.lab.moto import Moto
from tests.unit.cli import fleet

# Dozens of commands, each a process of its own.
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "terraform/modules/aws/policies"
PAGE = (ROOT / "docs/reference/aws-permissions.md").read_text()

# The SDK's operations whose right has another name, and those of S3, of which moto counts methods.
ACTIONS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "s3:GET": "s3:GetObject",
    "s3:PUT": "s3:PutObject",
    "s3:DELETE": "s3:DeleteObject",
    "monitoring:GetMetricStatistics": "cloudwatch:GetMetricStatistics",
    "eks:GET": "eks:DescribeCluster",
}


def template(name: str) -> str:
    """Return a policy as the module has it."""
    return (POLICIES / f"{name}.json.tftpl").read_text()


def policy(
    name: str, house: House, named: Callable[[str], str] = lambda each: each
) -> Mapping[str, Any]:
    """Fill in a policy's template with the ARNs of an installation, as Terraform does.

    With `named` it is another installation, whose names are made of those of the first.
    """
    place = house.context.place
    own = f"{place['region']}:123456789012"
    queues = [named(url.rpartition("/")[2]) for url in place["queues"].values()]
    inboxes = [f"arn:aws:sqs:{own}:{each}" for each in queues]
    dead = [each + DEAD for each in inboxes]
    names = [named(each) for each in place["log_groups"].values()]
    groups = [f"arn:aws:logs:{own}:log-group:{each}:*" for each in names]
    secret = f"arn:aws:secretsmanager:{own}:secret:"
    secrets = place["secrets"]
    store = "parameter-store" if secrets.startswith("/") else "secrets-manager"
    kubeconfigs = {
        "parameter-store": f"arn:aws:ssm:{own}:parameter{named(secrets)}",
        "secrets-manager": f"{secret}{named(secrets)}",
    }
    more = Template(template(store)).substitute(secrets=kubeconfigs[store])
    values = {
        "table": f"arn:aws:dynamodb:{own}:table/{named(place['table'])}",
        "bucket": f"arn:aws:s3:::{named(place['bucket'])}",
        "sealing_key": f"{secret}{named(place['key_secret'])}-??????",
        "ingest_key": f"{secret}{named(place['ingest_key_secret'])}-??????",
        "eks_clusters": "arn:aws:eks:*:123456789012:cluster/*",
        "queues": json.dumps(inboxes + dead),
        "inboxes": json.dumps(inboxes),
        "deploy": f"arn:aws:sqs:{own}:{named(place['queues']['deploy'].rpartition('/')[2])}",
        "dead_letters": json.dumps(dead),
        "log_groups": json.dumps(groups),
    }
    files = ("read-only", "approver") if name == "approver" else (name,)
    texts = [Template(template(each)).substitute(values) for each in files]
    if name == "operator":
        texts.append(more)
    return {
        "Version": "2012-10-17",
        "Statement": [each for text in texts for each in json.loads(text)["Statement"]],
    }


def allowed(found: Mapping[str, Any]) -> set[str]:
    return {each for statement in found["Statement"] for each in statement["Action"]}


def asked(moto: Moto, house: House, name: str, *lines: str, denied: Sequence[str] = ()) -> set[str]:
    """Run commands under a policy; return the rights that they needed.

    AWS denies none of them anything, except the commands that begin with a word of `denied`.
    """
    may(house, policy(name, house))
    who, before = identity(house), Counter(moto.requests())
    for line in lines:
        done = house(*line.split(), stdin=STDIN, **who)
        assert done.exit_code != 70, line
        assert "AWS denies it" not in done.output or line.startswith(tuple(denied)), line
    calls = Counter(moto.requests()) - before
    return {ACTIONS.get(each, each) for each in calls}


def reached_by_others(moto: Moto, house: House, name: str) -> set[str]:
    """Return what people of installations of like names may do of all that this one's may."""
    others: list[Callable[[str], str]] = [lambda each: each[:-1], lambda each: f"{each}-two"]
    person = f"{house.context.place['table']}-person"
    return {
        each["action"]
        for each in moto.access()
        if each["role"] == person and each["allowed"]
        for named in others
        for statement in policy(name, house, named)["Statement"]
        if each["action"] in statement["Action"]
        and any(fnmatchcase(each["resource"], arn) for arn in _listed(statement["Resource"]))
    }


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.fixture
def crowded(prod: House) -> House:
    """An installation in which there is something of everything."""
    populate(prod)
    prod.here.records.pulses.put(WorkerHeartbeat(fleet.now(), fleet.now()))
    for group in prod.context.place["log_groups"].values():
        prod.services.client("logs").create_log_group(logGroupName=group)
    return prod


LOOKING = [*READING, "status", "doctor", "show failures", "dead-letters list", "logs"]
NOT_ASKED: dict[str, str] = {
    "s3:DeleteObject": "what was laid out of a record is thrown away some time later",
    "s3:ListBucket": "without it S3 says of what is not there that it is forbidden",
    "secretsmanager:RestoreSecret": "somebody deleted a cluster's secret by hand",
}
"""Rights that commands need at times, not always in these tests, and what they are for."""

CALLING = ("doctor", "explain", "delete orphans")
"""Commands that call clusters, for which they read kubeconfigs."""


def test_who_reads_needs_the_read_only_policy(crowded: House, moto: Moto) -> None:
    """Commands that look ask for what it allows, which is all asked for, and of no other name.

    It takes long: all reading commands of the CLI run once, and moto checks IAM at each call.
    """
    crowded.bury({"kind": "sweep", "cluster": "a/b"}, "why")
    needed = asked(moto, crowded, "read-only", *LOOKING, denied=CALLING)

    assert needed - NOT_ASKED.keys() == allowed(policy("read-only", crowded)) - NOT_ASKED.keys()
    assert reached_by_others(moto, crowded, "read-only") == {"cloudwatch:GetMetricStatistics"}


def test_who_changes_things_needs_the_operator_policy(
    crowded: House, moto: Moto, tmp_path: Path, source_cluster: Cluster
) -> None:
    """All commands together ask for what it allows, which is all asked for, and of no other name.

    It takes long: all commands of the CLI run once, and moto checks IAM at each call.
    """
    letters = [crowded.bury({"kind": "sweep", "cluster": "a/b"}, "why") for _ in range(1)]
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}}
    (tmp_path / "secret").write_text("four words and a number 7")
    noise = "".join(f"{number:x}" for number in range(200_000))
    (tmp_path / "large.json").write_text(json.dumps({**large, "data": {"a": noise}}))
    register = f"register cluster prod/eu-1 --kubeconfig {tmp_path / 'kubeconfig'} --no-forwarder"
    lines = [
        f"dead-letters replay {letters[0]}",
        f"apply -f {tmp_path / 'large.json'}",
        register,
        register,
        *(change for change, _ in CHANGING),
        f"register cluster-eks prod/eu-2 --eks {eks(crowded)}",
        f"backup {tmp_path / 'archive'} --passphrase-file {tmp_path / 'secret'}",
        "deregister cluster prod/eu-1",
    ]
    needed = asked(moto, crowded, "operator", *LOOKING, *lines)

    assert needed - NOT_ASKED.keys() == allowed(policy("operator", crowded)) - NOT_ASKED.keys()
    # EKS clusters are the account's, whatever an installation is called.
    wide = {"eks:DescribeCluster", *(right for rights in WIDE for right in rights)}
    assert reached_by_others(moto, crowded, "operator") == wide


@pytest.mark.usefixtures("_parameters")
def test_kubeconfigs_that_are_parameters_need_other_rights(
    moto: Moto, tmp_path: Path, source_cluster: Cluster
) -> None:
    """The policy has those of Parameter Store, and of Secrets Manager to read the keys."""
    account = Account(moto)
    account.environment["BELLHOP_SECRETS"] = f"/bellhop/{account.name}"
    house = on_aws(tmp_path, account)
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    (tmp_path / "secret").write_text("four words and a number 7")
    lines = [
        f"register cluster prod/eu-1 --kubeconfig {tmp_path / 'kubeconfig'} --no-forwarder",
        "doctor",
        f"backup {tmp_path / 'archive'} --passphrase-file {tmp_path / 'secret'}",
        "deregister cluster prod/eu-1",
    ]
    needed = asked(moto, house, "operator", *lines)
    kept = {"secretsmanager:GetSecretValue"} | {
        each for each in allowed(policy("operator", house)) if each.startswith("ssm:")
    }

    assert {each for each in needed if each.startswith(("secretsmanager:", "ssm:"))} == kept
    assert not [each for each in reached_by_others(moto, house, "operator") if "ssm:" in each]
    house.opened.close()
    account.close()


def eks(house: House) -> str:
    """Return the name of an EKS cluster, which is made if there is none yet."""
    client = house.services.client("eks")
    with suppress(client.exceptions.ResourceInUseException):
        client.create_cluster(
            name="own",
            roleArn="arn:aws:iam::123456789012:role/eks",
            resourcesVpcConfig={"subnetIds": ["subnet-1"]},
        )
    return "own"


WIDE = (["cloudwatch:GetMetricStatistics"], ["secretsmanager:ListSecrets"])
"""What AWS knows no narrower resource for."""


def test_the_policies_name_what_is_the_installations() -> None:
    """Only what has no resource of its own is for all; the operator may what readers may."""
    rights = {}
    for name in ("read-only", "approver", "operator", "secrets-manager", "parameter-store"):
        found = json.loads(re.sub(r": (\$\{\w+\})", r': ["\1"]', template(name)))
        rights[name] = allowed(found)
        for statement in found["Statement"]:
            wide = [each for each in statement["Resource"] if not each.startswith("${")]
            assert wide == [] or statement["Action"] in WIDE

    assert rights["read-only"] < rights["operator"]
    assert not {each for each in rights["read-only"] if re.search("Put|Delete|Send|Create", each)}


def test_the_page_names_every_right() -> None:
    """And who needs it."""
    whole = "".join(map(template, ("operator", "secrets-manager", "parameter-store")))
    rights = set(re.findall(r'"([a-z]\w+:(?!LeadingKeys)[A-Z]\w+)"', whole))

    assert [each for each in rights if f"`{each}`" not in PAGE] == []


def test_the_page_names_every_command_that_changes_something() -> None:
    """Among those that send messages: all of these may."""
    [row] = re.findall(r"^\| `sqs:SendMessage` \| the inboxes .*$", PAGE, re.MULTILINE)

    assert [line for line, _ in CHANGING if f"`{line.split()[0]}" not in row] == []


WRITING = (
    "label cluster default/workload tier=gold",
    "apply -f -",
    "redeploy cluster default/workload",
)
"""Commands that a reader may not run."""


def test_who_reads_changes_nothing(crowded: House) -> None:
    """Nor does he get kubeconfigs, or call clusters by them."""
    may(crowded, policy("read-only", crowded))
    reader = identity(crowded)
    refused = [crowded(*line.split(), stdin=STDIN, **reader) for line in WRITING]
    words = "explain default/workload Service default/my-service"
    looked = crowded(*words.split(), **reader).stdout

    assert [each.exit_code for each in refused] == [1, 1, 1]
    for each in refused:
        assert "AWS denies it; give the role or the user this right" in each.stderr
    assert "nobody could look" in looked
    assert "cannot read the secret 'kubeconfig/default/workload': AWS denies it" in looked


def test_an_approver_decides_about_promotions_and_applies_nothing(
    crowded: House, moto: Moto
) -> None:
    """The policy allows what readers may, and beside it no more than these commands need."""
    add_promotion(crowded)
    crowded.bury({"kind": "sweep", "cluster": "a/b"}, "why")
    # AWS lets everybody ask who they are.
    needed = asked(moto, crowded, "approver", *LOOKING, *DECISIONS, denied=CALLING) - {"sts:POST"}
    approver = identity(crowded)
    refused = [crowded(*line.split(), stdin=STDIN, **approver) for line in WRITING]
    history = crowded("history", "promotion", "agent", "-o", "json", **approver).stdout

    assert needed - NOT_ASKED.keys() == allowed(policy("approver", crowded)) - NOT_ASKED.keys()
    assert [each.exit_code for each in refused] == [1, 1, 1]
    role = f"{crowded.context.place['table']}-person"
    assert f"arn:aws:sts::123456789012:assumed-role/{role}/person" in history
    assert reached_by_others(moto, crowded, "approver") == {"cloudwatch:GetMetricStatistics"}


def test_an_operator_does_not_decide_about_promotions(crowded: House) -> None:
    """An operator, who applies and deletes all else, needs the approver's policy for that."""
    state = add_promotion(crowded)
    may(crowded, policy("operator", crowded))
    operator = identity(crowded)
    done = [crowded(*line.split(), **operator) for line in DECISIONS[:2]]
    applied = crowded("apply", "-f", "-", stdin=STDIN, **operator)

    kept = crowded.here.records.promotions.get("agent")
    assert kept
    assert kept.value == state
    assert [each.exit_code for each in (*done, applied)] == [1, 1, 0]
    for each in done:
        assert "'promotion' 'agent': AWS denies it" in each.stderr


def test_a_comparison_that_is_denied_has_another_code_than_one_that_differs(crowded: House) -> None:
    """As that of `kubectl diff`, it is greater than 1."""
    may(crowded, without(policy("read-only", crowded), "dynamodb:GetItem"))
    done = crowded("diff", "-f", "-", stdin=STDIN, **identity(crowded))

    assert (done.exit_code, "AWS denies it" in done.stderr) == (2, True)


TAKING = {
    "dynamodb:GetItem": "get clusters",
    "dynamodb:Query": "get clusters",
    "s3:GetObject": "explain trigger service-network-policy",
    "secretsmanager:GetSecretValue": "get clusters",
    "sqs:GetQueueAttributes": "status",
    "sqs:ReceiveMessage": "dead-letters list",
    "sqs:ChangeMessageVisibility": "dead-letters list",
    "cloudwatch:GetMetricStatistics": "status",
    "logs:FilterLogEvents": "logs",
}
"""The rights of who reads, and a command that does not say the same without."""


@pytest.mark.thorough
def test_no_right_of_who_reads_is_one_too_many(crowded: House, moto: Moto) -> None:
    """Without each of them a command says that it is denied, or less than it would.

    It takes long: each right is taken away once, and a command runs before and after.
    """
    whole = policy("read-only", crowded)
    assert allowed(whole) - NOT_ASKED.keys() == TAKING.keys()
    crowded.bury({"kind": "sweep", "cluster": "a/b"}, "why")
    crowded.here.publisher.publish([Resync("default/workload")])
    report_waiting(crowded, "sweep", 1)
    reader = identity(crowded)
    for right, line in TAKING.items():
        crowded(*line.split())  # Who may write lays the rules together, which others read so.
        may(crowded, whole)
        before = crowded(*line.split(), **reader).output
        may(crowded, without(whole, right))
        after = crowded(*line.split(), **reader).output
        moto.pass_visibility(0)  # Who may not give back dead letters leaves them hidden.

        denied = "AWS denies it" in after and "AWS denies it" not in before
        assert denied or ("for 3h" in before and "for 3h" not in after), right


def without(document: Mapping[str, Any], action: str) -> dict[str, Any]:
    """Leave a right out of a policy."""
    kept = [
        {**each, "Action": [one for one in each["Action"] if one != action]}
        for each in document["Statement"]
    ]
    return {**document, "Statement": [each for each in kept if each["Action"]]}


def made_role(house: House, document: Mapping[str, Any]) -> str:
    """Make a role with a policy; return its ARN."""
    iam, name = house.services.client("iam"), f"{house.context.place['table']}-person"
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=json.dumps(document))
    found: str = iam.get_role(RoleName=name)["Role"]["Arn"]
    return found


def may(house: House, document: Mapping[str, Any]) -> None:
    """Have somebody be allowed what a policy says, from now on."""
    made_role(house, document)


def identity(house: House) -> dict[str, str]:
    """Return the environment of who has assumed the role that `may` has made."""
    arn = f"arn:aws:iam::123456789012:role/{house.context.place['table']}-person"
    sts = house.services.client("sts")
    found = sts.assume_role(RoleArn=arn, RoleSessionName="person")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
        "AWS_SESSION_TOKEN": found["SessionToken"],
    }
