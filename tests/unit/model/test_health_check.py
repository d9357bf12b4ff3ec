"""ClusterHealthChecks as they are written."""

from __future__ import annotations

import pytest

from bellhop.model.health_check import ClusterHealthCheck
from bellhop.model.kinds import InvalidDocuments, parse_all, read_documents

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


def test_reads_who_is_told_of_which_clusters() -> None:
    """As Sveltos has it."""
    [found] = parse_all(read_documents(TEXT, source="f"))

    assert isinstance(found, ClusterHealthCheck)
    assert found.cluster_selector.matches({"env": "production"})
    assert [(each.name, each.type) for each in found.notifications] == [("chat", "Slack")]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("type: Slack", "type: Pager", "Slack"),
        ("type: Addons", "type: HealthCheck", "kind HealthCheck is not read yet"),
        ("kind: Secret", "kind: ConfigMap", "must have kind Secret, a namespace and a name"),
        (", name: slack", "", "must have kind Secret, a namespace and a name"),
        ("[{name: deployment, type: Addons}]", "[]", "livenessChecks"),
        ("  - name: chat", "  - name: chat\n    type: SMTP\n  - name: chat", "notificationRef is"),
    ],
)
def test_refuses_with_a_sentence(old: str, new: str, told: str) -> None:
    """That says what is wrong."""
    with pytest.raises(InvalidDocuments, match=told):
        parse_all(read_documents(TEXT.replace(old, new), source="f"))


def test_refuses_two_notifications_of_one_name() -> None:
    """What one of them has told would be the other's."""
    twice = TEXT + TEXT.partition("notifications:\n")[2]
    with pytest.raises(InvalidDocuments, match="the notification 'chat' is there twice"):
        parse_all(read_documents(twice, source="f"))
