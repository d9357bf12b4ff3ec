"""The charts on a real API server: installed, upgraded, rolled back and uninstalled by Helm."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.installation import Inbound
from bellhop.registration.registration import register
from bellhop.registration.request import Registration
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from infra.charts.build import BELLHOP, FORWARDER, archive_name
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.fakes.pod import Pod
from tests.fakes.serve_pod import NAMESPACE, ServePod
from tests.infra.chart import Charts, set_values
from tests.waiting import eventually

pytestmark = [pytest.mark.rest, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CONFIG_MAP, CLAIM, ACCOUNT, TEAM_SPACE = (
    GVK("", "v1", kind)
    for kind in ("ConfigMap", "PersistentVolumeClaim", "ServiceAccount", "Namespace")
)
DEPLOYMENT = GVK("apps", "v1", "Deployment")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
CLUSTER_ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
WRITE = ["get", "create", "patch", "delete"]
RULES = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": WRITE},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": WRITE},
]
"""Rights that the example needs: for the kind of its source, and those of its add-ons."""


PAGE = (ROOT / "docs/how-to/install-with-helm.md").read_text()
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
PACKED = "dist/charts/bellhop-0.1.0.tgz"
EXEC = "kubectl --namespace bellhop exec deploy/bellhop --"
EXEC_WITH_INPUT = "kubectl --namespace bellhop exec -i deploy/bellhop --"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, as the container's user has to."""
    made = Path(tempfile.mkdtemp(prefix="bellhop-chart-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def open_cluster(cluster: Cluster, folder: Path) -> tuple[Charts, KubeClient]:
    """Return Helm for a cluster, and a client of its administrator."""
    kubeconfig = folder / f"{cluster.name}.kubeconfig"
    cluster.kubeconfig(kubeconfig)
    admin = KubeClient("admin", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    return Charts(folder / "charts", kubeconfig), admin


class Installed:
    """The chart in a cluster, with the pods that it asks for."""

    def __init__(self, cluster: Cluster, folder: Path, nursery: Nursery) -> None:
        self.charts, self.admin = open_cluster(cluster, folder)
        # A change by Bellhop's own field manager is no event.
        self._user = User(cluster.kubeconfig())
        self.serve = ServePod(cluster, folder, nursery)
        (folder / "forwarder").mkdir()
        self.forwarder = Pod(cluster, folder / "forwarder", nursery)
        self._values = {
            "url": self.serve.url,
            "forwarder.ingestUrl": self.serve.url,
            "rbac.rules": RULES,
        }

    def follow(self, beginning: str) -> str:
        """Run the one command of the page with this beginning, as a reader types it.

        Only the addresses and the rights of the example are added.
        """
        [line] = [each for each in COMMANDS if each.startswith(beginning)]
        words = shlex.split(line.replace(PACKED, self.charts.archive(BELLHOP)))
        if words[0] == "helm":
            more = set_values(self._values) if words[1] in {"install", "upgrade"} else []
            return self.charts.do(*words[1:], *more)
        if "<" in words:
            *words, _, file = words
            return self.serve.do(*words[words.index("--") + 2 :], stdin=(ROOT / file).read_text())
        return self.serve.do(*words[words.index("--") + 2 :])

    def create_team(self, name: str) -> None:
        """Create the namespace of a team, which the example reacts to."""
        metadata = {"name": name, "labels": {"team": "web"}}
        self._user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def await_event(self) -> str:
        """Wait until a change sends an event, and return the namespace that has its add-on.

        API servers follow a webhook configuration within two seconds.
        """
        for number in range(30):
            name = f"first-{number}"
            self.create_team(name)
            with suppress(AssertionError):
                eventually("an event is answered", partial(self.find_note, name), patience=4)
                return name
        raise AssertionError(f"no event is answered: {self.serve.do('show', 'failures')}")

    def find_note(self, name: str) -> object:
        """Return the add-on of a namespace."""
        return self.admin.get(CONFIG_MAP, name, "whose-is-this")

    def await_teams(self, *names: str) -> None:
        """Wait until each namespace has its add-on."""
        for name in names:
            eventually(
                lambda: f"all have their notes; {self.serve.do('show', 'failures')}",
                partial(self.find_note, name),
                patience=120,
            )

    def close(self) -> None:
        for each in (self.admin, self.serve, self.forwarder, self._user):
            each.close()


@pytest.fixture
def installed(governed_cluster: Cluster, folder: Path) -> Iterator[Installed]:
    """A cluster with controllers, and nothing in it."""
    with Nursery() as nursery:
        one = Installed(governed_cluster, folder, nursery)
        yield one
        one.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a process another root folder")
def test_the_whole_life_of_an_installation(installed: Installed) -> None:
    """A cluster registers itself, an event is answered, and a replaced pod resumes what was begun.

    After `deregister` and `helm uninstall` the add-ons, the volume and the definitions are left.
    """
    one, admin = installed, installed.admin
    one.follow("helm install bellhop ")
    pod = one.serve.run()
    one.forwarder.run()
    assert "mgmt/mgmt" in one.follow(f"{EXEC} bellhop status")
    one.follow(f"{EXEC} bellhop label ")
    one.follow(f"{EXEC_WITH_INPUT} bellhop apply ")
    first = one.await_event()

    teams = [f"team-{number}" for number in range(30)]
    for name in teams:
        one.create_team(name)
    one.follow("helm upgrade ")
    pod.stop(grace=60)
    assert pod.returncode() == 0, pod.last_words()
    pod = one.serve.run()
    one.await_teams(*teams)
    assert '"result": "unchanged"' in one.serve.log.read_text()

    one.follow("helm rollback ")
    pod.kill()
    pod = one.serve.run()
    one.create_team("last")
    one.await_teams("last")

    assert "kind: CustomResourceDefinition" in one.follow(f"{EXEC} bellhop install crds ")
    one.follow(f"{EXEC} bellhop deregister ")
    one.follow("helm uninstall ")
    pod.stop(grace=60)
    eventually("the Deployment is deleted", lambda: not admin.get(DEPLOYMENT, NAMESPACE, "bellhop"))
    assert admin.get(CLUSTER_ROLE, "", "bellhop") is None
    assert admin.get(WEBHOOK, "", "bellhop-forwarder") is None
    assert admin.get(CLAIM, NAMESPACE, "bellhop")
    assert admin.get(CRD, "", "clusterprofiles.config.projectsveltos.io")
    assert one.find_note(first)


def test_the_forwarder_of_another_cluster_stays_as_helm_has_it(
    destination_cluster: Cluster, folder: Path
) -> None:
    """Registration finds that another tool applies it; the next upgrade meets no conflict."""
    charts, admin = open_cluster(destination_cluster, folder)
    ingest = "https://bellhop.example.com:8443"
    place = ("--namespace", "bellhop-system")
    image = {"image.repository": "registry.example.com/bellhop-forwarder", "ingestUrl": ingest}
    archive = charts.archive(FORWARDER)
    charts.do("install", "events", archive, *place, "--create-namespace", *set_values(image))
    embedded = open_state(folder / "state", Settings())
    kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
    request = Registration(
        *("prod", "eu-1", kubeconfig), labels=None, inbound=Inbound(ingest, ""), install=None
    )

    done = register(embedded.installation, request)
    charts.do("upgrade", "events", archive, *place, *set_values({**image, "replicas": 3}))

    deployment = admin.get(DEPLOYMENT, "bellhop-system", "bellhop-forwarder")
    assert deployment
    assert not done.installed
    assert deployment["spec"]["replicas"] == 3
    embedded.close()
    admin.close()


def test_a_volume_of_a_network_file_system_is_refused(
    source_cluster: Cluster, folder: Path
) -> None:
    """By its StorageClass, or by its claim."""
    charts, admin = open_cluster(source_cluster, folder)
    admin.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "shared"},
            "provisioner": "efs.csi.aws.com",
        }
    )
    for name in ("bellhop", "state"):
        place = {"name": "bellhop"} if name == "bellhop" else {"name": name, "namespace": "bellhop"}
        kind = "Namespace" if name == "bellhop" else "PersistentVolumeClaim"
        claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        spec = {} if name == "bellhop" else {"spec": claim}
        admin.apply({"apiVersion": "v1", "kind": kind, "metadata": place, **spec})

    for values, refusal in (
        ({"persistence.storageClassName": "shared"}, "the network file system efs.csi.aws.com"),
        ({"persistence.existingClaim": "state"}, "existingClaim state is ReadWriteMany"),
    ):
        archive = charts.archive(BELLHOP)
        done = charts.helm("install", "b", archive, "--namespace", "bellhop", *set_values(values))

        assert done.returncode != 0
        assert refusal in done.stderr
    admin.close()


def test_the_page_and_the_readme_type_what_is_packed() -> None:
    """The version is that of this checkout, and `make` knows the target."""
    installs = [line for line in COMMANDS if line.startswith("helm install bellhop ")]
    packed = {*re.findall(r"dist/charts/(\S+)", PAGE)}

    assert packed == {archive_name(BELLHOP), archive_name(FORWARDER)}
    assert f"    {installs[0]}\n" in (ROOT / "README.md").read_text()
    subprocess.run(["make", "-n", "charts"], cwd=ROOT, check=True, capture_output=True)
