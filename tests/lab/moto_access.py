"""Hold functions to their roles: who calls with a role's credentials does what its policies allow.

Moto can ask IAM, but of the resource `*`, so that a policy that names resources allows nothing.
Here a request is read for its action and its resource, as AWS' Service Authorization Reference has
them, and held against the policies that moto keeps for the role. Who reads an object of S3 that is
not there is asked for the right to list, as S3 does. What is not known here is denied; so is a
policy with more than Allow, Action and Resource. Other keys are an account's own, and may do
anything. Of conditions the one for partitions of a table is evaluated, and no other; none of KMS'
rights is: moto seals nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qs

from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.sts.models import sts_backends

from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import LEADING, OTHERS, PARTITIONS

_SCOPE = re.compile(r"Credential=([^,/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_INVOKED = re.compile(r"/functions/(.+)/invocations$")
_BATCHES = {
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "DeleteMessageBatch": "DeleteMessage",
    "SendMessageBatch": "SendMessage",
}
_PREFIXES = {"monitoring": "cloudwatch"}
"""How actions of a service begin, where that is not its name in signatures."""

_KNOWN = frozenset({"Action", "Condition", "Effect", "Resource", "Sid"})


@dataclass(frozen=True)
class Asked:
    """What somebody asks for, with a role's credentials; in which partition, if of a table."""

    role: str
    action: str
    resource: str
    partition: str = ""


class Access:
    """Checks requests, and counts those allowed and those denied."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[Asked, bool]] = Counter()

    def authorize(self, environ: Mapping[str, Any], body: bytes) -> Asked | None:
        """Return what a request is denied; None if it may go on."""
        asked = _read(environ, body)
        if asked is None or asked.action == "sts:GetCallerIdentity":
            return None
        return next((each for each in (asked, *_besides(asked)) if not self.allows(each)), None)

    def allows(self, asked: Asked) -> bool:
        """Say whether a role may do something, and count it."""
        allowed = any(_allowed(each, asked) for each in _statements(asked.role))
        with self._lock:
            self._counts[asked, allowed] += 1
        return allowed

    def results(self) -> list[dict[str, Any]]:
        """Return what was asked for, how often, and what came of it."""
        with self._lock:
            return [
                {**vars(asked), "allowed": allowed, "times": times}
                for (asked, allowed), times in self._counts.items()
            ]

    def forget(self) -> None:
        """Begin counting again."""
        with self._lock:
            self._counts.clear()


def whose(environ: Mapping[str, Any]) -> str:
    """Return with which role's credentials a request is made; none with an account's own."""
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    return _role_of(scope[1]) if scope else ""


def refusal(asked: Asked) -> tuple[int, str, bytes]:
    """Write what AWS answers to what is denied: status, media type and body."""
    text = (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{asked.role}/lab is not authorized to perform:"
        f" {asked.action} on resource: {asked.resource} because no identity-based policy allows"
        f" the {asked.action} action"
    )
    if asked.action.startswith("s3:"):
        body = f"<Error><Code>AccessDenied</Code><Message>{text}</Message></Error>"
        return 403, "application/xml", body.encode()
    body = json.dumps({"__type": "AccessDeniedException", "message": text, "Message": text})
    return 400, "application/x-amz-json-1.1", body.encode()


def _read(environ: Mapping[str, Any], body: bytes) -> Asked | None:
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    role = _role_of(scope[1]) if scope else ""
    if scope is None or not role:
        return None
    region, service = scope[2], scope[3]
    place = f"{region}:{ACCOUNT}"
    if service == "s3":
        return Asked(role, *_of_s3(environ))
    operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    given = json.loads(body) if operation and body else {}
    partition = ""
    match service:
        case "dynamodb":
            resource = f"arn:aws:dynamodb:{place}:table/{given.get('TableName')}"
            partition = _partition(given)
        case "sqs":
            operation = _BATCHES.get(operation, operation)
            resource = f"arn:aws:sqs:{place}:{given.get('QueueUrl', '').rpartition('/')[2]}"
        case "secretsmanager" | "ssm":
            resource = _secret(service, region, given)
        case "logs":
            group, stream = given.get("logGroupName"), given.get("logStreamName")
            resource = f"arn:aws:logs:{place}:log-group:{group}:log-stream:{stream}"
        case "eks":
            operation, resource = "DescribeCluster", f"arn:aws:eks:{place}:cluster/"
            resource += environ["PATH_INFO"].rpartition("/")[2]
        case "lambda":
            operation, resource = "InvokeFunction", _function(environ["PATH_INFO"])
        case "sts":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            operation, resource = form.get("Action", "GetCallerIdentity"), form.get("RoleArn", "*")
        case _:
            resource = "*"
    return Asked(role, f"{_PREFIXES.get(service, service)}:{operation}", resource, partition)


def _partition(given: Mapping[str, Any]) -> str:
    """Return the partition that a request to DynamoDB reads or writes; none of a scan."""
    values = given.get("ExpressionAttributeValues", {})
    key = given.get("Key") or given.get("Item") or {"partition": values.get(":partition", {})}
    return str(key["partition"].get("S", ""))


def _of_s3(environ: Mapping[str, Any]) -> tuple[str, str]:
    bucket, _, key = environ["PATH_INFO"].strip("/").partition("/")
    verb = {"GET": "Get", "HEAD": "Get", "PUT": "Put", "DELETE": "Delete"}.get(
        environ["REQUEST_METHOD"], environ["REQUEST_METHOD"]
    )
    if key:
        return f"s3:{verb}Object", f"arn:aws:s3:::{bucket}/{key}"
    return ("s3:ListBucket" if verb == "Get" else f"s3:{verb}Bucket"), f"arn:aws:s3:::{bucket}"


def _besides(asked: Asked) -> Iterator[Asked]:
    """Yield the other rights: a caller that may not list does not learn what is missing."""
    if asked.action == "s3:GetObject":
        bucket, _, key = asked.resource.rpartition(":")[2].partition("/")
        there = s3_backends[ACCOUNT]["aws"]
        if bucket in there.buckets and there.get_object(bucket, key) is None:
            yield Asked(asked.role, "s3:ListBucket", f"arn:aws:s3:::{bucket}")


def _function(path: str) -> str:
    """Return what a request invokes; other requests to Lambda are for an account's own keys."""
    found = _INVOKED.search(path)
    return found[1] if found else "*"


