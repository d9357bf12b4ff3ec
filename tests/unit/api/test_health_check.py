"""ClusterHealthChecks and HealthChecks as they are written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop import luabox
from bellhop.api.health_check import ClusterHealthCheck, HealthCheck
from bellhop.api.kinds import InvalidDocuments, parse_all, read_documents
from bellhop.core.gvk import GVK
from tests.fakes.health import health_check

TEXT = """\
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {name: production}
spec:
  clusterSelector: {matchLabels: {env: production}}
  livenessChecks: [{name: deployment, type: Addons}]
  notifications:
  - name: chat
    type: Slack
    notificationRef: {apiVersion: v1, kind: Secret, namespace: default, name: slack}
"""


def test_reads_receivers_and_clusters() -> None:
    """As Sveltos has it."""
    [found] = parse_all(read_documents(TEXT, source="f"))

    assert isinstance(found, ClusterHealthCheck)
    assert found.cluster_selector.matches({"env": "production"})
    assert [(each.name, each.type) for each in found.notifications] == [("chat", "Slack")]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("type: Slack", "type: Pager", "Slack"),
        ("type: Addons", "type: HealthCheck", "livenessSourceRef must have kind HealthCheck and a"),
        (
            "type: Addons",
            "type: HealthCheck, livenessSourceRef: {kind: Secret, name: x}",
            "livenessSourceRef must have kind HealthCheck and a",
        ),
        ("type: Addons", "type: Addons, livenessSourceRef: {name: x}", "beside the type Addons"),
        (
            "[{name: deployment, type: Addons}]",
            "[{name: a, type: Addons}, {name: a, type: Addons}]",
            "the liveness check 'a' is there twice",
        ),
        ("kind: Secret", "kind: ConfigMap", "must have kind Secret, a namespace and a name"),
        (", name: slack", "", "must have kind Secret, a namespace and a name"),
        ("[{name: deployment, type: Addons}]", "[]", "livenessChecks"),
        ("  - name: chat", "  - name: chat\n    type: SMTP\n  - name: chat", "notificationRef is"),
    ],
)
def test_refuses_with_a_sentence(old: str, new: str, error: str) -> None:
    """That says what is wrong."""
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(TEXT.replace(old, new), source="f"))


def test_reads_the_limits_of_notices() -> None:
    """As Go writes durations; what is left out asks for nothing."""
    policy = "policy: {onlyOnTransition: true, minInterval: 1h30m, failingFor: 1.5m}"
    [found] = parse_all(read_documents(f"{TEXT}    {policy}\n", source="f"))
    [plain] = parse_all(read_documents(TEXT, source="f"))

    assert isinstance(found, ClusterHealthCheck)
    assert isinstance(plain, ClusterHealthCheck)
    read = found.policies["chat"]
    assert (read.interval, read.patience) == (timedelta(minutes=90), timedelta(seconds=90))
    assert plain.policies["chat"].interval == timedelta(0) == plain.policies["chat"].patience


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("minInterval: soon", "'soon' is not a duration; write it like '5m' or '1h30m'"),
        ("failingFor: 721h", "failingFor is '721h'; write 720h at most"),
        (f"minInterval: {'9' * 400}h", "minInterval is '99999"),
        ("atMost: 3", "atMost"),
    ],
)
def test_refuses_a_policy_with_a_sentence(policy: str, error: str) -> None:
    """Whatever is written there."""
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(f"{TEXT}    policy: {{{policy}}}\n", source="f"))


def test_refuses_two_notifications_of_one_name() -> None:
    """The notices of one of them would count for the other."""
    twice = TEXT + TEXT.partition("notifications:\n")[2]
    with pytest.raises(InvalidDocuments, match="the notification 'chat' is there twice"):
        parse_all(read_documents(twice, source="f"))


def test_a_health_check_asks_as_an_event_source_does() -> None:
    """Under a name that none may have, with its tenant's rights, and with its script."""
    labels = (
        "labels: {projectsveltos.io/serviceaccount-name: robot,"
        " projectsveltos.io/serviceaccount-namespace: shop}"
    )
    text = health_check().replace("name: services", f"name: services, {labels}")
    [found] = parse_all(read_documents(text, source="f"))

    assert isinstance(found, HealthCheck)
    source = found.source
    assert (source.name, source.account) == ("healthcheck:services", "shop/robot")
    assert source.kinds == {GVK("", "v1", "Service")}
    assert source.aggregation == found.spec.evaluate_health
    assert source.manifest()["spec"] == found.manifest()["spec"]


@pytest.mark.parametrize(
    ("flapping", "seconds"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("  flapping: {}\n", 20, id="three unless it is said"),
        pytest.param("  flapping: {consecutiveEvaluations: 2}\n", 10, id="two"),
    ],
)
def test_each_evaluation_after_the_first_takes_a_pause(flapping: str, seconds: int) -> None:
    """A resource has to be unhealthy for so many seconds."""
    [found] = parse_all(read_documents(health_check(more=flapping), source="f"))

    assert isinstance(found, HealthCheck)
    assert found.patience == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("[{group: '', version: v1, kind: Service}]", "[]", "resourceSelectors"),
        ("spec:", "spec:\n  group: apps", "'group' stands beside resourceSelectors"),
        ("spec:", "spec:\n  script: x = 1", "give one of the two"),
        ("  evaluateHealth: |", "  script: |", "script goes with the flat form"),
        ("spec:", "spec:\n  flapping: {consecutiveEvaluations: 1}", "consecutiveEvaluations"),
        ("spec:", "spec:\n  flapping: {consecutiveEvaluations: 10000}", "consecutiveEvaluations"),
    ],
)
def test_refuses_a_health_check_with_a_sentence(old: str, new: str, error: str) -> None:
    """That names the field."""
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(health_check().replace(old, new), source="f"))


FLAT = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: HealthCheck
metadata: {name: replicas}
spec:
  group: apps
  version: v1
  kind: Deployment
  namespace: shop
  labelFilters: [{key: team, operation: Equal, value: web}]
  script: |
    function evaluate()
      hs = {}
      hs.status = "Progressing"
      if obj.spec.replicas == 0 then
        hs.ignore = true
        return hs
      end
      if obj.status.availableReplicas == obj.spec.replicas then
        hs.status = "Healthy"
      else
        hs.message = obj.metadata.name .. " waits"
      end
      return hs
    end
"""


def test_reads_the_flat_form() -> None:
    """As an EventSource's: one selector, and a script that is asked of one object at a time."""
    [found] = parse_all(read_documents(FLAT, source="f"))
    assert isinstance(found, HealthCheck)
    [selector] = found.source.selectors
    status = {"availableReplicas": 2}
    objects = [
        {"metadata": {"name": name}, "spec": {"replicas": asked}, "status": status}
        for name, asked in (("off", 0), ("good", 2), ("late", 3))
    ]
    states = luabox.assess(luabox.Script(found.source.aggregation), objects)

    assert (selector.gvk, selector.namespace) == (GVK("apps", "v1", "Deployment"), "shop")
    assert [each.key for each in selector.label_filters] == ["team"]
    assert [(each.resource["metadata"]["name"], each.state, each.message) for each in states] == [
        ("good", "Healthy", ""),
        ("late", "Progressing", "late waits"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FLAT.replace("  group: apps\n", ""), "give group"),
        (FLAT.partition("  script")[0], "evaluateHealth says how .* give one of the two"),
        (health_check().partition("  evaluateHealth")[0], "give one of the two"),
    ],
)
def test_refuses_what_asks_or_says_nothing(text: str, error: str) -> None:
    """With a sentence that names what is missing."""
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(text, source="f"))
