"""Labels and annotations that steer Sveltos: each is honoured where it works, or refused.

A new feature moves its labels and annotations from the refused to the honoured, and
`docs/reference/kinds.md` follows. Those that only Sveltos writes,
to objects of its own, have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Path = tuple[str | int, ...]

DOMAIN = "projectsveltos.io/"

PROFILE_PAUSED = "profile.projectsveltos.io/paused"
"""On a user's own profile: deployed objects stay as they are."""

TRIGGER_PAUSED = "cluster.x-k8s.io/paused"
"""On an EventTrigger: what it made stays as it is, and no event makes more."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""On an object that kubectl applied: all that it wrote, a Secret's values too."""

FORCE_RECREATE = "projectsveltos.io/forceRecreate"
"""On a deployed object: if its API server refuses the change, the object is created again."""

DRIFT_IGNORED = "projectsveltos.io/driftDetectionIgnore"
"""On a deployed object: changes by others are left unchanged, whatever the profile."""

ADOPT = "bellhop.dev/adopt"
"""On an object that is to be deployed: what somebody else made under its name is taken over.

It is not written to the cluster.
"""

ADOPTIONS = ("true", "own", "false")
"""Its values. An adopted object stays when its profile is withdrawn; with `own` it is removed."""

ADOPTED = "bellhop.dev/adopted"
"""On an object that was taken over: who had made it. It stays when it is withdrawn."""

TAKE_OVER = "bellhop.dev/take-over"
"""On a custom resource: with `files` it takes the place of a manifest of its name that files hold.
"""

ADOPT_FROM = "bellhop.dev/adopt-from"
"""On a profile or trigger, with any value: what Sveltos deployed for it is taken over."""

INSTANTIATE_ALL = "bellhop.dev/instantiate-all"
"""On an EventTrigger, with any value: all contents are rendered with event data, as in v1alpha1."""

HELD = "bellhop.dev/held"
"""On a deleted custom resource: the change by which the deletion guard holds its removal."""

APPLYSET = "bellhop.dev/applyset"
"""Label of what was applied as one of a set, `bellhop apply --applyset`: the set's name."""

NOTICE = "bellhop.dev/notice"
"""On a ClusterHealthCheck: a template of what its notices say; its first line is the subject."""

MADE_BY = "bellhop.dev/made-by"
"""On an object that a profile has left: which one. So the next profile knows that it is nobody's.

Nothing takes it away again: it stays true.
"""

INSTALLATION = "bellhop.dev/installation"
INSTALLATION_ADDRESS = "bellhop.dev/installation-address"
"""On what is Bellhop's own in a cluster: the id of the installation that registered it last.

And where that one's clusters send their events, for people.
"""

ACCOUNT_NAME = "projectsveltos.io/serviceaccount-name"
ACCOUNT_NAMESPACE = "projectsveltos.io/serviceaccount-namespace"
"""Labels of a rule: the service account whose rights count in clusters."""

OWNER = "projectsveltos.io/owner-name"
"""On an object that is deployed: the profile that it comes from."""

CHECKED_BY = "bellhop.dev/checked-by"
CHECK = "bellhop.dev/check"
"""Labels of a Job that a check runs: digests of the profile, and of the check."""

LUA = "projectsveltos.io/lua"
"""On a ConfigMap or Secret that a profile deploys: it holds scripts that write manifests."""

SUBRESOURCES = "projectsveltos.io/subresources"
"""On a ConfigMap or Secret that a profile deploys: the part of its objects to write with it."""

_SOURCES = ("EventSource",)
_TRIGGERS = ("EventTrigger", "EventBasedAddOn")
_OWN = ("ClusterProfile", "Profile")
_PROFILES = (*_OWN, "RoleRequest")
_PROMOTIONS = ("ClusterPromotion",)
_RULES = (*_SOURCES, *_TRIGGERS, *_OWN, *_PROMOTIONS)
_HOLDERS = ("ConfigMap", "Secret")


class Mark(NamedTuple):
    """Where a label or annotation is honoured, and the sentence that refuses it by kind."""

    part: Literal["labels", "annotations"]
    honoured: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}


