"""The names by which users ask for a kind, as kubectl knows them: plural, singular, short."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

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
    namespaced: bool
    module: str
    stored: tuple[str, ...] = ()

    def object_name(self, row: Mapping[str, Any]) -> str:
        """Name an object as -o name does, and as `get` takes it back: KIND/[NAMESPACE/]NAME."""
        place = f"{row['namespace']}/" if self.namespaced else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.singular}{group}/{place}{row['name']}"

    @property
    def view(self) -> View:
        """Import the view of this kind."""
        module = importlib.import_module(f"bellhop.cli.views.{self.module}")
        found: View = module.VIEWS[self.singular]
        return found


NAMES = (
    KindName("clusters", "cluster", "cl", "", namespaced=True, module="clusters"),
    KindName(
        "eventsources",
        "eventsource",
        "es",
        _LIB,
        namespaced=False,
        module="sources",
        stored=("EventSource",),
    ),
    KindName(
        "eventtriggers",
        "eventtrigger",
        "et",
        _LIB,
        namespaced=False,
        module="triggers",
        stored=("EventTrigger", "EventBasedAddOn"),
    ),
    KindName("eventreports", "eventreport", "er", _LIB, namespaced=True, module="reports"),
    KindName("heldreports", "heldreport", "held", "bellhop.dev", namespaced=True, module="held"),
    KindName(
        "clusterprofiles",
        "clusterprofile",
        "cp",
        _CONFIG,
        namespaced=False,
        module="profiles",
        stored=("ClusterProfile",),
    ),
    KindName(
        "profiles",
        "profile",
        "pr",
        _CONFIG,
        namespaced=True,
        module="profiles",
        stored=("Profile",),
    ),
    KindName(
        "clustersets",
        "clusterset",
        "cs",
        _LIB,
        namespaced=False,
        module="sets",
        stored=("ClusterSet",),
    ),
    KindName("sets", "set", "st", _LIB, namespaced=True, module="sets", stored=("Set",)),
    KindName(
        "classifiers",
        "classifier",
        "cf",
        _LIB,
        namespaced=False,
        module="classifiers",
        stored=("Classifier",),
    ),
    KindName(
        "clusterhealthchecks",
        "clusterhealthcheck",
        "chc",
        _LIB,
        namespaced=False,
        module="health_checks",
        stored=("ClusterHealthCheck",),
    ),
    KindName(
        "healthchecks",
        "healthcheck",
        "hc",
        _LIB,
        namespaced=False,
        module="assessments",
        stored=("HealthCheck",),
    ),
    KindName(
        "rolerequests",
        "rolerequest",
        "rr",
        _LIB,
        namespaced=False,
        module="profiles",
        stored=("RoleRequest",),
    ),
    KindName(
        "configmaps",
        "configmap",
        "cm",
        "",
        namespaced=True,
        module="holders",
        stored=("ConfigMap",),
    ),
    KindName("secrets", "secret", "sec", "", namespaced=True, module="holders", stored=("Secret",)),
)

_OTHER_NAMES = {
    "eventbasedaddons": "eventtriggers",
    "eventbasedaddon": "eventtriggers",
    "ebao": "eventtriggers",
    "triggers": "eventtriggers",
    "trigger": "eventtriggers",
    "sveltosclusters": "clusters",
    "sveltoscluster": "clusters",
}
_BY_NAME = {name: kind for kind in NAMES for name in (kind.plural, kind.singular, kind.short)}
_BY_NAME |= {other: _BY_NAME[name] for other, name in _OTHER_NAMES.items()}
_SHORT = {"ebao", *(kind.short for kind in NAMES)}
_LONG = [name for name in _BY_NAME if name not in _SHORT]
"""Names that may have been mistyped: every other word of a few letters is like a short name."""


def kind_named(text: str) -> KindName:
    """Find a kind by plural, singular or short name, in any case, with or without its group.

    Raises:
        InvalidError: there is no such kind; names the nearest one.
    """
    name = text.lower().partition(".")[0]
    kind = _BY_NAME.get(name)
    if kind is None or not singular(text):
        near = difflib.get_close_matches(name, _LONG, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        known = ", ".join(f"{kind.plural} ({kind.short})" for kind in NAMES)
        raise InvalidError(f"there is no kind '{text}'{hint or f'; the kinds are {known}'}")
    return kind


def singular(text: str) -> str:
    """Return the singular name of a kind, or nothing if there is no such kind."""
    name, _, group = text.lower().partition(".")
    kind = _BY_NAME.get(name)
    return kind.singular if kind and group in ("", kind.group) else ""


def split_kind(word: str, kinds: Collection[str]) -> tuple[str, str]:
    """Split KIND/NAME, as kubectl has it, where it is one of some kinds; the kind is its singular.

    Otherwise the word is a name, which may have a namespace before it, and the kind is empty. A
    Profile has a namespace, so `profile/NAME` is one in the namespace `profile`.
    """
    kind, slash, name = word.partition("/")
    kind = singular(kind)
    has_name = "/" in name if kind == "profile" else bool(name)
    return (kind, name) if slash and has_name and kind in kinds else ("", word)


def shown_name(kind: str, api_version: str, name: str) -> str:
    """Name an object as kubectl does: kind.group/name."""
    group = api_version.rpartition("/")[0]
    return f"{kind.lower()}{'.' if group else ''}{group}/{name}"
