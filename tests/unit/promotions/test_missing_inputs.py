"""Inputs that come later, or do not answer for a while: nothing is taken for a failed release."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from bellhop.core.gvk import Resource
from bellhop.diagnosis import failures
from bellhop.errors import ConflictError, UnreachableError
from bellhop.operations import promotions
from bellhop.rendering.inputs import SECRET_TYPE
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import config, holder
from tests.fakes.read import management, write
from tests.unit.deploy.test_files import ARTIFACT, GIT, URL, repository
from tests.unit.promotions.conftest import Fleet3, auto, promotion, version
from tests.unit.promotions.test_frozen_sources import chart, has

MINUTE = timedelta(minutes=1)
LAST = {"name": "production"}
RETURNS = {"bellhop.dev/on-failure": "rollback"}
STAGES = (auto("staging"), LAST)
LATE = {"kind": "ConfigMap", "namespace": "default", "name": "late"}


def secret(name: str, kind: str, **entries: str) -> str:
    """Return a Secret of a type."""
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "type": kind,
        "stringData": entries,
    }
    return yaml.safe_dump(document)


def names(staged: Fleet3) -> list[list[str]]:
    return [staged.kubes[f"{each}1"].names() for each in ("staging", "production")]


def said(staged: Fleet3) -> str:
    return "\n".join(each.message for each in failures.list_failures(staged.fleet.installation()))


def test_a_promotion_is_applied_before_its_configmap(staged: Fleet3) -> None:
    """Its first release is the one with the ConfigMap; nothing has failed before."""
    staged.apply(promotion(*STAGES))
    assert staged.state.latest == 0
    assert staged.phases() == ["Waiting", "Waiting"]
    assert "cannot find ConfigMap default/agent" in staged.state.missing
    assert "cannot find ConfigMap default/agent" in said(staged)
    with pytest.raises(ConflictError, match="no release yet; cannot find ConfigMap"):
        promotions.approve(staged.fleet.installation(), "agent", by="ann", stage="staging")

    staged.apply(version("1"))

    assert staged.phases() == ["Promoted", "Promoted"]
    assert (staged.state.latest, staged.state.missing) == (1, "")
    assert staged.has("production") == {"1"}
    assert said(staged) == ""


VALUES = {**chart()["helmCharts"][0], "valuesFrom": [LATE]}


@pytest.mark.parametrize(
    ("spec", "late"),
    [
        pytest.param({"patchesFrom": [LATE]}, holder("late", ""), id="patches"),
        pytest.param({"helmCharts": [VALUES]}, holder("late", "a: 1"), id="values"),
        pytest.param(
            {"policyRefs": [{**LATE, "kind": "Secret"}]},
            secret("late", SECRET_TYPE, x=config("x")),
            id="secret",
        ),
    ],
)
def test_any_field_may_name_what_comes_later(
    staged: Fleet3, spec: dict[str, Any], late: str
) -> None:
    staged.fleet.repositories.put("web", "1.0.0")
    staged.apply(version("1"), promotion(*STAGES, profileSpec=spec))
    assert staged.state.latest == 0
    assert "default/late" in staged.state.missing

    staged.apply(late)

    assert staged.phases() == ["Promoted", "Promoted"], staged.state
    assert staged.state.latest == 1


def test_a_release_that_runs_is_no_worse_for_a_missing_one(staged: Fleet3) -> None:
    """A stage that would roll back a failed release stays as it is."""
    staged.apply(version("1"), promotion(*STAGES, annotations=RETURNS))
    two = {"policyRefs": [LATE, {**LATE, "name": "agent"}]}
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=two))
    assert (staged.state.latest, staged.phases()) == (1, ["Promoted", "Promoted"])
    assert names(staged) == [["agent"], ["agent"]]

    staged.apply(holder("late", config("late")))

    assert (staged.state.latest, staged.phases()) == (2, ["Promoted", "Promoted"])
    assert names(staged) == [["agent", "late"]] * 2


def test_a_deleted_configmap_withdraws_nothing(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(*STAGES, annotations=RETURNS))
    staged.fleet.declare.delete([("ConfigMap", "default", "agent")])
    staged.settle()
    joined = staged.fleet.register("production9", env="production")
    staged.settle()
    assert staged.has("production") == {"1"}
    assert [each["data"]["v"] for each in joined.objects(CONFIG)] == ["1"]
    assert "cannot find ConfigMap default/agent" in staged.state.missing

    staged.apply(version("1"))
    assert (staged.state.latest, staged.state.missing) == (1, "")


def test_what_verifies_a_stage_comes_later(staged: Fleet3) -> None:
    verified = auto("staging", preHealthCheckDeployment=[LATE])
    staged.apply(version("1"), promotion(verified, LAST))
    assert staged.phases() == ["Verifying", "Waiting"]
    assert "cannot find ConfigMap default/late" in staged.stage("staging").message

    staged.apply(holder("late", config("late")))

    assert staged.phases() == ["Promoted", "Promoted"]
    assert staged.has("production") == {"1"}


def test_a_repository_that_is_down_for_minutes_is_waited_for(staged: Fleet3) -> None:
    """That is no reason to roll back the release."""
    repositories = staged.fleet.repositories
    repositories.put("web", "1.0.0", "2.0.0")
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=chart("1.0.0")))
    assert has(staged) == ["1.0.0", "1.0.0"]

    repositories.failure = UnreachableError("the repository is down")
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=chart("2.0.0")))
    staged.fleet.wait(MINUTE, times=3)
    stage = staged.stage("staging")
    assert (stage.phase, stage.release) == ("Stalled", 2)
    assert "the repository is down" in stage.message
    assert has(staged) == ["1.0.0", "1.0.0"]
    repositories.failure = None
    staged.fleet.wait(MINUTE, times=30)
    staged.settle()

    assert has(staged) == ["2.0.0", "2.0.0"]
    assert staged.phases() == ["Promoted", "Promoted"]


def test_a_url_that_is_down_for_minutes_is_waited_for(staged: Fleet3) -> None:
    files = staged.fleet.files
    files.served[URL] = {"web.yaml": config("web", "v: '1'")}
    files.failure = UnreachableError("the server is down")
    remote = {"policyRefs": [{"remoteURL": {"url": URL, "interval": "1m"}}]}
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=remote))
    staged.fleet.wait(MINUTE, times=3)
    assert staged.phases() == ["Stalled", "Waiting"]
    assert staged.has("production") == {""}

    files.failure = None
    staged.fleet.wait(MINUTE, times=30)
    staged.settle()

    assert staged.has("production") == {"1"}


def test_the_secret_of_a_url_comes_later(staged: Fleet3) -> None:
    staged.fleet.files.served[URL] = {"web.yaml": config("web", "v: '1'")}
    named = {"url": URL, "secretRef": {"name": "login", "namespace": "default"}}
    remote = {"policyRefs": [{"remoteURL": named}]}
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=remote))
    assert staged.phases() == ["Stalled", "Waiting"]
    assert "default/login" in staged.stage("staging").message

    staged.apply(secret("login", SECRET_TYPE, token="abc"))

    assert staged.has("production") == {"1"}


@pytest.mark.parametrize("there", ["nothing", "no artifact"])
def test_a_flux_source_comes_later(staged: Fleet3, there: str) -> None:
    said_of = {"nothing": "cannot find GitRepository", "no artifact": "Flux has no artifact of it"}
    fleet = staged.fleet
    fleet.register("east")
    mgmt = management(fleet)
    mgmt.serve(Resource(GIT, "gitrepositories", namespaced=True))
    mgmt.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
    if there == "no artifact":
        mgmt.put(repository(None))
    git = {"kind": "GitRepository", "namespace": "flux-system", "name": "web", "path": "web.yaml"}
    spec = {"policyRefs": [git]}
    staged.apply(promotion(*STAGES, annotations=RETURNS, profileSpec=spec))
    assert staged.phases() == ["Stalled", "Waiting"]
    assert said_of[there] in staged.stage("staging").message

    folder = {"web.yaml": config("web", "v: '1'")}
    fleet.files.served[ARTIFACT] = folder
    write(fleet, repository(folder))
    staged.settle()

    assert staged.has("production") == {"1"}, staged.state
    assert staged.stage("staging").release == 1
