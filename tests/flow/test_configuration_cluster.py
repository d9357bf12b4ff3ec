"""One real cluster holds the configuration, and users only write to its API server."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.records import ConfiguredObject
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import DeniedError
from bellhop.registration.forwarder_manifests import HOLDERS, NAME
from infra.lab.binaries import Binaries
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger
from tests.flow.conftest import EXAMPLES, Flow
from tests.scenarios import (
    carry_service,
    guard_services,
    read_example,
    replicate_secret,
    route_services,
    service,
)
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

HUB = "fleet/source"
LIB, CONFIG = "lib.projectsveltos.io", "config.projectsveltos.io"
PROFILE = GVK(CONFIG, "v1beta1", "ClusterProfile")
SOURCE, TRIGGER = GVK(LIB, "v1beta1", "EventSource"), GVK(LIB, "v1beta1", "EventTrigger")
CONFIG_MAP, SECRET = GVK("", "v1", "ConfigMap"), GVK("", "v1", "Secret")
EAST = "clusterSelector: {matchLabels: {dep: eng}}"
OWN = ObjectKey(PROFILE, "", "own")
WEBHOOKS = ObjectKey(
    GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), "", NAME
)
BOTH = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: own}
spec:
  clusterSelector: {matchLabels: {dep: eng}}
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: own}
  - {kind: Secret, namespace: default, name: own}
"""
HIDDEN = """
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: from-secret, namespace: default}
"""


class Hub(Flow):
    """A flow whose source cluster holds the configuration."""

    def __init__(self, flow: Flow) -> None:
        self.__dict__.update(vars(flow))

    def apply(self, example: str) -> None:
        """Write an example of the docs to the API server, and wait as for one of files."""
        self.write(yaml.safe_dump_all(read_example(example)))
        self.settle()

    def write(self, *texts: str) -> None:
        """Write objects by server-side apply, and wait until all that are read are in force."""
        documents = [each for text in texts for each in yaml.safe_load_all(text) if each]
        self.post(*texts)
        for each in documents:
            if each["kind"] not in ("ConfigMap", "Secret"):
                self.await_force(ObjectKey.of(each))

    def post(self, *texts: str) -> None:
        """Write objects by server-side apply."""
        for text in texts:
            for document in yaml.safe_load_all(text):
                if document:
                    self.source.apply(document)

    def settle(self) -> None:
        """Wait until the hub has been resynced after all that was written."""
        self.stand.settle(HUB)

    def find(self, key: ObjectKey) -> ConfiguredObject | None:
        """Return the record of an object; None if it has none."""
        found = self.stand.records().configured.get(key.gvk.kind, key.namespace, key.name)
        return found.value if found else None

    def is_in_force(self, key: ObjectKey) -> bool:
        """Return whether the newest content of an object is in force."""
        stored, found = self.source.get(key), self.find(key)
        if not stored or not found or found.state != "InForce":
            return False
        metadata = stored["metadata"]
        if "generation" in metadata:
            return bool(found.generation == metadata["generation"])
        return bool(found.version == metadata["resourceVersion"])

    def await_force(self, key: ObjectKey) -> None:
        """Wait until the newest content of an object is in force."""
        late = f"{key} is in force: {self.find(key)}"
        eventually(late, lambda: self.is_in_force(key))

    def deployed(self) -> list[str]:
        """Name the ConfigMaps of the destination that profiles deployed."""
        listed = self.destination.list(CONFIG_MAP)
        metadata = [each["metadata"] for each in listed]
        ours = [each for each in metadata if "projectsveltos.io/reason" in each.get("labels", {})]
        return sorted(each["name"] for each in ours)

    def is_deployed(self, *names: str) -> Callable[[], bool]:
        """Return a condition: profiles deployed exactly these ConfigMaps to the destination."""
        return lambda: self.deployed() == sorted(names)

    def shown(self, name: str, kind: str) -> dict[str, Any]:
        """Return what `bellhop get configuration` shows of an object."""
        printed = self.stand.do("get", "configuration", "-A", "-o", "json")
        return next(
            dict(each["status"])
            for each in yaml.safe_load(printed)["items"]
            if (each["metadata"]["name"], each["status"]["kind"]) == (name, kind)
        )

    def events(self) -> list[str]:
        """Return the kinds of objects about which there are Events of Bellhop, in order."""
        listed = self.source.list(GVK("", "v1", "Event"))
        found = [each for each in listed if each["source"].get("component") == "bellhop"]
        assert all(each["reason"] == "Invalid" for each in found)
        return sorted(each["involvedObject"]["kind"] for each in found)

    def limits(self) -> list[str]:
        """Return the namespaces whose ConfigMaps and Secrets the API server reports."""
        [hook] = [
            each
            for each in (self.source.get(WEBHOOKS) or {"webhooks": []})["webhooks"]
            if each["name"] == HOLDERS
        ] or [{}]
        selector = hook.get("namespaceSelector", {"matchExpressions": [{}, {"values": []}]})
        return list(selector["matchExpressions"][-1]["values"])

    def resynced_at(self) -> object:
        """Return when the hub was resynced last."""
        return self.stand.records().health.get(HUB).value.swept_at

    def await_events(self) -> None:
        """Wait until the API server sends events of the configuration."""
        probe = ObjectKey(SOURCE, "", "probe")

        def is_sent(number: int) -> bool:
            self.post(source(name="probe", more=f", namespace: of-{number}"))
            try:
                eventually("", lambda: self.is_in_force(probe), patience=2)
            except AssertionError:
                return False
            return True

        numbers = count()
        eventually("its API server sends events", lambda: is_sent(next(numbers)), patience=90)
        self.source.delete(probe)
        eventually("the probe is deleted", lambda: not self.find(probe))


