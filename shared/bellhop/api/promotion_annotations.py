"""Annotations of a ClusterPromotion: what users ask for, and Sveltos has no field for."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Literal, get_args

from bellhop.core.names import duration_problem, share_problem

MAX_FAILURES = "bellhop.dev/max-failures"
PROGRESS_DEADLINE = "bellhop.dev/progress-deadline"
ON_FAILURE = "bellhop.dev/on-failure"
EMPTY_STAGE = "bellhop.dev/empty-stage"
LIVE_INPUTS = "bellhop.dev/live-inputs"
APPROVED = "bellhop.dev/approved"
NOTIFY = "bellhop.dev/notify"
REACHED = "bellhop.dev/reached"
"""The stage to which Sveltos has taken the first release."""

PROMOTION_ANNOTATIONS = frozenset(
    {
        *(MAX_FAILURES, PROGRESS_DEADLINE, ON_FAILURE, EMPTY_STAGE),
        *(LIVE_INPUTS, APPROVED, NOTIFY, REACHED),
    }
)
"""Those that the profiles of stages do not get."""

KUBERNETES_EVENT = "KubernetesEvent"
"""The receiver of notifications that needs no Secret."""

OnFailure = Literal["hold", "rollback"]
EmptyStage = Literal["wait", "skip"]

_RECEIVER = re.compile(r"[a-z0-9-]+/[a-z0-9.-]+")


def list_annotation_problems(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the annotations of a promotion that are invalid, with what is wrong."""
    for name, problem in (
        (MAX_FAILURES, share_problem),
        (PROGRESS_DEADLINE, duration_problem),
        (ON_FAILURE, partial(_choice_problem, get_args(OnFailure))),
        (EMPTY_STAGE, partial(_choice_problem, get_args(EmptyStage))),
        (APPROVED, _approval_problem),
        (NOTIFY, _receiver_problem),
    ):
        if name in annotations and (found := problem(annotations[name])):
            yield name, found


def _approval_problem(text: str) -> str:
    stage, _, number = text.rpartition("@")
    return "" if stage and number.isdecimal() else f"{text!r} is not STAGE@RELEASE, as in canary@7"


def _receiver_problem(text: str) -> str:
    good = text == KUBERNETES_EVENT or _RECEIVER.fullmatch(text)
    return "" if good else f"{text!r} is neither NAMESPACE/SECRET nor {KUBERNETES_EVENT}"


def _choice_problem(choices: tuple[str, ...], text: str) -> str:
    return "" if text in choices else f"{text!r} is neither {' nor '.join(map(repr, choices))}"
