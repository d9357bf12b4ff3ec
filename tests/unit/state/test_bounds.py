"""Nothing in records reaches an item's limit, however large the fleet, whatever is declared."""

from __future__ import annotations

import base64
import types
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Union, get_args, get_origin

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.deploy import ownership
from bellhop.errors import InvalidError, StaleError
from bellhop.events.records import MOST_NAMED
from bellhop.extras.classifiers.labels import MOST_GIVEN
from bellhop.ingest import account_tokens
from bellhop.ports.store import ABSENT
from bellhop.profiles import names as titles
from bellhop.profiles.records import Place
from bellhop.resync.progress import MOST_PROBLEMS, MOST_UNSEEN, MOST_UNSERVED, limit_problems
from bellhop.state import (
    cluster as clusters,
)
from bellhop.state import (
    content,
    deployment,
    event_log,
    heartbeats,
    ingest_policy,
    match,
    resync_progress,
)
from bellhop.state import profile as profiles
from bellhop.state.cluster import MOST_LABELS, Health, Tally
from bellhop.state.deployment import MOST_WATCHED, Owner, Watch
from bellhop.state.ingest_policy import MOST_FOLLOWED, Criterion, Issuer, Listener, WatchedKind
from bellhop.state.profile import NameReservation
from bellhop.state.records import Records
from bellhop.state.resync_progress import ResyncProgress
from tests.fakes.clock import START
from tests.fakes.fleet import CountingStore
from tests.fakes.kept import value_of
from tests.unit.state.rig import EAST, Rig, cluster, gate, profile

MANY = 20_000

MODULES = (
    clusters,
    content,
    deployment,
    event_log,
    heartbeats,
    ingest_policy,
    match,
    profiles,
    resync_progress,
)

# Which fields can grow ----------------------------------------------------------------------------

APART = {
    "SetSelection.clusters",
    "SetSelection.failing",
    "Health.judgement",
    "IngestPolicy.kinds",
    "IngestPolicy.listeners",
    "IngestPolicy.held",
    "IngestPolicy.followed",
    "IngestPolicy.configured",
    "Listener.criteria",
    "Observation.manifest",
    "Content.clusters",
    "Content.manifests",
    "Content.withheld",
    "Handling.labels",
    "Handling.annotations",
    "Handling.excluded",
    "Handling.patches",
    "PatchText.clusters",
    "Exclusion.paths",
    "Substitute.clusters",
    "Kustomization.components",
    "Kustomization.values",
    "Rollout.after",
    "Rollout.replaces",
    "AddonPolicy.checks",
    "Profile.contents",
    "Profile.generated",
    "Profile.reads",
    "Profile.checks",
    "Profile.jobs",
    "Profile.recipe",
    "Profile.destinations",
    "Profile.leaving",
    "Rendering.contents",
    "Rendering.generated",
    "Rendering.reads",
    "Rendering.recipe",
    "Inventory.held",
    "Held.mounted",
    "Preview.changes",
    "Selected.manifest",
    "Selection.selected",
}
"""Fields without a bound: they lie with a payload, always or when they are long, or have records of
their own."""

BOUNDED = {
    "Cluster.labels",
    "Cluster.forwarder",
    "Cluster.given",
    "Cluster.annotations",
    "Cluster.spec",
    "Health.unseen",
    "Health.followed",
    "Health.tallies",
    "Health.unserved",
    "Issuer.keys",
    "ResyncProgress.untold",
    "ResyncProgress.unseen",
    "ResyncProgress.followed",
    "ResyncProgress.unserved",
    "ResyncProgress.problems",
    "Owner.waiting",
    "Owner.tell",
    "NameReservation.waiting",
    "RolloutState.at_work",
    "RolloutState.untold",
    "SourceIndex.sources",
    "Entry.context",
    "DeploymentStatus.features",
    "DeploymentStatus.needs",
    "Watch.charts",
    "Watch.kinds",
    "Profile.checked",
    "Watch.mounts",
}
"""Fields whose writers keep so few entries that an item holds them."""


def kinds() -> Iterator[type[Struct]]:
    return (
        each
        for module in MODULES
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Struct)
        and each.__module__ == module.__name__
    )


