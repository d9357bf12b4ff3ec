"""What each function meets, as far as it takes a right of its own: each ends well, or raises.

A situation makes what it needs with the account's own rights, has the function do its work by its
role, and looks at what came of it. It can be played any number of times.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.aws.queue import DEAD
from bellhop.adapters.aws.store import S3Blobs
from bellhop.api.names import health_source
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import profile_name
from bellhop.errors import AwayError
from bellhop.ingest import signatures
from bellhop.ingest.account_tokens import read_keys
from bellhop.ports.store import Item
from bellhop.registration.registration import register
from bellhop.registration.request import Registration
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.rendering.observation import observe
from bellhop.state.blob_garbage import BlobGarbage, blob_name
from bellhop.state.cluster import MANAGEMENT, Circuit, Cluster
from bellhop.state.delays import classify_timer, hold_timer, probe_timer, retry_timer, sweep_timer
from bellhop.state.deployment import DeploymentStatus, Mount, Owner, TemplateDependency
from bellhop.state.envelope import Envelope
from bellhop.state.ingest_policy import Issuer, Refusals, Sender, WatchedKind
from bellhop.state.messages import (
    CHARTS,
    Aggregate,
    Apply,
    CheckDeletionGuard,
    CollectGarbage,
    Evaluate,
    Instantiate,
    Probe,
    ReadBack,
    Renew,
    Resolve,
    Resync,
    UpdateLabels,
)
from bellhop.state.promotion import PromotionState, StageState, make_witness
from tests.fakes.fleet import cloud_event, service
from tests.fakes.tokens import AUDIENCE, ISSUER, Signer
from tests.functions.lab import FEEDS, Context, event, records
from tests.functions.registered_objects import registers_by_an_object
from tests.functions.roles import EAST, EKS, EVENT_AT, FAR_EKS, NORTH, SOUTH, WEST, Post, noise
from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import REGION, pass_time

LONG, LARGE = 8_000, 300_000
"""Characters of noise whose payload lies beside its head, and of such that lies in a blob."""

_ENDED = timedelta(days=2)

KNOWN, UNKNOWN = Signer("known", "P-256"), Signer("unknown", "P-256")

Situation = Callable[[Post], None]


# What Lambda does by a function's role ------------------------------------------------------------


def logs(post: Post) -> None:
    """Lambda writes what a function says."""
    own, client = post.site.account.services.client("logs"), post.services.client("logs")
    group = f"/aws/lambda/{post.role}"
    with suppress(own.exceptions.ResourceAlreadyExistsException):
        own.create_log_group(logGroupName=group)
    place = {"logGroupName": group, "logStreamName": post.site.name()}
    client.create_log_stream(**place)
    line = {"timestamp": int(time.time() * 1000), "message": "x"}
    client.put_log_events(**place, logEvents=[line])


def is_fed(post: Post, inbox: str) -> None:
    """Lambda looks at the queue, takes a message, and deletes it; this one nobody can read."""
    body = {"do": "what nobody knows"}
    for each in (inbox, inbox + DEAD):
        post.clear(each)
    post.publish(inbox, body)
    attributes = {"QueueUrl": post.url(inbox), "AttributeNames": ["VisibilityTimeout"]}
    post.services.client("sqs").get_queue_attributes(**attributes)
    assert post.functions.feed(inbox, post.functions.handlers[FEEDS[inbox]]) == []

    assert post.taken(inbox + DEAD) == [body]


def is_fed_by_rules(post: Post) -> None:
    """Lambda takes what a rule of EventBridge wrote into the events' queue, and deletes it."""
    own, sqs = post.site.account.services.client("sqs"), post.services.client("sqs")
    url = own.create_queue(QueueName=f"{post.site.account.name}-events")["QueueUrl"]
    body = json.dumps({"cluster": EAST, "event": event("eventbridge")})
    own.send_message(QueueUrl=url, MessageBody=body)
    sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    asked = {"QueueUrl": url, "MessageSystemAttributeNames": ["All"]}
    [taken] = sqs.receive_message(**asked)["Messages"]
    answer = post.functions.front(records(f"arn:{url}", [taken]), Context())
    sqs.delete_message(QueueUrl=url, ReceiptHandle=taken["ReceiptHandle"])

    assert answer == {"batchItemFailures": []}


