"""Packages under AWS' own runtime client: they import, and answer golden events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from infra.lab.lambdas import Function, Lambdas
from infra.package.build import STAGES
from tests.fakes.fleet import service
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.functions.lab import Account, User, event
from tests.package.zipped import Zipped, environment

CONFIG = GVK("", "v1", "ConfigMap")
RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
EMPTY: dict[str, Any] = {"Records": []}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ingest": (event("function_url"), {"statusCode": 401}),
    "evaluate": (EMPTY, {"batchItemFailures": []}),
    "deploy": (EMPTY, {"batchItemFailures": []}),
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
    """Ingest, SQS, evaluate, SQS, deploy: what was rung for is there, by the zips alone."""
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply(RULES)
    functions = Zipped(account, lambdas, packages)
    someone = Someone(source_cluster.kubeconfig())
    kube = KubeClient("fleet/east", sanitise(source_cluster.kubeconfig(), reach=HERE), reach=HERE)
    web = service("web")
    del web["status"]
    stored = someone.create(web)
    batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}

    answer = functions.send("east", {**batch, "items": [{"object": stored}]})
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"taken": 1, "dropped": 0})
    functions.pump(until=lambda: _there(kube, "for-web"))

    assert {"ingest", "evaluate", "deploy"} <= {stage for stage, _ in functions.outcomes}
    assert [each for _, each in functions.outcomes if each.error] == []
    told = [each for each in functions.lines() if each.get("object") == str(ObjectKey.of(stored))]
    assert {"rang", "matched", "rendered", "applied"} <= {each["what"] for each in told}
    someone.close()
    kube.close()


def _there(kube: KubeClient, name: str) -> bool:
    return name in [each["metadata"]["name"] for each in kube.list(CONFIG, namespace="default")]
