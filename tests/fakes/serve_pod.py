"""The work of a node for the pod of `bellhop serve`, where there are none.

The container of the Deployment runs as a process: its command, arguments and environment are those
of the chart, its user that of the image, its root file system is read-only, and its account's token
is where nodes mount it. Only the addresses it listens at are of this machine.
"""

from __future__ import annotations

import random
import subprocess
import sysconfig
from pathlib import Path
from urllib.parse import urlsplit

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.service_account import ACCOUNT
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery, Process
from tests.infra.image import Dockerfile, Image
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
NAMESPACE, NAME = "bellhop", "bellhop"
_DEPLOYMENT = GVK("apps", "v1", "Deployment")
_PROGRAM = "#!/usr/local/bin/python3\nfrom bellhop.cli.main import run\nrun()\n"
_SEEN = {"PATH": "/app/bin:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "/app/shared:/app/site"}


class ServeImage(Image):
    """The image of `bellhop serve`, with this checkout and its environment mounted."""

    def __init__(self, folder: Path) -> None:
        self.file = Dockerfile.read(ROOT / "infra/serve/Dockerfile")
        # The chart names the whole command.
        self.file.entrypoint = []
        self.root = folder / "root"
        program = self.inside("/app/bin/bellhop")
        program.parent.mkdir(parents=True)
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        temporary = folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        self.mounted = [
            (temporary, "tmp"),
            (ROOT / "shared", "app/shared"),
            (Path(sysconfig.get_path("purelib")), "app/site"),
        ]


class ServePod:
    """The pod of the Deployment, and its volume, which outlives it."""

    def __init__(self, cluster: Cluster, folder: Path, nursery: Nursery) -> None:
        self._cluster = cluster
        self._nursery = nursery
        self._image = ServeImage(folder)
        self._volume = folder / "volume"
        self._volume.mkdir()
        self._starts = 0
        self.address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
        self.url = f"https://{self.address}:8443"
        self.log = folder / "serve.log"
        self.admin = KubeClient("serve", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)

    def run(self) -> Process:
        """Start what the Deployment says now, and wait until it has registered its cluster."""
        deployment = self.admin.get(_DEPLOYMENT, NAMESPACE, NAME)
        assert deployment, "nothing is installed"
        pod = deployment["spec"]["template"]["spec"]
        [container] = pod["containers"]
        account = self._image.inside(str(ACCOUNT))
        account.mkdir(parents=True, exist_ok=True)
        token = self.admin.token_request(NAMESPACE, pod["serviceAccountName"])
        (account / "token").write_text(token)
        (account / "ca.crt").write_text(self._cluster.ca_pem)
        arguments = [each.replace("=0.0.0.0:", f"={self.address}:") for each in container["args"]]
        environment = {each["name"]: each["value"] for each in container["env"]}
        command = self._command([*container["command"], *arguments], environment)
        process = self._nursery.start(command, self.log, cwd=ROOT)
        self._starts += 1
        eventually(
            lambda: f"the own cluster is registered; the log ends: {process.last_words()}",
            lambda: self.log.read_text().count("The own cluster is registered") == self._starts,
            patience=120,
        )
        return process

    def do(self, *arguments: str, stdin: str = "") -> str:
        """Run a command in the pod, as `kubectl exec` does, which must succeed."""
        done = subprocess.run(
            self._command(["bellhop", *arguments], {}),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _command(self, arguments: list[str], environment: dict[str, str]) -> list[str]:
        server = urlsplit(self._cluster.server)
        node = {
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        mount = (self._volume, "/state")
        return self._image.container(arguments, mount, **environment, **node, **_SEEN)

    def close(self) -> None:
        """Close the connections; the process ends with its nursery."""
        self.admin.close()
