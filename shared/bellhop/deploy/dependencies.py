"""What templates read in `mgmt/mgmt` is followed: who read an object is told when it changes.

    noted ─► its kind rings ─► read ─► applied        a ring ─► who is noted ─► applied again
               └─► once it does, who is noted reads again

It is noted before it is read: who changes it after that finds who read it. What was changed before
its kind rang, nobody told of: so all that read the kind do so again once it does. What was noted
is settled last; whoever dies before that does all of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from bellhop.catalog.catalog import cluster_object
from bellhop.core.gvk import GVK, Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.records.dependencies import Kind
from bellhop.deploy.subscribers import application
from bellhop.errors import MissingError
from bellhop.gotemplate import Limits
from bellhop.profiles.names import NameReservations
from bellhop.rendering.references import elsewhere, is_elsewhere, may_be_elsewhere
from bellhop.settings import Settings
from bellhop.state.dependency_index import TemplateDependency
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Publisher, Resync
from bellhop.state.record import MOST_FOLLOWED, Cluster, Reading
from bellhop.state.records import Records

_PART = 6
"""Of the time for which a worker may be silent so little is for noting what is read."""


class TemplateDependencies:
    """Keeps who reads what in `mgmt/mgmt` as it has to be."""

    def __init__(self, records: Records, publisher: Publisher, settings: Settings) -> None:
        self._records = records
        self._publisher = publisher
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        self._patience = settings.visibility / _PART
        self._titles = NameReservations(records, publisher)

    # Who reads ----------------------------------------------------------------------------------

    def note(self, work: ReconcileContext) -> None:
        """Note what is read from now on, and have it ring; strike out what is read no more.

        A profile that has read nothing there, and reads nothing, costs no look.

        Raises:
            StaleError: another worker notes it, or strikes it out.
        """
        work.reads_elsewhere = any(map(is_elsewhere, work.profile.reads))
        reading = work.wanted and any(map(may_be_elsewhere, work.profile.reads))
        if not reading and not (work.outcome and work.outcome.value.reads):
            return
        profile, cluster = work.profile, work.cluster.key
        reader = TemplateDependency(profile.trigger, profile.cluster, profile.name, cluster)
        known = self._records.readers.read_for(cluster, profile.name)
        settled = {key for key, each in known.items() if each.settled}
        wanted: set[Identity] = set()
        fresh: dict[Identity, str] = {}
        until = self._records.clock.now() + self._patience
        for each in _rendered_for(work) if reading else ():
            if self._records.clock.now() > until:
                # Sweeps follow the rest; nobody knows what of the known is among it.
                wanted |= known.keys()
                work.reads_elsewhere = True
                break
            root = cluster_object(each)
            found = elsewhere(profile.reads, root, self._limits, self._is_declared)
            for key in sorted(found - settled - fresh.keys()):
                fresh[key] = self._records.readers.note(key, reader)
            wanted |= found
        work.reads_elsewhere = work.reads_elsewhere or bool(wanted)
        self._settle(fresh, reader)
        for key in sorted(known.keys() - wanted):
            self._records.readers.delete(key, reader)

    def _is_declared(self, reading: Reading) -> bool:
        """Say whether a ConfigMap or Secret is read from the records, lost contents included."""
        try:
            return self._titles.holder(reading.kind, reading.namespace, reading.name) is not None
        except MissingError:
            return True

    def forget(self, profile: str, cluster: str) -> None:
        """Strike out all that a profile reads for a cluster."""
        for key, reader in self._records.readers.read_for(cluster, profile).items():
            self._records.readers.delete(key, reader)

    def _settle(self, fresh: Mapping[Identity, str], reader: TemplateDependency) -> None:
        """See to it that what is read from now on rings, and note that this was done."""
        if not fresh:
            return
        # Of one that is not registered yet the first sweep sees to it.
        gate = self._records.gates.known(MANAGEMENT)
        rings = {each.gvk[::2] for each in gate.value.followed} if gate else set()
        kinds = {(key.group, key.kind) for key in fresh}
        # Of many that come at once the first asks: it is also the first that a sweep looks at.
        if gate and any(self._records.readers.first(kind) == reader for kind in kinds - rings):
            self._publisher.publish([Resync(MANAGEMENT)])
        for key, token in fresh.items():
            self._records.readers.settle(key, reader, expect=token)

    # What rings ---------------------------------------------------------------------------------

    def kinds(self) -> list[Kind]:
        """Return the kinds of which anything is read, and strike out who reads none any more.

        No more than a cluster may be asked to ring for: sweeps follow the others.
        """
        return list(islice(filter(self._is_read, self._records.readers.kinds()), MOST_FOLLOWED))

    def tell(self, kinds: Iterable[Kind]) -> None:
        """Have all that read anything of some kinds read it again."""
        for kind in kinds:
            told = (application(reader) for _, reader in self._records.readers.of_kind(kind))
            self._publisher.publish(told)

    def _is_read(self, kind: Kind) -> bool:
        """Say whether anybody reads a kind; one who does is enough."""
        for key, reader in self._records.readers.of_kind(kind):
            if self._reads(reader, kind):
                return True
            self._records.readers.delete(key, reader)
            if self._reads(reader, kind):
                # It came back before it was struck out, and may have found itself noted.
                self._publisher.publish([application(reader)])
        return False

    def _reads(self, reader: TemplateDependency, kind: Kind) -> bool:
        try:
            kept = self._records.profiles.get(reader.trigger, reader.source, reader.profile)
        except MissingError:
            # What it reads is lost with its contents.
            return True
        if kept is None or reader.destination not in kept.value.destinations:
            return False
        found = filter(may_be_elsewhere, kept.value.reads)
        return any(GVK.parse(each.api_version, each.kind)[::2] == kind for each in found)


def _rendered_for(work: ReconcileContext) -> Iterator[Cluster]:
    """Yield the clusters for which templates are rendered: the one they go to, or its guests."""
    if not work.only_hosts:
        yield work.cluster
    yield from work.guests
