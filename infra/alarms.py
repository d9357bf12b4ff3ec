"""The alarms of Bellhop in all runtimes: the rules of `bellhop serve`, and both Terraform modules.

An alarm of one of the three needs a row here, or a field of a row. Tests compare the
rules in docs/examples/monitoring/alerts.yaml, `alarms.tf` of each module, and the pages with it.
"""

from __future__ import annotations

from typing import NamedTuple


class Alarm(NamedTuple):
    """An alarm by its name in the clouds, and by its rule for Prometheus; one may be empty.

    `why` says in a sentence why one of the three lacks it.
    """

    name: str
    rule: str
    why: str = ""
    aws: bool = True
    gcp: bool = True


ALARMS = (
    Alarm("dead-letters", "BellhopDeadLetters"),
    Alarm("oldest-message", "BellhopMessagesOld"),
    Alarm("oldest-pending", "BellhopTimersLate"),
    Alarm("silent", "BellhopScheduleStopped"),
    Alarm("clusters-unreachable", "BellhopClustersUnreachable"),
    Alarm("clusters-silent", "BellhopClustersSilent"),
    Alarm("credentials-expire", "BellhopCredentialsExpire"),
    Alarm("steps-fail", "BellhopStepsFail"),
    Alarm("misses", "BellhopEventsMissed"),
    Alarm("deletions-held", "BellhopDeletionsHeld"),
    Alarm("promotions-stalled", "BellhopPromotionsStalled"),
    Alarm("requests-refused", "BellhopRequestsRefused"),
    Alarm("ingest-errors", "BellhopIngestErrors"),
    Alarm("slow", "BellhopSlow"),
    Alarm("errors", "", "`bellhop serve` restarts as a whole, which `BellhopDown` reports."),
    Alarm("throttles", "", "`bellhop serve` has no number of instances."),
    Alarm("recursion", "", "Only AWS Lambda refuses messages that it takes for a loop.", gcp=False),
    Alarm("", "BellhopDown", "No process runs in a cloud; `silent` reports a schedule that stops."),
    Alarm("", "BellhopDiskFull", "The stores of the clouds have no disk that fills up."),
    Alarm("", "BellhopSaturated", "Functions get more instances; `throttles` reports their limit."),
    Alarm("", "BellhopBackupOld", "The clouds keep backups by themselves."),
    Alarm(
        "", "BellhopMetricsIncomplete", "A tick that cannot count fails, which `errors` reports."
    ),
)
