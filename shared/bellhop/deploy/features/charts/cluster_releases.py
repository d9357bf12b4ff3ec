"""Releases of one cluster by the port `Charts`, whose errors say what the cluster itself answers.

Helm's words quote charts, values and other servers. So a failed operation is followed by one read
of our own, and only its answer says that the cluster is away, or refuses our credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, UnauthorizedError, UnreachableError
from bellhop.ports.access import Access
from bellhop.ports.charts import Charts, Helm, Release, Wanted
from bellhop.state.chart import AS_USUAL, Removal
from bellhop.state.record import Cluster

_NAMESPACE = GVK("", "v1", "Namespace")


def helm_in(cluster: Cluster, helm: Helm, access: Access) -> Helm:
    """Return `helm` with the operations in a cluster, which is asked after a failure."""
    return helm._replace(charts=_ClusterCharts(helm.charts, access, cluster))


class _ClusterCharts:
    """The operations of `charts` in a cluster.

    Every method raises UnreachableError and UnauthorizedError besides what `charts` raises.
    """

    def __init__(self, charts: Charts, access: Access, cluster: Cluster) -> None:
        self._charts = charts
        self._access = access
        self._cluster = cluster

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        """Read the newest revision of a release; None if there is none."""
        with self._confirmed():
            return self._charts.release(kubeconfig, namespace, name)

    def deploy(self, kubeconfig: bytes, wanted: Wanted, cancelled: Callable[[], bool]) -> Release:
        """Install or upgrade a release, until it is `cancelled`."""
        with self._confirmed():
            return self._charts.deploy(kubeconfig, wanted, cancelled)

    def rehearse(self, kubeconfig: bytes, wanted: Wanted) -> str:
        """Return the objects that `deploy` would make as YAML."""
        with self._confirmed():
            return self._charts.rehearse(kubeconfig, wanted)

    def remove(self, kubeconfig: bytes, namespace: str, name: str, how: Removal = AS_USUAL) -> bool:
        """Uninstall a release; say whether it was there."""
        with self._confirmed():
            return self._charts.remove(kubeconfig, namespace, name, how)

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        """Return the objects of a release's newest revision as YAML, without its hooks."""
        with self._confirmed():
            return self._charts.manifest(kubeconfig, namespace, name)

    def definitions(self, wanted: Wanted) -> str:
        """Return the CustomResourceDefinitions that a chart brings by itself, as YAML."""
        return self._charts.definitions(wanted)

    def render(self, wanted: Wanted, *, kubernetes: str = "") -> str:
        """Render a chart without a cluster."""
        return self._charts.render(wanted, kubernetes=kubernetes)

    @contextmanager
    def _confirmed(self) -> Iterator[None]:
        """Ask the cluster for the least after a failure, and raise its own error if it has one."""
        try:
            yield
        except BellhopError as error:
            if own := self._own_error():
                raise own from error
            raise

    def _own_error(self) -> BellhopError | None:
        try:
            kube = self._access.open(self._cluster.key, version=self._cluster.credentials)
            kube.get(_NAMESPACE, "", "kube-system")
        except (UnauthorizedError, UnreachableError) as error:
            return error
        except BellhopError:
            # A cluster that refuses this read has answered.
            return None
        return None
