"""What AWS takes for what was counted. Prices are typed in by hand: change them here."""

from __future__ import annotations

from functools import partial

from bellhop.runtime.aws.metrics import UNITS
from tests.benchmarks.clouds.bill import (
    HOURS,
    IDLE_PROMOTION,
    MILLION,
    RESYNCS,
    TICKS,
    Count,
    Counts,
    Price,
    configuration,
    whole,
)
from tests.benchmarks.clouds.module import AWS

WRITE = Price("DynamoDB, a write of up to 1 KB", 0.625, "million", MILLION)
READ = Price("DynamoDB, a consistent read of up to 4 KB", 0.125, "million", MILLION)
QUEUE = Price("SQS, a request of a standard queue", 0.40, "million", MILLION)
FAIR = Price("SQS, more for a request with a message group", 0.10, "million", MILLION)
INVOCATION = Price("Lambda, an invocation", 0.20, "million", MILLION)
SECOND = {
    "arm64": Price("Lambda, a GB-second on arm64", 13.3334, "million", MILLION),
    "x86_64": Price("Lambda, a GB-second on x86_64", 16.6667, "million", MILLION),
}
REQUEST = Price("API Gateway, a request of an HTTP API", 1.0, "million", MILLION)
SECRET = Price("Secrets Manager, a secret", 0.40, "month")
SECRET_READ = Price("Secrets Manager, a request", 5.0, "million", MILLION)
PARAMETER = Price("Parameter Store, a parameter of 4 to 8 KB", 0.05, "month")
KEY = Price("KMS, a key", 1.0, "month")
KEY_USE = Price("KMS, a request", 3.0, "million", MILLION)
BLOB_READ = Price("S3, a read", 0.40, "million", MILLION)
BLOB_WRITE = Price("S3, a write", 5.0, "million", MILLION)
LOGS = Price("CloudWatch Logs, a GB taken", 0.50, "GB")
TICK = Price("EventBridge Scheduler, an invocation", 1.0, "million", MILLION)
ALARM = Price("CloudWatch, a metric that an alarm reads", 0.10, "month")
METRIC = Price("CloudWatch, a metric of Bellhop's own", 0.30, "month")
DASHBOARD = Price("CloudWatch, a dashboard", 3.0, "month")
NAT = Price("VPC, a NAT gateway, beside $0.045 a GB", 0.045, "hour")
ENDPOINT = Price("VPC, an interface endpoint in a zone, beside $0.01 a GB", 0.01, "hour")
CONTROL = Price("EKS, a control plane", 0.10, "hour")
NODE = Price("EC2, a t3.medium of 2 CPUs and 4 GiB", 0.0416, "hour")
DISK = Price("EBS, a GB of gp3", 0.08, "month")

WHOLE = 1769
"""Megabytes with which a function has a whole processor; with fewer it has a share."""
TAKES = {"dynamodb": 6, "sqs": 10, "secretsmanager": 25, "s3": 25}
"""Milliseconds that a request is waited for, assumed."""

ACCESS_LINE = 350
"""Bytes of a line of the API's access log, one for each request."""

KEY_LASTS = HOURS * 12
"""DynamoDB asks KMS for the table's key every five minutes for each role that is at work."""

ZONES = 2
"""Of a network."""

LINE = 600
"""Bytes of a line of the log; an event has one for each step, and one for each destination."""

POLLERS = 5
"""Of each queue, as AWS begins with: each asks every twenty seconds where nothing comes."""
POLLS = HOURS * 3600 / 20
ALARMS = AWS.alarms


