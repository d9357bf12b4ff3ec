from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from bellhop.errors import BusyError, InvalidError, MissingError, UnreachableError
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from infra.lab.flags import controller_flags
from infra.lab.processes import Nursery, Process
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

# A lab of its own process: it says which processes it has, and waits to be killed.
LAB = """
import sys, time
from pathlib import Path
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane

with ControlPlane(find(), Path(sys.argv[1])) as plane:
    plane.start_clusters("one", "two")
    print(*[process.pid for process in plane._nursery._processes], flush=True)
    time.sleep(300)
"""

# A lab whose clusters never come up.
BOOTING = """
import sys
from dataclasses import replace
from pathlib import Path
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane

with ControlPlane(replace(find(), apiserver=Path(sys.argv[2])), Path(sys.argv[1])) as plane:
    plane.start_clusters("one", "two")
"""


class Client:
    """Speak to one cluster with nothing but TLS and a token."""

    def __init__(self, cluster: Cluster, token: str | None = None) -> None:
        self.server = cluster.server
        self.pool = urllib3.PoolManager(
            ca_cert_data=cluster.ca_pem,
            headers={"Authorization": f"Bearer {token or cluster.token}"},
            retries=False,
        )

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        response = self.pool.request(method, self.server + path, json=body)
        speaks_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(response.data) if speaks_json else response.data


@pytest.fixture
def client_of() -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def make(cluster: Cluster, token: str | None = None) -> Client:
        clients.append(Client(cluster, token))
        return clients[-1]

    yield make
    for client in clients:
        client.pool.clear()


@pytest.fixture
def source(source_cluster: Cluster, client_of: Callable[..., Client]) -> Client:
    return client_of(source_cluster)


