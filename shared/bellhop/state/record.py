"""What we keep: one frozen type a record, plain enough for the stage with the smallest budget."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.core.redaction import Redacted
from bellhop.errors import InvalidError
from bellhop.state.chart import Chart, HeldRelease
from bellhop.state.check import Check, When
from bellhop.state.cluster_text import HeldText
from bellhop.state.file_ref import Address, FileRef
from bellhop.state.kustomization import Kustomization
from bellhop.state.management_cluster import MANAGEMENT, Hosting
from bellhop.state.miss_rate import Tally
from bellhop.state.rollout import AT_ONCE, Rollout

Phase = Literal[
    "Provisioning",
    "Provisioned",
    "DryRun",
    "Failed",
    "FailedNonRetriable",
    "Removing",
    "Removed",
]
"""A profile's state on one cluster; FailedNonRetriable waits for somebody to change an input.

Of one in DryRun it is known what would be done there, and nothing was.
"""

Sync = Literal["OneTime", "Continuous", "ContinuousWithDriftDetection", "DryRun"]
"""Whether a profile is applied once, or whenever it changes, or what that would do is only told.

With drift detection it is also applied again where somebody else changed what it brought.
"""

FeatureName = Literal["Resources", "Helm", "Kustomize"]
"""What deploys a part of a profile, in Sveltos' words: `featureID`."""

MOST_WATCHED = 256
"""Kinds of one profile that ring in a cluster when others change them, and ConfigMaps and Secrets
that its workloads read: sweeps look at all."""

MOST_FOLLOWED = 256
"""Kinds that ring since templates read objects of them: sweeps look at all."""

MOST_LABELS = 256
"""Labels of one cluster: with the longest names and values they take a hundred kilobytes."""

MOST_TOLD = 64 * 1024
"""Bytes of a cluster's annotations and spec together, as JSON."""


class Cluster(Redacted, frozen=True):
    """A registered cluster; `forwarder` is how its API server rings us, as registration set it.

    `credentials` is the version of the kubeconfig in the secret store, which is stored first: who
    reads this record knows whether the credentials at hand are still those that count.
    `former_digest` is that of the sender's token before the present one; it counts until
    `former_until`, or without an end while that is None. `uid` is that of the cluster's namespace
    kube-system, which no two clusters share. `abandoned` is the uid of the cluster that had this
    name before, while that one may still ring. `annotations` and `spec` are a SveltosCluster's, for
    templates; what `spec` says of pauses, `paused` and `activeWindow`, is read by
    `clusters/pause.py`. `managed` is what its cloud calls it, the ARN of an EKS cluster or the full
    name of a GKE cluster: it is reached as whoever calls, and has no kubeconfig in the secret
    store. `assume_role` is the role that the caller assumes to reach an EKS cluster of another
    account, with `external_id` if its trust policy asks for one. `given` are those of its
    labels that classifiers gave, each with which one.
    """

    secret_fields: ClassVar[Collection[str]] = ("forwarder",)
    namespace: str
    name: str
    labels: Mapping[str, str]
    kubernetes: str
    token_digest: str
    registered_at: datetime
    forwarder: Mapping[str, str] = field(default_factory=dict)
    credentials: str = ""
    former_digest: str = ""
    former_until: datetime | None = None
    uid: str = ""
    abandoned: str = ""
    annotations: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}
    managed: str = ""
    given: Mapping[str, str] = {}
    assume_role: str = ""
    external_id: str = ""

    @property
    def key(self) -> str:
        """Name it as users do: namespace/name."""
        return f"{self.namespace}/{self.name}"

    def refuse_too_much(self) -> None:
        """See that no item's limit is reached, whoever labels it.

        Raises:
            InvalidError: it has too many labels, or too much else.
        """
        if len(self.labels) > MOST_LABELS:
            raise InvalidError(
                f"cannot give cluster '{self.key}' {len(self.labels)} labels: a cluster may have"
                f" {MOST_LABELS}; take some away"
            )
        told = len(json.dumps([dict(self.annotations), dict(self.spec)]))
        if told > MOST_TOLD:
            raise InvalidError(
                f"cannot annotate cluster '{self.key}': its annotations and data have {told:,}"
                f" bytes, and it may have {MOST_TOLD:,}; take some away"
            )

    def gate(
        self,
        kinds: Iterable[WatchedKind],
        revision: int,
        listeners: Iterable[Listener] = (),
        held: Iterable[WatchedKind] = (),
        followed: Iterable[WatchedKind] = (),
    ) -> IngestPolicy:
        """Return what ingest must know of this cluster, where these kinds and events count."""
        return IngestPolicy(
            self.token_digest,
            tuple(kinds),
            revision,
            self.former_digest,
            self.former_until,
            direct=bool(self.forwarder.get("direct")),
            listeners=tuple(listeners),
            held=tuple(held),
            followed=tuple(followed),
        )


