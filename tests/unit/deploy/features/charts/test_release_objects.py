"""Objects of a release, read from its manifest as an API server reads it."""

from __future__ import annotations

import pytest

from bellhop.deploy.features.charts.release_objects import documents, objects_in
from bellhop.errors import InvalidError

ENUM = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a}
spec:
  enum:
  - =
  - 12:30
  - 2024-01-01
"""
"""A definition as prometheus-operator's: to other readers of YAML `=` is none, 12:30 a number."""

LIST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}}
"""


def test_what_has_no_quotes_is_read_as_an_api_server_does() -> None:
    (found,) = documents(ENUM)
    assert found["spec"]["enum"] == ["=", "12:30", "2024-01-01"]


def test_a_list_is_what_it_holds() -> None:
    found = [key for key, _ in objects_in(LIST, "apps", lambda _: None)]
    assert [str(key.identity) for key in found] == ["/ConfigMap/apps/a", "/ConfigMap/other/b"]


def test_what_cannot_be_read_is_not_the_clusters_fault() -> None:
    with pytest.raises(InvalidError, match="this is not YAML"):
        list(documents("a: ["))