def _secret(service: str, region: str, given: Mapping[str, Any]) -> str:
    """Return a parameter's ARN, or a secret's, which ends with six characters that AWS draws."""
    name = given.get("SecretId") or given.get("Name") or given.get("Path")
    if name is None:
        return "*"
    if service == "ssm":
        return f"arn:aws:ssm:{region}:{ACCOUNT}:parameter{name}"
    found = secretsmanager_backends[ACCOUNT][region].secrets.get(name)
    return found.arn if found else f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{name}-new000"


def _role_of(key: str) -> str:
    for each in sts_backends[ACCOUNT]["aws"].assumed_roles:
        if each.access_key_id == key:
            return str(each.role_arn.rpartition("/")[2])
    return ""


def _statements(role: str) -> Iterable[Mapping[str, Any]]:
    iam = iam_backends[ACCOUNT]["aws"]
    for name in iam.list_role_policies(role):
        document = iam.get_role_policy(role, name)[1]
        yield from json.loads(document)["Statement"]


def _allowed(statement: Mapping[str, Any], asked: Asked) -> bool:
    if statement.keys() - _KNOWN or statement["Effect"] != "Allow":
        return False
    [(test, keys)] = statement.get("Condition", {PARTITIONS: {LEADING: ["*"]}}).items()
    if test not in (PARTITIONS, OTHERS) or keys.keys() != {LEADING}:
        return False
    return (
        _any(asked.action, statement["Action"])
        and _any(asked.resource, statement["Resource"])
        and _any(asked.partition, keys[LEADING]) == (test == PARTITIONS)
    )


def _any(text: str, patterns: str | list[str]) -> bool:
    return any(fnmatchcase(text, each) for each in _all(patterns))


def _all(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
