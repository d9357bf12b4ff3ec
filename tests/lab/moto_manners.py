"""What moto lacks for Terraform: answers that AWS gives and its provider waits for, or compares.

Each is one of moto's functions put right, for the version that pyproject.toml pins. Where moto does
something that AWS does not, such as to hand a message to a function by itself, it is taken away.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any

from moto.apigatewayv2 import models as apis
from moto.awslambda import models as functions
from moto.core import responses
from moto.core.utils import unix_time_millis
from moto.dynamodb.models import table as tables
from moto.eks import models as eks
from moto.s3 import models as buckets
from moto.secretsmanager import models as secrets
from moto.secretsmanager.exceptions import InvalidRequestException
from moto.sqs import models as queues

from bellhop.adapters.local.certificates import make_authority
from tests.lab import moto_queries

_Queue: Any = queues.Queue
_Bucket: Any = buckets.FakeBucket
_Marker: Any = buckets.FakeDeleteMarker
_Functions: Any = functions.LambdaBackend
_Secrets: Any = secrets.SecretsManagerBackend
_RestoredTable: Any = tables.RestoredPITTable
_EksCluster: Any = eks.Cluster
_DomainName: Any = apis.DomainName
_Responses: Any = responses


def teach() -> None:
    """Put moto right, once and for this process."""
    # It would look all methods of a service up for each request.
    _Responses.method_names_from_class = cache(_Responses.method_names_from_class)
    _write_redrive_as_aws_does()
    _deliver_nothing_by_itself()
    _delete_markers()
    _take_loopback_for_encrypted()
    _keep_eks_on_loopback()
    _hold_what_is_being_deleted()
    _finish_domains()
    _restore_encrypted()
    moto_queries.teach()


@cache
def teach_rest_apis() -> None:
    """Have REST APIs keep the types of their bodies, and answer with a policy as AWS does.

    That is a string in JSON without its marks.
    A server that is asked for none of these APIs does not load this part of moto.
    """
    api: Any = import_module("moto.apigateway.models").RestAPI
    described = api.to_dict

    def to_dict(self: Any) -> dict[str, Any]:
        found: dict[str, Any] = described(self)
        if found["policy"]:
            found["policy"] = json.dumps(found["policy"])[1:-1]
        return found

    api.to_dict = to_dict
    responses: Any = import_module("moto.apigateway.responses").APIGatewayResponse
    create = responses.create_rest_api

    def create_rest_api(self: Any) -> Any:
        status, headers, body = create(self)
        if made := self.backend.apis.get(json.loads(body).get("id")):
            made.binaryMediaTypes = self._get_param("binaryMediaTypes") or []
            body = json.dumps(made.to_dict())
        return status, headers, body

    responses.create_rest_api = create_rest_api


def _restore_encrypted() -> None:
    """Have a restored table keep the key and billing mode of the former, and no other setting."""
    parse = _RestoredTable._parse_params_from_table

    def parse_params(self: Any, source: Any) -> dict[str, Any]:
        kept = {"sse_specification": source.sse_specification, "billing_mode": source.billing_mode}
        return {**parse(self, source), **kept}

    _RestoredTable._parse_params_from_table = parse_params


def pass_visibility(longer: float) -> None:
    """Have time pass for messages that are hidden for longer than so many seconds from now on."""
    soon = unix_time_millis() + longer * 1000
    for message in _messages():
        if message.visible_at > soon:
            message.visible_at = 0.0


def pass_time(seconds: float) -> None:
    """Have so much time pass for all messages that are hidden or delayed."""
    for message in _messages():
        message.visible_at -= seconds * 1000
        message.delayed_until -= seconds * 1000


def _messages() -> Iterator[Any]:
    for backends in queues.sqs_backends.values():
        for backend in backends.values():
            for queue in backend.queues.values():
                yield from queue._messages


def has_messages(url: str) -> bool:
    """Say whether to ask for messages: if there are some, or no such queue, which moto is to say.

    Who waits asks again and again, and each time moto itself would take a hundred times as long.
    """
    found = _named(url)
    return not found or any(queue.messages for queue in found)


def is_bare(url: str) -> bool:
    """Say whether a queue has no message at all, not even one that is hidden."""
    return not any(queue._messages for queue in _named(url))


def _named(url: str) -> list[Any]:
    """Return only the queue of a URL; others may make queues meanwhile."""
    name = url.rpartition("/")[2]
    accounts = list(queues.sqs_backends.values())
    regions = [each for account in accounts for each in list(account.values())]
    return [queue for each in regions if (queue := each.queues.get(name))]


def _write_redrive_as_aws_does() -> None:
    """AWS answers with compact JSON, and moto with blanks, which are a change for Terraform."""
    read_attributes = _Queue.attributes.fget

    def attributes(self: Any) -> dict[str, Any]:
        found: dict[str, Any] = read_attributes(self)
        if self.redrive_policy:
            found["RedrivePolicy"] = json.dumps(self.redrive_policy, separators=(",", ":"))
        return found

    _Queue.attributes = property(attributes)


def _deliver_nothing_by_itself() -> None:
    """Moto's mappings take one message at a time, and count attempts that nobody made.

    They name a version where AWS leaves the alias that they were made with.
    """
    make = _Functions.create_event_source_mapping

    def create(self: Any, spec: dict[str, Any]) -> Any:
        mapping = make(self, spec)
        mapping.function_arn = spec["FunctionName"]
        # A copy: Terraform makes queues meanwhile.
        for queue in list(queues.sqs_backends[self.account_id][self.region_name].queues.values()):
            queue.lambda_event_source_mappings.clear()
        return mapping

    _Functions.create_event_source_mapping = create


def _delete_markers() -> None:
    """A bucket with versions cannot be emptied without."""

    def dispose(_self: Any, *, garbage: bool = False) -> None:
        del garbage

    _Marker.dispose = dispose


def _take_loopback_for_encrypted() -> None:
    """Moto reads no conditions: what is denied only without TLS would be denied to everybody."""
    original = _Bucket.get_permission

    def get_permission(self: Any, action: str, resource: str) -> Any:
        whole = self.policy
        if whole is None:
            return original(self, action, resource)
        document = json.loads(whole)
        document["Statement"] = [
            each
            for each in document["Statement"]
            if each.get("Condition") != {"Bool": {"aws:SecureTransport": "false"}}
        ]
        self.policy = json.dumps(document).encode() if document["Statement"] else None
        try:
            return original(self, action, resource)
        finally:
            self.policy = whole

    _Bucket.get_permission = get_permission


def _keep_eks_on_loopback() -> None:
    """Moto's EKS clusters have names of AWS' and no authority; here nobody listens where they are.

    What a client does with such a cluster ends as with one that is away.
    """
    begun = datetime.now(UTC)
    authority = make_authority("eks", now=begun, validity=timedelta(days=1)).certificate_pem
    make = _EksCluster.__init__

    def init(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        self.endpoint = "https://127.0.0.1:9"
        self.certificate_authority = {"data": base64.b64encode(authority).decode()}

    _EksCluster.__init__ = init


def _hold_what_is_being_deleted() -> None:
    """Moto writes into a secret that is being deleted; AWS refuses to until it is restored."""
    put = _Secrets.put_secret_value

    def put_secret_value(self: Any, secret_id: str, **given: Any) -> Any:
        secret = self.secrets.get(secret_id)
        if secret and secret.is_deleted():
            raise InvalidRequestException("the secret is marked for deletion")
        return put(self, secret_id, **given)

    _Secrets.put_secret_value = put_secret_value


def _finish_domains() -> None:
    """AWS says when a domain is there, and where its DNS record has to lead."""
    make = _DomainName.__init__

    def init(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        self.mutual_tls_authentication = self.mutual_tls_authentication or None
        for each in self.domain_name_configurations:
            each["domainNameStatus"] = "AVAILABLE"
            each["apiGatewayDomainName"] = f"d-{self.domain_name}"
            each["hostedZoneId"] = "Z1"

    _DomainName.__init__ = init
