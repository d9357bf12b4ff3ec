"""Functions that have the rights of their roles and no more, in one installation on moto.

    rights.json ─► a policy for each role ─► credentials ─► the handler, and what Lambda does for it
         └ tests/terraform holds the module to it         └ without one right, if a test says so

Moto is asked for each action and resource (tests/lab/moto_access.py), but for those of KMS: it
seals nothing, so that nobody finds out here what a key's policy forbids.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from bellhop.adapters.aws.queue import DEAD
from bellhop.adapters.aws.services import Services
from bellhop.core.gvk import ObjectKey
from bellhop.ingest.batch import CloudEventArrivals
from bellhop.ports.queue import Message
from bellhop.rendering.cloud_events import parse
from bellhop.rendering.observation import observe
from bellhop.state.cluster import Cluster
from bellhop.state.envelope import Envelope
from bellhop.state.messages import Evaluate
from infra.demo.user import User as Someone
from infra.lab import cluster as lab
from tests.fakes.fleet import cloud_event, service
from tests.fakes.health import cluster_check, health_check
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.functions.lab import FEEDS, Account, Context, Lambda, event
from tests.functions.rights import Right, RoleSite, condition_of, counts_in
from tests.lab.lambdas import ACCOUNT
from tests.lab.moto import REGION, Moto, pass_time

EAST, SOUTH, WEST, NORTH, EKS, FAR_EKS = (
    f"fleet/{name}" for name in ("east", "south", "west", "north", "eks", "far-eks")
)
ASSUMED = "arn:aws:iam::210987654321:role/bellhop-clusters"
"""The role that reaches the EKS cluster of another account."""
_TICK = 3
"""Rounds of the functions between two ticks."""

_PATIENCE_SECONDS = 240.0

EVENT_AT = "2026-11-22T00:00:00+00:00"
SPUN = "function evaluate() for i = 1, 3e7 do end return {matching = true} end"
ALL = "function evaluate() return {resources = resources} end"
TENANT = (
    "labels: {projectsveltos.io/serviceaccount-name: ann,"
    " projectsveltos.io/serviceaccount-namespace: team}, "
)
BUILDS = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: builds}
spec:
  messagingMatchCriteria: [{cloudEventSource: ^ci}]
"""
CHART = """
  helmCharts:
  - repositoryURL: https://charts.example.com
    repositoryName: example
    chartName: example/web
    chartVersion: 1.0.0
    releaseName: web
    releaseNamespace: apps
""".strip()
WORDS = "words: '{{ .Resource.spec.externalName }}'"
RULES = join(
    source(),
    trigger(),
    holder("made", config(FOR_EACH, WORDS), annotations=INSTANTIATE),
    source("ConfigMap", name="slow", more=f", evaluate: {json.dumps(SPUN)}"),
    trigger("slow", origin="slow", ref="made"),
    source("Node", name="many") + f"  aggregatedSelection: {json.dumps(ALL)}\n",
    trigger("many", origin="many", ref="made"),
    source("Endpoints", name="tenants").replace("metadata: {", "metadata: {" + TENANT),
    trigger("tenants", origin="tenants", ref="made"),
    BUILDS,
    trigger("over", origin="builds", ref="made", more="cloudEventAction: Delete"),
    trigger("watched", ref="kept", more="syncMode: ContinuousWithDriftDetection"),
    holder("kept", config("kept-" + FOR_EACH), annotations=INSTANTIATE),
    trigger("pair", ref="pair"),
    holder("pair", config("a-" + FOR_EACH), config("b-" + FOR_EACH), annotations=INSTANTIATE),
    profile(name="charted", more=CHART),
    holder("charted", config("charted")),
    health_check(kind="PersistentVolume"),
    cluster_check(),
)


