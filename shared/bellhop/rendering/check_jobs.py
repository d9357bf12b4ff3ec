"""The Jobs that checks run: where they are taken from, as what they run, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bellhop.core.digest import digest
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import CHECK, CHECKED_BY
from bellhop.errors import InvalidError, MissingError
from bellhop.rendering.event_contents import contents
from bellhop.rendering.event_fields import Fields
from bellhop.rendering.inputs import Find, Ref, entries_of, missing
from bellhop.state.check import Check
from bellhop.state.content import Content
from bellhop.state.profile import Profile

JOB = GVK("batch", "v1", "Job")

KEPT_SECONDS = 600
"""Seconds that an ended Job is kept for readers of its logs, unless it has its own TTL."""

_FIELD = "jobRef"
_LONGEST_BASE = 46
"""Characters of a Job's own name: with the digest behind them they are as many as a label has."""
_LONGEST_WORDS = 256


def job_contents(
    checks: Iterable[Check], find: Find, fields: Fields | None = None
) -> dict[str, tuple[Content, ...]]:
    """Return what holds the Jobs of checks, by where it is taken from; the rest as of `contents`.

    Raises:
        PermanentError: it is not there, or cannot be read.
    """
    found = {}
    for check in checks:
        if check.job is None:
            continue
        ref = Ref(check.job.kind, check.job.namespace, check.job.name, optional=False)
        holder = find(ref)
        if holder is None:
            raise MissingError(missing(ref, _FIELD))
        entries_of(holder, _FIELD)
        found[check.job.ref] = contents([(ref, holder)], fields)
    return found


def job_of(check: Check, profile: Profile, made_of: str, made: Sequence[Content]) -> dict[str, Any]:
    """Return the Job that a check runs for one state of a profile, under a name of that state.

    Its name says for what it is, so that one Job is run, however often and by however many it is
    asked. Kubernetes ends it after its timeout, and deletes it some time after its end.

    Raises:
        InvalidError: there is no Job, or more than that.
    """
    assert check.job is not None
    manifests = [each for content in made for each in content.manifests]
    kinds = [(each.get("apiVersion"), each.get("kind")) for each in manifests]
    if kinds != [("batch/v1", "Job")] or not isinstance(manifests[0].get("spec"), Mapping):
        raise InvalidError(f"{check.job.ref} holds something else than one Job of batch/v1")
    (written,) = manifests
    metadata, spec = written["metadata"], written["spec"]
    tail = digest([made_of, profile.revision, labels(profile, check), written])[:16]
    asked = spec.get("activeDeadlineSeconds")
    ends = min(asked, check.job.seconds) if isinstance(asked, int) else check.job.seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **metadata,
            "name": f"{metadata['name'][:_LONGEST_BASE].rstrip('-.')}-{tail}",
            "namespace": metadata.get("namespace") or "default",
            "labels": {**(metadata.get("labels") or {}), **labels(profile, check)},
        },
        "spec": {
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            **spec,
            "activeDeadlineSeconds": ends,
        },
    }


def labels(profile: Profile, check: Check | None = None) -> dict[str, str]:
    """Return the labels by which the Jobs of a profile are found, or those of one check."""
    owner = {CHECKED_BY: digest([profile.trigger, profile.cluster, profile.name])[:16]}
    if check is None or check.job is None:
        return owner
    # Nobody keeps two checks from having one name.
    return {**owner, CHECK: digest([check.when, check.name, check.job.ref])[:16]}


def objection(job: Mapping[str, Any]) -> str:
    """Say in a sentence why a Job is no success yet; nothing where it is one."""
    named = f"Job '{job['metadata']['namespace']}/{job['metadata']['name']}'"
    status = job.get("status") or {}
    conditions = {
        each.get("type"): each
        for each in status.get("conditions") or ()
        if each.get("status") == "True"
    }
    if "Complete" in conditions:
        return ""
    if failed := conditions.get("Failed"):
        words = filter(None, (failed.get("reason"), failed.get("message")))
        return f"{named} failed: {': '.join(map(str, words))[:_LONGEST_WORDS]}"
    return f"{named} has not succeeded yet"
