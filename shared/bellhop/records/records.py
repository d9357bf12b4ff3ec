"""Every read and write of a record, one method each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from bellhop.errors import BellhopError, MissingError, StaleError
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.record import (
    Cluster,
    Content,
    Entry,
    Gate,
    Health,
    Held,
    Inventory,
    Match,
    Observation,
    Outcome,
    Owner,
    Profile,
    WatchedKind,
)
from bellhop.ports.blobs import Blobs
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.records.sealing import Sealer, as_bytes, as_text

INLINE = 128 * 1024
"""Sealed bytes above this go to the blob store: DynamoDB takes 400 KB an item, Firestore 1 MiB."""

TOMBSTONE = timedelta(days=7)
"""How long a deletion is remembered: longer than any queue of ours keeps a message."""

LEDGER = timedelta(days=7)
_RETRIES = 8

T = TypeVar("T")


class Records:
    """Typed records over a Store, a blob store and a Sealer; holds no state of its own."""

    def __init__(self, store: Store, blobs: Blobs, sealer: Sealer, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self._blobs = blobs
        self._sealer = sealer

    # Clusters ------------------------------------------------------------------------------

    def cluster(self, key: str) -> Cluster | None:
        """Read a cluster by namespace/name."""
        item = self.store.get("cluster", key)
        return _cluster(item.value) if item else None

    def clusters(self) -> Iterator[Cluster]:
        """Yield all clusters, by name."""
        return (_cluster(item.value) for item in self.store.query("cluster"))

    def put_cluster(self, cluster: Cluster) -> None:
        """Write a cluster."""
        self.store.put(
            Item(
                "cluster",
                cluster.key,
                {
                    "namespace": cluster.namespace,
                    "name": cluster.name,
                    "labels": dict(cluster.labels),
                    "kubernetes": cluster.kubernetes,
                    "token": cluster.token_digest,
                    "at": cluster.registered_at.isoformat(),
                    "forwarder": dict(cluster.forwarder),
                    "credentials": cluster.credentials,
                },
            )
        )

    def forget_cluster(self, key: str) -> None:
        """Delete a cluster, and with it who may send for it; `forget_traces` does the rest."""
        self.store.delete("cluster", key)
        self.store.delete("gate", key)

    def forget_traces(self, key: str) -> None:
        """Delete what was observed, matched and applied in a cluster, and how it was."""
        for kept in ("observation", "match", "inventory", "owner", "outcome", "strikes"):
            self._forget(f"{kept}/{key}")
        self.store.delete("health", key)

    def forget_holdings(self, key: str) -> None:
        """Delete what profiles own in a cluster: it is not the cluster that it was."""
        self._forget(f"inventory/{key}")
        self._forget(f"owner/{key}")

    def _forget(self, partition: str) -> None:
        for item in self.store.query(partition):
            self._drop_payload(item.value)
            self.store.delete(partition, item.sort)

    def health(self, cluster: str) -> Health:
        """Read how a cluster was when last met."""
        item = self.store.get("health", cluster)
        if item is None:
            return Health()
        value = dict(item.value)
        value["swept_at"] = _time(value["swept_at"])
        return Health(**value)

    def put_health(self, cluster: str, health: Health) -> None:
        """Write how a cluster is."""
        value = {
            "state": health.state,
            "message": health.message,
            "swept_at": health.swept_at.isoformat() if health.swept_at else None,
            "seen": health.seen,
            "missed": health.missed,
            "judged": health.judged,
            "uid": health.uid,
        }
        self.store.put(Item("health", cluster, value))

    def strikes(self, cluster: str, gvk: GVK) -> int:
        """Read how many sweeps in a row found suspiciously much of a kind gone."""
        item = self.store.get(f"strikes/{cluster}", str(gvk))
        return int(item.value["count"]) if item else 0

    def put_strikes(self, cluster: str, gvk: GVK, count: int) -> None:
        """Write how many sweeps in a row agree; none is forgotten."""
        if count:
            self.store.put(Item(f"strikes/{cluster}", str(gvk), {"count": count}))
        else:
            self.store.delete(f"strikes/{cluster}", str(gvk))

    def gate(self, cluster: str) -> Gate | None:
        """Read what ingest must know of a cluster."""
        item = self.store.get("gate", cluster)
        if item is None:
            return None
        kinds = tuple(WatchedKind(GVK(*row[:3]), row[3]) for row in item.value["kinds"])
        return Gate(item.value["token"], kinds, item.value["revision"])

    def put_gate(self, cluster: str, gate: Gate) -> None:
        """Write a gate unless one of a later catalog is there, or the cluster is forgotten."""
        value = {
            "token": gate.token_digest,
            "kinds": [[*watched.gvk, watched.plural] for watched in gate.kinds],
            "revision": gate.revision,
        }
        for _ in range(_RETRIES):
            old = self.store.get("gate", cluster)
            if old and old.value["revision"] > gate.revision:
                return
            try:
                self.store.put(Item("gate", cluster, value), expect=old.version if old else ABSENT)
            except StaleError:
                continue
            if self.store.get("cluster", cluster) is None:
                # Whoever forgets a cluster deletes its name first: one of us sees the other.
                self.store.delete("gate", cluster)
            return

    # What users declared -------------------------------------------------------------------

    def revision(self) -> int:
        """Read the number that grows with each change of what users declared."""
        item = self.store.get("catalog", "revision")
        return item.version if item else 0

    def raise_revision(self) -> int:
        """Tell every reader that its catalog is out of date; return the new number."""
        return self.store.put(Item("catalog", "revision", {})).version

    def manifest(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Read what a user declared, as it was written."""
        item = self.store.get(f"manifest/{kind}", f"{namespace}/{name}")
        return self._open(item) if item else None

    def manifests(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield all that users declared of one kind."""
        return (self._open(item) for item in self.store.query(f"manifest/{kind}"))

    def put_manifest(self, kind: str, namespace: str, name: str, manifest: dict[str, Any]) -> None:
        """Write what a user declared."""
        self._put_sealed(f"manifest/{kind}", f"{namespace}/{name}", manifest, {})

    def delete_manifest(self, kind: str, namespace: str, name: str) -> bool:
        """Delete what a user declared; say whether it was there."""
        return self._delete_sealed(f"manifest/{kind}", f"{namespace}/{name}")

    def pending(self) -> Iterator[tuple[str, Mapping[str, Any], datetime]]:
        """Yield changes whose follow-up messages may not have been published."""
        for item in self.store.query("pending"):
            yield item.sort, item.value["change"], datetime.fromisoformat(item.value["at"])

    def put_pending(self, name: str, change: Mapping[str, Any]) -> None:
        """Note a change before it is made, so that a crash half-way is made good."""
        value = {"change": change, "at": self.clock.now().isoformat()}
        self.store.put(Item("pending", name, value))

    def drop_pending(self, name: str) -> None:
        """Note that a change's messages are all published."""
        self.store.delete("pending", name)

    # Observations and matches ----------------------------------------------------------------

    def observation(self, cluster: str, key: ObjectKey) -> Observation | None:
        """Read the newest we know of an object."""
        item = self.store.get(f"observation/{cluster}", str(key))
        return self._observation(cluster, item) if item else None

    def observations(self, cluster: str, gvk: GVK) -> Iterator[Observation]:
        """Yield the observations of a kind, tombstones too."""
        for item in self.store.query(f"observation/{cluster}", prefix="/".join(gvk) + "/"):
            yield self._observation(cluster, item)

    def observed(
        self, cluster: str, gvk: GVK | None = None
    ) -> Iterator[tuple[ObjectKey, str, int, bool]]:
        """Yield key, uid, resource version and whether it is gone, of all or one kind's objects."""
        prefix = "/".join(gvk) + "/" if gvk else ""
        for item in self.store.query(f"observation/{cluster}", prefix=prefix):
            value = item.value
            yield ObjectKey.parse(item.sort), value["uid"], value["rv"], value["gone"]

    def put_observation(
        self, observation: Observation, *, asked_at: datetime | None = None
    ) -> bool:
        """Write an observation if it is not older than what is there; say whether it is news.

        Equal ones are written too: a sender that repeats itself may not have been heard to the
        end. A tombstone hides its object's uid and every older version.

        Versions are compared within one life of a cluster. Who asked the cluster itself says
        when (`asked_at`): the answer is newer than all that was kept before, whatever versions
        say, so that a cluster restored from a backup, or made anew, is seen as it is.
        """
        partition, sort = f"observation/{observation.cluster}", str(observation.key)
        for _ in range(_RETRIES):
            old = self.store.get(partition, sort)
            known = old and not (asked_at and datetime.fromisoformat(old.value["at"]) < asked_at)
            if old and known and _supersedes(old.value, observation):
                return False
            version = observation.resource_version
            if old and observation.gone:
                # What was older than the object is older than its tombstone.
                version = max(version, old.value["rv"])
            clear = {
                "uid": observation.uid,
                "rv": version,
                "gone": observation.gone,
                "at": observation.seen_at.isoformat(),
            }
            expires = self.clock.now() + TOMBSTONE if observation.gone else None
            try:
                self._put_sealed(
                    partition,
                    sort,
                    observation.manifest,
                    clear,
                    expect=old.version if old else ABSENT,
                    expires_at=expires,
                    old=old,
                )
            except StaleError:
                continue
            return True
        raise StaleError(f"cannot write the observation of '{sort}': other writers keep winning")

    def delete_observation(self, cluster: str, key: ObjectKey) -> None:
        """Forget an object, for kinds that no longer count."""
        self._delete_sealed(f"observation/{cluster}", str(key))

    def match(self, cluster: str, source: str, key: ObjectKey) -> Match | None:
        """Read one match."""
        item = self.store.get(f"match/{cluster}", f"{source}/{key}")
        return _match(cluster, item) if item else None

    def matches(self, cluster: str, source: str = "") -> Iterator[Match]:
        """Yield the matches of a cluster, or of one source in it, by object."""
        prefix = f"{source}/" if source else ""
        for item in self.store.query(f"match/{cluster}", prefix=prefix):
            yield _match(cluster, item)

    def put_match(self, match: Match) -> None:
        """Write one match."""
        value = {
            "matching": match.matching,
            "digest": match.digest,
            "since": match.since.isoformat(),
            "message": match.message,
            "error": match.error,
        }
        self.store.put(Item(f"match/{match.cluster}", f"{match.source}/{match.key}", value))

    def delete_match(self, cluster: str, source: str, key: ObjectKey) -> None:
        """Delete one match."""
        self.store.delete(f"match/{cluster}", f"{source}/{key}")

    # Profiles and what became of them ---------------------------------------------------------

    def profile(self, trigger: str, cluster: str, name: str) -> tuple[Profile, int] | None:
        """Read a profile and its version, for `put_profile`."""
        item = self.store.get(f"profile/{trigger}", f"{cluster}/{name}")
        return (self._profile(item), item.version) if item else None

    def profiles(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated, in all or one source cluster."""
        prefix = f"{cluster}/" if cluster else ""
        for item in self.store.query(f"profile/{trigger}", prefix=prefix):
            yield self._profile(item)

    def profile_heads(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated as `profiles` does, without their contents."""
        prefix = f"{cluster}/" if cluster else ""
        for item in self.store.query(f"profile/{trigger}", prefix=prefix):
            yield _profile(item, ())

    def put_profile(self, profile: Profile, *, expect: int = ANY) -> int:
        """Write a profile and return its version.

        Raises:
            StaleError: the version is not `expect`.
        """
        value = {
            "contents": [
                {
                    "ref": content.ref,
                    "entry": content.entry,
                    "manifests": list(content.manifests),
                    "template": content.template,
                    "dialect": content.dialect,
                    "secret": content.secret,
                }
                for content in profile.contents
            ]
        }
        clear = {
            "name": profile.name,
            "trigger": profile.trigger,
            "cluster": profile.cluster,
            "object": profile.object,
            "destinations": list(profile.destinations),
            "leaving": list(profile.leaving),
            "tier": profile.tier,
            "leaves_policies": profile.leaves_policies,
            "continue_on_conflict": profile.continue_on_conflict,
            "digest": profile.digest,
            "error": profile.error,
            "error_code": profile.error_code,
        }
        sort = f"{profile.cluster}/{profile.name}"
        return self._put_sealed(f"profile/{profile.trigger}", sort, value, clear, expect=expect)

    def delete_profile(self, profile: Profile, *, expect: int = ANY) -> None:
        """Delete a profile that holds nothing any more.

        Raises:
            StaleError: the version is not `expect`.
        """
        sort = f"{profile.cluster}/{profile.name}"
        self._delete_sealed(f"profile/{profile.trigger}", sort, expect=expect)

    def inventory(self, cluster: str, profile: str) -> Inventory:
        """Read what a profile owns in a cluster; nothing where there is no record."""
        return self.versioned_inventory(cluster, profile)[0]

    def versioned_inventory(self, cluster: str, profile: str) -> tuple[Inventory, int]:
        """Read what a profile owns in a cluster, and the version for `put_inventory`."""
        item = self.store.get(f"inventory/{cluster}", profile)
        if item is None:
            return Inventory(cluster, profile, {}), ABSENT
        return self._inventory(cluster, item), item.version

    def inventories(self, cluster: str) -> Iterator[Inventory]:
        """Yield all inventories of a cluster."""
        for item in self.store.query(f"inventory/{cluster}"):
            yield self._inventory(cluster, item)

    def put_inventory(self, inventory: Inventory, *, expect: int = ANY) -> int:
        """Write an inventory and return its version; an empty one is deleted.

        Raises:
            StaleError: the version is not `expect`.
        """
        partition = f"inventory/{inventory.cluster}"
        if not inventory.held:
            self._delete_sealed(partition, inventory.profile, expect=expect)
            return ABSENT
        value = {
            str(key): [held.digest, held.ref, held.applied_at and held.applied_at.isoformat()]
            for key, held in inventory.held.items()
        }
        return self._put_sealed(partition, inventory.profile, value, {}, expect=expect)

    def owner(self, cluster: str, key: ObjectKey) -> tuple[Owner, int] | None:
        """Read who owns an object, and the version for `put_owner`."""
        item = self.store.get(f"owner/{cluster}", str(key))
        if item is None:
            return None
        value = dict(item.value)
        value["waiting"] = tuple((row[0], row[1], row[2]) for row in value["waiting"])
        return Owner(**value), item.version

    def put_owner(self, cluster: str, key: ObjectKey, owner: Owner, *, expect: int) -> None:
        """Write who owns an object.

        Raises:
            StaleError: somebody else was quicker.
        """
        value = {
            "profile": owner.profile,
            "trigger": owner.trigger,
            "source": owner.source,
            "tier": owner.tier,
            "waiting": [list(row) for row in owner.waiting],
        }
        self.store.put(Item(f"owner/{cluster}", str(key), value), expect=expect)

    def delete_owner(self, cluster: str, key: ObjectKey, *, expect: int = ANY) -> None:
        """Give an object up.

        Raises:
            StaleError: somebody else was quicker.
        """
        self.store.delete(f"owner/{cluster}", str(key), expect=expect)

    def outcome(self, cluster: str, profile: str) -> Outcome | None:
        """Read how applying a profile to a cluster ended."""
        item = self.store.get(f"outcome/{cluster}", profile)
        return _outcome(cluster, item) if item else None

    def outcomes(self, cluster: str) -> Iterator[Outcome]:
        """Yield the outcomes of a cluster, by profile."""
        return (_outcome(cluster, item) for item in self.store.query(f"outcome/{cluster}"))

    def put_outcome(self, outcome: Outcome) -> None:
        """Write how applying a profile to a cluster ended."""
        value = {
            "trigger": outcome.trigger,
            "source": outcome.source,
            "phase": outcome.phase,
            "at": outcome.at.isoformat(),
            "reason": outcome.reason,
            "message": outcome.message,
            "failures": outcome.failures,
        }
        self.store.put(Item(f"outcome/{outcome.cluster}", outcome.profile, value))

    def delete_outcome(self, cluster: str, profile: str) -> None:
        """Forget an outcome."""
        self.store.delete(f"outcome/{cluster}", profile)

    # The ledger -----------------------------------------------------------------------------

    def note(self, entry: Entry) -> None:
        """Add a line to the ledger."""
        value = {
            "trace": entry.trace,
            "what": entry.what,
            "cluster": entry.cluster,
            "object": entry.object,
            "detail": entry.detail,
            "took_ms": entry.took_ms,
            "context": dict(entry.context),
        }
        at = entry.at.isoformat(timespec="microseconds")
        distinct = hashlib.sha256(repr((entry, value)).encode()).hexdigest()[:8]
        expires = entry.at + LEDGER
        self.store.put(Item(f"ledger/{at[:10]}", f"{at}/{distinct}", value, expires_at=expires))

    def ledger(self, day: str, after: str = "") -> Iterator[tuple[str, Entry]]:
        """Yield a day's (YYYY-MM-DD) lines by time, each with the mark to go on `after`."""
        for item in self.store.query(f"ledger/{day}", after=after):
            at = datetime.fromisoformat(item.sort.partition("/")[0])
            yield item.sort, Entry(at=at, **item.value)

    # Sealing and claim checks -----------------------------------------------------------------

    def _put_sealed(
        self,
        partition: str,
        sort: str,
        value: Any,
        clear: Mapping[str, Any],
        *,
        expect: int = ANY,
        expires_at: datetime | None = None,
        old: Item | None = None,
    ) -> int:
        """Write a record whose payload is sealed; `old` is what it replaces, where it is known."""
        sealed = self._sealer.seal(value, f"{partition} {sort}")
        record = dict(clear)
        if len(sealed) > INLINE:
            # The name holds the sealed bytes' digest, so that a lost race overwrites nothing.
            name = f"{partition}/{hashlib.sha256(sealed).hexdigest()}"
            self._blobs.put(name, sealed)
            record["blob"] = name
        else:
            record["sealed"] = as_text(sealed)
        if old is None and expect != ABSENT:
            old = self.store.get(partition, sort)
        try:
            item = Item(partition, sort, record, expires_at=expires_at)
            version = self.store.put(item, expect=expect).version
        except BellhopError:
            self._drop_payload(record)
            raise
        if old:
            self._drop_payload(old.value)
        return version

    def _open(self, item: Item) -> Any:
        name = item.value.get("blob")
        try:
            sealed = self._blobs.get(name) if name else as_bytes(item.value["sealed"])
        except MissingError as error:
            # Blobs go when their records change: this one has changed since it was read.
            raise StaleError(
                f"cannot read the record '{item.partition} {item.sort}': its payload is gone,"
                " as if another writer had just replaced it"
            ) from error
        return self._sealer.open(sealed, f"{item.partition} {item.sort}")

    def _delete_sealed(self, partition: str, sort: str, *, expect: int = ANY) -> bool:
        item = self.store.get(partition, sort)
        gone = self.store.delete(partition, sort, expect=expect)
        if item and gone:
            self._drop_payload(item.value)
        return gone

    def _drop_payload(self, value: Mapping[str, Any]) -> None:
        name = value.get("blob")
        if name:
            self._blobs.delete(name)

    def _observation(self, cluster: str, item: Item) -> Observation:
        return Observation(
            cluster=cluster,
            key=ObjectKey.parse(item.sort),
            uid=item.value["uid"],
            resource_version=item.value["rv"],
            manifest=self._open(item),
            seen_at=datetime.fromisoformat(item.value["at"]),
        )

    def _profile(self, item: Item) -> Profile:
        contents = tuple(
            Content(
                row["ref"],
                row["entry"],
                tuple(row["manifests"]),
                row["template"],
                row.get("dialect", "go"),
                row.get("secret", False),
            )
            for row in self._open(item)["contents"]
        )
        return _profile(item, contents)

    def _inventory(self, cluster: str, item: Item) -> Inventory:
        held = {
            ObjectKey.parse(key): Held(digest, ref, _time(at))
            for key, (digest, ref, at) in self._open(item).items()
        }
        return Inventory(cluster, item.sort, held)


def _supersedes(old: Mapping[str, Any], new: Observation) -> bool:
    if new.gone:
        # A deletion concerns one uid; a later object of the same name is another one.
        return bool(old["uid"] != new.uid and old["rv"] > new.resource_version)
    if old["gone"] and old["uid"] == new.uid:
        return True
    return bool(old["rv"] > new.resource_version)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _cluster(value: Mapping[str, Any]) -> Cluster:
    return Cluster(
        namespace=value["namespace"],
        name=value["name"],
        labels=value["labels"],
        kubernetes=value["kubernetes"],
        token_digest=value["token"],
        registered_at=datetime.fromisoformat(value["at"]),
        forwarder=value["forwarder"],
        credentials=value.get("credentials", ""),
    )


def _match(cluster: str, item: Item) -> Match:
    source, _, key = item.sort.partition("/")
    value = dict(item.value)
    value["since"] = datetime.fromisoformat(value["since"])
    return Match(cluster=cluster, source=source, key=ObjectKey.parse(key), **value)


def _profile(item: Item, contents: tuple[Content, ...]) -> Profile:
    value = {key: field for key, field in item.value.items() if key not in {"blob", "sealed"}}
    value["destinations"] = tuple(value["destinations"])
    value["leaving"] = tuple(value["leaving"])
    return Profile(contents=contents, **value)


def _outcome(cluster: str, item: Item) -> Outcome:
    value = dict(item.value)
    value["at"] = datetime.fromisoformat(value["at"])
    return Outcome(cluster=cluster, profile=item.sort, **value)
