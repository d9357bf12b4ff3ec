"""Releases of Helm charts, as people read of them."""

from __future__ import annotations

import re
from contextlib import suppress

from bellhop.core.generated_names import profile_shown
from bellhop.core.gvk import Identity
from bellhop.errors import MissingError
from bellhop.installation.installation import Installation
from bellhop.state.chart import Chart, release_key
from bellhop.state.record import Held, Owner

_LOGIN = re.compile(r"(?<=://)[^/?#]*@")


def public(repository: str) -> str:
    """Return a repository's URL, or its template, without what may be secret in it."""
    return _LOGIN.sub("", repository).partition("?")[0]


def origin(held: Held) -> str:
    """Say which release an object is part of, or which chart a release is of; else nothing."""
    if held.part_of:
        return f"part of release {held.part_of}"
    known = held.release
    if known is None or not known.chart:
        return "removed, as asked" if known and known.removed else ""
    return f"chart {known.chart} {known.version} of {public(known.repository)}"


def deployed_by(here: Installation, cluster: str, key: Identity) -> tuple[str, str]:
    """Return the profile that owns an object of a cluster, and a sentence on it; else nothing."""
    owner = here.records.owners.get(cluster, key)
    kept = here.records.inventories.get(cluster, owner.value.profile) if owner else None
    held = kept.value.held.get(key) if kept else None
    if owner is None or kept is None or held is None:
        return "", ""
    profile = profile_shown(_title(here, owner.value) or owner.value.profile)
    if not held.part_of:
        return profile, f"{profile} deploys it"
    release = kept.value.held.get(release_key(*held.part_of.split("/")))
    chart = f", {origin(release)}" if release else ""
    return profile, f"it is {origin(held)}{chart}, which {profile} deploys"


def _title(here: Installation, owner: Owner) -> str:
    """Return what its trigger calls a profile; empty where it is called by our name."""
    with suppress(MissingError):
        head = here.records.profiles.head(owner.trigger, owner.source, owner.profile)
        return head.value.title if head else ""
    return ""


def charted(chart: Chart) -> tuple[str, str]:
    """Name a chart, and the release that a profile wants of it, as they are written."""
    named = " ".join(filter(None, ("chart", chart.chart, chart.version)))
    release = f"release {chart.namespace}/{chart.release}"
    return f"{named} of {public(chart.repository)}", f"no {release}" if chart.unwanted else release
