"""The registration of the cluster that `serve` runs in, by the service account of its pod."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.service_account import read_account
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import LOCAL
from bellhop.core.names import name_problem, namespace_problem
from bellhop.errors import BellhopError, InvalidError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.registration import instructions
from bellhop.registration.registration import register
from bellhop.registration.request import Pause, Registration
from bellhop.runtime.embedded.own_account import IN_CLUSTER
from bellhop.state.cluster import Cluster

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_LONGEST_END = 10.0


def check_own_cluster(key: str) -> None:
    """Refuse a name that no cluster may have, and a process outside a pod.

    Raises:
        InvalidError: it is not NAMESPACE/NAME.
        MissingError: no service account is mounted.
    """
    namespace, slash, name = key.partition("/")
    problem = "" if slash else "write NAMESPACE/NAME, as in mgmt/mgmt"
    if problem := problem or namespace_problem(namespace) or name_problem(name) or "":
        raise InvalidError(f"cannot register the own cluster as '{key}': {problem}")
    read_account()


@contextmanager
def registering(here: Installation, key: str, log: Log) -> Iterator[None]:
    """Register the own cluster in a thread within the block; without a `key` there is none.

    `here` is the installation that serves: a process must not open a state twice, since closing
    any of its files ends all of its locks on them.
    """
    if not key:
        yield
        return
    stopping = threading.Event()
    arguments = (here, key, log, stopping)
    thread = threading.Thread(target=_keep_trying, args=arguments, name="own-cluster", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_LONGEST_END)


def _keep_trying(here: Installation, key: str, log: Log, stopping: threading.Event) -> None:
    """Try until it is registered: its account's rights take a moment, and servers restart."""

    def rest(seconds: float) -> None:
        stopping.wait(seconds)

    pause, said = _SHORTEST_PAUSE, ""
    while not stopping.is_set():
        try:
            result = register_own_cluster(here, key, pause=rest)
        except Exception as error:  # noqa: BLE001 - other clusters are served meanwhile
            if said != str(error):
                said = str(error)
                log.warning("Cannot register the own cluster yet", cluster=key, error=said)
            rest(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            log.info("The own cluster is registered", cluster=key, result=result)
            return


def register_own_cluster(here: Installation, key: str, *, pause: Pause) -> str:
    """Register the cluster of this pod, unless it is; return the result in a word.

    The forwarder's pods are left to who deployed this one. A registration whose Secret has another
    address, authority or token than this installation is renewed.

    Raises:
        BellhopError: as of `register`.
    """
    kept = here.records.clusters.get(key)
    if kept and kept.value.managed != IN_CLUSTER:
        return "by a kubeconfig, which is left unchanged"
    namespace, _, name = key.partition("/")
    own = read_account()
    if kept and _is_instructed(here, kept.value, own):
        return "unchanged"
    request = Registration(
        *(namespace, name, own),
        labels=None,
        inbound=here.inbound,
        managed=IN_CLUSTER,
    )
    done = register(here, request, pause=pause)
    return "renewed" if done.again else "created"


def _is_instructed(here: Installation, cluster: Cluster, own: Kubeconfig) -> bool:
    """Return whether the forwarder's Secret is the one that the record is of."""
    if "begun" in cluster.forwarder:
        return False
    kube = KubeClient(cluster.key, own, reach=LOCAL)
    try:
        entries = instructions.find_entries(kube)
    except BellhopError:
        # An unreachable API server is reported by the registration itself.
        return False
    finally:
        kube.close()
    return (
        entries.get("ingest-url") == here.inbound.url.rstrip("/")
        and entries.get("ingest-ca") == here.inbound.ca
        and instructions.digest_token(entries.get("token", "")) == cluster.token_digest
    )