def gives_back(post: Post, inbox: str) -> None:
    """There is no time left for a message: it is there for others at once."""
    post.clear(inbox)
    post.publish(inbox, CollectGarbage().message().body)
    handler = post.functions.handlers[FEEDS[inbox]]

    assert len(post.functions.feed(inbox, handler, Context(each=40))) == 1
    assert len(post.taken(inbox)) == 1


def publishes_again(post: Post, inbox: str) -> None:
    """A message fails, here since it is of a newer version: it comes again after its pause."""
    body = {"do": "what a newer version does", "schema": 99}
    post.clear(inbox)
    post.publish(inbox, body)
    assert post.functions.feed(inbox, post.functions.handlers[FEEDS[inbox]]) == []
    pass_time(post.site.moto.url, 60)

    assert post.taken(inbox) == [body]


def fed_from(*inboxes: str) -> Sequence[Situation]:
    meets = (is_fed, gives_back, publishes_again)
    return [partial(each, inbox=inbox) for inbox in inboxes for each in meets]


# What several of them meet ------------------------------------------------------------------------


def lays_rules_together(post: Post, work: Situation) -> None:
    """Who reads all rules writes them into one blob, for those who begin after."""
    post.here.records.catalog.change("declared")
    work(post)

    assert post.here.records.catalog.read().blob


def reads_rules_laid_together(post: Post, work: Situation) -> None:
    """Who begins reads one blob."""
    _laid(post)
    work(post)


def reads_rules_one_by_one(post: Post, work: Situation) -> None:
    """The blob is lost."""
    blobs(post).delete(_laid(post))
    work(post)


def reading_rules(work: Situation) -> Sequence[Situation]:
    ways = (reads_rules_laid_together, lays_rules_together, reads_rules_one_by_one)
    return [partial(each, work=work) for each in ways]


def _laid(post: Post) -> str:
    """Have the rules laid together; return the blob's name."""
    post.here.records.catalog.change("declared")
    post.matching()
    return post.here.records.catalog.read().blob


def blobs(post: Post) -> S3Blobs:
    account = post.site.account
    return S3Blobs(account.services, account.environment["BELLHOP_BUCKET"])


# Ingest -------------------------------------------------------------------------------------------


