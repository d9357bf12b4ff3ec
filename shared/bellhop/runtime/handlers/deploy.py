"""Handlers of the stage `deploy`: from manifests and matches to profiles, and on to clusters.

Instantiate ─► event profiles ┐
                              ├► writer ─► profile ─► Apply ─► reconciler ─► cluster
Resolve ─────► own profiles ──┘
"""

from __future__ import annotations

from bellhop.catalog.cache import Catalogs
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.profiles.event_profiles import Instantiation
from bellhop.profiles.own_profiles import Resolution
from bellhop.profiles.writer import Writer
from bellhop.runtime.handlers import HandlerTable
from bellhop.settings import Settings
from bellhop.state.messages import Apply, Instantiate, Publisher, Resolve
from bellhop.state.records import Records


def make_deploy_table(
    records: Records,
    catalogs: Catalogs,
    publisher: Publisher,
    settings: Settings,
    reconciler: ProfileReconciler,
) -> HandlerTable:
    """Return the handlers of all messages of the stage `deploy`."""
    writer = Writer(records, catalogs, publisher, settings)
    return {
        Instantiate: Instantiation(records, catalogs, publisher, writer, settings).instantiate,
        Resolve: Resolution(records, catalogs, writer, settings).resolve,
        Apply: reconciler.handle,
    }
