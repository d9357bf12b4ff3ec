"""Packages under AWS' own runtime client: they import, and answer golden events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.celbox import Rule
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.rendering.observation import observe
from bellhop.state.messages import Evaluate
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from infra.package.build import STAGES
from tests.fakes.chart import packed, repository
from tests.fakes.fleet import service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.fakes.tarballs import packed as packed_folder
from tests.functions.lab import Account, User, event
from tests.lab.lambdas import Function, Lambdas
from tests.package.zipped import Zipped, environment

CONFIG = GVK("", "v1", "ConfigMap")
RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
EMPTY: dict[str, Any] = {"Records": []}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ingest": (event("function_url"), {"statusCode": 401}),
    "evaluate": (EMPTY, {"batchItemFailures": []}),
    "deploy": (EMPTY, {"batchItemFailures": []}),
    "charts": (EMPTY, {"batchItemFailures": []}),
    "sweep": (EMPTY, {"batchItemFailures": []}),
    "schedule": (event("scheduler"), {"published": 1}),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_package_answers_its_golden_event(
    stage: str, account: Account, lambdas: Lambdas, packages: dict[str, Path]
) -> None:
    """With the handler that it is declared with and nothing beside it, twice by one process."""
    handler = f"functions.{stage}.aws.handle"
    lambdas.replace(stage, Function(packages[stage], handler, environment(account)))
    given, expected = ANSWERS[stage]
    outcome = lambdas.invoke(stage, given)

    assert outcome.error == "", outcome.logs
    assert expected.items() <= outcome.answer.items(), outcome.logs
    again = lambdas.invoke(stage, given)
    assert (again.error, again.began) == ("", 0.0)


def test_an_event_goes_through_all_packages_into_the_cluster(
    account: Account,
    source_cluster: Cluster,
    lambdas: Lambdas,
    packages: dict[str, Path],
) -> None:
    """Ingest, SQS, evaluate, SQS, deploy: an event's add-on is deployed, only by the zips."""
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply(RULES)
    functions = Zipped(account, lambdas, packages)
    someone = Someone(source_cluster.kubeconfig())
    kube = KubeClient("fleet/east", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    web = service("web")
    del web["status"]
    stored = someone.create(web)
    batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}

    answer = functions.send("east", {**batch, "items": [{"object": stored}]})
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"taken": 1, "dropped": 0})
    functions.pump(until=lambda: _there(kube, "for-web"))

    assert {"ingest", "evaluate", "deploy"} <= {stage for stage, _ in functions.outcomes}
    assert [each for _, each in functions.outcomes if each.error] == []
    lines = [each for each in functions.lines() if each.get("object") == str(ObjectKey.of(stored))]
    assert {"rang", "matched", "rendered", "applied"} <= {each["what"] for each in lines}
    someone.close()
    kube.close()


