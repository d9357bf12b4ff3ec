"""The annotation that limits the kinds of a trigger: its syntax, and the kinds that it admits."""

from __future__ import annotations

import pytest

from bellhop.api.kinds import parse_all
from bellhop.core.allow import read_allow
from bellhop.documents.document import InvalidDocuments, read_documents
from bellhop.errors import InvalidError

ALLOW = read_allow(
    "ConfigMap in team-*, shop; NetworkPolicy.networking.k8s.io in *\n Namespace cluster-wide;"
)


@pytest.mark.parametrize(
    ("group", "kind", "namespace", "early", "exact"),
    [
        pytest.param("", "ConfigMap", "shop", True, True, id="by name"),
        pytest.param("", "ConfigMap", "team-a", True, True, id="by glob"),
        pytest.param("", "ConfigMap", "team-", True, True, id="a glob may stand for nothing"),
        pytest.param("", "ConfigMap", "myteam-a", False, False, id="a glob from the beginning"),
        pytest.param("", "ConfigMap", "shop2", False, False, id="a name to its end"),
        pytest.param("", "ConfigMap", "", False, False, id="no namespace: default"),
        pytest.param("", "Secret", "shop", False, False, id="another kind"),
        pytest.param("", "configmap", "shop", False, False, id="another spelling"),
        pytest.param("example.org", "ConfigMap", "shop", False, False, id="another group"),
        pytest.param("networking.k8s.io", "NetworkPolicy", "x", True, True, id="anywhere"),
        pytest.param("networking.k8s.io", "NetworkPolicy", "", True, False, id="by scope"),
        pytest.param("", "NetworkPolicy", "x", False, False, id="no group"),
        pytest.param("", "Namespace", "", True, True, id="cluster-wide"),
        pytest.param("", "Namespace", "x", True, False, id="cluster-wide has no namespace"),
    ],
)
def test_admits_what_is_named(
    group: str, kind: str, namespace: str, *, early: bool, exact: bool
) -> None:
    """Kind, group and namespace must be named; before a cluster is asked, scope is open."""
    assert ALLOW.may_admit(group, kind, namespace) == early
    assert ALLOW.admits(group, kind, namespace) == exact


def test_is_written_as_it_is_read() -> None:
    """What is shown can be applied."""
    assert read_allow(str(ALLOW)) == ALLOW


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", "names nothing", id="empty"),
        pytest.param(" ;\n", "names nothing", id="blank"),
        pytest.param("ConfigMap", "has 'ConfigMap', which is not an entry", id="no scope"),
        pytest.param(
            "ConfigMap in", "has 'ConfigMap in', which is not an entry", id="no namespace"
        ),
        pytest.param("v1/ConfigMap in a", "kind is not one; write the kind as", id="a version"),
        pytest.param("apps/v1/Deployment in a", "'Deployment.apps'", id="group and version"),
        pytest.param("configmaps in a", "kind is not one", id="a plural"),
        pytest.param("* in a", "kind is not one", id="any kind"),
        pytest.param("ConfigMap in a,", "'' is not a namespace", id="a comma too many"),
        pytest.param("ConfigMap in Team", "'Team' is not a namespace", id="upper case"),
        pytest.param("ConfigMap in a b", "'a b' is not a namespace", id="a blank"),
        pytest.param("ConfigMap in [ab]", "'[ab]' is not a namespace", id="brackets"),
        pytest.param("ConfigMap in a cluster-wide", "is not a namespace", id="both"),
    ],
)
@pytest.mark.parametrize("kind", ["EventTrigger", "ClusterProfile"])
def test_says_what_is_wrong(kind: str, text: str, error: str) -> None:
    """An annotation that nobody can read is refused when it is applied, with what to write."""
    with pytest.raises(InvalidError, match=r"bellhop\.dev/allow") as raised:
        read_allow(text)
    assert error in str(raised.value)

    with pytest.raises(InvalidDocuments) as refused:
        declared(kind, text)
    assert "line 3, metadata.annotations: bellhop.dev/allow" in str(refused.value)


def test_has_no_meaning_on_other_kinds() -> None:
    """On a ConfigMap it would restrict nothing, and somebody would rely on it."""
    with pytest.raises(InvalidDocuments, match="belongs on a trigger or profile"):
        declared("ConfigMap", "ConfigMap in a")


def declared(kind: str, text: str) -> None:
    api_version, spec = {
        "EventTrigger": (
            "lib.projectsveltos.io/v1beta1",
            "{sourceClusterSelector: {}, eventSourceName: a}",
        ),
        "ClusterProfile": ("config.projectsveltos.io/v1beta1", "{}"),
        "ConfigMap": ("v1", ""),
    }[kind]
    manifest = (
        f"apiVersion: {api_version}\nkind: {kind}\n"
        f"metadata: {{name: a, annotations: {{bellhop.dev/allow: {text!r}}}}}\n"
    )
    manifest += f"spec: {spec}\n" if spec else ""
    parse_all(read_documents(manifest.replace(r"\n", " "), source="f"))