def batch(*items: object) -> dict[str, object]:
    return {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": list(items)}


def sends(post: Post, body: object, tells: str) -> None:
    """Have a sender taken at its word, of which something follows."""
    post.taken(tells)

    answer = post.functions.send("east", body)
    assert answer["statusCode"] == 200, (answer, post.functions.account.output.getvalue())
    assert post.taken(tells)


def takes_an_object(post: Post) -> None:
    """It is kept, and to be evaluated."""
    sends(post, batch({"object": post.site.stored()}), "evaluate")


def takes_a_longer_object_twice(post: Post) -> None:
    """Its payload lies beside its head, and the one before is deleted."""
    web = post.site.stored(noise(LONG))
    for version in "89":
        web["metadata"]["resourceVersion"] = version
        sends(post, batch({"object": web}), "evaluate")


def takes_a_large_object(post: Post) -> None:
    """Its payload is a blob."""
    sends(post, batch({"object": post.site.stored(noise(LARGE))}), "evaluate")


def takes_a_hint(post: Post) -> None:
    """An object is about to change: it is to be read back."""
    web = post.site.stored()
    request = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Service"},
        "resource": {"group": "", "version": "v1", "resource": "services"},
        "operation": "CREATE",
        "namespace": "default",
        "name": web["metadata"]["name"],
        "object": web,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    sends(post, review, "confirm")


def is_asked_for_a_look(post: Post) -> None:
    """A forwarder may have missed something."""
    post.here.records.looks.delete(EAST)
    sends(post, {"apiVersion": "bellhop.dev/v1", "kind": "Missed"}, "sweep")


def knows_very_many_kinds(post: Post) -> None:
    """What counts in the cluster is a blob."""
    with _very_many_kinds(post):
        takes_an_object(post)


def says_that_kinds_are_lost(post: Post) -> None:
    """A sender gets the tables, and is sent away until a resync has written them again."""
    with _very_many_kinds(post) as blob:
        blobs(post).delete(blob)
        answer = post.functions.send("east", batch())

    assert (answer["statusCode"], "it is lost" in answer["body"]) == (503, True)


def hears_of_drift(post: Post) -> None:
    """The object's owner learns that somebody else wrote to it."""
    web = post.site.stored()
    key = ObjectKey.of(web)
    post.here.records.owners.put(EAST, key.identity, Owner("own", "made", EAST, 0))
    with _gate(post, held=(WatchedKind(key.gvk),)):
        sends(post, batch({"object": web}), "apply")


def knows_many_kinds(post: Post) -> None:
    """What counts in the cluster lies beside its gate."""
    with _kinds(post, [GVK("example.com", "v1", f"Kind{each}") for each in range(9_000)]) as value:
        assert value["payload"]
        takes_an_object(post)


def hears_that_something_is_read(post: Post) -> None:
    """Templates read an object of `mgmt/mgmt`: their profiles are applied again."""
    web, records, now = post.site.stored(), post.here.records, datetime.now(UTC)
    key = ObjectKey.of(web)
    kept = records.gates.get(EAST)
    assert kept
    records.clusters.put(Cluster("mgmt", "mgmt", {}, "v1.33.1", "", now))
    records.gates.put(MANAGEMENT, replace(kept.value, followed=(WatchedKind(key.gvk),)))
    records.readers.note(key.identity, TemplateDependency("made", EAST, "web", EAST))
    post.taken("apply")
    try:
        answer = post.functions.send(MANAGEMENT, batch({"object": web}), token="east")
        assert answer["statusCode"] == 200
    finally:
        records.gates.delete(MANAGEMENT)
        records.clusters.delete(MANAGEMENT)

    assert post.taken("apply")


def knows_of_restarts(post: Post) -> None:
    """Workloads restart with a ConfigMap that somebody else wrote."""
    config = {**post.site.stored(), "kind": "ConfigMap"}
    key, records = ObjectKey.of(config), post.here.records
    records.mounts.put(EAST, key.identity, Mount("made", EAST, "web"))
    with _gate(post, held=(WatchedKind(key.gvk),)):
        sends(post, batch({"object": config}), "apply")


def takes_a_cloud_event_twice(post: Post) -> None:
    """Its first arrival says where it belongs when it comes again."""
    event = cloud_event(post.site.name())
    for _ in range(2):
        assert tells(post, event)["statusCode"] == 200

    assert len(list(post.here.records.store.query(f"arrival/{EAST}"))) > 0


def takes_what_is_signed(post: Post) -> None:
    """By a sender from outside, and once."""
    event = cloud_event(post.site.name())
    with _sender(post) as sign:
        signed = sign(json.dumps(event))

        assert tells(post, event, "east/senders/ci", signed)["statusCode"] == 200
        assert tells(post, event, "east/senders/ci", signed)["statusCode"] == 401


def lets_a_signed_request_come_again(post: Post) -> None:
    """Nothing was taken of it: it is no event."""
    with _sender(post) as sign:
        signed = sign(json.dumps({}))
        for _ in range(2):
            assert tells(post, {}, "east/senders/ci", signed)["statusCode"] == 400


def counts_what_it_refuses(post: Post) -> None:
    """Somebody sends in the name of a cluster with another token."""
    post.here.records.refusals.delete(EAST)
    post.here.records.refusals.put(EAST, Refusals(1, datetime.now(UTC), datetime.now(UTC)))
    assert post.functions.send("east", batch(), token="wrong")["statusCode"] == 401

    kept = post.here.records.refusals.get(EAST)
    assert kept
    assert kept.value.count == 2


def meets_a_key_that_nobody_knows(post: Post) -> None:
    """The keys of the cluster's accounts are to be read."""
    records, now = post.here.records, datetime.now(UTC)
    keys = read_keys({"keys": [KNOWN.published()]})
    records.issuers.put(EAST, Issuer(ISSUER, AUDIENCE, keys, now))
    records.inquiries.delete(EAST)
    post.taken("sweep")
    try:
        for signer, status in ((KNOWN, 200), (UNKNOWN, 401)):
            answer = post.functions.send("east", batch(), token=signer.token(now))
            assert answer["statusCode"] == status
    finally:
        records.issuers.delete(EAST)

    assert post.taken("sweep")


def shows_the_heartbeat(post: Post) -> None:
    """A forwarder that has nothing to send is alive."""
    post.here.records.hearings.delete(EAST)
    assert post.functions.send("east", {"apiVersion": "bellhop.dev/v1", "kind": "Alive"})

    assert post.here.records.hearings.get(EAST)


def tells(
    post: Post, event: object, to: str = "east", headers: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Send a CloudEvent."""
    return post.functions.send(to, event, headers={"content-type": STRUCTURED, **(headers or {})})


@contextmanager
def _sender(post: Post) -> Iterator[Callable[[str], Mapping[str, str]]]:
    """Have a sender that signs; yield what signs a body for it."""
    key, now, name = signatures.new_key(), datetime.now(UTC), post.site.name()
    post.here.records.senders.put(Sender(EAST, "ci", now, signs=True, proof=key))
    at = int(now.timestamp())

    def sign(body: str) -> Mapping[str, str]:
        signature = signatures.sign(key, name, at, body.encode())
        return {
            "webhook-id": name,
            "webhook-timestamp": str(at),
            "webhook-signature": signature,
        }

    try:
        yield sign
    finally:
        post.here.records.senders.delete(EAST, "ci")


@contextmanager
def _very_many_kinds(post: Post) -> Iterator[str]:
    """Have very many kinds count in the cluster; yield the name of their blob."""
    text = noise(LARGE)
    many = [GVK(text[place : place + 60], "v1", "Kind") for place in range(0, LARGE, 60)]
    with _kinds(post, many) as value:
        yield value["blob"]


@contextmanager
def _kinds(post: Post, more: Iterable[GVK]) -> Iterator[Mapping[str, Any]]:
    """Have more kinds count in the cluster; yield the item that says so."""
    kept = post.here.records.gates.get(EAST)
    assert kept
    with _gate(post, kinds=(*kept.value.kinds, *map(WatchedKind, more))):
        item = post.here.records.store.get("gate", EAST)
        assert item
        yield item.value


@contextmanager
def _gate(post: Post, **changes: Any) -> Iterator[None]:
    """Have the cluster's ingest policy say something else for a while."""
    gates = post.here.records.gates
    kept = gates.get(EAST)
    assert kept
    gates.put(EAST, replace(kept.value, **changes))
    try:
        yield
    finally:
        gates.delete(EAST)
        gates.put(EAST, kept.value)


# Evaluate -----------------------------------------------------------------------------------------


def evaluates(post: Post, key: ObjectKey, tells: str = "deploy") -> None:
    """Evaluate an object, of which something follows."""
    assert post.work(Evaluate(EAST, str(key), event_at=EVENT_AT), tells)


def finds_a_match(post: Post) -> None:
    """It is kept, and its trigger asked for."""
    evaluates(post, post.site.observed(EAST))


def finds_a_match_no_more(post: Post) -> None:
    """The object is deleted."""
    key = post.matching()
    buries(post, key)
    evaluates(post, key)

    assert post.here.records.matches.get(EAST, "watched", key) is None


def reads_a_large_object(post: Post) -> None:
    """What was observed is a blob."""
    evaluates(post, post.site.observed(EAST, noise(LARGE)))


def puts_off_a_slow_script(post: Post) -> None:
    """The object is evaluated apart."""
    plain = {**post.site.stored(), "kind": "ConfigMap"}
    del plain["spec"], plain["status"]
    assert post.here.records.observations.put(observe(EAST, plain, datetime.now(UTC)))
    evaluates(post, ObjectKey.of(plain), "patient")


def wonders_what_a_tenant_sees(post: Post) -> None:
    """The cluster is to be asked."""
    held = {**post.site.stored(), "kind": "Endpoints"}
    assert post.here.records.observations.put(observe(EAST, held, datetime.now(UTC)))
    evaluates(post, ObjectKey.of(held), "confirm")


def says_that_something_is_not_well(post: Post) -> None:
    """The result of a health check with all its requests is to be reported."""
    records, source = post.here.records, health_source("services")
    kept = records.health.get(EAST)
    digest = post.here.catalogs.current().digest(source)
    evaluated = {**kept.value.judgement, source: digest}
    records.health.put(EAST, replace(kept.value, judgement=evaluated), expect=kept.token)
    records.selections.delete(EAST, source)

    assert post.work(Aggregate(EAST, source, event_at=EVENT_AT), "probe")


def buries(post: Post, key: ObjectKey) -> None:
    """Delete the object."""
    deleted = {"key": str(key), "uid": key.name, "version": 8}
    assert post.others().send("east", batch({"gone": deleted}))["statusCode"] == 200


# Deploy -------------------------------------------------------------------------------------------


def makes_a_profile(post: Post) -> None:
    """And asks for it to be applied."""
    assert post.work(_instantiate(post.matching()), "apply")


def asks_for_each_object(post: Post) -> None:
    """A trigger is asked for as a whole."""
    assert post.work(Instantiate("made", WEST), "deploy")


def applies_a_profile(post: Post, words: str = "", of: str = "") -> None:
    """Its add-on is in the cluster."""
    key = post.matching(words)
    post.work(_instantiate(key), by=post.others())
    post.work(_apply(key, of))

    assert _there(post, key)


def withdraws_a_profile(post: Post) -> None:
    """Its add-on is deleted, and so is the profile."""
    key, others = post.matching(), post.others()
    steps: tuple[Envelope, ...] = (_instantiate(key), _apply(key))
    for message in steps:
        post.work(message, by=others)
    assert _there(post, key)
    buries(post, key)
    post.work(Evaluate(EAST, str(key), event_at=EVENT_AT), by=others)
    for message in steps:
        post.work(message)

    assert not _there(post, key)
    assert post.here.records.profiles.head(*_place(key)) is None


def applies_a_large_profile(post: Post) -> None:
    """Its contents are a blob, which is read again."""
    key = post.matching(noise(LARGE))
    for message in (_instantiate(key), _apply(key)):
        post.work(message)

    assert _there(post, key)


def ends_a_cloud_event(post: Post, event_at: str, tells: str) -> None:
    """It is to be evaluated once more, as if an event or a resync had found it."""
    key = post.site.record_cloud_event()
    post.work(Evaluate(EAST, str(key), event_at=EVENT_AT), by=post.others())

    assert post.work(Instantiate("over", EAST, str(key), event_at=event_at), tells)


def watches_its_objects(post: Post, of: str = "") -> None:
    """The cluster's sender is to send kinds that nobody has asked for before."""
    for kept in list(post.here.records.watches.of(EAST)):
        post.here.records.watches.delete(EAST, kept.value.profile, expect=kept.token)
    key = post.matching()
    post.work(Instantiate("watched", EAST, str(key)), by=post.others())
    name = profile_name("watched", EAST, str(key))

    assert post.work(Apply("watched", EAST, name, EAST, of=of), "sweep")


def passes_a_chart_on(post: Post) -> None:
    """Who has Helm is to deploy it."""
    post.work(Resolve("charted"), by=post.others())

    assert post.work(Apply("", "", "charted", EAST), CHARTS)


def calls_a_cluster_of_eks(post: Post, of: str = "", cluster: str = EKS) -> None:
    """EKS says where it is, and nobody listens there."""
    records, key = post.here.records, post.matching()
    records.circuits.delete(cluster)
    post.work(_instantiate(key), by=post.others())
    kept = records.profiles.get(*_place(key))
    assert kept
    records.profiles.put(replace(kept.value, destinations=(cluster,)), expect=kept.token)
    post.work(Apply(*_place(key), cluster, of=of))
    outcome = records.outcomes.get(cluster, _place(key)[2])

    assert outcome
    assert outcome.value.reason == AwayError.code


def _place(key: ObjectKey) -> tuple[str, str, str]:
    return "made", EAST, profile_name("made", EAST, str(key))


def _instantiate(key: ObjectKey) -> Instantiate:
    return Instantiate("made", EAST, str(key))


def _apply(key: ObjectKey, of: str = "") -> Apply:
    return Apply(*_place(key), EAST, of=of)


def _brought(key: ObjectKey) -> ObjectKey:
    return ObjectKey(GVK("", "v1", "ConfigMap"), "default", f"for-{key.name}")


def _there(post: Post, key: ObjectKey) -> bool:
    return post.site.someone.get(_brought(key)) is not None


# Charts -------------------------------------------------------------------------------------------


def reads_rules_to_apply(post: Post, laid: Callable[[Post], object]) -> None:
    """Nothing is applied by an account's rights that is to leave again, as the rules have it."""
    records, key = post.here.records, post.matching()
    post.work(_instantiate(key), by=post.others())
    kept = records.profiles.get(*_place(key))
    assert kept
    records.profiles.put(replace(kept.value, account="team/ann"), expect=kept.token)
    laid(post)
    post.here.publisher.publish([_apply(key, CHARTS)])
    # The account may do nothing in the cluster: what comes of that is not asked here.
    post.functions.feed(CHARTS, post.functions.handlers[CHARTS])
    post.clear(CHARTS)

    assert records.catalog.read().blob
    assert not _there(post, key)


def _changed(post: Post) -> None:
    post.here.records.catalog.change("declared")


def _lost(post: Post) -> None:
    blobs(post).delete(_laid(post))


def gives_way(post: Post) -> None:
    """A profile that waits for an object gets a message once another one dead-letters it."""
    key, others = post.matching(), post.others()
    for message in (_instantiate(key), _apply(key)):
        post.work(message, by=others)
    owners, object_key = post.here.records.owners, _brought(key).identity
    kept = owners.get(EAST, object_key)
    assert kept
    owners.put(EAST, object_key, replace(kept.value, tell=(_place(key),)), expect=kept.token)
    buries(post, key)
    post.work(Evaluate(EAST, str(key), event_at=EVENT_AT), by=others)
    post.work(_instantiate(key), by=others)

    assert post.work(_apply(key, CHARTS), "apply")
    assert not _there(post, key)


def leaves_the_rest_for_later(post: Post) -> None:
    """Others have their turn before it goes on with what is left."""
    key, environment = post.matching(), post.site.account.environment
    post.work(Instantiate("pair", EAST, str(key)), by=post.others())
    name = profile_name("pair", EAST, str(key))
    environment["BELLHOP_TURN"] = "0.001"
    try:
        assert post.work(Apply("pair", EAST, name, EAST, of=CHARTS), CHARTS)
    finally:
        del environment["BELLHOP_TURN"]


def has_a_stage_counted(post: Post) -> None:
    """A stage of a promotion waits for this cluster only."""
    records, key = post.here.records, post.matching()
    post.work(_instantiate(key), by=post.others())
    kept = records.profiles.get(*_place(key))
    assert kept
    rollout = replace(kept.value.rollout, promotion="agent")
    records.profiles.put(replace(kept.value, rollout=rollout), expect=kept.token)
    waits = StageState("staging", witness=make_witness(kept.value.name, EAST))
    records.promotions.put(PromotionState("agent", stages=(waits,)))

    assert post.work(_apply(key, CHARTS), "deploy")


# Resync -------------------------------------------------------------------------------------------


def sweeps(post: Post, tells: str) -> None:
    """A cluster's objects are to be evaluated, its triggers asked for, its deployments scanned."""
    _begins(post)

    assert post.work(Resync(SOUTH, full=True), tells)


def confirms_a_hint(post: Post) -> None:
    """The object is read back, and to be evaluated like that of an event."""
    _begins(post)
    web = service(post.site.name())
    del web["status"]
    stored = post.site.someone.create(web)
    uid = stored["metadata"]["uid"]
    hint = ReadBack(
        SOUTH, str(ObjectKey.of(stored)), uid, 1, event_at=datetime.now(UTC).isoformat()
    )

    assert post.work(hint, "evaluate")


def asks_for_a_probe(post: Post) -> None:
    """Somebody waits to learn of a cluster that does not answer."""
    _begins(post, away=True)

    assert post.work(Resync(SOUTH), "probe")


def notifies_waiters(post: Post) -> None:
    """A cluster answers again: what waits for it is to be applied."""
    _begins(post, away=True)
    waits = DeploymentStatus(
        SOUTH, post.site.name(), "made", EAST, "Failed", datetime.now(UTC), AwayError.code
    )
    post.here.records.outcomes.put(waits)
    published = post.work(Probe(SOUTH), "apply")
    post.here.records.outcomes.delete(SOUTH, waits.profile)

    assert published
    assert post.here.records.circuits.get(SOUTH) is None


def collects_blobs(post: Post) -> None:
    """What no record names goes after a day."""
    kept, name = blobs(post), blob_name("catalog", "revision")
    kept.put(name, b"x")
    trash = BlobGarbage(post.here.records.store, kept)
    trash.put(name, "catalog", "revision", datetime.now(UTC) - _ENDED)
    post.work(CollectGarbage())
    left = post.site.account.services.client("s3").list_objects_v2(Bucket=post.site.account.name)

    assert hashlib.sha256(name.encode()).hexdigest() not in str(left)


def registers_again(post: Post, *, by_hand: bool = False) -> None:
    """Another cluster has the address, whose credentials somebody wrote in a way of his own.

    They are put aside for the one that was there. Where somebody has deleted what was put aside
    before, it still has its name for some days.
    """
    _registered(post)
    if by_hand:
        post.here.secrets.put(f"abandoned/{NORTH}", b"x")
        post.site.account.services.client("secretsmanager").delete_secret(
            SecretId=f"{post.site.account.name}/abandoned/{NORTH}", RecoveryWindowInDays=7
        )
    post.work(Renew(NORTH))
    kept = post.here.records.clusters.get(NORTH)

    assert kept
    assert kept.value.forwarder.get("begun") is None
    assert list(post.here.secrets.names("abandoned")) == []


def _registered(post: Post, *, due: bool = True) -> None:
    """Register a cluster, and have it look like one whose renewal is `due` and meets another."""
    here, kubeconfig = post.here, sanitise(post.site.kubeconfig, reach=LOCAL)
    if here.records.clusters.get(NORTH) is None:
        spec = Registration("fleet", "north", kubeconfig, {}, here.inbound, twice=True)
        register(here, spec, pause=lambda _: None)
    here.secrets.put(f"kubeconfig/{NORTH}", json.dumps(kubeconfig.to_dict(), indent=1).encode())
    kept = here.records.clusters.get(NORTH)
    assert kept
    forwarder = {name: each for name, each in kept.value.forwarder.items() if name != "begun"}
    if due:
        forwarder["begun"] = (datetime.now(UTC) - _ENDED).isoformat()
    here.records.clusters.put(replace(kept.value, forwarder=forwarder, uid="another"))


def silences_the_one_before(post: Post) -> None:
    """What was put aside leads to the cluster that had the name, or to none that it means."""
    _registered(post, due=False)
    kept = post.here.records.clusters.get(NORTH)
    assert kept
    post.here.secrets.put(f"abandoned/{NORTH}", post.here.secrets.read(f"kubeconfig/{NORTH}"))
    post.here.records.clusters.put(replace(kept.value, abandoned="another"))
    post.work(Renew(NORTH))

    assert list(post.here.secrets.names("abandoned")) == []


def sweeps_a_cluster_of_eks(post: Post, cluster: str = EKS) -> None:
    """EKS says where it is, and nobody listens there."""
    post.here.records.circuits.delete(cluster)
    post.work(Resync(cluster))

    assert post.here.records.circuits.get(cluster)


def _begins(post: Post, *, away: bool = False) -> None:
    """Have nothing be known of the cluster, or that it does not answer."""
    records, now = post.here.records, datetime.now(UTC)
    records.health.delete(SOUTH)
    records.walks.forget(SOUTH)
    records.circuits.delete(SOUTH)
    if away:
        records.circuits.put(SOUTH, Circuit(now, now + _ENDED, "it did not answer"))


# Schedule -----------------------------------------------------------------------------------------


def ticks(post: Post, name: str, message: Envelope) -> None:
    """What is due is published."""
    post.here.records.timers.set(name, datetime.now(UTC), message.message().body)
    post.taken(message.inbox)
    post.functions.tick(event("scheduler"), Context())

    assert post.taken(message.inbox)


def resumes(post: Post) -> None:
    """What somebody began to declare, and died, is done."""
    name, begun = post.site.name(), (datetime.now(UTC) - _ENDED).isoformat()
    post.here.records.pending.put(name, {"keys": [["EventTrigger", "", "made"]]})
    noted = post.here.records.store.get("pending", name)
    assert noted
    post.here.records.store.put(Item("pending", name, {**noted.value, "at": begun}))
    post.taken("deploy")
    post.functions.tick(event("scheduler"), Context())

    assert post.taken("deploy")
    assert post.here.records.catalog.read().blob


# Scheduler ----------------------------------------------------------------------------------------


def ticks_the_schedule(post: Post) -> None:
    """The function is found: that there is none here is another answer than that it is denied."""
    client = post.services.client("lambda")
    name = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{post.site.account.name}-schedule:live"
    with suppress(client.exceptions.ResourceNotFoundException):
        client.invoke(FunctionName=name, Payload=b"{}")


SITUATIONS: Mapping[str, Sequence[Situation]] = {
    "ingest": [
        takes_an_object,
        takes_a_hint,
        hears_of_drift,
        is_asked_for_a_look,
        takes_a_longer_object_twice,
        takes_a_large_object,
        knows_very_many_kinds,
        says_that_kinds_are_lost,
        knows_many_kinds,
        knows_of_restarts,
        hears_that_something_is_read,
        takes_a_cloud_event_twice,
        takes_what_is_signed,
        lets_a_signed_request_come_again,
        counts_what_it_refuses,
        meets_a_key_that_nobody_knows,
        shows_the_heartbeat,
        is_fed_by_rules,
        logs,
    ],
    "evaluate": [
        finds_a_match,
        finds_a_match_no_more,
        puts_off_a_slow_script,
        wonders_what_a_tenant_sees,
        says_that_something_is_not_well,
        reads_a_large_object,
        *reading_rules(finds_a_match),
        *fed_from("evaluate", "review", "patient"),
        logs,
    ],
    "deploy": [
        asks_for_each_object,
        makes_a_profile,
        applies_a_profile,
        withdraws_a_profile,
        partial(ends_a_cloud_event, event_at=EVENT_AT, tells="evaluate"),
        partial(ends_a_cloud_event, event_at="", tells="review"),
        watches_its_objects,
        applies_a_large_profile,
        passes_a_chart_on,
        calls_a_cluster_of_eks,
        partial(calls_a_cluster_of_eks, cluster=FAR_EKS),
        *reading_rules(asks_for_each_object),
        *fed_from("deploy", "apply"),
        logs,
    ],
    "charts": [
        partial(applies_a_profile, of=CHARTS),
        partial(applies_a_profile, words=noise(LARGE), of=CHARTS),
        gives_way,
        has_a_stage_counted,
        leaves_the_rest_for_later,
        partial(watches_its_objects, of=CHARTS),
        partial(calls_a_cluster_of_eks, of=CHARTS),
        partial(calls_a_cluster_of_eks, of=CHARTS, cluster=FAR_EKS),
        *(partial(reads_rules_to_apply, laid=each) for each in (_changed, _laid, _lost)),
        *fed_from(CHARTS),
        logs,
    ],
    "sweep": [
        confirms_a_hint,
        asks_for_a_probe,
        notifies_waiters,
        *(
            partial(sweeps, tells=inbox)
            for inbox in ("sweep", "review", "deploy", "patient", "confirm")
        ),
        collects_blobs,
        silences_the_one_before,
        registers_again,
        partial(registers_again, by_hand=True),
        registers_by_an_object,
        partial(registers_by_an_object, by_hand=True),
        sweeps_a_cluster_of_eks,
        partial(sweeps_a_cluster_of_eks, cluster=FAR_EKS),
        *reading_rules(partial(sweeps, tells="sweep")),
        *fed_from("confirm", "sweep", "probe"),
        logs,
    ],
    "schedule": [
        partial(ticks, name=sweep_timer(SOUTH), message=Resync(SOUTH)),
        partial(ticks, name=probe_timer(SOUTH), message=Probe(SOUTH)),
        partial(ticks, name=classify_timer(SOUTH), message=UpdateLabels(SOUTH)),
        partial(ticks, name=retry_timer(SOUTH, "own"), message=Apply("made", EAST, "own", SOUTH)),
        partial(
            ticks, name=hold_timer(SOUTH, "watched"), message=CheckDeletionGuard(SOUTH, "watched")
        ),
        partial(ticks, name="cloud-event/over", message=Evaluate(SOUTH, "CloudEvent/builds/over")),
        resumes,
        *reading_rules(resumes),
        logs,
    ],
    "scheduler": [ticks_the_schedule],
}
"""By role; what comes first is played most often, and is to be short."""