class SetSelection(Struct, frozen=True):
    """The clusters that a set with maxReplicas has, in the order in which they were chosen.

    Those that are `failing` are down, and stay as long as no other cluster can take their place.
    """

    clusters: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()


class Health(Struct, frozen=True):
    """How a cluster was when we last met it; `missed` counts what only sweeps had found.

    It and `seen` are the sums of the `tallies`.

    A healthy one that does not ring is silent to people, and never written so. `judgement` has a
    digest of each source by which all its objects were last evaluated, or, for one of which not
    all kinds could be looked at, of each `SOURCE KIND` that could; `uid` is that of its namespace
    kube-system, which no two clusters share. `failures` counts the times in a row that we could
    not look; `walk` is the last one that ended, `unseen` are the kinds that it could not look at,
    and `unserved` those that the cluster does not serve. In a `mute` one the API server could not
    be told to ring. Of the kinds that are `followed` whoever reads them has read them again since
    the cluster rings for them.
    An `Unauthorized` one answers, and does not accept our credentials, which end by themselves at
    `ends_at`, if that is known. It is in its state `since` then, or has a message since then.
    """

    state: Literal["Healthy", "Silent", "Unauthorized", "Down", "Unknown"] = "Unknown"
    message: str = ""
    swept_at: datetime | None = None
    seen: int = 0
    missed: int = 0
    judgement: Mapping[str, str] = {}
    uid: str = ""
    failures: int = 0
    walk: str = ""
    unseen: tuple[GVK, ...] = ()
    mute: bool = False
    followed: tuple[GVK, ...] = ()
    tallies: tuple[Tally, ...] = ()
    unserved: tuple[GVK, ...] = ()
    ends_at: datetime | None = None
    since: datetime | None = None

    @property
    def away(self) -> bool:
        """Return whether nothing can be done in the cluster until somebody mends that."""
        return self.state in {"Down", "Unauthorized"}

    @property
    def counted_since(self) -> datetime | None:
        """Return since when `seen` and `missed` count; None if nothing was counted yet."""
        return self.tallies[0].since if self.tallies else None


class Circuit(Struct, frozen=True):
    """A cluster that did not answer when it was asked last: nobody calls it but a probe.

    It is open since `since`; the next probe is at `until`, `failures` have failed, and `said` is
    what the last call met. One that is `closing` keeps nobody off any more: the cluster has
    answered, and those who waited are being told.
    """

    since: datetime
    until: datetime
    said: str
    failures: int = 0
    closing: bool = False


