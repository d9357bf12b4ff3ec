"""The annotation bellhop.dev/allow limits the objects of a trigger, whatever a template renders."""

from __future__ import annotations

import pytest

from bellhop.core.gvk import GVK, Resource
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import CONFIG, FakeKube

BINDING = GVK("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
GADGET = GVK("example.org", "v1", "Gadget")

INJECTED = """a
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: own-you}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: mallory}]"""

CARELESS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: x, namespace: default}
data:
  team: {{ .Resource.metadata.annotations.team }}
"""
CAREFUL = CARELESS.replace(".team }}", ".team | toJson }}")


def declare(fleet: Fleet, text: str, allow: str, *, holder: str = "instantiate") -> None:
    note = f", annotations: {{bellhop.dev/allow: '{allow}'}}" if allow else ""
    body = "\n".join(f"    {line}" for line in text.strip().splitlines())
    fleet.apply(
        f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: services}}
spec: {{collectResources: true, resourceSelectors: [{{group: "", version: v1, kind: Service}}]}}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: made{note}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  destinationClusterSelector: {{matchLabels: {{dep: eng}}}}
  eventSourceName: services
  oneForEvent: true
  policyRefs: [{{kind: ConfigMap, name: made, namespace: default}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: made, namespace: default, annotations: {{projectsveltos.io/{holder}: ok}}}}
data:
  main.yaml: |
{body}
"""
    )


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """The destination; events come from another cluster."""
    fleet.register("src", env="production")
    return fleet.register("east", dep="eng")


def send_event(fleet: Fleet, team: str = INJECTED) -> None:
    manifest = service("web")
    manifest["metadata"]["annotations"] = {"team": team}
    fleet.write("src", manifest)
    fleet.pump()


def test_an_injected_object_is_applied_where_nothing_forbids_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """This is what the annotation, and quoting, are for."""
    declare(fleet, CARELESS, "")
    send_event(fleet)

    assert len(east.objects(BINDING)) == 1


@pytest.mark.parametrize("allow", ["", "ConfigMap in default"])
def test_a_careful_template_lets_nothing_in(fleet: Fleet, east: FakeKube, allow: str) -> None:
    """Written as JSON, the whole value stays a value."""
    declare(fleet, CAREFUL, allow)
    send_event(fleet)

    assert [each["data"] for each in east.objects(CONFIG)] == [{"team": INJECTED}]
    assert east.objects(BINDING) == []


def test_what_is_not_allowed_is_refused_before_anything_is_applied(
    fleet: Fleet, east: FakeKube
) -> None:
    """The allowed object beside it is not applied either, and the error says what and why."""
    declare(fleet, CARELESS, "ConfigMap in default; Secret in *")
    send_event(fleet)

    assert east.objects(CONFIG) == []
    assert east.objects(BINDING) == []
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Denied")
    assert outcome.message == (
        "ConfigMap default/made, main.yaml: EventTrigger 'made' may not deploy a"
        " ClusterRoleBinding.rbac.authorization.k8s.io without a namespace: its annotation"
        " bellhop.dev/allow does not allow it; allow it there, or look for a value that the"
        " template does not quote"
    )


def test_the_last_good_objects_stay(fleet: Fleet, east: FakeKube) -> None:
    """A refusal takes nothing away; once the value is good again, all goes on."""
    declare(fleet, CARELESS, "ConfigMap in default")
    send_event(fleet, "front")
    send_event(fleet)
    assert [each["data"] for each in east.objects(CONFIG)] == [{"team": "front"}]

    send_event(fleet, "back")
    assert [each["data"] for each in east.objects(CONFIG)] == [{"team": "back"}]
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert outcome.phase == "Provisioned"


def test_a_changed_annotation_counts_at_once(fleet: Fleet, east: FakeKube) -> None:
    """Allowing more deploys more; allowing less refuses what comes and leaves what is there."""
    declare(fleet, CARELESS, "ConfigMap in default")
    send_event(fleet)
    declare(
        fleet,
        CARELESS,
        "ConfigMap in default; ClusterRoleBinding.rbac.authorization.k8s.io cluster-wide",
    )
    fleet.pump()
    assert len(east.objects(BINDING)) == 1

    declare(fleet, CARELESS, "ConfigMap in elsewhere")
    fleet.pump()
    assert len(east.objects(BINDING)) == 1
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Denied")


@pytest.mark.parametrize(
    ("allow", "namespaced", "applied"),
    [
        pytest.param("Gadget.example.org cluster-wide", False, True, id="it has none"),
        pytest.param("Gadget.example.org cluster-wide", True, False, id="it has one after all"),
        pytest.param("Gadget.example.org in default", True, True, id="it goes to default"),
        pytest.param("Gadget.example.org in *", False, False, id="anywhere is not cluster-wide"),
    ],
)
def test_the_cluster_says_what_has_a_namespace(
    fleet: Fleet, east: FakeKube, allow: str, *, namespaced: bool, applied: bool
) -> None:
    """A kind whose scope a manifest leaves open is checked by the scope that the API server has."""
    east.serve(Resource(GADGET, "gadgets", namespaced))
    declare(fleet, "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: x}", allow)
    send_event(fleet)

    assert bool(east.objects(GADGET)) == applied
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert outcome.reason == ("" if applied else "Denied")


def test_a_kind_that_is_served_later_is_judged_again(fleet: Fleet, east: FakeKube) -> None:
    """Of a kind that is not known yet nobody can say that it has no namespace."""
    text = "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: x}"
    declare(fleet, text, "Gadget.example.org cluster-wide")
    send_event(fleet)
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Denied")

    east.serve(Resource(GADGET, "gadgets", namespaced=False))
    assert outcome.retry_at is not None
    fleet.wait(outcome.retry_at - fleet.clock.now())

    assert len(east.objects(GADGET)) == 1
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.retry_at) == ("Provisioned", None)


def test_what_is_rendered_for_each_cluster_is_held_to_it(fleet: Fleet, east: FakeKube) -> None:
    """A template of deploy time is checked by what it renders there."""
    text = CARELESS.replace("namespace: default", "namespace: '{{ .Cluster.metadata.name }}'")
    text = text.replace("{{ .Resource.metadata.annotations.team }}", "x")
    declare(fleet, text, "ConfigMap in west", holder="template")
    send_event(fleet)

    assert east.objects(CONFIG) == []
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert "trigger 'made' may not deploy a ConfigMap in namespace 'east'" in outcome.message


def test_a_users_own_profile_is_held_to_it(fleet: Fleet, east: FakeKube) -> None:
    """The annotation means the same on a ClusterProfile."""
    fleet.deploy(
        """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: own, annotations: {bellhop.dev/allow: Secret in *}}
spec:
  clusterSelector: {matchLabels: {dep: eng}}
  policyRefs: [{kind: ConfigMap, name: own, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: default}
data: {a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"}
"""
    )

    assert east.objects(CONFIG) == []
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert "ClusterProfile 'own' may not deploy a ConfigMap without" in outcome.message
