"""A profile: rendered add-ons, the clusters that they belong on, and how they act in these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from bellhop.errors import BellhopError, ConflictError
from bellhop.state.check import Check, When, times
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.content import Content, Reading

MOST_PLACES = 1000
"""Clusters of one profile with `maxUpdate` that change at a time."""

Sync = Literal["OneTime", "Continuous", "ContinuousWithDriftDetection", "DryRun"]
"""Sveltos' `syncMode`: apply once, apply each change, correct drift too, or only preview."""


class Rollout(Struct, frozen=True):
    """The roll-out of a profile; a field that asks for nothing is false."""

    continues: bool = False
    """By `continueOnError` an object that fails does not stop the others."""
    most_failures: int = 0
    """Failures in a row after which nothing is retried; 0 is without an end."""
    after: tuple[str, ...] = ()
    """The profiles that it depends on in each cluster, by name."""
    awaited: bool = False
    """Other profiles depend on it."""
    share: str = ""
    """The clusters that change at a time by `maxUpdate`: a number, or a percentage."""
    reloads: bool = False
    """Restart workloads when a ConfigMap or Secret that they read changes."""
    replaces: tuple[str, ...] = ()
    """The profiles that stay in a cluster until it has taken their objects over there."""
    promotion: str = ""
    """The ClusterPromotion of which it is a stage."""
    release: int = 0
    """The release of that promotion that it deploys."""
    leads: bool = False
    """It is the first stage: a chart or file that has become another one makes a new release."""

    @property
    def ordered(self) -> bool:
        """Return whether it is deployed in an order with other profiles."""
        return self.awaited or bool(self.after) or bool(self.replaces)

    @property
    def is_gradual(self) -> bool:
        """Return whether it changes only so many clusters at a time."""
        return bool(self.share)

    @property
    def tracked(self) -> bool:
        """Return whether other profiles or clusters wait for its status of this revision."""
        return self.ordered or self.is_gradual or bool(self.promotion)

    def places(self, clusters: int) -> int:
        """Return how many clusters change at a time, rounded up; 0 where all of them may."""
        if not self.share:
            return 0
        number = int(self.share.rstrip("%"))
        if self.share.endswith("%"):
            number = -(-number * clusters // 100)
        return min(max(number, 1), MOST_PLACES)


AT_ONCE = Rollout()
"""All clusters change at once, and the first error stops the rest."""


class AddonPolicy(Struct, frozen=True, kw_only=True):
    """The part of a specification that acts in clusters, as deploy reads it from a profile.

    `AddonDeclaration.policy` fills it by the names of its fields, and a profile has all of them: a
    new field needs a default, its declaration in `api/addon.py` under the same name, and the place
    where it acts.
    """

    tier: int = 100
    """The profile with the lower tier wins an object that two profiles have."""
    leaves_policies: bool = False
    """By `stopMatchingBehavior: LeavePolicies` objects stay in clusters that no longer match."""
    continue_on_conflict: bool = False
    """Deploy the rest where another profile or user owns an object."""
    allow: str = ""
    """The kinds and namespaces that it may deploy, as `core/allow.py` reads it; empty: all."""
    sync: Sync = "Continuous"
    rollout: Rollout = AT_ONCE
    account: str = ""
    """The service account, `namespace/name`, whose rights count in clusters; empty: Bellhop's."""
    checks: tuple[Check, ...] = ()
    adopts_sveltos: bool = False
    """It takes over objects that Sveltos, which does not run, deployed by the same declaration."""

    @property
    def withdraws(self) -> bool:
        """Return whether objects are deleted from a cluster that no longer matches."""
        return not self.leaves_policies and self.sync != "DryRun"

    @property
    def ending(self) -> Mapping[str, Any]:
        """Return the fields that decide how add-ons end when their declaration is deleted."""
        return {"leaves_policies": self.leaves_policies, "sync": self.sync}

    def ends_like(self, other: AddonPolicy) -> bool:
        """Return whether add-ons end alike under both: a dry run removes nothing either way."""
        dry = self.sync == "DryRun", other.sync == "DryRun"
        return dry[0] == dry[1] and self.leaves_policies == other.leaves_policies

    def stops_at(self, error: BellhopError) -> bool:
        """Return whether the objects after one that failed are left as they are."""
        if isinstance(error, ConflictError):
            return not self.continue_on_conflict
        return not self.rollout.continues


Hosting = Literal["", "alone", "beside", "nowhere", "left"]
"""The way in which a profile deploys its Local refs to `mgmt/mgmt`, if it has any.

`alone`: the cluster has only these; `beside`: the profile selects it, too; `nowhere`: no cluster of
that name is registered; `left`: it had only these once, or would have had.
"""


class Profile(AddonPolicy, frozen=True):
    """A ClusterProfile or Profile as it is to be applied; the latter is named NAMESPACE/NAME.

    One that a user wrote has no `trigger`. One that was withdrawn has neither contents nor digest.
    """

    name: str
    trigger: str
    """The EventTrigger that generated it; empty for a user's own."""
    cluster: str
    """The cluster of the events that it was generated for."""
    object: str
    """The object that it was generated for, with `oneForEvent`."""
    contents: tuple[Content, ...]
    destinations: tuple[str, ...]
    digest: str
    """Of all that it deploys."""
    error: str = ""
    """The reason why the newest inputs could not be rendered; the contents are the last good."""
    error_code: str = ""
    failed_at: datetime | None = None
    """The time since when its inputs fail."""
    revision: str = ""
    """A random name, drawn again for each change of it."""
    revised_at: datetime | None = None
    """The time of that change; former versions did not note it."""
    told: bool = False
    """Published: all its clusters were asked to apply this revision."""
    leaves: bool = False
    """Some clusters have objects of it that it must remove there: see `ProfileClusters`."""
    leaving: tuple[str, ...] = ()
    """These clusters, filled in for readers that ask; never stored."""
    vague: bool = False
    """Read without its destinations, which are very many; never stored."""
    made_of: str = ""
    """A digest of the inputs of a profile for all objects, or of the object of any other."""
    paused: bool = False
    """Nothing is applied, corrected or withdrawn."""
    generated: tuple[Mapping[str, Any], ...] = ()
    """The ConfigMaps and Secrets of its trigger's generators, which live as long as it does.

    Of one that has never had contents: what it refers to, with texts that are no objects.
    """
    reads: tuple[Reading, ...] = ()
    """The objects that its templates read each time that it is rendered for a cluster."""
    checked: tuple[When, ...] = ()
    """The moments that it has checks of: without `checks` of these, its checks are lost."""
    jobs: Mapping[str, tuple[Content, ...]] = {}
    """The Jobs of its checks, by the ConfigMap or Secret that holds them."""
    grants: str = ""
    """The service account that its contents give rights to."""
    turns: int = 0
    """The rounds of a loop that led to it: it was rendered from objects that Bellhop deployed."""
    turning: datetime | None = None
    """The time since when these rounds are counted."""
    turned_by: str = ""
    """A digest of the rules; the rounds count as long as these are the same."""
    number: int = 0
    """The number of the revision that it holds."""
    latest: int = 0
    """The highest number of a revision so far."""
    pinned: bool = False
    """Rolled back: it keeps its contents whatever is declared."""
    made_at: datetime | None = None
    """The time when its contents were rendered."""
    recipe: Mapping[str, str] = {}
    """The inputs that they were rendered from, by name, each with a digest."""
    title: str = ""
    """The name that its trigger's template of names gave it."""
    hosting: Hosting = ""
    """The way in which it deploys to `mgmt/mgmt`, which is one of its destinations then."""
    leaves_unchanged: bool = False
    """Deleted in DryRun: it touches no cluster, and owns nothing more."""

    @classmethod
    def draft(
        cls,
        policy: AddonPolicy,
        name: str,
        destinations: tuple[str, ...] = (),
        *,
        trigger: str = "",
        cluster: str = "",
        key: str = "",
    ) -> Profile:
        """Return a profile without contents, by a policy; `key` is that of its one object."""
        return cls(
            name=name,
            trigger=trigger,
            cluster=cluster,
            object=key,
            contents=(),
            destinations=destinations,
            digest="",
            checked=times(policy.checks) if policy.checks else (),
            **{field: getattr(policy, field) for field in AddonPolicy.__struct_fields__},
        )

    @property
    def is_draft(self) -> bool:
        """Return whether it is only compared with clusters: it was never stored."""
        return not self.revision

    @property
    def namespace(self) -> str:
        """Return the namespace of a Profile; no other has one."""
        return self.name.rpartition("/")[0]

    @property
    def shown(self) -> str:
        """Return the name by which people know it."""
        return self.title or self.name

    @property
    def titles(self) -> tuple[tuple[str, str], ...]:
        """Return kind and name of all that it generated, and of itself while it has contents."""
        written = tuple((each["kind"], each["metadata"]["name"]) for each in self.generated)
        return (("ClusterProfile", self.title), *written) if self.title and self.digest else written

    @property
    def matched(self) -> tuple[str, ...]:
        """Return the clusters that it selects: its destinations, but one that only hosts."""
        if self.hosting != "alone":
            return self.destinations
        return tuple(each for each in self.destinations if each != MANAGEMENT)

    def only_hosts(self, cluster: str) -> bool:
        """Return whether all its objects in a cluster are, or were, there for other clusters."""
        return cluster == MANAGEMENT and self.hosting in ("alone", "left")

    def guests(self, cluster: str) -> tuple[str, ...]:
        """Return the clusters for which it deploys its Local refs to a cluster: most host none."""
        hosts = cluster == MANAGEMENT and self.hosting in ("alone", "beside")
        return self.matched if hosts else ()

    def may_name(self, cluster: str) -> bool:
        """Return whether a cluster is, or by what was read may be, among its clusters."""
        return self.vague or cluster in self.destinations or cluster in self.leaving


class NameReservation(Struct, frozen=True):
    """The profile that has a name which a template wrote, and the profiles that wait for it.

    It counts only while that profile has the name, too.
    """

    trigger: str
    cluster: str
    profile: str
    waiting: tuple[tuple[str, str, str], ...] = ()
    """Trigger, source cluster and object of each profile that waits."""


class Rendering(Struct, frozen=True):
    """A revision of a profile, to which `bellhop rollback` returns."""

    number: int
    """No other revision of the profile has it."""
    digest: str
    until: datetime
    """The end of its time in force."""
    made_at: datetime | None = None
    """The time when it was rendered."""
    recipe: Mapping[str, str] = {}
    """Its inputs, each with a digest: those that changed are the cause of the revision."""
    contents: tuple[Content, ...] = ()
    generated: tuple[Mapping[str, Any], ...] = ()
    reads: tuple[Reading, ...] = ()