class ResyncProgress(Struct, frozen=True):
    """A sweep under way: how far it has come, and what it found so far.

    `judged` is a digest of the sources it goes by; `again` says what was asked for meanwhile.
    `step` is what it does next in `kind`, which is `absent` where no version of it is served:
    its list goes on with `after`, beyond the place `last`, which is within that page if it was
    `cut`; `read` objects in `size` bytes were on its pages so far, `known` were kept, and `missing`
    of these are on no page, beside `claims` that only the sender has shown; whether so many are
    `doubted`. A `trial` reads it to its end first, and keeps nothing. `untold` says
    of a kind up to which place observations were written that may not have been told. `hand` names
    who wrote it last. In a
    `mute` cluster the API server could not be told to ring; in one that is `held` profiles have
    objects that are to stay as they were applied. What is `followed` or `unserved` is so in its
    health, too.
    """

    id: str
    judged: str
    credentials: str
    full: bool = False
    again: Literal["", "look", "full"] = ""
    step: Literal["next", "read", "judge", "bury", "forget"] = "next"
    kind: GVK | None = None
    absent: bool = False
    after: str = ""
    last: str = ""
    cut: bool = False
    read: int = 0
    size: int = 0
    trial: bool = False
    known: int = 0
    missing: int = 0
    claims: int = 0
    doubted: bool = False
    barren: int = 0
    restarts: int = 0
    found: int = 0
    missed: int = 0
    uid: str = ""
    untold: Mapping[str, str] = {}
    unseen: tuple[GVK, ...] = ()
    problems: tuple[str, ...] = ()
    hand: str = ""
    mute: bool = False
    held: bool = False
    followed: tuple[GVK, ...] = ()
    unserved: tuple[GVK, ...] = ()


class WatchedKind(Struct, frozen=True):
    """A kind that counts in one cluster; `plural` is empty until discovery has told it.

    Of an `own` one some source asks for what we apply ourselves, too.
    """

    gvk: GVK
    plural: str = ""
    own: bool = False


class Criterion(Struct, frozen=True):
    """Which CloudEvents count, by regular expressions; an empty one asks nothing.

    `channel` is about the subject of the messaging system that carried the event.
    """

    source: str = ""
    type: str = ""
    subject: str = ""
    channel: str = ""


class Listener(Struct, frozen=True):
    """An EventSource that takes CloudEvents: those that one of its criteria lets through."""

    source: str
    criteria: tuple[Criterion, ...]


class IngestPolicy(Struct, frozen=True):
    """All that ingest must know of one cluster: its tokens' digests and what counts.

    The former token counts until `former_until`, or without an end while that is None. In a
    `direct` one the present token is an API server's: with that one rings, and tells nothing. Of
    the kinds that are `held` profiles have objects that are to stay as they were applied; templates
    read objects of those that are `followed`.
    """

    token_digest: str
    kinds: tuple[WatchedKind, ...]
    revision: int
    former_digest: str = ""
    former_until: datetime | None = None
    direct: bool = False
    listeners: tuple[Listener, ...] = ()
    held: tuple[WatchedKind, ...] = ()
    followed: tuple[WatchedKind, ...] = ()

    def digests(self, now: datetime) -> tuple[str, str]:
        """Return the digests of the present and of the former token, the same one for none."""
        return _in_force(self.token_digest, self.former_digest, self.former_until, now)


class Sender(Redacted, frozen=True):
    """Who sends CloudEvents for a cluster from outside: nothing else, and for no other cluster.

    One that `signs` proves itself by signatures, and `proof` is its key; any other by a token, and
    `proof` is its digest. What it had before `changed_at` counts as a Gate's does.
    """

    secret_fields: ClassVar[Collection[str]] = ("proof", "former")
    cluster: str
    name: str
    made_at: datetime
    signs: bool = False
    proof: str = ""
    former: str = ""
    changed_at: datetime | None = None
    former_until: datetime | None = None

    def proofs(self, now: datetime) -> tuple[str, str]:
        """Return the present and the former proof, the same one for none."""
        return _in_force(self.proof, self.former, self.former_until, now)


def _in_force(present: str, former: str, until: datetime | None, now: datetime) -> tuple[str, str]:
    ended = until is not None and until <= now
    return present, present if ended or not former else former


class Issuer(Struct, frozen=True):
    """Who makes the tokens of a cluster's service accounts, and with which keys, as of `read_at`.

    A token counts that is for `audience`: the address that the cluster sends to. Where the keys may
    not be read there are none.
    """

    issuer: str
    audience: str
    keys: tuple[Mapping[str, str], ...]
    read_at: datetime


class Refusals(Struct, frozen=True):
    """How many requests came in a cluster's name with a wrong token, from when until when."""

    count: int
    since: datetime
    at: datetime


