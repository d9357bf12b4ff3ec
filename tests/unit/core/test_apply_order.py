"""The order in which kinds are applied."""

from __future__ import annotations

import pytest

from bellhop.core.gvk import Identity, rank


def of(kind: str) -> int:
    return rank(Identity("", kind, "", "x"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param("Namespace", "ServiceAccount", id="a place before what is in it"),
        pytest.param("CustomResourceDefinition", "Bell", id="a definition before its objects"),
        pytest.param("Secret", "Deployment", id="what is mounted before who mounts it"),
        pytest.param("ClusterRole", "ClusterRoleBinding", id="a role before its binding"),
        pytest.param("Role", "RoleBinding", id="a role in a namespace too"),
        pytest.param("Service", "StatefulSet", id="a name before who is called by it"),
        pytest.param(
            "Deployment", "ValidatingWebhookConfiguration", id="who answers before it rings"
        ),
        pytest.param("Deployment", "APIService", id="a server before its API"),
    ],
)
def test_what_is_needed_comes_first(earlier: str, later: str) -> None:
    """Each pair in the order in which an API server, or a kubelet, needs it."""
    assert of(earlier) < of(later)


def test_kinds_that_need_nothing_of_each_other_are_equal() -> None:
    """They keep the order in which they were written."""
    assert of("Deployment") == of("Ingress") == of("Whatever")
