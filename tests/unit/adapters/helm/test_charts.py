"""Releases by a program that answers as Helm does: what is made of its answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.programs.box import Limits
from bellhop.errors import TooLargeError
from bellhop.ports.charts import DesiredRelease

_LARGEST = 1 << 20
_SERVER = {"server": "https://127.0.0.1:1"}
_KUBECONFIG = json.dumps({"clusters": [{"name": "one", "cluster": _SERVER}]}).encode()


def helm(folder: Path, status: str, manifest: str = "echo kind: ConfigMap") -> HelmCharts:
    """Return releases by a Helm that prints more than is read, and then returns a status."""
    answer = {
        "revision": 3,
        "status": status,
        "chart": "big",
        "version": "1.0.0",
        "labels": {"bellhop.dev/deployed-by": "bellhop"},
    }
    program = folder / "helm"
    program.write_text(
        f"""#!/bin/sh
echo "$1" "$2" >>{folder}/calls
case "$1 $2" in
  upgrade*) exec head -c {2 * _LARGEST} /dev/zero ;;
  "get metadata") echo '{json.dumps(answer)}' ;;
  history*) echo "[]" ;;
  "get manifest") {manifest} ;;
esac
"""
    )
    program.chmod(0o755)
    return HelmCharts(program, Limits(output=_LARGEST))


def test_a_release_whose_output_is_too_large_counts_as_deployed(tmp_path: Path) -> None:
    """Helm prints the whole chart once all is done: the release is read instead."""
    release = helm(tmp_path, "deployed").deploy(
        _KUBECONFIG, DesiredRelease("big", "web", tmp_path / "big.tgz")
    )
    assert (release.revision, release.manifest) == (3, "kind: ConfigMap\n")
    assert (tmp_path / "calls").read_text().count("upgrade") == 1


def test_a_release_whose_objects_are_too_large_counts_as_deployed(tmp_path: Path) -> None:
    """Another try would make another revision of it, and run its hooks again."""
    large = f"exec head -c {2 * _LARGEST} /dev/zero"
    desired = DesiredRelease("big", "web", tmp_path / "big.tgz")
    release = helm(tmp_path, "deployed", large).deploy(_KUBECONFIG, desired)
    assert (release.revision, release.manifest) == (3, "")


def test_output_that_is_too_large_hides_no_failure(tmp_path: Path) -> None:
    """A release that was not deployed fails, whatever was printed."""
    with pytest.raises(TooLargeError, match="more than 1 MiB"):
        helm(tmp_path, "failed").deploy(
            _KUBECONFIG, DesiredRelease("big", "web", tmp_path / "big.tgz")
        )


def test_the_revision_of_before_is_no_proof_of_a_deployment(tmp_path: Path) -> None:
    """A Helm that was ended while it rendered has recorded nothing: the newest one is the old."""
    desired = DesiredRelease("big", "web", tmp_path / "big.tgz", there=True, revision=3)
    with pytest.raises(TooLargeError, match="more than 1 MiB"):
        helm(tmp_path, "deployed").deploy(_KUBECONFIG, desired)
