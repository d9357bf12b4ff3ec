"""Definitions that are deleted, and all their objects with them: these objects stay in force."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.records import ConfiguredObject
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError
from bellhop.ports.kube import Kube

_DEFINITION = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_MISSING = (
    "it is missing with its definition or with most of its kind, and no event said that it was"
    " deleted; it stays in force until it is there again, or `bellhop {}` withdraws it"
)


def is_definition_lost(kube: Kube, kind: str) -> bool:
    """Return whether the definition of a kind is deleted, or is being, as far as it may be read."""
    name = next(each.name for each in DEFINITIONS if each.kind == kind)
    try:
        definition = kube.get(_DEFINITION, "", name)
    except DeniedError:
        return False
    return definition is None or bool(definition["metadata"].get("deletionTimestamp"))


def make_missing(record: ConfiguredObject, kind: str, now: datetime) -> ConfiguredObject:
    """Return the record of an object that is missing, and stays in force."""
    verb = "deregister cluster" if kind == CLUSTER.kind else "delete"
    return replace(record, state="Missing", at=now, message=_MISSING.format(verb))