@pytest.mark.parametrize("layered", [True, False], ids=["with the layer", "without it"])
def test_evaluate_runs_cel_where_its_layer_is(
    account: Account,
    lambdas: Lambdas,
    packages: dict[str, Path],
    cel_layer: Path,
    *,
    layered: bool,
) -> None:
    """A rule that Kubernetes' libraries answer, and one that may cost so much that it runs apart.

    Without the layer each source says what is missing, and how to get it.
    """
    web = service("web")
    web["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    web["metadata"]["annotations"] = {"text": "x" * 20000, "most": "y" * 20000, "cpu": "1500m"}
    noted = "resource.metadata.annotations"
    rules = {
        "quick": f"quantity({noted}.cpu).isGreaterThan(quantity('1'))",
        "apart": f"{noted}.text.replace('z', {noted}.most) == {noted}.text",
    }
    assert [Rule(each).harmless(web) for each in rules.values()] == [True, False]
    user = User(account)
    user.register("east", {}, env="production")
    for name, rule in rules.items():
        asked = f", evaluateCEL: [{{name: {name}, rule: {json.dumps(rule)}}}]"
        user.apply(join(source(name=name, more=asked), trigger(name, origin=name)))
    records, key = user.here.records, ObjectKey.of(web)
    now = records.clock.now()
    records.observations.put(observe("fleet/east", web, now))
    user.here.publisher.publish([Evaluate("fleet/east", str(key), event_at=now.isoformat())])
    layers = {"evaluate": [cel_layer] if layered else []}
    functions = Zipped(account, lambdas, {"evaluate": packages["evaluate"]}, layers)

    def statuses() -> dict[str, tuple[bool, str]]:
        found = {name: records.matches.get("fleet/east", name, key) for name in rules}
        return {
            name: (kept.value.matching, kept.value.error) for name, kept in found.items() if kept
        }

    # On a slow machine the rule that runs apart exceeds its first slice, and is judged by a message
    # of its own.
    functions.pump("evaluate", until=lambda: statuses().keys() == rules.keys())

    missing = (
        "{}, rule '{}': CEL's runtime is not installed; install Bellhop with its"
        " dependencies (pip install bellhop-fleet), or in a cloud set `cel = true` in the Terraform"
        " module"
    )
    assert statuses() == {
        name: (True, "") if layered else (False, missing.format(name, name)) for name in rules
    }


CHECKED = """
  preDeployChecks:
  - name: ground
    featureID: Resources
    version: v1
    kind: Namespace
    script: function evaluate() return {healthy = obj.kind == "Namespace"} end
  validateHealths:
  - name: up
    featureID: Resources
    version: v1
    kind: Namespace
    evaluateCEL: [{name: active, rule: resource.status.phase == 'Active'}]
"""


@pytest.mark.parametrize("layered", [True, False], ids=["with the layer", "without it"])
def test_deploy_checks_by_lua_and_where_its_layer_is_by_cel(
    account: Account,
    source_cluster: Cluster,
    lambdas: Lambdas,
    packages: dict[str, Path],
    cel_layer: Path,
    *,
    layered: bool,
) -> None:
    """The zip itself runs a check in Lua; of one in CEL the status names the missing layer."""
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    layers = {"deploy": [cel_layer] if layered else []}
    functions = Zipped(account, lambdas, {"deploy": packages["deploy"]}, layers)
    user.apply(join(profile(more=CHECKED.strip()), holder("own", config("checked"))))
    outcomes = user.here.records.outcomes

    functions.pump("deploy", "apply", until=lambda: outcomes.get("fleet/east", "own"))

    [found] = outcomes.of("fleet/east")
    missing = "cannot be checked: up, rule 'active': CEL's runtime is not installed;"
    assert (found.phase == "Provisioned") == layered
    assert (missing in found.message) != layered
    kube = KubeClient("fleet/east", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    assert _there(kube, "checked")
    kube.close()


CHARTED = """
  helmCharts:
  - repositoryURL: {address}
    repositoryName: lab
    chartName: lab/demo
    chartVersion: 1.x
    releaseName: web
    releaseNamespace: default
  patches:
  - patch: '[{{"op": "add", "path": "/data/patched", "value": "yes"}}]'
    target: {{kind: ConfigMap}}
  kustomizationRefs: [{{kind: ConfigMap, namespace: default, name: folder}}]
"""
FOLDER = {
    "kustomization.yaml": "resources: [config.yaml]\nnamePrefix: built-\n",
    "config.yaml": config("web", "v: '1'"),
}


def test_charts_deploys_by_the_programs_of_its_layer(
    account: Account,
    source_cluster: Cluster,
    lambdas: Lambdas,
    packages: dict[str, Path],
    helm_layer: Path,
    tmp_path: Path,
) -> None:
    """Deploy leaves charts and kustomizations to it; our code patches in a process of Helm's."""
    account.environment["BELLHOP_HELM"] = "/opt/helm/helm"
    account.environment["BELLHOP_KUBECTL"] = "/opt/kubectl/kubectl"
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    chosen = {stage: packages[stage] for stage in ("deploy", "charts")}
    functions = Zipped(account, lambdas, chosen, {"charts": [helm_layer]})
    outcomes = user.here.records.outcomes
    with repository(packed(tmp_path)) as site:
        asked = profile(more=CHARTED.format(address=site.address).strip())
        beside, folder = holder("own", config("beside")), packed_folder("folder", FOLDER)
        user.apply(join(asked, beside, folder))
        functions.pump("deploy", "apply", "charts", until=lambda: outcomes.get("fleet/east", "own"))

    [found] = outcomes.of("fleet/east")
    assert (found.phase, found.message) == ("Provisioned", "")
    kube = KubeClient("fleet/east", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    made = kube.get(CONFIG, "default", "web-config")
    assert made
    assert made["data"] == {"greeting": "hello", "patched": "yes"}
    assert _there(kube, "beside")
    assert _there(kube, "built-web")
    kube.close()


def _there(kube: KubeClient, name: str) -> bool:
    return name in [each["metadata"]["name"] for each in kube.list(CONFIG, namespace="default")]