class WorkerHeartbeat(Struct, frozen=True):
    """When who does the work began, and when it last wrote that it is there; of which `version`.

    Its clock `jumped` last by so many seconds, ahead or back, at a time; all jumps since it began
    together are `off`. The oldest work that was `pending` then waits since that time.
    """

    since: datetime
    at: datetime
    version: str = ""
    jumped_at: datetime | None = None
    jumped: float = 0.0
    off: float = 0.0
    pending: datetime | None = None


class Heartbeat(Struct, frozen=True):
    """When a cluster's sender was last heard, and what its forwarder said of itself then.

    By so many seconds its clock was `ahead` of ours. A forwarder says its `version`, how many
    objects it has `owed` to ingest since when, which `problem` it has, and what keeps it from the
    cluster's `messaging`; an API server that sends by itself, and a forwarder of an earlier
    version, say nothing.
    """

    at: datetime
    ahead: float = 0.0
    version: str = ""
    owed: int = 0
    since: datetime | None = None
    problem: str = ""
    messaging: str = ""


class Observation(Struct, frozen=True):
    """The newest we know of one object.

    `manifest` is None for a tombstone. `resource_version` grows with every write in one cluster
    (KEP-5504 made comparing it official); 0 is older than anything. One that is `unconfirmed` was
    sent by the cluster's sender, and no list or read of ours has shown that life of it. A tombstone
    is so where a read of ours found that there is no such object.
    """

    cluster: str
    key: ObjectKey
    uid: str
    resource_version: int
    manifest: Mapping[str, Any] | None
    seen_at: datetime
    unconfirmed: bool = False

    @property
    def gone(self) -> bool:
        """Say whether the object was deleted."""
        return self.manifest is None


class Match(Struct, frozen=True):
    """One object that matches one source now, or whose last evaluation failed.

    With an `error`, `matching` is what it was before: an error is never an empty answer. It is
    `told` once deploy has been asked about it as it is; one that matches no more, and has no
    error, stays until then. One that is `held` has ended, and counts as `matching` until it is let
    go: too much of its report ended at once. Its evaluation fails since `failed_at`.
    """

    cluster: str
    source: str
    key: ObjectKey
    matching: bool
    digest: str
    since: datetime
    message: str = ""
    error: str = ""
    told: bool = False
    held: bool = False
    failed_at: datetime | None = None


Cause = Literal["rings", "sweep", "declaration"]
"""What ended matches: their cluster rang, a sweep found it, or a source was written anew."""


class HeldDeletion(Struct, frozen=True):
    """What ended in one report, of a cluster and a source, and is not withdrawn yet.

    Until `until` it is only counted: `counted` is how many had ended when that was done last, and
    `gone` how many were withdrawn before anybody knew that more would follow. `held_at` says that
    it was too much, of so many as `of`. What is held under another `lot` than this one is let go.
    So many `sweeps` have seen all of it since then, the `first` and the `last` of which ended at
    these times; of what was `looked` at, up to this object, they let go what was gone.
    """

    cluster: str
    source: str
    lot: str
    cause: Cause
    since: datetime
    until: datetime
    gone: int = 0
    counted: int = 0
    of: int = 0
    held_at: datetime | None = None
    sweeps: int = 0
    first: datetime | None = None
    last: datetime | None = None
    looked: str = ""


class Selected(Redacted, frozen=True):
    """One resource of a selection, and since when it is there; none of it where none is collected.

    The digest says which state of it is meant.
    """

    secret_fields: ClassVar[Collection[str]] = ("manifest",)
    key: ObjectKey
    digest: str
    since: datetime
    manifest: Mapping[str, Any] = field(default_factory=dict)


class Selection(Struct, frozen=True, dict=True):
    """What a source's aggregatedSelection made of what matches in a cluster: its report there.

    `made_of` is a digest of the script and of the matches, and empty where it is to be made again.
    With an `error`, `selected` is what it was before; of one that was never `made`, nobody knows.
    It is `told` once deploy has been asked about it as it is. `left_out` names the objects that the
    script was not given; the script fails since `failed_at`.
    """

    cluster: str
    source: str
    since: datetime
    selected: tuple[Selected, ...] = ()
    made: bool = False
    made_of: str = ""
    message: str = ""
    error: str = ""
    told: bool = False
    left_out: str = ""
    failed_at: datetime | None = None

    @cached_property
    def by_key(self) -> Mapping[str, Selected]:
        """Find what is selected by its key's text."""
        return {str(each.key): each for each in self.selected}

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        """Return what is selected in which state, in the script's order."""
        return tuple((key, each.digest) for key, each in self.by_key.items())


