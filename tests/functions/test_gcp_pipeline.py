"""From an event of a cluster to objects in it and in others, through Google's functions and back.

Real API servers; ingest by HTTP; Pub/Sub's own emulator pushes into the functions, which
functions-framework runs from the sources that buildpacks get; Firestore's own emulator keeps.
"""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.manifests import feeding, join, seed, watching
from tests.functions.gcp_lab import BATCH, Flow
from tests.scenarios import ADDRESSES, SERVICE, WEB

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")


def service(name: str, port: int) -> dict[str, Any]:
    """Return a Service that asks to be guarded."""
    about = {"name": name, "namespace": "default", "labels": {"sveltos": "fv"}}
    spec = {"selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


class TestSeeds:
    """What Bellhop was specified by, in one installation."""

    def test_a_service_is_carried_to_the_other_cluster_and_taken_away(self, flow: Flow) -> None:
        """Seed 000: it comes, follows its port, and goes with its source."""
        stand = flow.stand
        flow.declare("service-discovery")
        flow.make(60000)
        stand.wait(lambda: flow.there(60000))
        endpoints = flow.destination.get(ADDRESSES)
        assert endpoints
        assert endpoints["subsets"][0]["addresses"] == [{"ip": "34.172.32.172"}]

        flow.ring(flow.source.patch(WEB, {"spec": {"ports": [{"port": 60001}]}}))
        stand.wait(lambda: flow.there(60001))
        flow.remove()
        stand.wait(flow.gone)

    def test_each_service_is_guarded_by_a_policy_of_its_own(self, flow: Flow) -> None:
        """Seed 001: a NetworkPolicy for each Service with the label, until it or its label goes."""
        stand = flow.stand
        flow.declare("network-policy")
        mine, other = (ObjectKey(SERVICE, "default", name) for name in ("my-service", "another"))
        flow.ring(flow.source.create(service(mine.name, 80)))
        flow.ring(flow.source.create(service(other.name, 443)))
        stand.wait(lambda: flow.source.names(POLICY) == ["front-another", "front-my-service"])
        policy = flow.source.get(ObjectKey(POLICY, "default", "front-my-service"))
        assert policy
        assert policy["spec"]["podSelector"] == {"matchLabels": {"app": "my-service"}}
        assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == [80]

        flow.remove(other)
        stand.wait(lambda: flow.source.names(POLICY) == ["front-my-service"])
        flow.ring(flow.source.patch(mine, {"metadata": {"labels": None}}))
        stand.wait(lambda: flow.source.names(POLICY) == [])

        # A step is logged once it is done. A resync that is quicker than an event does its steps,
        # and has no trace.
        applied = {"what": "applied", "trigger": "service-network-policy"}
        stand.wait(lambda: stand.lines(**applied))
        labels = stand.lines(**applied)[0]["logging.googleapis.com/labels"]
        assert labels["eventtrigger"] == "service-network-policy"
        assert labels["profile"]
        event = stand.lines(what="gone", object=str(other))[0]
        [trace] = {
            line["logging.googleapis.com/trace"] for line in stand.lines(trace=event["trace"])
        }
        assert trace.startswith(f"projects/{stand.project.name}/traces/")
        assert stand.lines(severity="ERROR") == []

    def test_a_cloud_event_deploys_an_object_and_another_removes_it(self, flow: Flow) -> None:
        """By HTTP with the cluster's token, through every function, into the real cluster."""
        flow.declare("cloud-events")
        web = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "build-web")

        def tell(number: int, what: str) -> Any:
            about = {"Specversion": "1.0", "Id": str(number), "Source": "ci.example/shop"}
            about |= {"Type": f"example.image.{what}", "Subject": "web"}
            headers = {f"Ce-{name}": value for name, value in about.items()}
            answer = flow.stand.send("source", {"image": f"web:{number}"}, **headers)
            return answer.json()

        assert tell(1, "built") == {"taken": 1, "dropped": 0}
        flow.stand.wait(lambda: flow.source.get(web))
        stored = flow.source.get(web)
        assert stored
        assert stored["data"] == {"image": "web:1", "event": "1"}

        assert tell(2, "removed") == {"taken": 1, "dropped": 0}
        flow.stand.wait(lambda: flow.source.get(web) is None)

    def test_an_event_of_google_is_one_of_the_cluster_in_its_path(self, flow: Flow) -> None:
        """Eventarc calls the second function of ingest's package, and shows no token of ours."""
        flow.declare("cloud-events")
        shop = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "build-shop")
        about = {"Specversion": "1.0", "Id": "1", "Source": "ci.example/google", "Subject": "shop"}
        headers = {f"Ce-{name}": value for name, value in about.items()}
        built = {**headers, "Ce-Type": "example.image.built"}

        # Where anybody may call, nobody is believed without a token.
        given = {**built, "Authorization": "Bearer of-a-trigger"}
        assert flow.stand.send("source", {"image": "shop:1"}, **given).status == 401
        assert flow.stand.hear("nowhere", {"image": "shop:1"}, **built).status == 404
        assert flow.stand.hear("source", {"image": "shop:1"}, **built).json()["taken"] == 1
        flow.stand.wait(lambda: flow.source.get(shop))
        removed = {**headers, "Ce-Id": "2", "Ce-Type": "example.image.removed"}
        assert flow.stand.hear("source", {}, **removed).json()["taken"] == 1
        flow.stand.wait(lambda: flow.source.get(shop) is None)

    def test_what_feeds_itself_is_slowed_and_named(self, flow: Flow) -> None:
        """A source that watches what its trigger applies: some sixteen turns, then a line of it."""
        stand, one = flow.stand, ObjectKey(GVK("", "v1", "ConfigMap"), "default", "one")
        rules = join(watching("watched", "seed"), feeding("grow", "watched", "one", "seed"))
        flow.owner.apply(rules)
        sent: dict[str, Any] = {}

        def ring() -> bool:
            """Send the object whenever it has changed, as the forwarder does for such a source."""
            found = flow.source.get(one)
            if found and found["metadata"] != sent.get("metadata"):
                sent.update(found)
                item = {"object": found, "own": True}
                assert stand.send("source", {**BATCH, "items": [item]}).status == 200
            return bool(stand.lines(what="slowed"))

        flow.source.create(seed("seed"))
        try:
            stand.wait(ring)
            # The last event may still be under way; minutes that all of it took are more turns.
            assert 15 <= int(sent["data"]["count"]) < 20
            [line] = stand.lines(what="slowed")
            assert "trigger 'grow' feeds itself" in line["detail"]
        finally:
            flow.owner.withdraw(rules)
            flow.source.delete(one)
