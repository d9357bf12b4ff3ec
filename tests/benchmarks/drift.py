"""From a manual edit to its repair: `python -m tests.benchmarks.drift [EDITS] [ROUNDS]`.

A real API server, a forwarder and `bellhop serve`, each a process. The floor is the same calls made
bare, one after the other, in a cluster that Bellhop does not know, while Bellhop has nothing to do:
the edit, of which the API server asks a webhook that allows all, the object read back by the
forwarder and posted to a server that takes all, looked at by deploy, and applied. Each edit is of
an object, and a profile, of its own: who edits one again and again is slowed.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from itertools import count, islice
from typing import Any

import urllib3

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import make_context
from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.arrivals import Arrivals
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, beside, in_turns, run
from tests.lab.http_server import HttpServer, Request, Response

SMALLEST = (2, 1)
CONFIG = GVK("", "v1", "ConfigMap")
WARM_UPS = 3
_CALM_SECONDS = 1.0
# So that what follows a repair does not meet the next edit.
_APART_SECONDS = 0.05


def profile(name: str) -> str:
    """Return a profile that holds one ConfigMap of its name, and watches it."""
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  syncMode: ContinuousWithDriftDetection
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, namespace: default, name: {name}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data:
  main.yaml: |
    {held(name)}
"""


def held(name: str) -> dict[str, object]:
    """Return the ConfigMap that is held."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "ours"}}


def ours(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object is as it is held."""
    return manifest.get("data") == {"v": "ours"}


def version(manifest: Mapping[str, Any]) -> int:
    """Return an object's version, which is a number to API servers that keep it in etcd."""
    return int(manifest["metadata"]["resourceVersion"])


def through_bellhop(
    user: User, arrivals: Arrivals, names: Iterator[str], edits: int
) -> list[float]:
    """Return the ms from each edit until the object is seen as it was."""
    times = []
    for name in islice(names, edits):
        time.sleep(_APART_SECONDS)
        begun = time.perf_counter()
        edited = user.patch(ObjectKey(CONFIG, "default", name), {"data": {"v": "theirs"}})
        at = arrivals.wait(name, partial(_put_back, version(edited)))
        times.append((at - begun) * 1000)
    time.sleep(_CALM_SECONDS)
    return times


def _put_back(edited: int, manifest: Mapping[str, Any]) -> bool:
    return version(manifest) > edited and ours(manifest)


class Yes(HttpServer):
    """Allows whatever an API server asks about, and takes whatever else it is sent."""

    def respond(self, request: Request) -> Response:
        """Answer as a webhook, or as an ingest."""
        asked = json.loads(request.body).get("request") or {}
        answer = {"uid": asked.get("uid", ""), "allowed": True}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response.of(HTTPStatus.OK, review | {"response": answer})


@contextmanager
def yes(kube: KubeClient) -> Iterator[Callable[[Any], object]]:
    """Have a cluster ask about each edit; yield what posts something to the same server."""
    now, hour = datetime.now(UTC), timedelta(hours=1)
    authority = make_authority("yes", now=now, validity=hour)
    pems = issue(authority, ["127.0.0.1"], now=now, validity=hour)
    with Yes(make_context(*pems)) as server:
        edits = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        webhook = {
            "name": "yes.bellhop.dev",
            "clientConfig": {
                "url": f"{server.address}/",
                "caBundle": base64.b64encode(authority.certificate_pem).decode(),
            },
            "rules": [{**edits, "operations": ["UPDATE"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        kube.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "yes"},
                "webhooks": [webhook],
            }
        )
        trust = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        with urllib3.PoolManager(ssl_context=trust, retries=False) as pool:
            yield lambda body: pool.request("POST", server.address, json=body)


def bare(
    user: User, kube: KubeClient, post: Callable[[Any], object], edits: int, numbers: Iterator[int]
) -> list[float]:
    """Return the ms that the same calls take, made one after the other."""
    times = []
    for name in (f"bare-{number}" for number in islice(numbers, edits)):
        key = ObjectKey(CONFIG, "default", name)
        kube.apply(held(name))
        time.sleep(_APART_SECONDS)
        begun = time.perf_counter()
        user.patch(key, {"data": {"v": "theirs"}})
        post(kube.get(*key))
        kube.get(*key)
        kube.apply(held(name))
        times.append((time.perf_counter() - begun) * 1000)
    return times


def main(edits: int = 60, rounds: int = 3, *, plane: ControlPlane | None = None) -> None:
    """Print p50 and p99 of edits that are put back, beside the floor's."""
    each = max(1, edits // rounds)
    names = [f"held-{number}" for number in range(WARM_UPS + each * rounds)]
    with bench(plane, "source", "silent") as made:
        stand, (near, silent) = made.stand, made.clusters
        user, undisturbed = made.users()
        kube = made.client(silent, "silent")
        stand.serve()
        stand.register(near, namespace="bench", labels="env=production")
        file = made.folder / "profiles.yaml"
        file.write_text("---".join(map(profile, names)))
        stand.do("apply", "-f", str(file))
        post = made.enter_context(yes(kube))
        arrivals = Arrivals(user, CONFIG, "default")
        for name in names:
            arrivals.wait(name, ours)
        # API servers follow a change of their webhooks within seconds.
        time.sleep(3 * _CALM_SECONDS)
        left, numbers = iter(names), count()
        through_bellhop(user, arrivals, left, WARM_UPS)
        bare(undisturbed, kube, post, WARM_UPS, numbers)
        measured = in_turns(
            rounds,
            bellhop=lambda: through_bellhop(user, arrivals, left, each),
            floor=lambda: bare(undisturbed, kube, post, each, numbers),
        )
    beside(f"{rounds} rounds of {each} edits", measured)


if __name__ == "__main__":
    run(main)
