"""Deploy charts on Lambda, fed by the queue of `charts`; Helm is in a layer."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.aws.access import access_of, secrets_of
    from bellhop.aws.batch import Batch
    from bellhop.aws.resources import Resources
    from bellhop.cloud.charts import helm
    from bellhop.records.catalogs import Catalogs
    from bellhop.stages.execute import Execute
    from bellhop.stages.hands import HELPERS, Hands


def _stage(here: Resources) -> Execute:
    access, hands = access_of(here, secrets_of(here)), Hands(HELPERS)
    catalogs, publisher, settings = Catalogs(here.records), here.publisher, here.settings
    return Execute(catalogs, access, publisher, settings, here.log, hands=hands, helm=helm(here))


handle = Batch(_stage)
