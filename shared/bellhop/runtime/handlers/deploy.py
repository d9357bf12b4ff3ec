"""Handlers of the stage `deploy`: from manifests and matches to profiles, and on to clusters.

Instantiate ─► event profiles ┐
                              ├► writer ─► profile ─► Apply ─► reconciler ─► cluster
Resolve ─────► own profiles ──┘
   ▲
   └ Promote: a stage of a promotion gets another release
"""

from __future__ import annotations

from bellhop.catalog.cache import Catalogs
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.profiles.event_profiles import Instantiation
from bellhop.profiles.own_profiles import Resolution
from bellhop.profiles.writer import Writer
from bellhop.runtime.handlers import Handler, HandlerTable
from bellhop.settings import Settings
from bellhop.state.messages import Apply, Instantiate, Promote, Publisher, Resolve
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
    resolution = Resolution(records, catalogs, publisher, writer, settings)
    return {
        Instantiate: Instantiation(records, catalogs, publisher, writer, settings).instantiate,
        Resolve: resolution.resolve,
        Promote: make_promotion_handler(records, catalogs, publisher, settings, resolution),
        Apply: reconciler.handle,
    }


def make_promotion_handler(
    records: Records,
    catalogs: Catalogs,
    publisher: Publisher,
    settings: Settings,
    resolution: Resolution,
) -> Handler:
    """Return the handler of `Promote`; few installations have promotions, so it loads late."""

    def promote(message: Promote) -> None:
        from bellhop.promotions.promoter import Promoter  # noqa: PLC0415
        from bellhop.promotions.releases import ReleaseMaker  # noqa: PLC0415

        releases = ReleaseMaker(records, resolution, settings.revisions)
        given = records, catalogs, publisher, releases, settings.sweep_interval
        Promoter(*given).promote(message)

    return promote