_FORMER = dict.fromkeys(
    _RULES,
    f"it is the former name; write {ACCOUNT_NAME} and {ACCOUNT_NAMESPACE} instead",
)
_ON_HOLDERS = dict.fromkeys(
    _RULES, "it belongs on the ConfigMap or Secret that policyRefs name; move it there"
)
_ON_HOLDERS["RoleRequest"] = (
    "it belongs on the ConfigMap or Secret that roleRefs name; move it there"
)
_GIVES_RIGHTS = {
    "RoleRequest": "it belongs on what a tenant writes; name the account that gets rights by"
    " serviceAccountName and serviceAccountNamespace"
}
_PAUSES_PROFILES = "it pauses only profiles and promotions"
_PAUSES_TRIGGERS = "it pauses only triggers"

MARKS: dict[str, Mark] = {
    ACCOUNT_NAME: Mark("labels", _RULES, _GIVES_RIGHTS),
    ACCOUNT_NAMESPACE: Mark("labels", _RULES, _GIVES_RIGHTS),
    "projectsveltos.io/admin-name": Mark("labels", (), _FORMER),
    "projectsveltos.io/instantiate": Mark("annotations", _HOLDERS, _ON_HOLDERS),
    "projectsveltos.io/template": Mark("annotations", _HOLDERS, _ON_HOLDERS),
    LUA: Mark("annotations", _HOLDERS, _ON_HOLDERS),
    SUBRESOURCES: Mark("annotations", _HOLDERS, _ON_HOLDERS),
    "projectsveltos.io/tex-template": Mark("annotations", (*_TRIGGERS, *_OWN, *_PROMOTIONS)),
    ADOPT_FROM: Mark("annotations", (*_TRIGGERS, *_OWN, *_PROMOTIONS)),
    INSTANTIATE_ALL: Mark("annotations", _TRIGGERS),
    PROFILE_PAUSED: Mark(
        "annotations",
        (*_PROFILES, *_PROMOTIONS),
        dict.fromkeys(_TRIGGERS, f"{_PAUSES_PROFILES}; a trigger is paused by {TRIGGER_PAUSED}")
        | dict.fromkeys(_SOURCES, f"{_PAUSES_PROFILES}; pause the triggers that name the source"),
    ),
    TRIGGER_PAUSED: Mark(
        "annotations",
        _TRIGGERS,
        dict.fromkeys(_PROFILES, f"{_PAUSES_TRIGGERS}; a profile is paused by {PROFILE_PAUSED}")
        | dict.fromkeys(
            _PROMOTIONS, f"{_PAUSES_TRIGGERS}; a promotion is paused by {PROFILE_PAUSED}"
        )
        | dict.fromkeys(_SOURCES, f"{_PAUSES_TRIGGERS}; pause those that name the source"),
    ),
}

WITHHELD = "bellhop.dev/withheld"
"""The annotation of what a generator made with a Secret's values in reach: nobody quotes it."""

WRITTEN_BY_SVELTOS = (
    "projectsveltos.io/cluster-name",
    "projectsveltos.io/cluster-profile-name",
    "projectsveltos.io/cluster-type",
    "projectsveltos.io/clustersummary",
    "projectsveltos.io/deployed-by-sveltos",
    "projectsveltos.io/deploymenttype",
    "projectsveltos.io/eventsource-name",
    "projectsveltos.io/hash",
    "projectsveltos.io/owner-kind",
    "projectsveltos.io/owner-name",
    "projectsveltos.io/owner-tier",
    "projectsveltos.io/profile-name",
    "projectsveltos.io/reason",
    "projectsveltos.io/reference-kind",
    "projectsveltos.io/reference-name",
    "projectsveltos.io/reference-namespace",
    "projectsveltos.io/reference-tier",
)
_OWN_DOMAINS = ("eventtrigger.lib.projectsveltos.io/", "eventreport.projectsveltos.io/")


def refusals(kind: str, manifest: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Find the marks of a manifest that would be ignored, with the sentence that refuses each."""
    for part, name in _names(manifest):
        mark = MARKS.get(name)
        if mark and mark.part == part and kind in mark.refused:
            yield ("metadata", part, name), mark.refused[kind]


def unknown(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Find the marks of Sveltos' domain that nobody knows: they are probably misspelt."""
    for part, name in _names(manifest):
        domain = f"{name.partition('/')[0]}/"
        ours = domain == DOMAIN or domain.endswith(f".{DOMAIN}")
        written = name in WRITTEN_BY_SVELTOS or domain in _OWN_DOMAINS
        if ours and not written and (name not in MARKS or MARKS[name].part != part):
            yield name


def _names(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    metadata = manifest.get("metadata")
    for part in ("labels", "annotations"):
        found = metadata.get(part) if isinstance(metadata, dict) else None
        if isinstance(found, dict):
            yield from ((part, name) for name in found if isinstance(name, str))
