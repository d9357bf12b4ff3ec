"""Installer of the definitions in a cluster, beside those of Sveltos and of other versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from bellhop.configuration.definitions import VERSION, make_definitions
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError

CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_FIRST_WITH_RULES = (1, 25)
_MANAGED_BY = "app.kubernetes.io/managed-by"

Result = Literal["created", "configured", "unchanged", "left"]


class DefinitionStore(Protocol):
    """The part of a cluster's client that reads and writes definitions."""

    def version(self) -> str:
        """Read the API server's version, such as `v1.31.2`."""
        ...

    def get(self, gvk: GVK, namespace: str, name: str) -> dict[str, Any] | None:
        """Read one object."""
        ...

    def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Apply one object by server-side apply."""
        ...


class Installed(NamedTuple):
    """The result for one definition; `note` says why one is left as it is."""

    name: str
    result: Result
    note: str = ""


def install_definitions(kube: DefinitionStore) -> Iterator[Installed]:
    """Apply the definitions that a cluster lacks or has of this or of an earlier Bellhop.

    One of Sveltos, or of anybody else, and one of a later Bellhop are left as they are.

    Raises:
        InvalidError: a definition that is left does not serve the version that is needed.
    """
    for definition in make_definitions(rules=has_rules(kube.version())):
        name = definition["metadata"]["name"]
        found = kube.get(CRD, "", name)
        if found and (note := _reason_to_leave(found)):
            yield Installed(name, "left", note)
            continue
        applied = kube.apply(definition)
        if found is None:
            yield Installed(name, "created")
        else:
            changed = _version_of(found) != _version_of(applied)
            yield Installed(name, "configured" if changed else "unchanged")


def has_rules(version: str) -> bool:
    """Return whether an API server of a version checks rules in CEL; an unknown one does."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return numbers is None or tuple(map(int, numbers.groups())) >= _FIRST_WITH_RULES


def _reason_to_leave(found: Mapping[str, Any]) -> str:
    name = found["metadata"]["name"]
    served = {each["name"] for each in found["spec"]["versions"] if each.get("served")}
    ours = found["metadata"].get("labels", {}).get(_MANAGED_BY) == "bellhop"
    if ours and served <= {VERSION}:
        return ""
    if VERSION not in served:
        raise InvalidError(
            f"cannot use the definition '{name}' of this cluster: it serves"
            f" {', '.join(sorted(served)) or 'no version'}, and {VERSION} is needed; update what"
            " installed it"
        )
    return "a newer Bellhop installed it" if ours else "somebody else installed it"


def _version_of(definition: Mapping[str, Any]) -> str:
    return str(definition["metadata"].get("resourceVersion", ""))