@pytest.fixture
def hub(flow: Flow) -> Hub:
    """Have the source cluster hold the configuration, and wait until it sends events."""
    one = Hub(flow)
    one.stand.do("install", "crds", HUB)
    one.stand.do("set", "configuration-cluster", HUB)
    one.settle()
    one.await_events()
    one.settle()
    return one


@pytest.mark.oldest
def test_the_welcome_example_works_by_the_api_server_only(hub: Hub) -> None:
    """Applied, changed and deleted: the namespace of a team has what the trigger makes."""
    note = ObjectKey(CONFIG_MAP, "shop", "whose-is-this")
    hub.apply("welcome")
    shop = {"name": "shop", "labels": {"team": "red"}}
    hub.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": shop})
    eventually("the note is there", lambda: hub.source.get(note))
    assert hub.shown("team-namespace", "EventSource")["origin"] == HUB

    text = (EXAMPLES / "welcome/welcome.yaml").read_text()
    hub.post(text.replace("team: {{", "squad: {{"))
    eventually("it is changed", lambda: "squad" in (hub.source.get(note) or {"data": {}})["data"])

    hub.source.delete(ObjectKey(TRIGGER, "", "welcome-team"))
    eventually("the note is deleted", lambda: not hub.source.get(note))
    eventually(
        "the trigger is gone", lambda: not hub.source.get(ObjectKey(TRIGGER, "", "welcome-team"))
    )


def replicate_with_templates(hub: Hub) -> None:
    """Play it where templates read the hub: it is registered as `mgmt/mgmt`, too."""
    file = str(hub.stand.folder / "source.kubeconfig")
    where = "register", "cluster", "mgmt/mgmt", "--kubeconfig", file
    hub.stand.do(*where, "--no-forwarder", "--allow-twice")
    replicate_secret(hub)


@pytest.mark.oldest
@pytest.mark.parametrize(
    "play", [carry_service, guard_services, route_services, replicate_with_templates]
)
def test_an_example_does_the_same_as_from_files(hub: Hub, play: Callable[[Hub], None]) -> None:
    play(hub)


@pytest.mark.oldest
def test_a_profile_follows_its_objects_by_their_events(hub: Hub) -> None:
    """A change is in the other cluster though no resync compared the objects."""
    hub.post(BOTH, holder("own", config("made")), HIDDEN % "own", HIDDEN % "unnamed")
    eventually("both are deployed", hub.is_deployed("from-secret", "made"))
    numbers = count()

    def is_followed() -> bool:
        before, name = hub.resynced_at(), f"more-{next(numbers)}"
        hub.post(holder("own", config("made"), config(name)))
        eventually("one more is deployed", hub.is_deployed("from-secret", "made", name))
        return hub.resynced_at() == before

    # Resyncs that were asked for before, as by the first name in a namespace, may still come.
    eventually("a change is deployed, and no resync came meanwhile", is_followed)
    hub.post(holder("own", config("made"), config("more")))
    eventually("one more is deployed", hub.is_deployed("from-secret", "made", "more"))
    hub.source.patch(ObjectKey(SECRET, "default", "own"), {"data": {"main.yaml": None}})
    eventually("one is withdrawn", hub.is_deployed("made", "more"))
    hub.post(profile("clusterSelector: {matchLabels: {dep: nobody}}"))
    eventually("all is withdrawn", hub.is_deployed())
    hub.post(profile(EAST))
    eventually("it is there again", hub.is_deployed("made", "more"))
    hub.source.delete(OWN)
    eventually("all is withdrawn", hub.is_deployed())
    eventually("the profile is gone", lambda: hub.source.get(OWN) is None)
    assert hub.find(ObjectKey(SECRET, "default", "unnamed")) is None


def test_a_namespace_that_is_named_later_is_followed(
    hub: Hub, control_plane_binaries: Binaries
) -> None:
    """The webhook is called there, and not in others, where the API server can limit it."""
    limit = ["team"] if control_plane_binaries.version >= (1, 22) else []
    for name in ("team", "unnamed"):
        hub.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    hub.post(holder("own", config("made"), namespace="team"))
    hub.post(profile(EAST).replace("namespace: default", "namespace: team"))
    eventually("it is deployed", hub.is_deployed("made"))
    eventually("the webhook is limited", lambda: hub.limits() == limit)
    hub.settle()

    before, numbers = hub.resynced_at(), count()

    def is_followed() -> bool:
        name = f"made-{next(numbers)}"
        hub.post(holder("own", config(name), namespace="team"))
        try:
            eventually("", hub.is_deployed(name), patience=2)
        except AssertionError:
            # An API server learns of a webhook configuration a moment after it stored it.
            return False
        return True

    eventually("a change is followed", is_followed, patience=90)
    assert hub.resynced_at() == before


