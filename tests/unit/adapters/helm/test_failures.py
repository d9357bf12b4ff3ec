"""What Helm says, as errors: what a chart says is not what its cluster says."""

from __future__ import annotations

import pytest

from bellhop.adapters.helm.failures import failure
from bellhop.errors import (
    BellhopError,
    ConflictError,
    InvalidError,
    TemporaryError,
)

FAIL = "execution error at (web/templates/a.yaml:1:3): "
WEBHOOK = 'failed calling webhook "a.example": failed to call webhook: Post "https://a.svc:443": '


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("kubernetes cluster unreachable: connection refused", TemporaryError),
        ("the server has asked for the client to provide credentials", TemporaryError),
        ("query: failed to query with labels: Unauthorized", TemporaryError),
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
