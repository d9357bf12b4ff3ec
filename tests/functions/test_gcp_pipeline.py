"""From an event of a cluster to objects in it and in others, through Google's functions and back.

Real API servers; ingest by HTTP; Pub/Sub's own emulator pushes into the functions, which
functions-framework runs from the sources that buildpacks get; Firestore's own emulator keeps.
"""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.model.gvk import GVK, ObjectKey
from tests.functions.gcp_lab import ADDRESSES, SERVICE, WEB, Flow

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")


def service(name: str, port: int) -> dict[str, Any]:
    """Return a Service that asks to be guarded."""
    about = {"name": name, "namespace": "default", "labels": {"sveltos": "fv"}}
    spec = {"selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


class TestSeeds:
    """What Bellhop was specified by, in one installation."""

    @pytest.mark.parametrize("form", ["service-discovery", "service-discovery-eventbasedaddon"])
    def test_a_service_is_carried_to_the_other_cluster_and_taken_away(
        self, flow: Flow, form: str
    ) -> None:
        """Seeds 000 and 003: it appears elsewhere, follows its port, and goes with its source."""
        stand = flow.stand
        flow.declare(form)
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
        """Seed 001: a NetworkPolicy for each Service with the label, gone with it or its label."""
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

        # What was done is told once it is done.
        stand.wait(lambda: stand.lines(what="removed", trigger="service-network-policy"))
        told = {
            line["what"]: line
            for line in stand.lines()
            if line.get("what") and line.get("object") == str(other)
        }
        assert {"rang", "gone", "matched", "rendered", "applied", "removed"} <= set(told)
        labels = told["applied"]["logging.googleapis.com/labels"]
        assert labels["eventtrigger"] == "service-network-policy"
        assert labels["profile"]
        [trace] = {
            line["logging.googleapis.com/trace"]
            for line in stand.lines(trace=told["applied"]["trace"])
        }
        assert trace.startswith(f"projects/{stand.project.name}/traces/")
        assert stand.lines(severity="ERROR") == []
