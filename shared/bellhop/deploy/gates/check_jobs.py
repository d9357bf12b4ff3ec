"""Runs the Jobs of checks in their clusters, and deletes them again.

    none of its name ─► applied ─► waits ─► Complete ─► passes ─► deleted once all have passed
                                     └────► Failed ─► does not pass until its TTL has it deleted

The inputs of a profile name its Job: it runs once, however often the check is repeated, and another
one runs for the next revision. No record has it: a worker that dies is followed by one that reads
it again. By its own spec each Job ends, and is deleted, even if no worker comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from bellhop.catalog.catalog import cluster_object
from bellhop.core.gvk import ObjectKey
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import InvalidError, PermanentError, UnauthorizedError
from bellhop.gotemplate import Limits
from bellhop.ports.kube import Kube, Manifest
from bellhop.rendering import check_jobs, secrecy
from bellhop.rendering.allow_limits import refuse_placed
from bellhop.rendering.check_jobs import JOB
from bellhop.rendering.deploy_contents import deploy_time
from bellhop.rendering.templates import RenderContext
from bellhop.settings import Settings
from bellhop.state.check import Check
from bellhop.state.content import Content


class CheckJobs:
    """Runs Jobs with the permissions of the profile's account."""

    def __init__(self, settings: Settings) -> None:
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def objection(self, kube: Kube, check: Check, context: ReconcileContext) -> str:
        """Run a check's Job if it does not run yet, and say why it is no success.

        A Job of an earlier revision is deleted: what it would say is about something else.
        """
        try:
            made = self._contents(check, context)
            job = check_jobs.job_of(check, context.profile, context.made_of, made)
            refuse_placed(context.profile, [ObjectKey.of(job)])
            secret = any(each.secret for each in made)
            with secrecy.withhold_quotes(
                f"cannot run Job '{job['metadata']['name']}'", secret=secret
            ):
                return check_jobs.objection(self._run(kube, job, check, context))
        except UnauthorizedError:
            raise
        except PermanentError as error:
            return str(error)

    def tidy(self, kube: Kube, context: ReconcileContext) -> None:
        """Delete all Jobs of a profile's checks."""
        for namespace in sorted(self._namespaces(context)):
            for each in _listed(kube, namespace, check_jobs.labels(context.profile)).values():
                _remove(kube, each)

    def _run(self, kube: Kube, job: Manifest, check: Check, context: ReconcileContext) -> Manifest:
        """Return a Job as it is there, after applying it if it was not."""
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        found = _listed(kube, namespace, check_jobs.labels(context.profile, check))
        there = found.pop(name, None)
        for earlier in found.values():
            _remove(kube, earlier)
        return there or kube.apply(job)

    def _contents(self, check: Check, context: ReconcileContext) -> list[Content]:
        """Return what holds a check's Job as the cluster has it.

        Raises:
            PermanentError: it cannot be had.
        """
        assert check.job is not None
        held = context.profile.jobs.get(check.job.ref)
        if held is None:
            raise InvalidError(context.profile.error or f"{check.job.ref} was not read yet")
        there = RenderContext(cluster_object(context.cluster), self._limits)
        return [deploy_time(each, there) for each in held]

    def _namespaces(self, context: ReconcileContext) -> set[str]:
        """Return where the Jobs of a profile are, of which those that cannot be had are none."""
        found = set()
        for check in context.profile.checks:
            with suppress(PermanentError):
                if check.job:
                    made = self._contents(check, context)
                    job = check_jobs.job_of(check, context.profile, context.made_of, made)
                    found.add(job["metadata"]["namespace"])
        return found


def _listed(kube: Kube, namespace: str, labels: Mapping[str, str]) -> dict[str, Manifest]:
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    found = kube.list(JOB, namespace=namespace, labels=selector)
    return {each["metadata"]["name"]: each for each in found}


def _remove(kube: Kube, job: Manifest) -> None:
    metadata = job["metadata"]
    kube.remove(JOB, metadata["namespace"], metadata["name"], uid=metadata.get("uid", ""))
