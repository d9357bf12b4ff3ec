"""What pages about Google Cloud say to type is typed, or it is said here why it is not."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.cli.conftest import google_outputs
from tests.docs.terminal import Terminal, Typed, typed
from tests.fakes.pod import Pod
from tests.functions.gcp_lab import Project, Stand
from tests.infra.release_files import install_dependencies, put_release
from tests.lab.google_logging import Logging
from tests.lab.google_monitoring import Monitoring
from tests.lab.google_schema import PLACE
from tests.lab.google_schema_provider import SchemaProvider
from tests.missing import find_program
from tests.terraform.proxy import Proxy

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs/how-to" / page for page in ("run-on-gcp.md", "view-events-in-cloud-logging.md")
]
EXAMPLE = "-chdir=terraform/examples/gcp-minimal"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")

NOT_TYPED = {
    "gcloud services enable": "asks Google",
    "gcloud quotas": "asks Google",
    f"terraform {EXAMPLE} apply": "asks Google: tests/terraform/test_google_module.py validates it",
    f"terraform {EXAMPLE} destroy": "asks Google",
    "bellhop register cluster-gke": "tests/cli/test_register.py does, with a GKE of its own",
    "bellhop logs --follow": "has no end: tests/cli/test_logs.py follows",
    "gcloud logging read": "asks Google: tests/docs/test_cloud_logging_page.py tries its filter",
    "gcloud logging metrics create": "the same",
    "gcloud monitoring policies create": "asks Google",
}
"""Lines of the pages that are not typed here, by how they begin, and why."""

LEAVE = ("bellhop delete", "bellhop wait", "bellhop deregister")
"""How the lines begin that remove what the other page needs."""


def lines() -> list[Typed]:
    """Return what the pages say to type, in their order."""
    return [line for page in PAGES for line in typed(page)]


def untyped(line: Typed) -> str:
    """Return the words of the list by which a line is left out; empty if it is typed."""
    return next((each for each in NOT_TYPED if line.command.startswith(each)), "")


def test_every_line_is_typed_or_has_a_reason_why_not() -> None:
    """Nothing is in the list that no page has, nor is a shell's line hidden from who types."""
    assert {untyped(line) for line in lines()} - {""} == NOT_TYPED.keys()
    for page in PAGES:
        languages = [line[3:] for line in page.read_text().splitlines() if line.startswith("```")]
        assert set(languages[::2]) <= {"bash", "filter", "hcl", "json"}


class Ingest:
    """The function that the forwarder sends to, as the proxy before it asks it."""

    def __init__(self, stand: Stand) -> None:
        self._function = stand.functions["ingest"]

    def send(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Pass a request on."""
        kept = {name: headers[name] for name in ("Authorization", "Content-Type")}
        answer = self._function.ask("POST", path, body, kept)
        return {"statusCode": answer.status, "body": answer.body.decode()}


@contextmanager
def ticking(stand: Stand) -> Iterator[None]:
    """Tick as Cloud Scheduler does, in a hurry."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1):
            stand.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def applied(place: Path, project: Project) -> None:
    """Write the state that an apply would leave: what Terraform puts out is read from it."""
    value = google_outputs(project)
    outputs = {"bellhop": {"value": value, "type": type_of(value)}}
    state = {"version": 4, "terraform_version": "1.11.0", "serial": 1, "lineage": "lab"}
    (place / "terraform.tfstate").write_text(
        json.dumps({**state, "outputs": outputs, "resources": []})
    )


def type_of(value: Any) -> Any:
    """Return the type of an output, in Terraform's words."""
    if isinstance(value, dict):
        return ["object", {name: type_of(each) for name, each in value.items()}]
    return "string"


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_pages_run_as_they_are_written(
    stand: Stand,
    google_sources: Path,
    source_cluster: Cluster,
    control_plane_binaries: Binaries,
    tmp_path: Path,
) -> None:
    """One shell, in a folder with the page's three files, from unpacking to the last look at logs.

    The page's own leave comes last. What an apply would leave is put there. No node runs the
    forwarder: its pod is played. What functions write comes to Cloud Logging when somebody asks.
    It takes long: every command of the page starts a process of its own.
    """
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the page needs kubectl"
    project, reader = stand.project, tmp_path / "reader"
    put_release(reader, "gcp", google_sources, tmp_path / "checkout")
    source_cluster.kubeconfig(reader / "eu-1.kubeconfig")
    with ExitStack() as end:
        provider = end.enter_context(SchemaProvider(PLACE))
        (tmp_path / "door").mkdir()
        proxy = end.enter_context(Proxy(tmp_path / "door", Ingest(stand)))  # type: ignore[arg-type]
        logging, monitoring = end.enter_context(Logging()), end.enter_context(Monitoring())
        logging.places.add(f"projects/{project.name}")
        path = [kubectl.parent, find_program("terraform").parent, Path(sys.base_prefix) / "bin"]
        environment = {
            **project.emulators,
            **provider.environment,
            "CHECKPOINT_DISABLE": "1",
            "HOME": str(tmp_path),
            "LOGGING_EMULATOR_HOST": logging.address,
            "MONITORING_EMULATOR_HOST": monitoring.address,
            "PATH": os.pathsep.join([*map(str, path), "/usr/bin", "/bin"]),
        }
        pod = Pod(source_cluster, tmp_path, end.enter_context(Nursery()))
        end.callback(pod.close)
        end.enter_context(ticking(stand))
        shell = end.enter_context(Terminal(environment, reader))
        expected = [line for line in lines() if not untyped(line)]
        leave = [line for line in expected if line.command.startswith(LEAVE)]
        for line in [*(each for each in expected if each not in leave), *leave]:
            command = line.command
            if "/pip install" in command:
                (wheel,) = reader.glob("*.whl")
                install_dependencies(reader / "venv", wheel, "[gcp]")
            if command.endswith(" output -json | bellhop context add prod --gcp -"):
                applied(reader / "bellhop-0.1.0/terraform/examples/gcp-minimal", project)
            if "register cluster " in command and line not in leave:
                command += f" --ingest-url {proxy.address} --ingest-ca {proxy.ca}"
            if command.startswith("bellhop logs"):
                write_measurements(logging, stand)
            shell.follow(replace(line, command=command), patience=90)
            if "--image" in command:
                pod.run()
            if command.startswith("bellhop apply"):
                rings(stand, pod)

        status, said = shell.type("bellhop logs --source sveltos-service --since 2h")
        assert (status, "applied" in said) == (0, True)


def write_measurements(logging: Logging, stand: Stand) -> None:
    """Have what functions wrote until now be where it is looked for."""
    for line in stand.lines():
        logging.write("lab-evaluate", json.dumps(line), at=datetime.now(UTC))


def rings(stand: Stand, pod: Pod) -> None:
    """Wait until the API server sends events of the sources; a reader is slower than that."""
    stand.wait(lambda: (pod.admin.get(WEBHOOK, "", NAME) or {}).get("webhooks"))
    time.sleep(instructions.SPREAD_SECONDS)