class SourceIndex(Struct, frozen=True):
    """The sources that an object has matched since it was there: no other has a match of it.

    One of very many sources is `endless`: any source may be among them. One that has `ended`
    is that of an object that is gone.
    """

    cluster: str
    key: ObjectKey
    sources: tuple[str, ...] = ()
    endless: bool = False
    ended: bool = False

    def may_name(self, source: str) -> bool:
        """Say whether a source is, or may be, among them."""
        return self.endless or source in self.sources


class AccessReview(Struct, frozen=True):
    """Whether a service account may get and list a kind in a namespace, or in all of them.

    So the cluster said `at` that time; without it nobody knows. It is `told` once all objects were
    asked to be evaluated that a change of it is about; with an `error` the cluster gave no answer.
    """

    cluster: str
    account: str
    gvk: GVK
    namespace: str
    allowed: bool = False
    at: datetime | None = None
    told: bool = True
    error: str = ""


class SlowScript(Struct, frozen=True):
    """A source whose script keeps taking long: `digest` is the source's as it was written then.

    It took too long so many `times` in a row, `since` the first of them that was noted.
    """

    source: str
    digest: str
    times: int
    since: datetime


class Target(Struct, frozen=True):
    """Conditions on an object, all of which must hold; an empty one always holds.

    The first five are regular expressions that match a field as a whole, the last two selectors.
    """

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    annotations: str = ""


ALL = Target()
"""Every object."""


class Exclusion(Struct, frozen=True):
    """Paths of the targets that are others' to decide once these objects are there."""

    paths: tuple[str, ...]
    target: Target = ALL


class PatchText(HeldText, frozen=True):
    """A patch, and for which objects."""

    target: Target | None = None


class Handling(Struct, frozen=True):
    """How what a ref names is brought.

    Of two refs of a profile that want one object the one of the lower `tier` has it. By `force`
    an object whose change is refused is made anew; by `skip_namespace` no namespace is made for
    one. All get the `patches`, in their order, and then the `labels` and `annotations`. What is
    `excluded` is written once. With its `status` an object's status is written, too. What is
    `shared` is good as it is where another profile has it. What is `local` is brought to
    `mgmt/mgmt`, for each cluster of the profile.
    """

    tier: int = 100
    force: bool = False
    skip_namespace: bool = False
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    excluded: tuple[Exclusion, ...] = ()
    status: bool = False
    shared: bool = False
    local: bool = False
    patches: tuple[PatchText, ...] = ()


PLAIN = Handling()
"""As is done where nobody asks for anything."""


class Content(Struct, frozen=True):
    """One key of a referenced ConfigMap or Secret: manifests, or text to render for a cluster.

    Or it is a `chart` or a `kustomization`, and nothing of that.

    `dialect` is the template's, or that of a script that writes the manifests. What is `secret` was
    made with the values of a Secret in reach: no error quotes it. `withheld` are those values, for
    deploy time: no name may be made of them. One with a `namespace` is for the clusters of it
    alone, one with `clusters` for these, by their keys; one that is `missing` says what is. The
    files of one with `files` are read when it is deployed.
    """

    ref: str
    entry: str
    manifests: tuple[Mapping[str, Any], ...] = ()
    template: str = ""
    dialect: Literal["go", "jinja2", "lua"] = "go"
    secret: bool = False
    withheld: tuple[str, ...] = ()
    namespace: str = ""
    missing: str = ""
    how: Handling = PLAIN
    clusters: tuple[str, ...] = ()
    chart: Chart | None = None
    kustomization: Kustomization | None = None
    files: FileRef | None = None

    @property
    def feature(self) -> FeatureName:
        """Say which feature deploys it."""
        if self.chart:
            return "Helm"
        return "Kustomize" if self.kustomization else "Resources"

    @property
    def comes_later(self) -> bool:
        """Say whether its objects are known only when it is deployed."""
        return self.files is not None or self.feature != "Resources"

    @property
    def alike(self) -> bool:
        """Say whether each cluster of a namespace gets the same of it."""
        patched = all(each.alike for each in self.how.patches)
        built = self.kustomization is None or self.kustomization.alike
        built = built and self.files is None
        return not self.template and not self.clusters and patched and built

    def with_patches(self, patches: tuple[PatchText, ...]) -> Content:
        """Return it with further patches, after those that it has."""
        if not patches:
            return self
        return replace(self, how=replace(self.how, patches=(*self.how.patches, *patches)))

    def is_for(self, cluster: Cluster) -> bool:
        """Say whether a cluster gets any of it."""
        chosen = not self.clusters or cluster.key in self.clusters
        return chosen and self.namespace in ("", cluster.namespace)