class Site(RoleSite):
    """An installation with a cluster that answers, by three names, and two of EKS.

    `east` is known by what tests say that it has, `south` by resyncs, `north` by events, of `west`
    one object is known. With `parameters` kubeconfigs are in Parameter Store.
    """

    def __init__(self, moto: Moto, cluster: lab.Cluster, *, parameters: bool = False) -> None:
        super().__init__(moto, parameters=parameters, ledger_days=1)
        self.kubeconfig = cluster.kubeconfig()
        self.someone = Someone(self.kubeconfig)
        for name in ("east", "south", "west"):
            self.user.register(name, self.kubeconfig, env="production")
        self._register_eks()
        self.user.apply(RULES)
        self._numbers = itertools.count(1)
        others = Lambda(self.account)
        evaluate = Evaluate(WEST, str(self.observed(WEST)), event_at=EVENT_AT)
        self.here.publisher.publish([evaluate])
        assert others.feed(evaluate.inbox, others.handlers["evaluate"]) == []

    def _register_eks(self) -> None:
        own = self.account.services
        theirs = own.assuming(ASSUMED, "", doing="make a cluster")
        for services, name, role in ((own, EKS, ""), (theirs, FAR_EKS, ASSUMED)):
            made = services.client("eks").create_cluster(
                name=self.account.name,
                roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks",
                resourcesVpcConfig={"subnetIds": ["subnet-1"]},
            )
            spec = {"managed": made["cluster"]["arn"], "assume_role": role}
            named = name.partition("/")[2]
            cluster = Cluster("fleet", named, {}, "v1.33.1", "", datetime.now(UTC), **spec)
            self.here.declare.register(cluster)
        theirs.close()

    def name(self) -> str:
        """Return a name that nothing has."""
        return f"web-{next(self._numbers)}"

    def stored(self, words: str = "") -> dict[str, Any]:
        """Return a Service as an API server has stored it."""
        web = service(self.name())
        web["metadata"] |= {"uid": web["metadata"]["name"], "resourceVersion": "7"}
        return {**web, "spec": {**web["spec"], "externalName": words}}

    def observed(self, cluster: str, words: str = "") -> ObjectKey:
        """Keep a Service, and return its key."""
        seen = observe(cluster, self.stored(words), datetime.now(UTC))
        assert self.here.records.observations.put(seen)
        return seen.key

    def record_cloud_event(self) -> ObjectKey:
        """Keep a CloudEvent for `builds`, and return its key."""
        event, now = parse(cloud_event(self.name())), datetime.now(UTC)
        [seen] = CloudEventArrivals(self.here.records).observe(EAST, [(event, ["builds"])], now)
        assert self.here.records.observations.put(seen)
        return seen.key

    def close(self) -> None:
        self.someone.close()
        super().close()


