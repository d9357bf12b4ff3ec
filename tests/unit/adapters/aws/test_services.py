"""What a process has of AWS' SDK, however many installations it opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bellhop.adapters.aws.services import Services

MODEL = {
    "version": "2.0",
    "metadata": {
        "apiVersion": "2026-01-01",
        "endpointPrefix": "made-up",
        "jsonVersion": "1.0",
        "protocol": "json",
        "serviceId": "Made Up",
        "signatureVersion": "v4",
        "targetPrefix": "MadeUp",
    },
    "operations": {"Ring": {"name": "Ring", "http": {"method": "POST", "requestUri": "/"}}},
    "shapes": {},
}


def test_models_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From where the environment says; later processes need no file of them."""
    model = tmp_path / "made-up" / "2026-01-01" / "service-2.json"
    model.parent.mkdir(parents=True)
    model.write_text(json.dumps(MODEL))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    for _ in range(2):
        services = Services(region="eu-west-1", endpoint="http://127.0.0.1:9", keys=("a", "b"))
        assert services.client("made-up").ring
        services.close()
        model.unlink(missing_ok=True)