class Reading(Struct, frozen=True):
    """An object that templates of deploy time read by its identifier; its names may be templates.

    An empty namespace means that of the cluster that they are rendered for. By a `field` it has the
    files of an add-on, which was written there; those of an `address` are in no cluster. The names
    of one that is `plain` are no templates.
    """

    identifier: str
    api_version: str
    kind: str
    namespace: str
    name: str
    optional: bool = False
    field: str = ""
    address: Address | None = None
    plain: bool = False

    def within(self, namespace: str) -> Reading:
        """Return it with all that it names in a namespace."""
        address = self.address and replace(self.address, namespace=namespace)
        return replace(self, namespace=namespace, address=address)


NO_OBJECT = "what it holds writes no object yet"


def empty(contents: Sequence[Content]) -> bool:
    """Say whether contents bring nothing anywhere, though there are some."""
    return bool(contents) and not any(
        each.manifests or each.template or each.missing or each.comes_later for each in contents
    )


class Profile(Struct, frozen=True):
    """A ClusterProfile or Profile as it is to be applied; the latter is named NAMESPACE/NAME.

    Generated ones name their `trigger`, the source `cluster` and, with oneForEvent, the object;
    a user's own have an empty trigger. One that `leaves` clusters has something in them that is no
    longer wanted there; they have records of their own, and are named as `leaving` to who asks.
    `error` says why the newest inputs could not be instantiated; the rest is then what was last
    good. A profile that is withdrawn has neither contents nor a digest. It is `told` once all its
    clusters have been asked to be brought to this `revision`, which every change of it draws anew.
    `allow` says what it may bring; empty is everything. A `vague` one was read without its
    destinations: they are very many. `made_of` is a digest of what one for all objects was rendered
    from. Of one that is `paused` nothing is applied, put back or withdrawn. What its trigger's
    generators wrote is `generated`: it is there as long as the profile, and for all to read. What
    it `reads` is read anew whenever it is rendered for a cluster. By its `sync` it may be tried
    dry: no cluster is touched then; or be brought once to each, whatever changes later. So many
    `turns` led to it, of what we brought ourselves and was made anew of it, `turning` since then,
    as long as `turned_by` is the mark of the rules. Its `rollout` says what stops it. With the
    rights of its `account`, a service account `namespace/name`, all is done in clusters; with our
    own where it has none. To the one that it `grants` rights it brings them. It has `checks` of
    each time at which it is `checked`: who finds none has lost them. What its checks run are its
    `jobs`, by where they are taken from. What it holds is its revision `number`, of so many as
    `latest`, rendered at `made_at` of what the `recipe` names. One that is `pinned` was rolled back
    to that, and holds it whatever is declared. People know it by its `title`, where its trigger has
    a template of names. Its `hosting` says what it has in `mgmt/mgmt`, which is among its
    destinations then. One that `leaves_unchanged` was deleted in DryRun: no cluster is touched, and
    it owns nothing more. Its inputs fail since `failed_at`.
    """

    name: str
    trigger: str
    cluster: str
    object: str
    contents: tuple[Content, ...]
    destinations: tuple[str, ...]
    tier: int
    leaves_policies: bool
    continue_on_conflict: bool
    digest: str
    error: str = ""
    error_code: str = ""
    revision: str = ""
    told: bool = False
    allow: str = ""
    leaves: bool = False
    leaving: tuple[str, ...] = ()
    vague: bool = False
    made_of: str = ""
    paused: bool = False
    generated: tuple[Mapping[str, Any], ...] = ()
    reads: tuple[Reading, ...] = ()
    sync: Sync = "Continuous"
    turns: int = 0
    turning: datetime | None = None
    turned_by: str = ""
    rollout: Rollout = AT_ONCE
    account: str = ""
    grants: str = ""
    checked: tuple[When, ...] = ()
    checks: tuple[Check, ...] = ()
    jobs: Mapping[str, tuple[Content, ...]] = {}
    number: int = 0
    latest: int = 0
    pinned: bool = False
    made_at: datetime | None = None
    recipe: Mapping[str, str] = {}
    title: str = ""
    hosting: Hosting = ""
    leaves_unchanged: bool = False
    failed_at: datetime | None = None

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
        """Name what it generated, by kind and name, and itself as long as it holds anything."""
        written = tuple((each["kind"], each["metadata"]["name"]) for each in self.generated)
        return (("ClusterProfile", self.title), *written) if self.title and self.digest else written

    @property
    def matched(self) -> tuple[str, ...]:
        """Return the clusters that it selects: its destinations, but one that only hosts."""
        if self.hosting != "alone":
            return self.destinations
        return tuple(each for each in self.destinations if each != MANAGEMENT)

    def only_hosts(self, cluster: str) -> bool:
        """Say whether all that a cluster has of it, or had last, is there for other clusters."""
        return cluster == MANAGEMENT and self.hosting in ("alone", "left")

    def guests(self, cluster: str) -> tuple[str, ...]:
        """Return the clusters for which it brings to a cluster what is Local: most host none."""
        hosts = cluster == MANAGEMENT and self.hosting in ("alone", "beside")
        return self.matched if hosts else ()

    def may_name(self, cluster: str) -> bool:
        """Say whether a cluster is, or for all that was read may be, among its clusters."""
        return self.vague or cluster in self.destinations or cluster in self.leaving


