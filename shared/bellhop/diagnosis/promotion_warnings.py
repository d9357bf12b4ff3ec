"""Warnings of `bellhop apply` about promotions: what has no effect, or not the one it seems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from bellhop.api.kinds import ClusterPromotion
from bellhop.catalog.catalog import Catalog

_SHOWN = 3
_RETURNS_STATUS = re.compile(r"\bstatus\s*=\s*[\"']Healthy[\"']")
"""The form of a check in an example of Sveltos' documentation, which its definition lacks."""


def warn_of_promotions(catalog: Catalog, promotions: Iterable[ClusterPromotion]) -> Iterator[str]:
    """Yield the warnings of promotions, in the order of their manifests."""
    for each in promotions:
        last = each.stages[-1]
        if last.trigger is not None:
            yield (
                f"the trigger of stage '{last.name}' of ClusterPromotion '{each.name}' has no"
                " effect: it is the last stage"
            )
        yield from islice(_warn_of_overlaps(catalog, each), _SHOWN)
        yield from _warn_of_checks(each)


def _warn_of_overlaps(catalog: Catalog, promotion: ClusterPromotion) -> Iterator[str]:
    for key, cluster in sorted(catalog.clusters.items()):
        stages = [x.name for x in promotion.stages if x.cluster_selector.matches(cluster.labels)]
        if len(stages) > 1:
            yield (
                f"cluster '{key}' is selected by the stages {' and '.join(stages)} of"
                f" ClusterPromotion '{promotion.name}': it belongs to the last of them"
            )


def _warn_of_checks(promotion: ClusterPromotion) -> Iterator[str]:
    for stage in promotion.stages:
        for check in stage.trigger.checks.post_delay_health_checks if stage.trigger else ():
            if _RETURNS_STATUS.search(check.script):
                yield (
                    f"the check '{check.name}' of stage '{stage.name}' of ClusterPromotion"
                    f" '{promotion.name}' returns a status, which does not count as healthy; return"
                    " {healthy = true}"
                )
