"""What a cold function loads is part of what it costs."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        pytest.param("bellhop.core.gvk", {"pydantic", "yaml"}, id="names of kinds"),
        pytest.param(
            "bellhop.events.evaluator",
            {"bellhop.gotemplate", "bellhop.ingest.admission", "yaml"},
            id="evaluate",
        ),
        pytest.param(
            "bellhop.adapters.local.store, bellhop.ingest.handler",
            {"pydantic", "yaml"},
            id="ingest on one machine",
        ),
        pytest.param(
            "bellhop.api.kinds",
            {
                "yaml",
                "bellhop.documents.yaml_reader",
                "bellhop.api.helm",
                "bellhop.api.kustomize",
                "bellhop.api.checks",
                "bellhop.api.patches",
                "bellhop.api.ref",
                "bellhop.api.rules",
            },
            id="kinds",
        ),
    ],
)
@pytest.mark.clocked
def test_importing_does_not_load(module: str, absent: set[str]) -> None:
    """Templates, YAML and what is not built yet wait until somebody asks for them."""
    program = f"import sys, {module}; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert not absent & set(loaded.stdout.decode().split())


def test_building_a_model_looks_for_no_plugins() -> None:
    """What is installed beside us is neither searched nor run."""
    program = (
        "import sys; from bellhop.api.kinds import of\n"
        "of({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}})\n"
        "print('importlib.metadata' in sys.modules)"
    )

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert said.stdout.split() == [b"False"]
