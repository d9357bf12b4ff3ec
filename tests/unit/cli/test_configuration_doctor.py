"""`bellhop doctor` on the cluster that holds the configuration, a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.configuration.definitions import DEFINITIONS, make_definitions
from bellhop.configuration.installer import CRD
from bellhop.configuration.rights import make_roles
from bellhop.core.gvk import GVK
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import CONFIGURATION, NAME
from infra.lab.cluster import Cluster
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import INGEST, KEY, WEBHOOK, limited
from tests.waiting import eventually

ALL_THERE = "it holds the configuration; all that is needed for it is there"
Role = dict[str, Any]


@pytest.fixture
def defined(kube: KubeClient) -> None:
    """The definitions, served."""
    for each in make_definitions(rules=False):
        kube.apply(each)
    for each in DEFINITIONS:
        gvk = GVK.parse(each.api_version, each.kind)
        eventually(f"{each.kind} is served", lambda gvk=gvk: kube.resource(gvk))


@pytest.fixture
def shown(bellhop: Bellhop) -> Callable[[str], list[str]]:
    """Return what doctor says of the configuration in a cluster."""

    def examine(key: str = KEY) -> list[str]:
        rows = json.loads(bellhop("doctor", key, "-o", "json").stdout)
        return [row["sentence"] for row in rows if row["piece"] == "configuration"]

    return examine


def test_prints_the_role(bellhop: Bellhop) -> None:
    """It takes no cluster."""
    printed = bellhop("install", "crds", "--print-role").stdout
    assert list(yaml.safe_load_all(printed)) == make_roles()
    assert bellhop("install", "crds", KEY, "--print-role").exit_code == 2


@pytest.mark.usefixtures("defined")
def test_names_each_right_that_the_printed_role_would_grant(
    bellhop: Bellhop,
    register: Bellhop,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
    shown: Callable[[], list[str]],
) -> None:
    """The role is enough to set the cluster; without a part of it the lacking verbs are listed."""
    namespace, role, inner = make_roles()
    path = limited(kube, source_cluster, tmp_path, role["rules"])
    for each in (namespace, inner, _bind(inner)):
        kube.apply(each)
    done = register("--no-forwarder", path=path)
    assert done.exit_code == 0, done.output
    eventually(
        lambda: bellhop("set", "configuration-cluster", KEY).output,
        lambda: bellhop("set", "configuration-cluster", KEY).exit_code == 0,
    )

    eventually(shown, lambda: shown() == [ALL_THERE])

    limited(kube, source_cluster, tmp_path, _reduce(role))
    kube.remove(GVK.of(inner), "projectsveltos", inner["metadata"]["name"])
    expected = {
        "its credentials may not create, patch or delete configmaps in namespace 'projectsveltos'",
        "its credentials may not create, patch or delete secrets in namespace 'projectsveltos'",
        "its credentials may not list secrets",
        "its credentials may not create or delete clustersummaries.config.projectsveltos.io",
        "its credentials may not patch eventtriggers.lib.projectsveltos.io/status",
        "its credentials may not update sets.lib.projectsveltos.io/finalizers",
    }
    eventually(shown, lambda: set(shown()) == expected)


def _bind(role: Role) -> Role:
    """Return the binding of a Role to the account of the kubeconfig."""
    return {
        "apiVersion": role["apiVersion"],
        "kind": "RoleBinding",
        "metadata": role["metadata"],
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": role["metadata"]["name"],
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "limited"}],
    }


def _reduce(role: Role) -> list[Role]:
    """Return the rules of a role without some verbs on some resources."""
    lost = {
        "secrets": {"list"},
        "clustersummaries": {"create", "delete"},
        "eventtriggers/status": {"patch"},
        "sets/finalizers": {"update"},
    }
    return [
        {**rule, "resources": [each], "verbs": [v for v in rule["verbs"] if v not in left_out]}
        for rule in role["rules"]
        for each in rule["resources"]
        for left_out in [lost.get(each, set())]
        if set(rule["verbs"]) - left_out
    ]


@pytest.mark.usefixtures("defined")
def test_reports_definitions_webhook_and_a_second_cluster(
    bellhop: Bellhop,
    register: Bellhop,
    kube: KubeClient,
    here: Installation,
    shown: Callable[[], list[str]],
) -> None:
    """Each comes with its cure; a cluster that holds no configuration is not asked."""
    assert register(*INGEST).exit_code == 0
    assert shown() == []
    assert bellhop("set", "configuration-cluster", KEY).exit_code == 0

    assert shown() == [
        f"its webhook configuration lacks '{CONFIGURATION}': only resyncs find changes"
    ]

    kube.apply(_name_hook(["sets", "eventtriggers"]))
    [said] = shown()
    assert said.startswith(f"'{CONFIGURATION}' does not report classifiers, clusterhealthchecks,")

    kube.remove(CRD, "", "clustersets.lib.projectsveltos.io")
    fleet.populate(here)
    here.declare.configure("default/workload", "on")
    expected = (
        "default/workload claims to hold the configuration as well",
        "it does not serve clustersets.lib.projectsveltos.io in v1beta1",
        said,
    )
    eventually(shown, lambda: shown() == [*expected])


def _name_hook(plurals: list[str]) -> dict[str, Any]:
    rule = {
        "apiGroups": ["lib.projectsveltos.io"],
        "apiVersions": ["v1beta1"],
        "resources": plurals,
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    hook = {
        "name": CONFIGURATION,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
    return {
        "apiVersion": WEBHOOK.api_version,
        "kind": WEBHOOK.kind,
        "metadata": {"name": NAME},
        "webhooks": [hook],
    }
