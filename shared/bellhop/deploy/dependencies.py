"""Objects of `mgmt/mgmt` that templates read: a change publishes the profiles that read them.

    indexed ─► its kind is reported ─► read ─► applied     an event ─► dependents ─► applied again
                 └─► once it is, its dependents read again

A dependency is indexed before its object is read: a later change finds it. A change before its
kind was reported sent no event: so all dependents of a kind read again once it is reported. An
entry is settled last; if the worker dies before that, the next attempt does all of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from bellhop.catalog.catalog import cluster_object
from bellhop.core.gvk import GVK, Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.records import Kind
from bellhop.deploy.subscribers import make_application
from bellhop.errors import MissingError
from bellhop.gotemplate import Limits
from bellhop.profiles.names import NameReservations
from bellhop.rendering.references import (
    is_in_management,
    may_be_in_management,
    read_from_management,
)
from bellhop.settings import Settings
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.content import Reading
from bellhop.state.deployment import TemplateDependency
from bellhop.state.ingest_policy import MOST_FOLLOWED
from bellhop.state.messages import Publisher, Resync
from bellhop.state.records import Records

_PART = 6
"""Of the time for which a worker may be silent so little is for noting what is read."""


class TemplateDependencies:
    """The index of objects in `mgmt/mgmt` that templates of profiles read."""

    def __init__(self, records: Records, publisher: Publisher, settings: Settings) -> None:
        self._records = records
        self._publisher = publisher
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        self._patience = settings.visibility / _PART
        self._names = NameReservations(records, publisher)

    # Dependents ---------------------------------------------------------------------------------

    def note(self, context: ReconcileContext) -> None:
        """Index what is read from now on, and have it reported; delete what is read no more.

        A profile that has read nothing there, and reads nothing, costs no call.

        Raises:
            StaleError: another worker writes the index entry.
        """
        context.progress.reads_management = any(map(is_in_management, context.profile.reads))
        reading = context.is_destination and any(map(may_be_in_management, context.profile.reads))
        if not reading and not (context.status and context.status.value.reads):
            return
        profile, cluster = context.profile, context.cluster.key
        reader = TemplateDependency(profile.trigger, profile.cluster, profile.name, cluster)
        known = self._records.readers.read_for(cluster, profile.name)
        settled = {key for key, each in known.items() if each.settled}
        current: set[Identity] = set()
        fresh: dict[Identity, str] = {}
        until = self._records.clock.now() + self._patience
        for each in _rendered_for(context) if reading else ():
            if self._records.clock.now() > until:
                # Resyncs follow the rest; any of the known entries may be among it.
                current |= known.keys()
                context.progress.reads_management = True
                break
            root = cluster_object(each)
            found = read_from_management(profile.reads, root, self._limits, self._is_declared)
            for key in sorted(found - settled - fresh.keys()):
                fresh[key] = self._records.readers.note(key, reader)
            current |= found
        context.progress.reads_management = context.progress.reads_management or bool(current)
        self._subscribe(fresh, reader)
        for key in sorted(known.keys() - current):
            self._records.readers.delete(key, reader)

    def _is_declared(self, reading: Reading) -> bool:
        """Say whether a ConfigMap or Secret is read from the records, lost contents included."""
        try:
            return self._names.holder(reading.kind, reading.namespace, reading.name) is not None
        except MissingError:
            return True

    def forget(self, profile: str, cluster: str) -> None:
        """Delete all that a profile reads for a cluster from the index."""
        for key, reader in self._records.readers.read_for(cluster, profile).items():
            self._records.readers.delete(key, reader)

    def _subscribe(self, fresh: Mapping[Identity, str], reader: TemplateDependency) -> None:
        """Have what is read from now on reported, and settle the entries."""
        if not fresh:
            return
        # The first resync of a cluster that is not registered yet does it.
        gate = self._records.gates.get_or_none(MANAGEMENT)
        reported = {each.gvk[::2] for each in gate.value.followed} if gate else set()
        kinds = {(key.group, key.kind) for key in fresh}
        # Of many at once the first requests the resync, which also reads that one first.
        if gate and any(self._records.readers.first(kind) == reader for kind in kinds - reported):
            self._publisher.publish([Resync(MANAGEMENT)])
        for key, token in fresh.items():
            self._records.readers.settle(key, reader, expect=token)

    # Reported kinds -----------------------------------------------------------------------------

    def kinds(self) -> list[Kind]:
        """Return the kinds that templates read, and delete dependents that read none any more.

        At most as many as a cluster may report: resyncs follow the others.
        """
        return list(
            islice(filter(self._has_dependent, self._records.readers.kinds()), MOST_FOLLOWED)
        )

    def publish_kinds(self, kinds: Iterable[Kind]) -> None:
        """Publish all profiles that read objects of some kinds."""
        for kind in kinds:
            dependents = (
                make_application(reader) for _, reader in self._records.readers.of_kind(kind)
            )
            self._publisher.publish(dependents)

    def _has_dependent(self, kind: Kind) -> bool:
        """Say whether any profile reads a kind."""
        for key, reader in self._records.readers.of_kind(kind):
            if self._reads(reader, kind):
                return True
            self._records.readers.delete(key, reader)
            if self._reads(reader, kind):
                # It read the kind again before this, and may have found its entry.
                self._publisher.publish([make_application(reader)])
        return False

    def _reads(self, reader: TemplateDependency, kind: Kind) -> bool:
        try:
            kept = self._records.profiles.get(reader.trigger, reader.source, reader.profile)
        except MissingError:
            # Its lost contents may read the kind.
            return True
        if kept is None or reader.destination not in kept.value.destinations:
            return False
        found = filter(may_be_in_management, kept.value.reads)
        return any(GVK.parse(each.api_version, each.kind)[::2] == kind for each in found)


def _rendered_for(context: ReconcileContext) -> Iterator[Cluster]:
    """Yield the clusters for which templates are rendered: the destination, or its targets."""
    if not context.only_hosts:
        yield context.cluster
    yield from context.progress.targets
