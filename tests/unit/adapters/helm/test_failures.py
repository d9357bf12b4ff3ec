"""What Helm says, as errors: what a chart says is not what its cluster says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.helm.failures import failure
from bellhop.errors import (
    BellhopError,
    ConflictError,
    InvalidError,
    TemporaryError,
)
from bellhop.ports.charts import DesiredRelease

FAIL = "execution error at (web/templates/a.yaml:1:3): "
WEBHOOK = 'failed calling webhook "a.example": failed to call webhook: Post "https://a.svc:443": '


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("kubernetes cluster unreachable: connection refused", TemporaryError),
        ("the server has asked for the client to provide credentials", TemporaryError),
        ("query: failed to query with labels: Unauthorized", TemporaryError),
        ('query: Get "https://a": cannot reach the server: it has no address', TemporaryError),
        ('no matches for kind "Unauthorized" in version "v1"', InvalidError),
        ('ConfigMap "x" is invalid: data[connection refused]: Invalid value', InvalidError),
        ("x exists and cannot be imported into the current release", ConflictError),
        ("another operation (install/upgrade/rollback) is in progress", TemporaryError),
        (f"{FAIL}Unauthorized users are refused", InvalidError),
        (f"{FAIL}set url: no such host", InvalidError),
        ("parse error at (web/templates/a.yaml:1): unexpected EOF", InvalidError),
        ("YAML parse error on web/templates/a.yaml: unexpected EOF", InvalidError),
        (f"{WEBHOOK}connection refused", TemporaryError),
        (f"{WEBHOOK}x509: certificate signed by unknown authority", TemporaryError),
    ],
)
def test_who_may_mend_it(said: str, kind: type[BellhopError]) -> None:
    error = failure(f"Error: {said}\n", "deploy it")
    assert type(error) is kind
    assert str(error) == f"cannot deploy it: {said}"


@pytest.mark.parametrize(
    ("does", "kind", "says"),
    [
        ("kill -KILL $$", TemporaryError, "Helm was killed from outside (SIGKILL)"),
        (
            "echo 'fatal error: runtime: out of memory' >&2; exit 2",
            InvalidError,
            "Helm needs more memory than the 2048 MiB that it may have",
        ),
    ],
    ids=["killed", "out of memory"],
)
def test_the_error_says_why_helm_ended_early(
    tmp_path: Path, does: str, kind: type[BellhopError], says: str
) -> None:
    """It cannot say so itself."""
    program = tmp_path / "helm"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    with pytest.raises(kind) as caught:
        HelmCharts(program).render(DesiredRelease("web", "apps", tmp_path / "web-1.0.0.tgz"))
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"cannot render the chart of 'apps/web': {says}")


def test_the_error_has_no_path_of_a_process() -> None:
    """Helm reads the values from a file in memory that nobody else can open."""
    said = "failed to parse /proc/self/fd/15: error converting YAML to JSON: yaml: line 1"
    error = failure(f"Error: {said}\n", "deploy it")
    assert str(error) == (
        "cannot deploy it: failed to parse the values: error converting YAML to JSON: yaml: line 1"
    )
