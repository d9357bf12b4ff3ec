"""Lines of a function in each cloud: one JSON line per record, of Bellhop and of libraries."""

from __future__ import annotations

import json
from pathlib import Path

from tests.functions.lab import event
from tests.lab.frameworks import Function as Service
from tests.lab.frameworks import Functions
from tests.lab.lambdas import Function, Lambdas

# The deployed function, in which libraries log once it has answered.
LOUD = """
import logging

def loud(answer):
    logging.getLogger("botocore.auth").debug("hunter2")
    logging.getLogger("urllib3.connectionpool").info("hunter2")
    logging.getLogger("google.api_core.retry").warning("Retrying due to %s", "503")
    logging.getLogger("botocore.credentials").warning("Refreshing temporary credentials failed")
    return answer
"""
ON_LAMBDA = """
from functions.ingest.aws import handle as answer

def handle(event, context):
    return loud(answer(event, context))
"""
ON_CLOUD_RUN = """
import functions_framework
from functions.ingest.gcp import handle as answer

@functions_framework.http
def handle(request):
    return loud(answer(request))
"""
WRITTEN = [
    ("ERROR", None, "Cannot open the installation"),
    ("WARNING", "google.api_core.retry", "Retrying due to 503"),
    ("WARNING", "botocore.credentials", "Refreshing temporary credentials failed"),
]


def written(log: str) -> list[tuple[str, str | None, str]]:
    lines = [json.loads(line) for line in log.splitlines()]
    return [(each["severity"], each.get("logger"), each["message"]) for each in lines]


def test_on_lambda(lambdas: Lambdas, packages: dict[str, Path], tmp_path: Path) -> None:
    """The runtime's own handler of the root logger writes no line a second time."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "loud.py").write_text(LOUD + ON_LAMBDA)
    variables = {"AWS_LAMBDA_LOG_FORMAT": "JSON", "AWS_LAMBDA_LOG_LEVEL": "DEBUG"}
    function = Function(packages["ingest"], "loud.handle", variables, layers=[tmp_path])
    lambdas.replace("ingest", function)

    assert lambdas.invoke("ingest", event("function_url")).answer["statusCode"] == 503
    assert written(lambdas.logs("ingest")) == WRITTEN


def test_on_cloud_run(google_sources: Path, google_installed: Path, tmp_path: Path) -> None:
    """Lines of libraries, too, have the fields of Cloud Logging, and no line comes twice."""
    (tmp_path / "main.py").write_text(LOUD + ON_CLOUD_RUN)
    installed, sources = google_installed / "ingest", google_sources / "ingest"
    variables = {"PYTHONPATH": f"{installed}:{sources}", "BELLHOP_PROJECT": "lab-7"}
    with Functions(tmp_path) as functions:
        running = functions.add("ingest", Service(tmp_path, installed, "http", variables))
        functions.start()
        path, token = "/clusters/fleet/east", {"Authorization": "Bearer east"}
        assert running.ask("POST", path, b"{}", token).status == 503
        log, lines = running.log(), running.lines()

    assert written("\n".join(map(json.dumps, lines))) == WRITTEN
    assert all("logging.googleapis.com/insertId" in each for each in lines)
    assert log.count("Retrying due to") == 1
