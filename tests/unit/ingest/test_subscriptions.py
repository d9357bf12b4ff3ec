"""The right of a forwarder to read the Secret with the address of its NATS server."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, DeniedError, MissingError
from bellhop.registration.forwarder_manifests import MESSAGING_NAMESPACE, NAME, messaging_rights
from bellhop.registration.removal import remove_sender
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import join, source, trigger

RBAC = "rbac.authorization.k8s.io"
ROLE, BINDING = GVK(RBAC, "v1", "Role"), GVK(RBAC, "v1", "RoleBinding")
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MESSAGING_NAMESPACE}}
FORWARDER = {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/x"}
LISTENS = join(
    """\
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: logins}
spec:
  messagingMatchCriteria: [{subject: logins}]
""",
    trigger("logins", origin="logins"),
)
WATCHES = join(source(name="logins"), trigger("logins", origin="logins"))


class Narrow(FakeKube):
    """A cluster whose credentials may write no Role."""

    def __init__(self, error: BellhopError) -> None:
        super().__init__("fleet/east")
        self._error = error

    def apply(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        if manifest["kind"] == "Role":
            raise self._error
        return super().apply(manifest, dry_run=dry_run)


def connect(fleet: Fleet, **changes: str) -> FakeKube:
    kube = fleet.register("east", env="production")
    cluster = fleet.records.clusters.get("fleet/east")
    assert cluster
    fleet.declare.register(replace(cluster.value, forwarder={**FORWARDER, **changes}))
    return kube


def granted(kube: FakeKube) -> list[str]:
    found = [kube.get(gvk, MESSAGING_NAMESPACE, NAME) for gvk in (ROLE, BINDING)]
    return [each["kind"] for each in found if each]


def test_is_granted_where_a_source_asks_for_cloud_events(fleet: Fleet) -> None:
    """Exactly that Secret, by `get`; and it is taken away with all else of the forwarder."""
    kube = connect(fleet)
    kube.put(NAMESPACE)
    fleet.deploy(LISTENS)

    assert granted(kube) == ["Role", "RoleBinding"]
    role = kube.get(ROLE, MESSAGING_NAMESPACE, NAME)
    assert role
    assert role["rules"] == messaging_rights()[0]["rules"]
    removed = [*remove_sender(kube, "fleet/east")]
    assert f"Role '{MESSAGING_NAMESPACE}/{NAME}'" in removed
    assert granted(kube) == []


@pytest.mark.parametrize(
    ("declared", "namespace", "changes"),
    [
        pytest.param(WATCHES, True, {}, id="no source asks for events"),
        pytest.param(LISTENS, False, {}, id="there is no place for the Secret"),
        pytest.param(LISTENS, True, {"direct": "yes"}, id="there is no forwarder"),
    ],
)
def test_is_not_granted_otherwise(
    fleet: Fleet, declared: str, changes: dict[str, str], *, namespace: bool
) -> None:
    """A right that is not used is not granted, and no namespace is made for it."""
    kube = connect(fleet, **changes)
    if namespace:
        kube.put(NAMESPACE)
    fleet.deploy(declared)

    assert granted(kube) == []
    assert bool(kube.get(GVK("", "v1", "Namespace"), "", MESSAGING_NAMESPACE)) == namespace
    assert "Cannot let the forwarder" not in fleet.output.getvalue()


@pytest.mark.parametrize("error", [DeniedError("it may not"), MissingError("it went")])
def test_events_do_not_depend_on_it(fleet: Fleet, error: DeniedError | MissingError) -> None:
    """Credentials without that right send events as before, and the log says what they lack."""
    fleet.access.clusters["fleet/east"] = Narrow(error)
    kube = connect(fleet)
    kube.put(NAMESPACE)
    fleet.deploy(LISTENS)
    webhook = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")

    assert [each for each in kube.calls if each.verb == "apply" and each.gvk == webhook]
    said = "Cannot let the forwarder subscribe to NATS" in fleet.output.getvalue()
    assert said == isinstance(error, DeniedError)
