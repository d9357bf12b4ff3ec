"""Deploy charts on Cloud Run functions: Pub/Sub pushes what is for `charts`; Helm lies beside."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.cloud.charts import helm
    from bellhop.gcp.access import access_of, secrets_of
    from bellhop.gcp.push import Push
    from bellhop.gcp.resources import Resources
    from bellhop.records.catalogs import Catalogs
    from bellhop.stages.execute import Execute
    from bellhop.stages.hands import HELPERS, Hands


def _stage(here: Resources) -> Execute:
    access, hands = access_of(here, secrets_of(here)), Hands(HELPERS)
    catalogs, publisher, settings = Catalogs(here.records), here.publisher, here.settings
    return Execute(catalogs, access, publisher, settings, here.log, hands=hands, helm=helm(here))


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
