"""What AWS does with an installation that Terraform made, read from AWS and from nothing else.

    HTTP API    a request ─► the route's integration ─► the function's alias, if its policy lets it
    SQS         each mapping, as mappings.py has them
    EventBridge an event ─► the rules that ask for it ─► their queue, if its policy lets them
    Scheduler   each schedule: its target, with its input

Ticks are given with the scheduler's role, as AWS does. No pace is played: not the schedule's, and
not how Lambda scales.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.events.models import EventPattern

from tests.functions.lab import event
from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import ACCESS_KEY, LEADING, OTHERS, PARTITIONS, REGION, SECRET_KEY
from tests.terraform.mappings import FailedError, Mappings

SENDER = "203.0.113.7"
"""Where requests come from, if nobody says otherwise: an address that the complete example lets."""

_PATIENT = Config(read_timeout=330, retries={"total_max_attempts": 1})
"""Longer than the longest function may take."""

PAUSE = 0.1
TICK = 3.0
_REFUSALS = ("TooManyRequestsException", "RecursiveInvocationException")
"""Lambda's answer when it hands an event to no function."""

_INTEGRATION = re.compile(r"functions/(arn:[^/]+)/invocations")


class Cloud:
    """An installation's AWS: it sends events, feeds and ticks to its functions."""

    def __init__(self, endpoint: str, bellhop: Mapping[str, Any]) -> None:
        self.bellhop = bellhop
        self._endpoint = endpoint
        self._session = botocore.session.Session()
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}
        self.mappings = Mappings(self, endpoint)

    def client(self, service: str) -> Any:
        """Return a client with the rights of the account."""
        return self.borrow("", service)

    def borrow(self, role: str, service: str) -> Any:
        """Return a client with the credentials of a role."""
        with self._lock:
            if (role, service) not in self._clients:
                self._clients[role, service] = self._made(role, service)
            return self._clients[role, service]

    def _made(self, role: str, service: str) -> Any:
        keys: tuple[str | None, ...] = (ACCESS_KEY, SECRET_KEY, None)
        if role:
            sts = self._session.create_client(
                "sts",
                REGION,
                endpoint_url=self._endpoint,
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET_KEY,
            )
            credentials = sts.assume_role(RoleArn=role, RoleSessionName="service")
            sts.close()
            names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
            keys = tuple(credentials["Credentials"][name] for name in names)
        return self._session.create_client(
            service,
            REGION,
            endpoint_url=self._endpoint,
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            aws_session_token=keys[2],
            config=_PATIENT,
        )

    def close(self) -> None:
        for each in self._clients.values():
            each.close()

    # Requests -----------------------------------------------------------------------------------

    def send(
        self, path: str, headers: Mapping[str, str], body: bytes, *, address: str = SENDER
    ) -> dict[str, Any]:
        """Have the API answer a POST, as it does to a client of `ingest_url`."""
        sent = event("http_api")
        sent["rawPath"] = sent["requestContext"]["http"]["path"] = path
        sent["requestContext"]["http"]["sourceIp"] = address
        lowered = {name.lower(): value for name, value in headers.items()}
        sent["headers"] |= {**lowered, "x-forwarded-for": address}
        sent |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
        answer: dict[str, Any] = self.call(self._integration(), sent)
        return answer

    def _integration(self) -> str:
        """Return the ARN of what the API calls, once it is known that it may."""
        apis = self.client("apigatewayv2")
        place = self.bellhop["ingest_url"].removeprefix("https://").partition(".")[0]
        # AWS refuses a route that is there, and a statement: moto takes either again from a
        # provider that heard nothing.
        routes = apis.get_routes(ApiId=place)["Items"]
        ((key, target),) = {(each["RouteKey"], each["Target"]) for each in routes}
        assert key == "$default"
        number = target.rpartition("/")[2]
        integration = apis.get_integration(ApiId=place, IntegrationId=number)
        assert integration["PayloadFormatVersion"] == "2.0"
        found = _INTEGRATION.search(integration["IntegrationUri"])
        assert found
        alias = found[1]
        name, qualifier = alias.rsplit(":", 2)[1:]
        policy = self.client("lambda").get_policy(FunctionName=name, Qualifier=qualifier)
        account = alias.split(":")[4]
        asking = f"arn:aws:execute-api:{REGION}:{account}:{place}/$default/$default"
        statement, *others = json.loads(policy["Policy"])["Statement"]
        assert all(each == statement for each in others)
        assert statement["Principal"] == {"Service": "apigateway.amazonaws.com"}
        assert fnmatchcase(asking, statement["Condition"]["ArnLike"]["AWS:SourceArn"])
        return alias

    # Events -------------------------------------------------------------------------------------

    def announce(self, happened: Mapping[str, Any]) -> int:
        """Have each rule of the installation that asks for an event write it into its queue.

        Moto would do so itself, but with times in another form, and past the queue's policy. Return
        how many rules asked for it.
        """
        events, asked = self.client("events"), 0
        for rule in events.list_rules(NamePrefix=self.bellhop["table"])["Rules"]:
            if not EventPattern.load(rule["EventPattern"]).matches_event(happened):
                continue
            asked += 1
            (target,) = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
            body = target["InputTransformer"]["InputTemplate"]
            for name in (target["Arn"], target["DeadLetterConfig"]["Arn"]):
                self._may_write(name, rule["Arn"])
            self.client("sqs").send_message(
                QueueUrl=self._queue(target["Arn"]),
                MessageBody=body.replace("<aws.events.event.json>", json.dumps(happened)),
            )
        return asked

    def _may_write(self, queue: str, rule: str) -> None:
        """See that a queue takes what a rule writes, and what nobody else does."""
        asked = {"QueueUrl": self._queue(queue), "AttributeNames": ["Policy"]}
        policy = self.client("sqs").get_queue_attributes(**asked)["Attributes"]["Policy"]
        (statement,) = _listed(json.loads(policy)["Statement"])
        assert statement["Principal"] == {"Service": "events.amazonaws.com"}
        assert (statement["Effect"], statement["Action"]) == ("Allow", "sqs:SendMessage")
        assert _listed(statement["Resource"]) == [queue]
        assert rule in _listed(statement["Condition"]["ArnEquals"]["aws:SourceArn"])

    def _queue(self, arn: str) -> str:
        return f"{self._endpoint}/{arn.split(':')[4]}/{arn.rpartition(':')[2]}"

    # Messages -----------------------------------------------------------------------------------

    @contextmanager
    def running(self, pollers: int = 1) -> Iterator[None]:
        """Feed the functions as long as the context lasts, and tick more often than AWS does.

        Each of the pollers hands over one batch after the other, beside the others.
        """
        over = threading.Event()
        failed: list[Exception] = []

        def run(number: int) -> None:
            ticked = 0.0
            while not over.is_set():
                try:
                    fed = self.mappings.feed()
                    if number == 0 and time.monotonic() - ticked > TICK:
                        self.tick()
                        ticked = time.monotonic()
                except Exception as error:  # noqa: BLE001 - reported to the test
                    failed.append(error)
                    return
                over.wait(0 if fed else PAUSE)

        threads = [threading.Thread(target=run, args=(each,)) for each in range(pollers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert not failed, failed

    # Ticks --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Have each schedule of the installation do what it is for."""
        scheduler = self.client("scheduler")
        for each in scheduler.list_schedules(NamePrefix=self.bellhop["table"])["Schedules"]:
            schedule = scheduler.get_schedule(Name=each["Name"], GroupName=each["GroupName"])
            assert schedule["ScheduleExpression"] == "rate(1 minute)"
            target = schedule["Target"]
            given = target.get("Input") or json.dumps(event("scheduler"))
            client = self.borrow(target["RoleArn"], "lambda")
            self.call(target["Arn"], json.loads(given), client)

    # Functions ----------------------------------------------------------------------------------

    def invoke(self, stage: str, given: Any) -> Any:
        """Invoke a stage's function by hand."""
        return self.call(f"{self.bellhop['table']}-{stage}:live", given)

    def call(self, function: str, given: Any, client: Any = None) -> Any:
        """Invoke a function by its name or ARN, with the rights of a client.

        Raises:
            FailedError: it failed as a whole, or Lambda has no free instance for it.
        """
        asked = client or self.client("lambda")
        try:
            answer = asked.invoke(FunctionName=function, Payload=json.dumps(given))
        except ClientError as error:
            if error.response["Error"]["Code"] not in _REFUSALS:
                raise
            raise FailedError(error.response["Error"]["Code"]) from error
        payload = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise FailedError(payload["errorType"])
        return payload

    def versions(self) -> dict[str, str]:
        """Return by stage to which version its alias leads."""
        client, name = self.client("lambda"), self.bellhop["table"]
        return {
            stage: client.get_alias(FunctionName=f"{name}-{stage}", Name="live")["FunctionVersion"]
            for stage in self.bellhop["log_groups"]
        }

    def environment(self, stage: str) -> dict[str, str]:
        """Return the environment that Terraform has given a stage's function."""
        configuration = self.client("lambda").get_function_configuration(
            FunctionName=f"{self.bellhop['table']}-{stage}", Qualifier="live"
        )
        variables: dict[str, str] = configuration["Environment"]["Variables"]
        return variables

    def rights(self) -> dict[str, dict[str, list[str]]]:
        """Return by role and resource which actions are allowed, without what is drawn."""
        iam, name = self.client("iam"), self.bellhop["table"]
        found: dict[str, dict[str, list[str]]] = {}
        for role in self._all("iam", "list_roles", "Roles", "RoleName"):
            (policy,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
            document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
            actions: dict[str, list[str]] = defaultdict(list)
            for statement in _listed(document["Statement"]):
                conditions = statement.get("Condition", {})
                others_listed = conditions.get(PARTITIONS, {}).get(LEADING, "")
                if others := conditions.get(OTHERS, {}).get(LEADING):
                    others_listed = "not " + ",".join(sorted(_listed(others)))
                for resource, where in product(
                    _listed(statement["Resource"]), _listed(others_listed)
                ):
                    place = f"{_plain(resource, name)} {where}".rstrip()
                    actions[place] += _listed(statement["Action"])
            found[role.removeprefix(f"{name}-{REGION}-")] = {
                resource: sorted(each) for resource, each in actions.items()
            }
        return found

    def left(self) -> dict[str, list[str]]:
        """Return what there is in the account, by kind; a key or secret that is going is none."""
        kms = self.client("kms")
        numbers = self._all("kms", "list_keys", "Keys", "KeyId")
        keys = [kms.describe_key(KeyId=number)["KeyMetadata"] for number in numbers]
        # Moto makes a key for each of AWS' own aliases that somebody asks for, as if it were ours.
        keys = [each for each in keys if each["Description"] != "Default key"]
        names = {
            "alarms": self._all("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
            "aliases": self._all("kms", "list_aliases", "Aliases", "AliasName"),
            "apis": [each["Name"] for each in self.client("apigatewayv2").get_apis()["Items"]],
            "buckets": [each["Name"] for each in self.client("s3").list_buckets()["Buckets"]],
            "dashboards": self._all(
                "cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"
            ),
            "functions": self._all("lambda", "list_functions", "Functions", "FunctionName"),
            "keys": [each["KeyId"] for each in keys if each["KeyState"] != "PendingDeletion"],
            "log groups": self._all("logs", "describe_log_groups", "logGroups", "logGroupName"),
            "NAT gateways": [
                each["NatGatewayId"]
                for each in self.client("ec2").describe_nat_gateways()["NatGateways"]
                if each["State"] != "deleted"
            ],
            "mappings": self._all(
                "lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"
            ),
            "queries": [
                each["name"]
                for each in self.client("logs").describe_query_definitions()["queryDefinitions"]
            ],
            "queues": self.client("sqs").list_queues().get("QueueUrls", []),
            "roles": self._all("iam", "list_roles", "Roles", "RoleName"),
            "rules": [each["Name"] for each in self.client("events").list_rules()["Rules"]],
            "schedules": self._all("scheduler", "list_schedules", "Schedules", "Name"),
            "secrets": self._all("secretsmanager", "list_secrets", "SecretList", "Name"),
            "tables": self.client("dynamodb").list_tables()["TableNames"],
            "topics": self._all("sns", "list_topics", "Topics", "TopicArn"),
        }
        return {kind: each for kind, each in names.items() if each}

    def _all(self, service: str, operation: str, kind: str, name: str) -> list[str]:
        pages = self.client(service).get_paginator(operation).paginate()
        found = [each[name] for page in pages for each in page[kind]]
        return [each for each in found if not each.startswith("alias/aws/")]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield what the functions have logged, as CloudWatch keeps it."""
        logs = self.client("logs")
        for group in self.bellhop["log_groups"].values():
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
                for each in page["events"]:
                    if each["message"].startswith("{"):
                        yield json.loads(each["message"])

    def words(self) -> str:
        """Quote the last complaints; of a stack its end, which says why."""
        loud = [each for each in self.lines() if each.get("severity") in {"WARNING", "ERROR"}]
        last = sorted(loud, key=lambda each: str(each["time"]))[-6:]
        lines = [{**each, "stack_trace": each.get("stack_trace", "")[-300:]} for each in last]
        return json.dumps(lines)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _plain(arn: str, name: str) -> str:
    """Write a resource as `SERVICE NAME`, whatever account, region and generation it is of."""
    resource = re.sub(r"^arn:aws:(\w+):[\w-]*:\d*:", r"\1 ", arn).replace(name, "NAME")
    resource = resource.replace(ACCOUNT, "ACCOUNT").replace(REGION, "REGION")
    resource = re.sub(r"(?<=secret:NAME)/[0-9a-f]{8}/", "/", resource)
    return re.sub(r"(NAME-(?:sealing|ingest)-key-)[0-9a-f]{8}-\w{6}$", r"\1DRAWN", resource)