class NameReservation(Struct, frozen=True):
    """Which profile has a name that a template wrote, and whose profiles wait for it.

    It counts where that profile says so, too. Of those that wait trigger, source cluster and object
    are told.
    """

    trigger: str
    cluster: str
    profile: str
    waiting: tuple[tuple[str, str, str], ...] = ()


class Held(Struct, frozen=True):
    """One object of an inventory; an empty digest means that applying it had only begun.

    `version` is that of the kind in which it was written last; `uid` says which life of the
    object that was, and is empty as long as nobody knows. What an API server says of a `secret`
    one may quote a Secret; what was applied tells that it is none. One that was `adopted` names
    who had made it, and stays when it is withdrawn. `fields` is a digest of the fields that were
    ours once it was applied, where drift is watched: whoever changes one takes it from us.
    It was `mended` so many times in a row, `mended_at` last. Of a workload that restarts with what
    it reads, `mounted` has the state of each, and `reloaded` what its pods are annotated with. What
    is `local` is there for the clusters of its profile. Of a Helm release `release` says which
    chart it is of; what Helm made for one is `part_of` it, `namespace/name`. One that is
    `kustomized` a kustomization has built.
    """

    digest: str
    ref: str
    applied_at: datetime | None = None
    version: str = ""
    uid: str = ""
    secret: bool = True
    adopted: str = ""
    fields: str = ""
    mended: int = 0
    mended_at: datetime | None = None
    mounted: Mapping[str, str] = {}
    reloaded: str = ""
    local: bool = False
    release: HeldRelease | None = None
    part_of: str = ""
    kustomized: bool = False

    @property
    def feature(self) -> FeatureName:
        """Say which feature deployed it."""
        if self.of_chart:
            return "Helm"
        return "Kustomize" if self.kustomized else "Resources"

    @property
    def of_chart(self) -> bool:
        """Say whether it is there by a chart."""
        return self.release is not None or bool(self.part_of)