@pytest.fixture
def destination(destination_cluster: Cluster, client_of: Callable[..., Client]) -> Client:
    return client_of(destination_cluster)


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def a_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": "bells.lab.example"},
        "spec": {
            "group": "lab.example",
            "scope": "Namespaced",
            "names": {"plural": "bells", "singular": "bell", "kind": "Bell"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_clusters_see_nothing_of_each_other(source: Client, destination: Client) -> None:
    """One etcd, two worlds."""
    source("POST", CONFIGMAPS, configmap("bell"))
    source("POST", CRDS, a_definition())

    assert destination("GET", f"{CONFIGMAPS}/bell")[0] == 404
    assert destination("GET", f"{CRDS}/bells.lab.example")[0] == 404


def test_writes_a_kubeconfig_only_for_its_owner(
    source_cluster: Cluster, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    """It works with kubectl, and nobody else can read it."""
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o644)
    config = source_cluster.kubeconfig(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert config["current-context"] == "source"
    assert control_plane_binaries.kubectl is not None
    done = subprocess.run(
        [control_plane_binaries.kubectl, f"--kubeconfig={path}", "get", "ns", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(tmp_path)},
    )
    assert "namespace/default" in done.stdout.split()


def test_reset_removes_what_was_added(source_cluster: Cluster, source: Client) -> None:
    """Objects, definitions, their objects and their API are deleted when it returns."""
    assert source("POST", "/api/v1/namespaces", {"metadata": {"name": "lobby"}})[0] == 201
    assert source("POST", "/api/v1/namespaces/lobby/secrets", configmap("key"))[0] == 201
    assert source("POST", CRDS, a_definition())[0] == 201
    bells = "/apis/lab.example/v1/namespaces/default/bells"
    eventually("the kind is served", lambda: source("GET", bells)[0] == 200)
    bell = {"apiVersion": "lab.example/v1", "kind": "Bell", "metadata": {"name": "a"}}
    eventually("a bell is made", lambda: source("POST", bells, bell)[0] == 201)

    source_cluster.reset()

    assert source("GET", "/api/v1/namespaces/lobby")[0] == 404
    assert source("GET", "/api/v1/secrets")[1]["items"] == []
    assert source("GET", f"{CRDS}/bells.lab.example")[0] == 404
    assert "lab.example" not in [group["name"] for group in source("GET", "/apis")[1]["groups"]]


def test_reset_allows_the_same_again(source_cluster: Cluster, source: Client) -> None:
    """A definition and its objects can be made again, empty."""
    bells = "/apis/lab.example/v1/namespaces/default/bells"
    bell = {"apiVersion": "lab.example/v1", "kind": "Bell", "metadata": {"name": "a"}}
    for _ in range(3):
        assert source("POST", CRDS, a_definition())[0] == 201
        eventually("a bell is made", lambda: source("POST", bells, bell)[0] == 201)
        assert len(source("GET", bells)[1]["items"]) == 1
        source_cluster.reset()


def test_reset_undoes_changes_and_deletions(source_cluster: Cluster, source: Client) -> None:
    """What a fresh cluster has is there again, as it was."""
    namespace, role = "/api/v1/namespaces/default", f"{RBAC}/clusterroles/cluster-admin"
    labelled = source("GET", namespace)[1]
    rules = source("GET", role)[1]["rules"]
    labelled["metadata"]["labels"] = {"changed": "yes"}
    assert source("PUT", namespace, labelled)[0] == 200
    assert source("DELETE", role)[0] == 200

    source_cluster.reset()

    assert "changed" not in source("GET", namespace)[1]["metadata"].get("labels", {})
    assert source("GET", role)[1]["rules"] == rules


def test_reset_gives_service_addresses_back(source_cluster: Cluster, source: Client) -> None:
    """An address that a removed service had can be asked for again."""
    service = {
        "metadata": {"name": "bell"},
        "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]},
    }
    for _ in range(2):
        assert source("POST", "/api/v1/namespaces/default/services", service)[0] == 201
        source_cluster.reset()


def test_reset_withdraws_rights_and_webhooks_at_once(
    source_cluster: Cluster, source: Client
) -> None:
    """What the server decides by is forgotten when it returns."""
    binding = {
        "metadata": {"name": "everyone"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    }
    hook = {
        "metadata": {"name": "deny"},
        "webhooks": [
            {
                "name": "deny.lab.example",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                        "operations": ["CREATE"],
                    }
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }
    bob = {**source.pool.headers, "Impersonate-User": "bob"}

    def as_bob() -> int:
        return source.pool.request("GET", source.server + CONFIGMAPS, headers=bob).status

    for number in range(5):
        assert source("POST", f"{RBAC}/clusterrolebindings", binding)[0] == 201
        eventually("Bob may read", lambda: as_bob() == 200)
        assert source("POST", WEBHOOKS, hook)[0] == 201
        eventually(
            "the webhook refuses", lambda: source("POST", CONFIGMAPS, configmap("probe"))[0] == 500
        )

        source_cluster.reset()

        assert as_bob() == 403
        assert source("POST", CONFIGMAPS, configmap(f"allowed-{number}"))[0] == 201


def test_outage_refuses_connections_and_ends_at_the_same_url(
    destination_cluster: Cluster, destination: Client
) -> None:
    """The data outlives it, unless it is reset, and nobody takes the port meanwhile."""
    destination("POST", CONFIGMAPS, configmap("kept"))
    url = destination_cluster.server
    destination_cluster.stop()

    assert not destination_cluster.running
    with pytest.raises(urllib3.exceptions.HTTPError, match="refused"):
        destination("GET", "/readyz")
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", urlsplit(url).port or 0))

    destination_cluster.start()

    assert destination_cluster.server == url
    assert destination("GET", f"{CONFIGMAPS}/kept")[0] == 200
    destination_cluster.stop()
    destination_cluster.reset()
    destination_cluster.start()
    assert destination("GET", f"{CONFIGMAPS}/kept")[0] == 404


def test_controllers_collect_garbage_end_namespaces_and_fill_roles(
    governed_cluster: Cluster, client_of: Callable[..., Client]
) -> None:
    """What a bare API server leaves undone is done."""
    governed = client_of(governed_cluster)
    assert governed("GET", f"{RBAC}/clusterroles/edit")[1]["rules"]
    owner = governed("POST", CONFIGMAPS, configmap("owner"))[1]
    child = configmap("child")
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
    ]
    governed("POST", CONFIGMAPS, child)
    governed("POST", "/api/v1/namespaces", {"metadata": {"name": "lobby"}})
    governed("DELETE", "/api/v1/namespaces/lobby")
    governed("DELETE", f"{CONFIGMAPS}/owner")

    eventually("the child is gone", lambda: governed("GET", f"{CONFIGMAPS}/child")[0] == 404)
    eventually(
        "the namespace is gone", lambda: governed("GET", "/api/v1/namespaces/lobby")[0] == 404
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param((1, 20), True, id="1.20 has a plain port to switch off"),
        pytest.param((1, 23), True, id="1.23 is the last"),
        pytest.param((1, 24), False, id="1.24 does not know the flag"),
        pytest.param((1, 34), False, id="nor do later ones"),
    ],
)
def test_controller_flags_follow_the_release(
    tmp_path: Path, version: tuple[int, int], *, expected: bool
) -> None:
    """An unknown flag would end the program at once."""
    flags = controller_flags(tmp_path, kubeconfig=tmp_path / "k", version=version)

    assert ("--port=0" in flags) is expected


def test_failed_start_quotes_the_log(control_plane: ControlPlane) -> None:
    """The reason is in the sentence, not in a folder that is removed."""
    with pytest.raises(UnreachableError) as caught:
        control_plane.start_cluster("broken", extra_args=["--no-such-flag"])

    assert "cannot start cluster 'broken'" in str(caught.value)
    assert "unknown flag: --no-such-flag" in str(caught.value)


def test_controllers_need_their_program(control_plane_binaries: Binaries, tmp_path: Path) -> None:
    """Without it the wish is refused before anything starts."""
    bare = Binaries(
        control_plane_binaries.apiserver, control_plane_binaries.etcd, None, None, (1, 31)
    )
    with ControlPlane(bare, tmp_path / "lab") as plane:
        with pytest.raises(MissingError, match="cannot run controllers for 'one'"):
            plane.start_cluster("one", controllers=True)

        assert plane.clusters == {}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("../up", "cannot call", id="a path"),
        pytest.param("", "cannot call", id="nothing"),
        pytest.param("source", "already", id="a taken name"),
    ],
)
@pytest.mark.usefixtures("source_cluster")
def test_refuses_names_that_cannot_be(
    control_plane: ControlPlane, name: str, complaint: str
) -> None:
    """A cluster's name is a folder and a prefix."""
    with pytest.raises(InvalidError, match=complaint):
        control_plane.start_cluster(name)


def test_leaves_other_folders_unchanged(control_plane_binaries: Binaries, tmp_path: Path) -> None:
    """A folder that is removed at the end must hold nothing else."""
    (tmp_path / "thesis.txt").touch()

    with (
        pytest.raises(InvalidError, match="holds other things"),
        ControlPlane(control_plane_binaries, tmp_path),
    ):
        pass

    assert (tmp_path / "thesis.txt").exists()


def test_one_lab_a_folder(control_plane_binaries: Binaries, tmp_path: Path) -> None:
    """The second is refused, and the first removes the folder when it ends."""
    folder = tmp_path / "lab"
    with ControlPlane(control_plane_binaries, folder):
        with (
            pytest.raises(BusyError, match="another process"),
            ControlPlane(control_plane_binaries, folder),
        ):
            pass

        assert folder.exists()
    assert not folder.exists()


def start_lab(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert lab.stdout is not None
    return lab, [int(pid) for pid in lab.stdout.readline().split()]


@pytest.mark.usefixtures("control_plane_binaries")
def test_a_killed_lab_leaves_no_process(control_plane_binaries: Binaries, tmp_path: Path) -> None:
    """After kill -9 everything ends, and the next lab takes the folder over."""
    folder = tmp_path / "lab"
    lab, pids = start_lab(folder)
    with lab:
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        lab.kill()

    eventually("every process has ended", lambda: not any(map(is_alive, pids)))
    with ControlPlane(control_plane_binaries, folder):
        pass
    assert not folder.exists()


@pytest.mark.usefixtures("control_plane_binaries")
def test_a_lab_that_boots_is_interrupted_at_once(tmp_path: Path) -> None:
    """Ctrl-C waits for no cluster to come up, and nothing is left."""
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\nexec sleep 300\n")
    server.chmod(0o755)
    folder = tmp_path / "lab"
    logs = [folder / "clusters" / name / "kube-apiserver.log" for name in ("one", "two")]
    lab = subprocess.Popen(
        [sys.executable, "-c", BOOTING, str(folder), str(server)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        eventually(
            "both servers are started", lambda: all(log.exists() for log in logs), patience=60
        )
        lab.send_signal(signal.SIGINT)
        _, error_text = lab.communicate(timeout=45)
    finally:
        lab.kill()
        lab.communicate()

    assert error_text.endswith(b"KeyboardInterrupt\n")
    assert not folder.exists()


@pytest.mark.clocked
def test_all_that_a_nursery_ends_share_its_patience(tmp_path: Path) -> None:
    """A process that does not listen is killed, and the next one has no more time for that."""
    nursery, log = Nursery(grace=0.5), tmp_path / "log"
    deaf = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"]
    running = [nursery.start(deaf, log) for _ in range(12)]
    eventually(
        "all of them run", lambda: log.exists() and log.read_text().count("deaf") == 12, patience=60
    )
    began = time.monotonic()
    nursery.close()

    assert time.monotonic() - began < 4
    assert [one.returncode() for one in running] == [-signal.SIGKILL] * 12


def test_nobody_outlives_a_nursery_that_ended_while_it_was_started(tmp_path: Path) -> None:
    """A program that a thread started is reported, and none is left behind."""
    for _ in range(8):
        nursery, started = Nursery(), list[Process]()

        def start(nursery: Nursery = nursery, started: list[Process] = started) -> None:
            while True:
                started.append(nursery.start(["/bin/sleep", "300"], tmp_path / "log"))

        with ThreadPoolExecutor(2) as threads:
            several = [threads.submit(start) for _ in range(2)]
            eventually("two are started", lambda started=started: len(started) > 1)
            nursery.close()
            for each in several:
                with pytest.raises(RuntimeError):
                    each.result(timeout=30)

        assert None not in [one.wait(30) for one in started]