def grows(hint: Any) -> bool:
    """Say whether a field's type has room for any number of things."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(grows(each) for each in get_args(hint))
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, (tuple, list, Mapping)) and origin != GVK


def test_each_field_that_can_grow_has_a_bound_or_lies_apart() -> None:
    """Who gives a record another such field says here, and shows below, what keeps it small."""
    found = {
        f"{kind.__name__}.{each.name}"
        for kind in kinds()
        for each in fields(kind)
        if grows(each.type)
    } - {f"{each}.key" for each in ("Change", "Match", "Observation", "Selected", "SourceIndex")}

    assert found == APART | BOUNDED
    assert APART.isdisjoint(BOUNDED)


# Without a bound ----------------------------------------------------------------------------------

EVERYWHERE = tuple(f"fleet-of-europe/cluster-number-{number:06}" for number in range(50_000))
JUDGED = {
    f"source-with-a-long-name-{number:06}": sha256(b"%d" % number).hexdigest()
    for number in range(MANY)
}
WATCHED = tuple(
    WatchedKind(GVK("a-group-of-ours.example.org", "v1", f"Kind{number:06}"), f"kinds{number:06}")
    for number in range(MANY)
)

LISTENING = tuple(
    Listener(f"source-{number:06}", (Criterion(source="a" * 100), Criterion(type="b" * 100)))
    for number in range(1000)
)


@pytest.fixture
def store(rig: Rig) -> CountingStore:
    return CountingStore(rig.store)


@pytest.fixture
def records(rig: Rig, store: CountingStore) -> Records:
    return rig.reopen(store)  # type: ignore[arg-type]


def lose_blobs(rig: Rig) -> None:
    for path in rig.folder.rglob("*"):
        if path.is_file():
            path.unlink()


def test_any_number_of_sources_evaluates_a_cluster(rig: Rig, records: Records) -> None:
    """Health comes back whole; who lists clusters opens no blob; what is the same is kept."""
    health = Health("Healthy", "", START, 10, 2, JUDGED, "uid")
    token = records.health.put(EAST, health)
    (blob,) = [path for path in rig.folder.rglob("*") if path.is_file()]
    token = records.health.put(EAST, replace(health, seen=11), expect=token)

    assert records.health.get(EAST).value == replace(health, seen=11)
    assert [path for path in rig.folder.rglob("*") if path.is_file()] == [blob]
    lose_blobs(rig)
    assert records.health.head(EAST) == replace(health, seen=11, judgement={})
    with pytest.raises(StaleError):
        records.health.put(EAST, replace(health, judgement={"s": "x"}), expect="another")


def test_the_digests_of_evaluated_sources_heal(rig: Rig, records: Records) -> None:
    """A cluster without them counts as never resynced; the next resync writes them again."""
    health = Health("Healthy", "", START, 10, 2, JUDGED, "uid")
    records.health.put(EAST, health)
    lose_blobs(rig)

    lost = records.health.get(EAST)
    assert lost.value == replace(health, judgement={}, swept_at=None)
    records.health.put(EAST, health, expect=lost.token)
    assert records.health.get(EAST).value == health


@pytest.mark.rest
def test_any_number_of_kinds_count_in_a_cluster(rig: Rig, records: Records) -> None:
    """A gate comes back whole; a lost one sends senders away for now, until it is written again.

    It is the same with sources that take CloudEvents.
    It takes long: a record that names very many kinds is written and read several times.
    """
    wide = replace(gate(), kinds=WATCHED, listeners=LISTENING, held=WATCHED, followed=WATCHED)
    records.clusters.put(cluster())
    records.gates.put(EAST, wide)
    assert value_of(records.gates.get(EAST)) == wide
    records.gates.put(EAST, replace(wide, revision=0, token_digest="older"))
    assert value_of(records.gates.get_or_none(EAST)) == wide
    lose_blobs(rig)
    for item in [x for s in "0123456789abcdef" for x in rig.store.query(f"payload/gate/{s}")]:
        rig.store.delete(item.partition, item.sort)

    with pytest.raises(StaleError, match="the next resync of the cluster writes it again"):
        records.gates.get(EAST)
    assert records.gates.get_or_none(EAST) is None
    records.gates.put(EAST, wide)
    assert value_of(records.gates.get(EAST)) == wide


def test_ingest_reads_a_gate_at_once(records: Records, store: CountingStore) -> None:
    """As long as its kinds fit into an item, as those of all clusters do that are known."""
    records.clusters.put(cluster())
    records.gates.put(EAST, replace(gate(), kinds=WATCHED[:1000]))
    store.counts.clear()

    assert value_of(records.gates.get(EAST))
    assert dict(store.counts) == {"get": 1}


def test_a_profile_goes_to_any_number_of_clusters(rig: Rig, records: Records) -> None:
    """It is written, read, changed and deleted; a change of its small fields moves nothing else."""
    wide = profile(destinations=EVERYWHERE)
    token = records.profiles.put(wide)
    head = records.profiles.head("t", EAST, "p")
    assert head
    assert head.value == replace(wide, contents=())
    before = rig.blobs()
    token = records.profiles.put_head(replace(head.value, told=True), expect=head.token)
    assert rig.blobs() == before
    assert value_of(records.profiles.get("t", EAST, "p")) == replace(wide, told=True)

    narrow = profile(destinations=EVERYWHERE[:1], contents=())
    token = records.profiles.put_head(narrow, expect=token)
    assert value_of(records.profiles.get("t", EAST, "p")) == profile(destinations=EVERYWHERE[:1])
    assert records.profiles.delete("t", EAST, "p", expect=token)


def test_contents_that_change_are_not_taken_for_what_lies_there(records: Records) -> None:
    """Nor are contents that go, though the destinations are the same."""
    token = records.profiles.put(profile("old", destinations=EVERYWHERE))
    token = records.profiles.put(profile("new", destinations=EVERYWHERE), expect=token)
    assert value_of(records.profiles.get("t", EAST, "p")) == profile("new", destinations=EVERYWHERE)

    bare = profile(destinations=EVERYWHERE, contents=())
    records.profiles.put(bare, expect=token)
    assert value_of(records.profiles.get("t", EAST, "p")) == bare


def test_who_lists_heads_reads_no_payload(rig: Rig, records: Records, store: CountingStore) -> None:
    """Of fifty thousand destinations a head says that they may be any: nothing is opened."""
    records.profiles.put(profile(destinations=EVERYWHERE))
    records.profiles.put(profile(name="q", leaves=True))
    records.departures.begin(Place("t", EAST, "q"), ["fleet/north"])
    lose_blobs(rig)
    store.counts.clear()

    wide, narrow = records.profiles.heads("t", EAST)
    assert dict(store.counts) == {"query": 2, "item": 3}
    assert (wide.vague, wide.object, wide.may_name(EVERYWHERE[-1])) == (True, narrow.object, True)
    assert (narrow.vague, narrow.may_name(EVERYWHERE[-1])) == (False, False)
    assert narrow.may_name("fleet/west")
    assert narrow.may_name("fleet/north")


# Bounded ------------------------------------------------------------------------------------------

NAME = "n" * 253
LONGEST = ObjectKey(GVK("g" * 253, "v" * 63, "K" * 63), "s" * 63, NAME)


def numbered(number: int) -> GVK:
    return GVK(LONGEST.gvk.group, LONGEST.gvk.version, f"{number:0>63}")


def test_a_walk_at_all_its_bounds_fits_into_an_item(rig: Rig) -> None:
    """With names as long as Kubernetes has them, and sentences of what takes most room."""
    unseen = tuple(numbered(number) for number in range(MOST_UNSEEN))
    # Those of the resync before it, which began again, and its own, with the current kind.
    untold = {str(numbered(n)): f"{LONGEST.namespace}/{NAME}" for n in range(2 * MOST_UNSEEN + 1)}
    said = limit_problems(f"{number}: {'😀' * 2048}" for number in range(2 * MOST_PROBLEMS))
    followed = tuple(numbered(number) for number in range(MOST_FOLLOWED))
    walk = ResyncProgress(
        "w" * 32,
        "j" * 64,
        "c" * 64,
        kind=LONGEST.gvk,
        after="t" * 4096,
        last=f"{LONGEST.namespace}/{NAME}",
        untold=untold,
        unseen=unseen,
        problems=said,
        followed=followed,
        unserved=unseen[:MOST_UNSERVED],
    )
    rig.records.walks.put(EAST, walk)

    assert value_of(rig.records.walks.get(EAST)) == walk
    assert len(said) == MOST_PROBLEMS
    told = "; ".join(said)
    health = Health("Down", told, START, unseen=unseen, judgement=JUDGED, followed=followed)
    tallies = tuple(Tally(START, 10**9, 10**9) for _ in range(2))
    health = replace(health, unserved=unseen[:MOST_UNSERVED], tallies=tallies)
    rig.records.health.put(EAST, health)
    assert rig.records.health.get(EAST).value == health


def test_a_watch_of_all_its_kinds_fits_into_an_item(rig: Rig) -> None:
    """With names as long as Kubernetes has them, and as much as workloads may read."""
    kinds = tuple(numbered(number) for number in range(MOST_WATCHED))
    mounts = tuple(f"/ConfigMap/{NAME}/{number:0>253}" for number in range(MOST_WATCHED))
    watch = Watch(EAST, NAME, NAME, f"{NAME}/{NAME}", kinds, mounts=mounts, charts=kinds)

    rig.records.watches.put(watch)

    assert value_of(rig.records.watches.get(EAST, NAME)) == watch


def test_all_keys_that_are_taken_fit_into_an_item(rig: Rig) -> None:
    """An API server that publishes more, or longer ones, gets the answer that it has no keys."""
    longest = base64.urlsafe_b64encode(b"\xff" * 1024).decode().rstrip("=")
    key = {"kty": "RSA", "e": "AQAB", "n": longest}
    room = account_tokens._LONGEST_KEY - sum(map(len, key.values()))
    most = [{"kid": f"{number:0>{room}}", **key} for number in range(account_tokens.MOST_KEYS)]
    issuer = Issuer(
        f"https://{NAME}", f"https://{NAME}", account_tokens.read_keys({"keys": most}), START
    )
    assert len(issuer.keys) == account_tokens.MOST_KEYS
    rig.records.issuers.put(EAST, issuer, expect=ABSENT)

    assert value_of(rig.records.issuers.get(EAST)) == issuer
    with pytest.raises(InvalidError):
        account_tokens.read_keys({"keys": [*most, {"kid": "one more", **key}]})


def test_an_owner_with_all_who_wait_fits_into_an_item(rig: Rig) -> None:
    """Who claims an object keeps so many of them, told and untold."""
    most = ownership._MOST_WAITING
    everybody = tuple((NAME, f"{NAME}/{number:0>253}", NAME) for number in range(most))
    owner = Owner(NAME, NAME, f"{NAME}/{NAME}", 100, everybody, everybody)
    rig.records.owners.put(EAST, LONGEST.identity, owner)

    assert value_of(rig.records.owners.get(EAST, LONGEST.identity)) == owner


def test_a_title_with_all_who_wait_fits_into_an_item(rig: Rig) -> None:
    """Who finds a name taken keeps so many of them."""
    everybody = ((NAME, f"{NAME}/{NAME}", str(LONGEST)),) * titles._MOST_WAITING
    title = NameReservation(NAME, f"{NAME}/{NAME}", NAME, everybody)
    rig.records.titles.put("ConfigMap", NAME, title)

    assert value_of(rig.records.titles.get("ConfigMap", NAME)) == title


def test_a_trail_fits_into_an_item_however_many_sources_an_object_matches(rig: Rig) -> None:
    """One more than it names, and it may be any; with the longest names that sources have."""
    names = [f"{number:0>253}" for number in range(MOST_NAMED + 1)]
    named = rig.records.trails.name(rig.records.trails.get(EAST, LONGEST), names[:-1])
    assert (len(named.sources), named.may_name(names[-1])) == (MOST_NAMED, False)

    rig.records.trails.name(rig.records.trails.get(EAST, LONGEST), names[-1:])

    found = rig.records.trails.get(EAST, LONGEST).value
    assert all(map(found.may_name, names))
    rig.records.trails.name(rig.records.trails.get(EAST, LONGEST), ["one-more"])


def test_a_cluster_with_all_its_labels_fits_into_an_item(rig: Rig) -> None:
    """With the longest that Kubernetes takes, and the largest authority that is taken."""
    labels = {f"{'p' * 253}/{number:0>63}": "v" * 63 for number in range(MOST_LABELS)}
    wired = {"url": "u" * 2048, "ca": "c" * 8192, "next-ca": "c" * 8192, "ingest-ca": "i" * 65536}
    given = {key: f"{number:0>253}" for number, key in enumerate([*labels][:MOST_GIVEN])}
    full = replace(cluster(), labels=labels, forwarder=wired, given=given)
    full.refuse_too_much()
    rig.records.clusters.put(full)

    assert value_of(rig.records.clusters.get(EAST)) == full
    with pytest.raises(InvalidError, match=f"257 labels: a cluster may have {MOST_LABELS}"):
        replace(full, labels={**labels, "one": "more"}).refuse_too_much()
