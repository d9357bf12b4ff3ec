"""All that an operator may turn, in one place; entry points read them, nothing else does.

Each setting is an environment variable `BELLHOP_` + its name in capitals; durations are in seconds.
The text below each is its row in docs/reference/settings.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import fields

from bellhop.core.address_policy import listed
from bellhop.errors import InvalidError

Adopting = Literal["asked", "always"]
Switch = Literal["on", "off"]


class Settings(Struct, frozen=True):
    """Defaults suit one machine and a few dozen clusters."""

    body_limit: int = 4 * 1024 * 1024
    """Largest request that ingest reads; an API server sends 3 MiB at most."""

    sweep_bytes: int = 512 * 1024**2
    """How large the list of one kind in one cluster may be as JSON; a larger one is not read on."""

    sweep_interval: timedelta = timedelta(minutes=5)
    """Time between two resyncs of a cluster, which find the changes that no event reported."""

    attempts: int = 12
    """How often a message is tried before it becomes a dead letter."""

    retry_first: timedelta = timedelta(seconds=1)
    """Pause before the second try; each further pause is twice as long."""

    retry_longest: timedelta = timedelta(seconds=60)
    """Longest pause between two tries of a message, and between two probes of a cluster that does
    not answer."""

    retry_ceiling: timedelta = timedelta(minutes=15)
    """Longest pause between two tries to apply a profile to a cluster that fails."""

    visibility: timedelta = timedelta(seconds=120)
    """After how long a message in the hands of a silent worker is given to another."""

    turn: timedelta = timedelta(seconds=20)
    """How long one profile with many objects is applied to a cluster before others have a turn."""

    script_seconds: float = 1.0
    """How long one evaluation by Lua or CEL may take."""

    script_first_seconds: float = 0.05
    """How long one may take before others' objects come first; a script that does not end by then
    is run again where it delays none but its own."""

    script_memory: int = 64 * 1024 * 1024
    """How much memory one evaluation by Lua or CEL may use."""

    template_seconds: float = 5.0
    """How long rendering one entry of a ConfigMap or Secret may take, and how much processor time
    rendering a Helm chart."""

    template_output: int = 8 * 1024 * 1024
    """How much one entry may render to."""

    adopt: Adopting = "asked"
    """Whether an object that no profile made is taken over only where that is asked for (`asked`),
    or wherever a profile names it (`always`), as Sveltos does."""

    egress_allow: str = ""
    """The hosts and ranges that Bellhop may call for the charts, files and registries that profiles
    name, and for the metrics servers of their checks, such as `charts.example.com,10.8.0.0/16`, or
    `public` for all addresses that are not private; any if empty."""

    mirrors: str = "status,summaries,reports,generated"
    """The parts that are written into the cluster of the configuration, with commas between: the
    status of its objects, ClusterSummaries with ClusterConfigurations, reports, and the
    ClusterProfiles, ConfigMaps and Secrets that triggers generate. Nothing if empty."""

    report_inbox: Switch = "off"
    """Whether CloudEvents that somebody writes into an EventReport of the cluster of the
    configuration are accepted (`on`): everybody who may write one there can send events for its
    cluster."""

    forwarder_image: str = ""
    """The image of the forwarder for clusters that SveltosClusters register, such as
    `registry.example.com/bellhop-forwarder:0.1.0`. If it is empty, only resyncs find changes in
    them."""

    workers: int = 8
    """How many workers one cluster may keep busy at once with applying, and with each other work
    that calls clusters; all clusters together have 32, and 16 of each other."""

    deletion_share: float = 0.5
    """If a resync finds more than this share of a kind's objects deleted, others must confirm."""

    deletion_floor: int = 10
    """Fewer objects gone at once than this never wait."""

    deletion_agreement: int = 3
    """How many resyncs in a row must confirm such a deletion."""

    hold_share: float = 0.5
    """Share of the matches of a source in a cluster. If more of them end at once, nothing is
    withdrawn until a user releases it or resyncs agree; 0, or 1 and more, switches that off. It is
    also the share of the clusters of SveltosClusters that may be deregistered at once."""

    hold_from: int = 20
    """Objects that must match a source in a cluster before any deletion is held. For fewer add-ons
    the share does not count."""

    hold_agreement: int = 3
    """How many resyncs in a row must find held objects deleted before their add-ons are removed
    without a release; 0 is never."""

    hold_window: timedelta = timedelta(seconds=10)
    """Matches that end within this time count as one change, which is complete once none ends for
    this long."""

    revisions: int = 3
    """How many earlier revisions of each profile are kept for `bellhop rollback`; 0 keeps none."""

    ledger_days: float = 7
    """How long the lines of the event log are kept."""

    ledger_megabytes: int = 512
    """The maximum size of the event log; beyond it the oldest lines are deleted, each minute while
    `bellhop serve` notes some, else once an hour."""

    named_clusters: int = 20
    """How many clusters each alert names, in metrics and log lines: each name is a metric of its
    own. Further ones are counted; 0 names none."""


_MAY_BE_ZERO = frozenset(
    {
        "deletion_floor",
        "deletion_share",
        "hold_agreement",
        "hold_share",
        "named_clusters",
        "revisions",
    }
)
_RANGE = {True: "from zero up", False: "above zero"}


def read(environment: Mapping[str, str]) -> Settings:
    """Read the settings from environment variables.

    Raises:
        InvalidError: a value is not of its setting's type, or means nothing.
    """
    given: dict[str, Any] = {}
    for field in fields(Settings):
        name = f"BELLHOP_{field.name.upper()}"
        if name not in environment:
            continue
        if words := get_args(field.type):
            given[field.name] = _word(name, words, environment[name])
            continue
        if field.type is str:
            if field.name == "egress_allow":
                listed(environment[name])
            if field.name == "mirrors":
                for word in filter(None, environment[name].split(",")):
                    _word(name, Settings().mirrors.split(","), word)
            given[field.name] = environment[name]
            continue
        try:
            given[field.name] = _value(field.name, field.type, environment[name])
        except (OverflowError, ValueError) as error:
            raise InvalidError(
                f"cannot read the setting {name}: '{environment[name]}' is not a number"
                f" {_RANGE[field.name in _MAY_BE_ZERO]}"
            ) from error
    return Settings(**given)


def _word(name: str, words: Sequence[str], text: str) -> str:
    if text not in words:
        raise InvalidError(
            f"cannot read the setting {name}: '{text}' is not one of {', '.join(words)}"
        )
    return text


def _value(name: str, kind: Any, text: str) -> Any:
    number = float(text)
    whole = kind is not int or number == int(number)
    if not (math.isfinite(number) and whole) or number < 0:
        raise ValueError(text)
    if number == 0 and name not in _MAY_BE_ZERO:
        raise ValueError(text)
    return timedelta(seconds=number) if kind is timedelta else kind(number)
