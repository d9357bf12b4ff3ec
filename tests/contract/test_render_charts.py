"""`bellhop render` with Helm itself: values of a trigger, and labels that all its objects get."""

from __future__ import annotations

from pathlib import Path

import yaml
from click.testing import CliRunner

from bellhop.adapters.programs.layer import download
from bellhop.cli.main import cli
from tests.fakes.chart import packed
from tests.unit.cli.test_charts import OBJECT, TRIGGER


def test_helm_renders_what_a_cluster_would_get(tmp_path: Path) -> None:
    """Patched and labelled as in a cluster, and with its definitions."""
    (tmp_path / "t.yaml").write_text(TRIGGER + "  extraLabels: {team: red}\n")
    (tmp_path / "o.yaml").write_text(OBJECT)
    arguments = f"render -f {tmp_path}/t.yaml --object {tmp_path}/o.yaml --show manifests"
    words = [*arguments.split(), "--cluster", "prod/eu,env=production"]
    helm = str(download() / "helm")
    result = CliRunner(env={"BELLHOP_HELM": helm}).invoke(
        cli, [*words, "--chart", str(packed(tmp_path))]
    )

    assert result.exit_code == 0, result.stderr
    assert list(yaml.safe_load_all(result.stdout)) == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "web-config", "namespace": "apps", "labels": {"team": "red"}},
            "data": {"greeting": "hi eu"},
        }
    ]
