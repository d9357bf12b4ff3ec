"""The profile that a trigger makes of objects that match, from its variables to its contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellhop.engine.allowing import refuse_rendered
from bellhop.engine.catalog import Catalog, cluster_object
from bellhop.engine.instantiate import Fields, Ref, contents, destination, resolve, variables
from bellhop.engine.naming import profile_name
from bellhop.gotemplate import Limits
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import ConfigMap, EventTrigger, Secret
from bellhop.model.record import Cluster, Content, Profile

Find = Callable[[Ref], ConfigMap | Secret | None]
"""Looks up what a ref names; None where it is not there."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What was made, and of what: the variables of event time, and the refs by their names.

    `named` is the cluster that destinationCluster was rendered to, where there is one.
    """

    root: Mapping[str, Any]
    refs: tuple[Ref, ...]
    contents: tuple[Content, ...]
    named: str = ""


def draft_profile(
    catalog: Catalog, trigger: EventTrigger, cluster: str, key: str, named: str = ""
) -> Profile:
    """Return a trigger's profile for one object, or for all by an empty key, without contents.

    `named` is the cluster that its destinationCluster was rendered to.
    """
    return Profile(
        name=profile_name(trigger.name, cluster, key),
        trigger=trigger.name,
        cluster=cluster,
        object=key,
        contents=(),
        destinations=catalog.destinations(trigger, cluster, named),
        tier=trigger.tier,
        leaves_policies=trigger.leaves_policies,
        continue_on_conflict=trigger.continue_on_conflict,
        digest="",
        allow=trigger.allow,
    )


def generate(
    trigger: EventTrigger,
    cluster: Cluster,
    matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    find: Find,
    limits: Limits,
    *,
    collect: bool,
    quoting: bool = False,
) -> Generation:
    """Make the contents of a profile of the objects that match a trigger's source in a cluster.

    `collect` is the source's; by `quoting` errors say all, Secrets included.

    Raises:
        PermanentError: a template fails, something is missing, or what was rendered cannot be
            read or is not allowed.
    """
    root = variables(trigger, cluster_object(cluster), matched, collect=collect)
    fields = Fields(root, limits, trigger.annotations, quoting=quoting)
    goes = trigger.destination_cluster
    named = destination(goes, fields, namespace=cluster.namespace) if goes else ""
    refs = resolve(
        trigger.policy_refs,
        root,
        namespace=cluster.namespace,
        limits=limits,
        annotations=trigger.annotations,
        quoting=quoting,
    )
    made = contents(
        [(ref, find(ref)) for ref in refs],
        root,
        always=trigger.era_always_renders,
        limits=limits,
        annotations=trigger.annotations,
        quoting=quoting,
    )
    refuse_rendered(trigger, made)
    return Generation(root, refs, made, named)
