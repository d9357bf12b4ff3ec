"""The shapes of what is not built yet are checked already, so that building finds them right."""

from typing import Any

import pytest
from pydantic import ValidationError

from bellhop.api.fields import field_at, model_in, paths_of
from bellhop.api.kinds import KINDS
from bellhop.api.trigger import EventTrigger

CHART = {
    "repositoryURL": "https://x",
    "chartName": "c",
    "releaseName": "r",
    "releaseNamespace": "n",
}
CHECK = {"name": "n", "featureID": "Helm", "kind": "Pod", "version": "v1"}
METRICS = {
    "metricSource": {"url": "http://prom:9090", "secretRef": {"name": "s"}},
    "metricQueries": [{"name": "a", "query": "up"}],
}


def validate(path: str, value: Any) -> Any:
    field = field_at(EventTrigger, tuple(path.split(".")))
    assert field is not None
    model = model_in(field.annotation)
    assert model is not None
    return model.model_validate(value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("spec.helmCharts", CHART, id="chart"),
        pytest.param(
            "spec.helmCharts",
            {
                **CHART,
                "helmChartAction": "Uninstall",
                "options": {
                    "timeout": "1h30m",
                    "disableOpenAPIValidation": True,
                    "skipCRDs": True,
                    "upgradeOptions": {"upgradeCRDs": True, "maxHistory": 5},
                    "uninstallOptions": {"deletionPropagation": "orphan"},
                },
                "valuesFrom": [{"kind": "Secret", "name": "{{ .Cluster.metadata.name }}"}],
            },
            id="chart with options",
        ),
        pytest.param("spec.kustomizationRefs", {"kind": "OCIRepository", "name": "x"}, id="kust"),
        pytest.param("spec.policyRefs.remoteURL", {"url": "oci://x", "interval": "30s"}, id="oci"),
        pytest.param("spec.validateHealths", {**CHECK, "script": "x"}, id="check"),
        pytest.param(
            "spec.preDeployChecks",
            {**CHECK, "jobCheck": {"jobRef": {"name": "j"}}},
            id="check by a Job",
        ),
        pytest.param(
            "spec.preDeployChecks",
            {"name": "n", "featureID": "Resources", "script": "x", **METRICS},
            id="check by metrics",
        ),
        pytest.param("spec.patches", {"patch": "x", "target": {"kind": "Pod"}}, id="patch"),
        pytest.param("spec.driftExclusions", {"paths": ["/spec"]}, id="drift exclusion"),
        pytest.param("spec.configMapGenerator", {"name": "a", "nameFormat": "{{X}}"}, id="gen"),
    ],
)
def test_takes(path: str, value: Any) -> None:
    """What the API allows is allowed."""
    assert validate(path, value).model_dump(by_alias=True, exclude_unset=True) == {
        **value,
        **{key: tuple(item) for key, item in value.items() if isinstance(item, list)},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_can_be_loaded(kind: str) -> None:
    """No field waits for a module that is not there."""
    assert list(paths_of(KINDS[kind][0]))


def share(value: Any) -> Any:
    return validate(
        "spec", {"sourceClusterSelector": "", "eventSourceName": "s", "maxUpdate": value}
    )


@pytest.mark.parametrize("value", [3, 0, "3", "20%", "100%"])
def test_reads_a_share(value: Any) -> None:
    """A share is a number of clusters or a percentage of them."""
    assert share(value).max_update == value


@pytest.mark.parametrize("value", ["101%", "x", True, [], -1])
def test_refuses_what_is_no_share(value: Any) -> None:
    """A share beyond all clusters, or of something else, is a mistake."""
    with pytest.raises(ValidationError, match="neither a number of clusters nor a percentage"):
        share(value)


def test_a_job_has_a_second_at_least_and_an_end() -> None:
    """Kubernetes counts whole seconds, and not beyond 68 years."""
    job = {"jobRef": {"kind": "Secret", "name": "j", "namespace": "n"}}
    checks = {
        text: validate("spec.validateHealths", {**CHECK, "jobCheck": {**job, "timeout": text}})
        for text in ("10ms", "90.5s", "99999999999h")
    }
    found = [each.record("validateHealths").job.seconds for each in checks.values()]

    assert found == [1, 91, 2**31 - 1]
