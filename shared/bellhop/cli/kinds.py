"""The names of kinds, as kubectl has them: plural, singular, short."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.cli.views.view import View

_LIB = "lib.projectsveltos.io"
_CONFIG = "config.projectsveltos.io"


class KindName(Struct, frozen=True):
    """One kind for the command line; `stored` are the kinds of manifests that it means.

    An EventBasedAddOn is an EventTrigger by its first name, so that asking for one shows both.
    """

    plural: str
    singular: str
    short: str
    group: str
    module: str
    namespaced: bool = False
    stored: tuple[str, ...] = ()

    def object_name(self, row: Mapping[str, Any]) -> str:
        """Return an object's name as -o name prints and `get` reads it: KIND/[NAMESPACE/]NAME."""
        place = f"{row['namespace']}/" if self.namespaced else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.singular}{group}/{place}{row['name']}"

    @property
    def view(self) -> View[Any]:
        module = importlib.import_module(f"bellhop.cli.views.{self.module}")
        found: View[Any] = module.VIEWS[self.singular]
        return found


def _namespaced(plural: str, short: str, group: str, module: str, *stored: str) -> KindName:
    return replace(_cluster_wide(plural, short, group, module, *stored), namespaced=True)


def _cluster_wide(plural: str, short: str, group: str, module: str, *stored: str) -> KindName:
    return KindName(plural, plural[:-1], short, group, module, stored=stored)


_CONFIGURATION = ("configuration", "configuration")

NAMES = (
    _namespaced("clusters", "cl", "", "clusters"),
    _cluster_wide("eventsources", "es", _LIB, "sources", "EventSource"),
    _cluster_wide("eventtriggers", "et", _LIB, "triggers", "EventTrigger", "EventBasedAddOn"),
    _namespaced("eventreports", "er", _LIB, "reports"),
    _namespaced("heldreports", "held", "bellhop.dev", "held"),
    _cluster_wide("clusterprofiles", "cp", _CONFIG, "profiles", "ClusterProfile"),
    _namespaced("profiles", "pr", _CONFIG, "profiles", "Profile"),
    _cluster_wide("clusterpromotions", "cpr", _CONFIG, "promotions", "ClusterPromotion"),
    _cluster_wide("clustersets", "cs", _LIB, "sets", "ClusterSet"),
    _namespaced("sets", "st", _LIB, "sets", "Set"),
    _cluster_wide("classifiers", "cf", _LIB, "classifiers", "Classifier"),
    _cluster_wide("clusterhealthchecks", "chc", _LIB, "health_checks", "ClusterHealthCheck"),
    _cluster_wide("healthchecks", "hc", _LIB, "health_checks", "HealthCheck"),
    _cluster_wide("rolerequests", "rr", _LIB, "profiles", "RoleRequest"),
    KindName(*_CONFIGURATION, "conf", "bellhop.dev", "configuration", namespaced=True),
    _namespaced("configmaps", "cm", "", "configmaps", "ConfigMap"),
    _namespaced("secrets", "sec", "", "configmaps", "Secret"),
)

_OTHER_NAMES = {
    "eventbasedaddons": "eventtriggers",
    "eventbasedaddon": "eventtriggers",
    "ebao": "eventtriggers",
    "promotions": "clusterpromotions",
    "promotion": "clusterpromotions",
    "triggers": "eventtriggers",
    "trigger": "eventtriggers",
    "sveltosclusters": "clusters",
    "sveltoscluster": "clusters",
}
_BY_NAME = {name: kind for kind in NAMES for name in (kind.plural, kind.singular, kind.short)}
_BY_NAME |= {other: _BY_NAME[name] for other, name in _OTHER_NAMES.items()}
_SHORT = {"ebao", *(kind.short for kind in NAMES)}
_LONG = [name for name in _BY_NAME if name not in _SHORT]
"""Names to suggest: many words of a few letters are like a short name."""


def find_kind(text: str) -> KindName:
    """Find a kind by plural, singular or short name, in any case, with or without its group."""
    name = text.lower().partition(".")[0]
    kind = _BY_NAME.get(name)
    if kind is None or not singular_name(text):
        near = difflib.get_close_matches(name, _LONG, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        known = ", ".join(f"{kind.plural} ({kind.short})" for kind in NAMES)
        raise InvalidError(f"there is no kind '{text}'{hint or f'; the kinds are {known}'}")
    return kind


def singular_name(text: str) -> str:
    """Return the singular name of a kind; empty if there is no such kind."""
    name, _, group = text.lower().partition(".")
    kind = _BY_NAME.get(name)
    return kind.singular if kind and group in ("", kind.group) else ""


def split_kind(word: str, kinds: Collection[str]) -> tuple[str, str]:
    """Split KIND/NAME, as kubectl has it, where it is one of some kinds; the kind is its singular.

    Otherwise the word is a name, which may have a namespace before it, and the kind is empty. A
    Profile has a namespace, so `profile/NAME` is one in the namespace `profile`.
    """
    kind, slash, name = word.partition("/")
    kind = singular_name(kind)
    has_name = "/" in name if kind == "profile" else bool(name)
    return (kind, name) if slash and has_name and kind in kinds else ("", word)


def format_object_name(kind: str, api_version: str, name: str) -> str:
    """Return the name of an object as kubectl has it: kind.group/name."""
    group = api_version.rpartition("/")[0]
    return f"{kind.lower()}{'.' if group else ''}{group}/{name}"
