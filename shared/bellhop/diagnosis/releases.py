"""Releases of Helm charts, and their origins, for people."""

from __future__ import annotations

import re
from contextlib import suppress

from bellhop.core.gvk import Identity
from bellhop.core.identity import profile_shown
from bellhop.errors import MissingError
from bellhop.installation import Installation
from bellhop.state.chart import Chart, release_key
from bellhop.state.deployment import Held, Owner

_LOGIN = re.compile(r"(?<=://)[^/?#]*@")


def redact_url(repository: str) -> str:
    """Return the URL of a repository, or its template, without credentials and query."""
    return _LOGIN.sub("", repository).partition("?")[0]


def describe_origin(held: Held) -> str:
    """Return the release that an object is part of, or the chart of a release; else nothing."""
    if held.part_of:
        return f"part of release {held.part_of}"
    known = held.release
    if known is None or not known.chart:
        return "removed, as asked" if known and known.removed else ""
    return f"chart {known.chart} {known.version} of {redact_url(known.repository)}"


def find_deployer(here: Installation, cluster: str, key: Identity) -> tuple[str, str]:
    """Return the profile that owns an object, and a sentence on it; else nothing."""
    owner = here.records.owners.get(cluster, key)
    kept = here.records.inventories.get(cluster, owner.value.profile) if owner else None
    held = kept.value.held.get(key) if kept else None
    if owner is None or kept is None or held is None:
        return "", ""
    profile = profile_shown(_read_title(here, owner.value) or owner.value.profile)
    stage = _describe_stage(here, owner.value)
    if not held.part_of:
        return profile, f"{profile} deploys it{stage}"
    release = kept.value.held.get(release_key(*held.part_of.split("/")))
    chart = f", {describe_origin(release)}" if release else ""
    return profile, f"it is {describe_origin(held)}{chart}, which {profile} deploys{stage}"


def _describe_stage(here: Installation, owner: Owner) -> str:
    """Return a clause on the stage of a promotion that a profile is; empty for any other."""
    from bellhop.api.stage_profile import StageProfile  # noqa: PLC0415 - it loads the models

    declared = here.catalogs.known().profiles.get(owner.profile)
    head = here.records.profiles.head(owner.trigger, owner.source, owner.profile)
    if not isinstance(declared, StageProfile) or head is None:
        return ""
    place = f"stage '{declared.stage.stage}' of ClusterPromotion '{declared.stage.promotion}'"
    return f", as release {head.value.rollout.release} of {place}"


def _read_title(here: Installation, owner: Owner) -> str:
    with suppress(MissingError):
        head = here.records.profiles.head(owner.trigger, owner.source, owner.profile)
        return head.value.title if head else ""
    return ""


def describe_chart(chart: Chart) -> tuple[str, str]:
    """Return the names of a chart, and of the release that a profile deploys of it."""
    named = " ".join(filter(None, ("chart", chart.chart, chart.version)))
    release = f"release {chart.namespace}/{chart.release}"
    return (
        f"{named} of {redact_url(chart.repository)}",
        f"no {release}" if chart.unwanted else release,
    )
