"""What a deployed installation has to bear: one that works, and what goes wrong around it.

    source cluster: a Service ─► destination cluster: a ConfigMap `for-NAME` of its own,
                                                      and one `all` that names each of them

Time is the test's: only `pump` feeds functions.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.aws.queue import DEAD
from bellhop.adapters.aws.services import Services
from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import DeniedError
from bellhop.logs import Log
from bellhop.ports.store import ANY
from bellhop.runtime.aws.resources import Resources, open_resources
from bellhop.state.delays import sweep_timer
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto
from tests.terraform.cloud import PAUSE, TICK
from tests.terraform.conftest import Fleet
from tests.terraform.mappings import Batch, FailedError
from tests.waiting import await_rights, eventually

ACCOUNTS = GVK("", "v1", "ServiceAccount")
MAPS = GVK("", "v1", "ConfigMap")
SERVICES = GVK("", "v1", "Service")

_PATIENCE = 180.0
_LONG = 30.0
"""Seconds for which no pause between two tries and no lease lasts."""

_ACCOUNT = ("kube-system", "bellhop-there")
_THERE = "destinationClusterSelector: {matchLabels: {dep: eng}}"
_RULES = join(
    source(more=", labelFilters: [{key: sveltos, operation: Equal, value: fv}]"),
    trigger(more=_THERE),
    holder(
        "made",
        config(FOR_EACH, 'port: "{{ (index .Resource.spec.ports 0).port }}"'),
        annotations=INSTANTIATE,
    ),
    trigger("all", one="false", more=_THERE),
    holder(
        "all",
        config("all", 'names: "{{ range .Resources }}{{ .metadata.name }} {{ end }}"'),
        annotations=INSTANTIATE,
    ),
)


class Destination:
    """The destination, as an identity of its own is let in: its credentials can end."""

    def __init__(self, cluster: Cluster) -> None:
        self.name = cluster.name
        self._cluster = cluster
        self.admin = KubeClient("there", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
        self.token = self._enter()

    def renew(self) -> None:
        """Take a new token, and wait until the old one is refused."""
        old = KubeClient("old", sanitise(self.kubeconfig(), reach=LOCAL), reach=LOCAL)
        self.admin.remove(ACCOUNTS, *_ACCOUNT)
        self.token = self._enter()

        def refused() -> bool:
            with suppress(DeniedError):
                return not old.get(ACCOUNTS, *_ACCOUNT)
            return True

        # API servers remember for ten seconds the accounts that they know.
        eventually("the old token is refused", refused, patience=_PATIENCE, pause=0.2)
        old.close()

    def kubeconfig(self, path: Path | None = None) -> dict[str, Any]:
        """Make a kubeconfig with the token of now."""
        made = self._cluster.kubeconfig()
        made["users"][0]["user"] = {"token": self.token}
        if path:
            path.touch(mode=0o600)
            path.write_text(json.dumps(made))
        return made

    def _enter(self) -> str:
        namespace, name = _ACCOUNT
        self.admin.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            }
        )
        self.admin.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
        )
        await_rights(self.admin, f"{namespace}/{name}", [Right("*", "*", "*")])
        return self.admin.token_request(namespace, name)


class Siege:
    """An installation with a source and a destination, and the faults around it."""

    def __init__(self, fleet: Fleet, moto: Moto, clusters: tuple[Cluster, Cluster]) -> None:
        self.fleet = fleet
        self.cloud = fleet.cloud
        self.moto = moto
        self.mappings = fleet.cloud.mappings
        self.destination = clusters[1]
        self.remote = Destination(clusters[1])
        self._names: set[str] = set()
        self._ticked = 0.0
        self._here: Resources | None = None
        rules = fleet.stand.folder / "rules.yaml"
        rules.write_text(_RULES)
        with self.cloud.running():
            fleet.register(self.remote, "dep=eng", forward=False)
            self.someone = fleet.register(clusters[0], "env=production")
            fleet.apply(str(rules))
            fleet.rings("fleet/source")
        self.pump(self.quiet)

    # What happens ---------------------------------------------------------------------------------

    def create(self, *names: str) -> None:
        """Make Services, which send events."""
        for name in names:
            made = service(name)
            del made["status"]
            self.someone.create(made)
            self._names.add(name)

    def pump(
        self,
        until: Callable[[], object],
        *inboxes: str,
        ticks: bool = True,
    ) -> list[Batch]:
        """Feed the functions until something is so; return what was handed over.

        Where there is nothing to hand over, time passes for what a function fell silent on. An API
        server that has no time to wait for the forwarder lets an object pass unheard: after a while
        a resync is due, which finds it.
        """
        before = len(self.mappings.batches)
        unheard = time.monotonic() + _PATIENCE / 2

        def step() -> object:
            nonlocal unheard
            if done := until():
                return done
            if ticks and time.monotonic() > unheard:
                unheard += _PATIENCE
                self.due()
            if ticks and time.monotonic() - self._ticked > TICK:
                self._ticked = time.monotonic()
                with suppress(FailedError):  # The next one catches up.
                    self.cloud.tick()
            if not self.mappings.feed(*inboxes):
                self.moto.pass_visibility(_LONG)
                time.sleep(PAUSE)
            return False

        eventually(self._vain, step, patience=_PATIENCE, pause=0)
        return self.mappings.batches[before:]

    def _vain(self) -> str:
        """Return the state of everything, for a test that waits for it in vain."""
        waiting = {inbox: self.waiting(inbox) for inbox in self.cloud.bellhop["queues"]}
        batches = [
            (each.queue.rpartition(":")[2], len(each.messages), len(each.failed), each.error[:200])
            for each in self.mappings.batches[-12:]
        ]
        there = self.there()
        absent = sorted(name for name in self._names if f"for-{name}" not in there)
        return (
            f"all is done: {waiting} wait, {self.dead()} were given up; absent are {absent}, and"
            f" without an event {[name for name in absent if not self._heard(name)]}; for all"
            f" there is {there.get('all', {}).get('data')}; handed over last: {batches}; reported:"
            f" {self.cloud.words()}"
        )

    def _heard(self, name: str) -> object:
        key = ObjectKey(SERVICES, "default", name)
        return self.here().records.observations.head("fleet/source", key)

    def await_events(self, *names: str) -> None:
        """Wait until Services have been observed, and nobody has evaluated them."""
        self._wait(lambda: all(map(self._heard, names)))
        self._wait(lambda: self.waiting("evaluate") >= len(names))

    def _wait(self, until: Callable[[], object]) -> None:
        eventually(self.cloud.words, until, patience=_PATIENCE)

    def passed(self, seconds: float) -> Callable[[], bool]:
        """Return what says whether so much time has passed from now on."""
        until = time.monotonic() + seconds
        return lambda: time.monotonic() >= until

    def due(self) -> None:
        """Have the time come when the source is to be resynced."""
        timers, name = self.here().records.timers, sweep_timer("fleet/source")
        kept = timers.get(name)
        assert kept
        timers.set(name, datetime.now(UTC), kept.value.body)

    def spoil(self, name: str) -> Callable[[], object]:
        """Take away of what is known of a Service what nobody can do without; return the cure."""
        store = self.here().records.store
        key = str(ObjectKey(SERVICES, "default", name))
        item = store.get("observation/fleet/source", key)
        assert item
        rest = {field: value for field, value in item.value.items() if field != "rv"}
        store.put(replace(item, value=rest), expect=ANY)
        return lambda: store.put(item, expect=ANY)

    def role(self, stage: str) -> str:
        """Name the role of a stage's function."""
        name: str = self.cloud.bellhop["roles"][stage].rpartition("/")[2]
        return name

    def function(self, stage: str) -> str:
        """Name a stage's function."""
        return f"{self.cloud.bellhop['table']}-{stage}"

    # What came of it ------------------------------------------------------------------------------

    def done(self) -> bool:
        """Say whether the destination is as it is to be, and nothing is left to do."""
        return self.arrived() and self.quiet()

    def arrived(self) -> bool:
        """Say whether the destination has only the Services' add-ons, as they are now."""
        there = self.there()
        named = there.pop("all", {}).get("data", {}).get("names", "").split()
        ports = {name: each["data"]["port"] for name, each in there.items()}
        expected = dict.fromkeys((f"for-{name}" for name in self._names), "80")
        return ports == expected and sorted(named) == sorted(self._names)

    def there(self) -> dict[str, dict[str, Any]]:
        """Return the add-ons in the destination, by name."""
        found = self.remote.admin.list(MAPS, namespace="default")
        return {
            each["metadata"]["name"]: each
            for each in found
            if each["metadata"]["name"].startswith(("for-", "all"))
        }

    def quiet(self) -> bool:
        """Say whether no queue has a message."""
        return sum(map(self.waiting, self.cloud.bellhop["queues"])) == 0

    def waiting(self, inbox: str, more: str = "") -> int:
        """Count an inbox's messages, in flight or not."""
        kinds = ("", "NotVisible", "Delayed")
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        attributes = self.cloud.client("sqs").get_queue_attributes(
            QueueUrl=self.cloud.bellhop["queues"][inbox] + more, AttributeNames=names
        )
        return sum(map(int, attributes["Attributes"].values()))

    def receives(self) -> int:
        """Say how often a message of the newest batch was received."""
        newest = self.mappings.batches[-1].messages if self.mappings.batches else ()
        return max(
            (int(each["Attributes"]["ApproximateReceiveCount"]) for each in newest), default=0
        )

    def dead(self) -> int:
        """Count the dead letters."""
        return sum(self.waiting(inbox, DEAD) for inbox in self.cloud.bellhop["queues"])

    def here(self) -> Resources:
        """Open the installation beside its functions."""
        if self._here is None:
            services = Services(
                region=REGION, endpoint=self.moto.url, keys=(ACCESS_KEY, SECRET_KEY)
            )
            given = self.cloud.environment("sweep")
            self._here = open_resources(
                given, services, Log(io.StringIO()), reach=LOCAL, logs=False
            )
        return self._here

    def held(self) -> None:
        """See that all is applied and held for certain, and that nobody gave anything up.

        A forwarder that has just come back sends again the items that it sent before.
        """
        self.pump(self.done)
        assert self.dead() == 0
        assert self.moto.forgive() == 0, "a failure that was asked for never happened"
        inventories = list(self.here().records.inventories.of("fleet/destination"))
        assert len(inventories) == len(self._names) + 1
        for inventory in inventories:
            assert not inventory.worker
            assert all(held.digest and held.uid for held in inventory.held.values())

    def close(self) -> None:
        """Close the connections."""
        self.remote.admin.close()
        if self._here:
            self._here.services.close()