def test_the_forwarder_may_read_no_object_of_the_configuration(hub: Hub) -> None:
    """Only names leave the cluster by it, so a Secret that no manifest names stays there."""
    hub.write(BOTH, HIDDEN % "own", holder("own", config("made")))
    eventually("it is deployed", hub.is_deployed("from-secret", "made"))
    path = hub.stand.folder / "source-forwarder.kubeconfig"
    kube = KubeClient(
        "forwarder", sanitise(yaml.safe_load(path.read_text()), reach=LOCAL), reach=LOCAL
    )

    for gvk in (SECRET, CONFIG_MAP, PROFILE):
        with pytest.raises(DeniedError):
            kube.get(gvk, "default" if gvk != PROFILE else "", "own")
    kube.close()


def test_a_trigger_finds_its_holder_by_a_template(hub: Hub) -> None:
    """One that was there before, and one that comes later; the loss of all at once is held."""
    made = "made-{{ .Resource.metadata.name }}"
    hub.write(
        source(),
        trigger(
            ref='"of-{{ .Resource.metadata.name }}"',
            more="destinationClusterSelector: {matchLabels: {dep: eng}}",
        ),
        holder("of-web", config(made), annotations=INSTANTIATE),
    )
    hub.settle()
    hub.source.create(service("web"))
    eventually("it is deployed", hub.is_deployed("made-web"))

    hub.source.create(service("shop"))
    hub.post(holder("of-shop", config(made), annotations=INSTANTIATE))
    eventually("the other, too", hub.is_deployed("made-shop", "made-web"))
    hub.source.delete(ObjectKey(SOURCE, "", "watched"))
    held = eventually("it is held", lambda: re.search(r"--change (\w+)", hub.failures()))
    assert hub.deployed() == ["made-shop", "made-web"]
    hub.stand.do("release", "--change", held[1])
    eventually("nothing is left", hub.is_deployed())


@pytest.mark.oldest
def test_an_invalid_object_changes_nothing_and_is_shown(hub: Hub) -> None:
    """The API server takes it by the definition; the manifest of before stays in force.

    Objects without a status get one Event, in `default` where they have no namespace.
    """
    hub.write(profile(EAST), holder("own", config("one")))
    eventually("it is deployed", hub.is_deployed("one"))

    hub.post(profile(EAST, more="maxUpdate: many"))
    eventually("it is rejected", lambda: hub.shown("own", "ClusterProfile")["state"] == "Rejected")
    assert hub.shown("own", "ClusterProfile")["inForce"]
    assert "maxUpdate" in hub.shown("own", "ClusterProfile")["message"]
    assert hub.deployed() == ["one"]

    mistake = "bellhop.dev/allow: ConfigMap"
    annotated = f"{{name: wrong, annotations: {{{mistake}}}}}"
    wrong = source(name="wrong").replace("{name: wrong}", annotated)
    hub.post(wrong, holder("own", config("two"), annotations=mistake))
    kinds = ["ClusterProfile", "ConfigMap", "EventSource"]
    eventually("each has an Event", lambda: hub.events() == kinds)
    hub.settle()
    assert hub.events() == kinds
    failures = hub.failures()
    assert "EventSource wrong" in failures
    assert "ConfigMap default/own" in failures
    hub.write(profile(EAST), holder("own", config("two")))
    hub.source.delete(ObjectKey(SOURCE, "", "wrong"))
    eventually("all are in force", lambda: "stays in force" not in hub.failures())
    eventually("all are in force", lambda: "is not used" not in hub.failures())


def test_files_change_the_manifests_once_no_cluster_holds_them(hub: Hub) -> None:
    """`--clear` keeps everything in force, and the objects lose their finalizers."""
    hub.write(profile(EAST), holder("own", config("one")))
    eventually("it is deployed", hub.is_deployed("one"))
    changed = profile("clusterSelector: {matchLabels: {dep: nobody}}")
    refused = hub.stand.bellhop("apply", "-f", "-", stdin=changed)
    assert refused.returncode == 1
    assert f"cluster '{HUB}' holds it" in " ".join(refused.stderr.split())

    hub.stand.do("set", "configuration-cluster", "--clear")
    hub.settle()
    assert hub.deployed() == ["one"]
    hub.source.delete(OWN)
    eventually("no finalizer holds it", lambda: hub.source.get(OWN) is None)
    hub.settle()
    assert hub.deployed() == ["one"]
    hub.stand.do("apply", "-f", "-", stdin=changed)
    eventually("it is withdrawn", hub.is_deployed())