class Post:
    """A stage at work in a site, by the role that Terraform gives it."""

    def __init__(self, site: RoleSite, role: str) -> None:
        self.site = site
        self.here = site.here
        self.rights = [each for each in site.rights if each.role == role]
        self.role = f"{site.account.name}-{role}"
        self._iam = site.account.services.client("iam")
        self.functions: Lambda
        self._account: Account

    @cached_property
    def services(self) -> Services:
        """What calls AWS by the role."""
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        role = self._iam.create_role(RoleName=self.role, AssumeRolePolicyDocument=trust)["Role"]
        sts = self.site.account.services.client("sts")
        credentials = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="function")[
            "Credentials"
        ]
        keys = credentials["AccessKeyId"], credentials["SecretAccessKey"]
        return Services(region=REGION, endpoint=self.site.moto.url, keys=keys)

    def play(self, situation: Callable[[Post], None], without: Right | None = None) -> None:
        """Play a situation by a function that has just begun, with all rights or all but one.

        Raises:
            AssertionError, ClientError: it does not end well.
        """
        self._account = copy.copy(self.site.account)
        self._account.services, self._account.output = self.services, io.StringIO()
        self.functions = Lambda(self._account)
        self._grant([each for each in self.rights if each != without])
        self.site.moto.forget_access()
        situation(self)
        lines = [json.dumps(line) for line in self._account.lines()]
        assert [line for line in lines if "AWS denies" in line or "Lost lines" in line] == []

    def _grant(self, rights: Sequence[Right]) -> None:
        statements: list[dict[str, Any]] = [
            {
                "Effect": "Allow",
                "Action": [each.action],
                "Resource": self.site.arns(each.resource),
                **condition_of(each),
            }
            for each in rights
        ]
        # A policy without any statement is none.
        statements = statements or [
            {"Effect": "Allow", "Action": ["sts:GetCallerIdentity"], "Resource": ["*"]}
        ]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        self._iam.put_role_policy(RoleName=self.role, PolicyName="stage", PolicyDocument=document)

    def asked(self, *, allowed: bool) -> set[Right]:
        """Return which of the role's rights the last situation asked for, and had or had not."""
        access = self.site.moto.access()
        return {
            right
            for each in access
            if (each["role"], each["allowed"]) == (self.role, allowed)
            for right in self.rights
            if right.action == each["action"]
            and any(fnmatchcase(each["resource"], arn) for arn in self.site.arns(right.resource))
            and counts_in(right, each["partition"])
        }

    # What a situation does ----------------------------------------------------------------------

    def publish(self, inbox: str, body: Mapping[str, Any]) -> None:
        """Put a message into an inbox, whatever it asks for."""
        queue: Any = self.here.queues[inbox]
        queue.publish([Message(body, "group")])

    def others(self) -> Lambda:
        """Return functions that have all rights, for what comes before."""
        return Lambda(self.site.account)

    def work(
        self, message: Envelope, expected_inbox: str = "", *, by: Lambda | None = None
    ) -> list[Any]:
        """Have the function work on a message; return what it has published in an inbox.

        Raises:
            AssertionError: it failed: the message is to come again, after a pause.
        """
        functions = by or self.functions
        for inbox in {message.inbox, expected_inbox} - {""}:
            self.clear(inbox)
        self.here.publisher.publish([message])
        stage = FEEDS[message.inbox]
        failed = functions.feed(message.inbox, functions.handlers[stage])
        assert (failed, self._delayed(message.inbox)) == ([], 0), (
            functions.account.output.getvalue()
        )
        return self.taken(expected_inbox) if expected_inbox else []

    def _delayed(self, inbox: str) -> int:
        name = "ApproximateNumberOfMessagesDelayed"
        asked = {"QueueUrl": self.url(inbox), "AttributeNames": [name]}
        attributes = self.site.account.services.client("sqs").get_queue_attributes(**asked)
        return int(attributes["Attributes"][name])

    def clear(self, inbox: str) -> None:
        """Take what there is in an inbox, also what rests there after a failure."""
        pass_time(self.site.moto.url, 60)
        self.taken(inbox)

    def taken(self, inbox: str) -> list[Any]:
        """Take what there is in an inbox."""
        sqs, url, found = self.site.account.services.client("sqs"), self.url(inbox), []
        while got := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(each["Body"]) for each in got]
            entries = [
                {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
                for number, each in enumerate(got)
            ]
            sqs.delete_message_batch(QueueUrl=url, Entries=entries)
        return found

    def url(self, inbox: str) -> str:
        """Return the URL of an inbox, or of its dead letters."""
        urls: dict[str, str] = json.loads(self.site.account.environment["BELLHOP_QUEUES"])
        name = inbox.removesuffix(DEAD)
        return urls[name] + inbox.removeprefix(name)

    def matching(self, words: str = "") -> ObjectKey:
        """Keep a Service that has matched."""
        key = self.site.observed(EAST, words)
        self.work(Evaluate(EAST, str(key), event_at=EVENT_AT), by=self.others())
        return key


class GuardedLambda(Lambda):
    """All functions of an installation, each with the rights of its own role and no others."""

    def __init__(self, site: RoleSite) -> None:
        super().__init__(site.account)
        self._moto = site.moto
        self._posts = {role: Post(site, role) for role in (*self.handlers, "ingest", "schedule")}
        for role, post in self._posts.items():
            post.play(lambda _: None)
            if role in self.handlers:
                self.handlers[role] = post.functions.handlers[role]
        self.front = self._posts["ingest"].functions.front
        self.tick = self._posts["schedule"].functions.tick

    def wait(self, until: Callable[[], object]) -> None:
        """Feed the functions until something is so; the schedule ticks meanwhile."""
        due = itertools.count()

        def step() -> object:
            if next(due) % _TICK == 0:
                self.tick(event("scheduler"), Context())
            return until()

        self.pump(until=step, patience=_PATIENCE_SECONDS)

    def grant(self, role: str, *rights: Right) -> None:
        """Give a role more rights, as Terraform does when a variable of the module changes."""
        post = self._posts[role]
        post.rights += rights
        post.play(lambda _: None)

    def denied(self) -> list[Mapping[str, Any]]:
        """Return the requests of roles that moto has denied."""
        return [each for each in self._moto.access() if not each["allowed"]]


def noise(size: int) -> str:
    """Return text that seals to about half of its length, the same each time."""
    return random.Random(size).randbytes(size // 2).hex()
