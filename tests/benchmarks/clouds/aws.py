"""What AWS takes for what was counted. Prices are typed in by hand: change them here."""

from __future__ import annotations

from tests.benchmarks.clouds.bill import (
    HOURS,
    INBOXES,
    MILLION,
    SWEEPS,
    TICKS,
    Count,
    Counts,
    Price,
    whole,
)

WRITE = Price("DynamoDB, a write of up to 1 KB", 0.625, "million", MILLION)
READ = Price("DynamoDB, a consistent read of up to 4 KB", 0.125, "million", MILLION)
QUEUE = Price("SQS, a request of a standard queue", 0.40, "million", MILLION)
FAIR = Price("SQS, more for a request with a message group", 0.10, "million", MILLION)
INVOCATION = Price("Lambda, an invocation", 0.20, "million", MILLION)
SECOND = Price("Lambda, a GB-second on arm64", 13.3334, "million", MILLION)
REQUEST = Price("API Gateway, a request of an HTTP API", 1.0, "million", MILLION)
SECRET = Price("Secrets Manager, a secret", 0.40, "month")
SECRET_READ = Price("Secrets Manager, a request", 5.0, "million", MILLION)
KEY = Price("KMS, a key", 1.0, "month")
KEY_USE = Price("KMS, a request", 3.0, "million", MILLION)
BLOB_READ = Price("S3, a read", 0.40, "million", MILLION)
BLOB_WRITE = Price("S3, a write", 5.0, "million", MILLION)
LOGS = Price("CloudWatch Logs, a GB taken", 0.50, "GB")
TICK = Price("EventBridge Scheduler, an invocation", 1.0, "million", MILLION)
ALARM = Price("CloudWatch, an alarm", 0.10, "month")
CONTROL = Price("EKS, a control plane", 0.10, "hour")
NODE = Price("EC2, a t3.medium of 2 CPUs and 4 GiB", 0.0416, "hour")
DISK = Price("EBS, a GB of gp3", 0.08, "month")

MEMORY = 0.5
"""GB of a function, which has then so much of a processor:"""
SHARE = 512 / 1769
TAKES = {"dynamodb": 6, "sqs": 10, "secretsmanager": 25, "s3": 25}
"""Milliseconds that a request is waited for, assumed."""

LINE = 600
"""Bytes of a line of the log; an event has one for each step, and one for each destination."""

POLLERS = 5
"""Of each queue, as AWS begins with: each asks every twenty seconds where nothing comes."""
POLLS = HOURS * 3600 / 20
ALARMS = 12


class AwsBill:
    """AWS' prices."""

    name = "AWS"
    priced = "US East (N. Virginia), on demand, 2026"
    prices = (
        *(WRITE, READ, QUEUE, FAIR, REQUEST, INVOCATION, SECOND, SECRET, SECRET_READ, KEY),
        *(KEY_USE, BLOB_READ, BLOB_WRITE, LOGS, TICK, ALARM, CONTROL, NODE, DISK),
    )

    def columns(self, count: Count) -> dict[str, str]:
        """Tell what was asked for."""
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
        seconds = (count.waits(TAKES) + count.processor / SHARE) / 1000
        return {
            "DynamoDB": WRITE.of(count.units["written"]) + READ.of(count.units["read"]),
            "SQS": QUEUE.of(queue) + FAIR.of(queue),
            "API Gateway": REQUEST.of(1 if count.applied else 0),
            "Lambda": INVOCATION.of(count.invocations) + SECOND.of(seconds * MEMORY),
            "Secrets Manager, KMS": SECRET_READ.of(secrets) + KEY_USE.of(secrets),
            "S3": BLOB_READ.of(count.by("s3", "GET")) + BLOB_WRITE.of(count.by("s3", "PUT")),
            "Logs": LOGS.of((count.invocations + count.applied + 3) * LINE / 1e9),
        }

    def house(self, counts: Counts) -> dict[str, float]:
        """Return what an installation costs a month in which nothing happens."""
        polls = POLLERS * INBOXES * POLLS
        tick = sum(self.costs(counts["a tick"]).values()) + TICK.of(1)
        keeping = sum(self.costs(counts["an hour's house-keeping"]).values())
        return {
            f"looking into {INBOXES} queues, {POLLERS} pollers each": QUEUE.of(polls),
            "a tick each minute": tick * TICKS,
            "house-keeping each hour": keeping * HOURS,
            "the key, and the secret that seals": KEY.of(1) + SECRET.of(1),
            f"{ALARMS} alarms": ALARM.of(ALARMS),
        }

    def cluster(self, counts: Counts) -> dict[str, float]:
        """Return what each of its clusters costs."""
        return {
            "its sweep, every five minutes": sum(self.costs(counts["a sweep"]).values()) * SWEEPS,
            "its kubeconfig": SECRET.of(1),
        }

    def management(self) -> float:
        """Return what a small management cluster costs a month."""
        return CONTROL.of(HOURS) + 2 * NODE.of(HOURS) + 2 * DISK.of(20)
