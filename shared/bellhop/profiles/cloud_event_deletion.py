"""CloudEvents that delete what earlier ones deployed, and are then deleted themselves.

  a trigger renders an event's action to Delete ─► it makes nothing of it
  all triggers on its source do ─► it is buried ─► it is evaluated, and matches no more

Only the event that was read is buried: a newer one stays.
"""

from __future__ import annotations

from bellhop.api.kinds import EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.core.digest import same
from bellhop.errors import PermanentError
from bellhop.gotemplate import Limits
from bellhop.rendering.cloud_event_actions import Matched, divide_matches, render_action
from bellhop.rendering.observation import bury
from bellhop.state.match import Observation
from bellhop.state.messages import Evaluate, Instantiate, Publisher
from bellhop.state.records import Records


class CloudEventDeletion:
    """Leaves out, and buries, what CloudEvents say is over."""

    def __init__(self, records: Records, publisher: Publisher, limits: Limits) -> None:
        self._records = records
        self._publisher = publisher
        self._limits = limits

    def select_matches(
        self, catalog: Catalog, trigger: EventTrigger, message: Instantiate, matched: Matched
    ) -> Matched | None:
        """Return what counts for a trigger, and bury the events that are over for all.

        None says that all stays as it is: nothing counts, and some events are to change nothing.

        Raises:
            PermanentError: nobody can say what an event does for the trigger.
        """
        cluster = catalog.clusters[message.cluster]
        stands = divide_matches(trigger, cluster, matched, self._limits)
        for key, manifest in stands.over:
            seen = self._records.observations.get(message.cluster, key)
            if not seen or not same(seen.value.manifest, manifest):
                # A newer one is stored, and is about to be evaluated.
                continue
            if self._is_over(catalog, seen.value):
                self._bury(seen.value, seen.token, message)
        unchanged = stands.idle and not stands.stays and not stands.over
        return None if unchanged else stands.stays

    def _is_over(self, catalog: Catalog, event: Observation) -> bool:
        """Say whether an event takes away for all triggers on its source; no error is a yes."""
        cluster = catalog.clusters[event.cluster]
        names = catalog.triggers_on(event.cluster, event.key.namespace)
        assert event.manifest is not None
        try:
            said = {
                render_action(catalog.triggers[name], cluster, event.manifest, self._limits)
                for name in names
            }
        except PermanentError:
            return False
        return said == {"Delete"}

    def _bury(self, event: Observation, token: str, message: Instantiate) -> None:
        now = self._records.clock.now()
        tomb = bury(event.cluster, event.key, event.uid, event.resource_version, now)
        if self._records.observations.put(tomb, asked=token):
            follow = Evaluate(event.cluster, str(event.key), message.trace, message.event_at)
            self._publisher.publish([follow])
