"""The page about AWS, typed in a folder that has the files of a release and a kubeconfig."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from bellhop.core.gvk import GVK
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from infra.package.interpreter import machine_architecture
from tests.docs.terminal import Terminal, Typed, typed
from tests.fakes.pod import Pod
from tests.infra.release_files import install_dependencies, put_release
from tests.lab.moto import ACCESS_KEY, SECRET_KEY, Moto
from tests.lab.terraform import redirect, shell_environment
from tests.terraform.cloud import Cloud
from tests.terraform.proxy import Proxy
from tests.waiting import eventually

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("_terraform"), pytest.mark.timeout(900)]

PAGE = Path(__file__).parents[2] / "docs/how-to/run-on-aws.md"
EXAMPLE = "bellhop-0.1.0/terraform/examples/aws-minimal"
TERRAFORM = "terraform -chdir=terraform/examples/aws-minimal"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
NOT_TYPED = "bellhop register cluster-eks"
"""There is no EKS here; tests/cli registers a cluster of it."""


@pytest.fixture
def new_account(tmp_path: Path) -> Iterator[Moto]:
    """An account in which nothing was ever made."""
    (tmp_path / "account").mkdir()
    with Moto(tmp_path / "account") as one:
        yield one


class Surroundings:
    """All that is around a reader: AWS, and a node that runs the forwarder."""

    cloud: Cloud

    def __init__(self, folder: Path, account: Moto, cluster: Cluster) -> None:
        self._folder = folder
        self._reader = folder / "reader"
        self._account = account
        self._end, self._at_work = ExitStack(), ExitStack()
        self._pod = Pod(cluster, folder, self._end.enter_context(Nursery()))
        self._end.callback(self._pod.close)
        self._sent_to = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._at_work.close()
        self._end.close()

    def before(self, line: str) -> str:
        """Prepare for a line, and return it with what this machine needs in the place of AWS."""
        if "/pip install" in line:
            (wheel,) = self._reader.glob("*.whl")
            install_dependencies(self._reader / "venv", wheel, "[aws]")
        elif line == f"{TERRAFORM} init":
            module = {"architecture": machine_architecture()}
            redirect(self._reader / EXAMPLE, self._account.url, module=module)
        elif line == f"{TERRAFORM} destroy":
            self._at_work.close()
        elif line.startswith("bellhop register"):
            return line + self._sent_to
        return line

    def after(self, line: str) -> None:
        """Do what AWS and the node do after a line."""
        if line == f"{TERRAFORM} apply" and not self._sent_to:
            self._open()
        elif "--image" in line:
            self._pod.run()
        elif line.startswith("bellhop apply"):
            self._ring()

    def _open(self) -> None:
        """Have AWS be at work on what Terraform made."""
        state = json.loads((self._reader / EXAMPLE / "terraform.tfstate").read_text())
        self.cloud = Cloud(self._account.url, state["outputs"]["bellhop"]["value"])
        self._end.callback(self.cloud.close)
        place = self._folder / "door"
        place.mkdir()
        proxy = self._end.enter_context(Proxy(place, self.cloud))
        self._sent_to = f" --ingest-url {proxy.address} --ingest-ca {proxy.ca}"
        self._at_work.enter_context(self.cloud.running())

    def _ring(self) -> None:
        """Wait until the API server calls for what was declared; a reader is slower than that."""
        eventually(
            self.cloud.words,
            lambda: (self._pod.admin.get(WEBHOOK, "", NAME) or {}).get("webhooks"),
            patience=90,
        )
        time.sleep(instructions.SPREAD_SECONDS)


def test_the_page_runs_as_it_is_written_and_leaves_nothing(
    tmp_path: Path,
    new_account: Moto,
    packages: dict[str, Path],
    source_cluster: Cluster,
    control_plane_binaries: Binaries,
) -> None:
    """One shell, in a folder with the page's three files, from unpacking to the destroy.

    It takes minutes: Terraform applies and destroys the example, resource by resource.
    """
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the page needs kubectl"
    reader, home = tmp_path / "reader", tmp_path / "home"
    home.mkdir()
    put_release(reader, "aws", packages["ingest"].parent, tmp_path / "checkout")
    source_cluster.kubeconfig(reader / "eu-1.kubeconfig")
    path = [str(kubectl.parent), f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"]
    environment = {
        **shell_environment(tmp_path),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_ENDPOINT_URL": new_account.url,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
    }
    with (
        Surroundings(tmp_path, new_account, source_cluster) as around,
        Terminal(environment, reader) as terminal,
    ):
        for line in typed(PAGE):
            if not line.command.startswith(NOT_TYPED):
                expected = Typed(around.before(line.command), line.shown)
                terminal.follow(expected, patience=90)
                around.after(line.command)
        assert around.cloud.left() == {}
