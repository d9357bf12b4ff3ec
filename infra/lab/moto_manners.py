"""What moto lacks for Terraform: answers that AWS gives and its provider waits for, or compares.

Each is one of moto's functions put right, for the version that pyproject.toml pins. Where moto does
something that AWS does not, such as to hand a message to a function by itself, it is taken away.
"""

from __future__ import annotations

import json
from typing import Any

from moto.awslambda import models as functions
from moto.s3 import models as buckets
from moto.sqs import models as queues

_Queue: Any = queues.Queue
_Bucket: Any = buckets.FakeBucket
_Marker: Any = buckets.FakeDeleteMarker
_Functions: Any = functions.LambdaBackend


def teach() -> None:
    """Put moto right, once and for this process."""
    _write_redrive_as_aws_does()
    _deliver_nothing_by_itself()
    _delete_markers()
    _take_loopback_for_encrypted()


def _write_redrive_as_aws_does() -> None:
    """AWS answers with compact JSON, and moto with blanks, which are a change for Terraform."""
    told = _Queue.attributes.fget

    def attributes(self: Any) -> dict[str, Any]:
        found: dict[str, Any] = told(self)
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
        for queue in queues.sqs_backends[self.account_id][self.region_name].queues.values():
            queue.lambda_event_source_mappings.clear()
        return mapping

    _Functions.create_event_source_mapping = create


def _delete_markers() -> None:
    """A bucket with versions cannot be emptied without."""

    def dispose(_self: Any, *, garbage: bool = False) -> None:
        del garbage

    _Marker.dispose = dispose


def _take_loopback_for_encrypted() -> None:
    """Moto reads no conditions: what is denied without TLS alone would be denied to everybody."""
    judge = _Bucket.get_permission

    def get_permission(self: Any, action: str, resource: str) -> Any:
        whole = self.policy
        if whole is None:
            return judge(self, action, resource)
        document = json.loads(whole)
        document["Statement"] = [
            each
            for each in document["Statement"]
            if each.get("Condition") != {"Bool": {"aws:SecureTransport": "false"}}
        ]
        self.policy = json.dumps(document).encode() if document["Statement"] else None
        try:
            return judge(self, action, resource)
        finally:
            self.policy = whole

    _Bucket.get_permission = get_permission