class Watch(Struct, frozen=True):
    """The kinds of which a profile holds objects in a cluster that are to stay as they are.

    And those of what its workloads read, if these restart with it: the `mounts`. The cluster rings
    for these kinds; it is `told` once a sweep was asked to see to that. Objects of Helm releases
    have the `charts` kinds; of a record without that field, all may.
    """

    cluster: str
    profile: str
    trigger: str
    source: str
    kinds: tuple[GVK, ...]
    told: bool = False
    mounts: tuple[str, ...] = ()
    charts: tuple[GVK, ...] | None = None

    @property
    def of_charts(self) -> tuple[GVK, ...]:
        """Return the kinds that objects of Helm releases may have."""
        return self.kinds if self.charts is None else self.charts


class Inventory(Struct, frozen=True):
    """What one profile owns in one cluster, and who is at work on it until when."""

    cluster: str
    profile: str
    held: Mapping[Identity, Held]
    worker: str = ""
    until: datetime | None = None


class Owner(Struct, frozen=True):
    """Which profile has an object in one cluster, who waits for it, and who is to be told.

    Without a `profile` nobody has it, and those who waited are still to be told.
    """

    profile: str
    trigger: str
    source: str
    tier: int
    waiting: tuple[tuple[str, str, str], ...] = ()
    tell: tuple[tuple[str, str, str], ...] = ()


class Orphan(Struct, frozen=True):
    """An object in a cluster that is not as the records have it.

    A stray carries our marks, and no profile holds it; of a foreign one a profile holds what was
    there before somebody made another object of its name.
    """

    what: Literal["stray", "foreign"]
    profile: str
    uid: str
    version: str
    since: datetime


class Ended(Struct, frozen=True):
    """How one feature of a profile ended in one cluster, and when it is tried next."""

    feature: str
    phase: Phase
    reason: str = ""
    message: str = ""
    retry_at: datetime | None = None


class DeploymentStatus(Struct, frozen=True):
    """How applying one profile to one cluster ended last, and when it is tried next.

    `failures` counts those in a row; without a `retry_at` somebody has to change an input. One that
    `reads` was made of objects of which nobody tells when they change: each sweep asks it again.
    How each feature ended is in `features`; of one that an earlier version wrote nobody knows.
    Of the failures in a row so many were `counted` that count against the profile's most, while it
    was `made_of` the same and its templates were given the same to `read`. Of a profile that is
    brought in an order with others it says which `revision` it is about; of no other it says none.
    Of what is Local `guests` is a digest of the clusters for which it was brought. What it needs
    knows that by a record under each name in `needs`. It has ended alike `since` then: `at` is the
    last attempt.
    """

    cluster: str
    profile: str
    trigger: str
    source: str
    phase: Phase
    at: datetime
    reason: str = ""
    message: str = ""
    failures: int = 0
    retry_at: datetime | None = None
    reads: bool = False
    features: tuple[Ended, ...] = ()
    counted: int = 0
    made_of: str = ""
    read: str = ""
    revision: str = ""
    guests: str = ""
    needs: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def begun_at(self) -> datetime:
        """Return since when it ends as it did last, as far as that was noted."""
        return self.since or self.at

    @property
    def shown_at(self) -> datetime:
        """Return the time to show: when it was deployed last, or since when it is not."""
        return self.at if self.phase == "Provisioned" else self.begun_at


Action = Literal["Create", "Adopt", "Update", "Delete", "No Action", "Conflict", "Error"]
"""What would become of one object, in Sveltos' words; it has none for one that is taken over."""


class Change(Struct, frozen=True):
    """What would become of one object; the `diff` hides what a Secret holds."""

    key: Identity
    action: Action
    message: str = ""
    diff: str = ""


class Preview(Struct, frozen=True):
    """What applying a profile to a cluster would do, as the cluster was then."""

    cluster: str
    profile: str
    at: datetime
    changes: tuple[Change, ...]


class Entry(Struct, frozen=True):
    """One line of the ledger: what happened to one object's event, and how long it took."""

    at: datetime
    trace: str
    what: str
    cluster: str
    object: str
    detail: str = ""
    took_ms: float = 0.0
    context: Mapping[str, Any] = {}