class AwsBill:
    """AWS' prices."""

    name = "AWS"
    priced = "US East (N. Virginia), on demand, 2026"
    prices = (
        *(WRITE, READ, QUEUE, FAIR, REQUEST, INVOCATION, *SECOND.values(), SECRET, SECRET_READ),
        PARAMETER,
        *(KEY, KEY_USE, BLOB_READ, BLOB_WRITE, LOGS, TICK, ALARM, METRIC, DASHBOARD, NAT, ENDPOINT),
        *(CONTROL, NODE, DISK),
    )

    def columns(self, count: Count) -> dict[str, str]:
        """Return the requests, counted."""
        return {
            "Reads": whole(count.by("dynamodb", "GetItem")),
            "Queries": whole(count.by("dynamodb", "Query")),
            "Writes": whole(count.by("dynamodb", "PutItem", "DeleteItem")),
            "Units read / written": f"{count.units['read']:,.0f} / {count.units['written']:,.0f}",
            "SQS": f"{whole(count.by('sqs'))} + {whole(2 * count.batches)}",
            "Secrets": whole(count.by("secretsmanager")),
            "Blobs": whole(count.by("s3")),
            "Invocations": whole(count.invocations),
        }

    def costs(self, count: Count) -> dict[str, float]:
        """Return what one costs, by service, in USD."""
        secrets = count.by("secretsmanager")
        # Each batch is received and deleted with a request.
        queue = count.by("sqs") + 2 * count.batches
        requests = 1 if "ingest" in count.stages else 0
        return {
            "DynamoDB": WRITE.of(count.units["written"]) + READ.of(count.units["read"]),
            "SQS": QUEUE.of(queue) + FAIR.of(queue),
            "API Gateway": REQUEST.of(requests),
            "Lambda": INVOCATION.of(count.invocations)
            + sum(map(partial(_works, count), count.stages)),
            "Secrets Manager, KMS": SECRET_READ.of(secrets) + KEY_USE.of(secrets),
            "S3": BLOB_READ.of(count.by("s3", "GET")) + BLOB_WRITE.of(count.by("s3", "PUT")),
            "Logs": LOGS.of(
                ((count.invocations + count.applied + 3) * LINE + requests * ACCESS_LINE) / 1e9
            ),
        }

    def house(self, counts: Counts) -> dict[str, float]:
        """Return what an installation costs a month in which nothing happens."""
        polls = POLLERS * AWS.queues * POLLS
        stages = len(AWS.memory)
        tick = sum(self.costs(counts["a tick"]).values()) + TICK.of(1)
        keeping = sum(self.costs(counts["an hour's house-keeping"]).values())
        return {
            f"looking into {AWS.queues} queues, {POLLERS} pollers each": QUEUE.of(polls),
            "a tick each minute": tick * TICKS,
            "house-keeping each hour": keeping * HOURS,
            "the KMS key, and the keys of records": KEY.of(1) + SECRET.of(2),
            f"the table's key for {stages} roles": KEY_USE.of(KEY_LASTS * stages),
            f"{len(ALARMS)} alarms, which read {sum(ALARMS.values())} metrics": ALARM.of(
                sum(ALARMS.values())
            ),
            "a dashboard": DASHBOARD.of(1),
        }

    def cluster(self, counts: Counts) -> dict[str, float]:
        """Return what each of its clusters costs."""
        return {
            "its resync, every five minutes": sum(self.costs(counts["a resync"]).values())
            * RESYNCS,
            "its kubeconfig": SECRET.of(1),
        }

    def choices(self) -> dict[str, float]:
        """Return what each cluster costs by choice, in place of a part of it."""
        return {
            "or its kubeconfig in Parameter Store, up to 4 KB": 0.0,
            "or its kubeconfig in Parameter Store, up to 8 KB": PARAMETER.of(1),
        }

    def extras(self, counts: Counts) -> dict[str, float]:
        """Return what costs more where something happens, or a network is named."""
        endpoints = ", ".join(AWS.endpoints)
        many = len(AWS.endpoints) * ZONES
        return {
            **configuration(self.costs, counts),
            **IDLE_PROMOTION,
            f"where events happen: {len(UNITS)} metrics": METRIC.of(len(UNITS)),
            "with a `network`: a NAT gateway in one zone": NAT.of(HOURS),
            f"or endpoints in {ZONES} zones: {endpoints}": ENDPOINT.of(HOURS * many),
        }

    def management(self) -> float:
        """Return what a small management cluster costs a month."""
        return CONTROL.of(HOURS) + 2 * NODE.of(HOURS) + 2 * DISK.of(20)


def _works(count: Count, stage: str) -> float:
    """Return what the time of a stage's function costs, by its memory and its architecture."""
    megabytes = AWS.memory[stage]
    processor = count.stages[stage]["processor"] / min(1, megabytes / WHOLE)
    seconds = (count.waits(stage, TAKES) + processor) / 1000
    return SECOND[AWS.default("architecture")].of(seconds * megabytes / 1024)
