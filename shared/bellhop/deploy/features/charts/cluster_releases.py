"""Helm for the cluster that a profile is deployed to, with errors that are the cluster's own.

Helm's words quote charts, values and other servers. So a failed operation is followed by one read
of our own, and only its answer says that the cluster is away, or refuses our credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bellhop.core.gvk import GVK
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import BellhopError, MissingError, UnauthorizedError, UnreachableError
from bellhop.ports.charts import Charts, DesiredRelease, Helm, Release
from bellhop.ports.kube import Access
from bellhop.state.chart import AS_USUAL, Removal
from bellhop.state.cluster import Cluster


class Caller:
    """Finds what a call of Helm needs."""

    def __init__(self, access: Access, helm: Helm | None) -> None:
        self._access = access
        self._helm = helm

    def helm(self, context: ReconcileContext) -> Helm:
        """Return Helm for the cluster of a profile.

        Raises:
            MissingError: this installation has none.
        """
        if self._helm is None:
            raise MissingError(
                "cannot deploy Helm charts: they are switched off here; deploy the function"
                " `charts` with Terraform's variable of that name"
            )
        return helm_in(context.cluster, self._helm, self._access)

    def kubeconfig(self, context: ReconcileContext) -> bytes:
        """Return how Helm gets into the cluster, with the rights of whose profile it is."""
        cluster = context.cluster
        return self._access.kubeconfig(
            cluster.key, version=cluster.credentials, account=context.profile.account
        )


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

    def deploy(
        self, kubeconfig: bytes, request: DesiredRelease, cancelled: Callable[[], bool]
    ) -> Release:
        """Install or upgrade a release, until it is `cancelled`."""
        with self._confirmed():
            return self._charts.deploy(kubeconfig, request, cancelled)

    def dry_run(self, kubeconfig: bytes, request: DesiredRelease) -> str:
        """Return the objects that `deploy` would make as YAML."""
        with self._confirmed():
            return self._charts.dry_run(kubeconfig, request)

    def remove(self, kubeconfig: bytes, namespace: str, name: str, how: Removal = AS_USUAL) -> bool:
        """Uninstall a release; say whether it was there."""
        with self._confirmed():
            return self._charts.remove(kubeconfig, namespace, name, how)

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        """Return the objects of a release's newest revision as YAML, without its hooks."""
        with self._confirmed():
            return self._charts.manifest(kubeconfig, namespace, name)

    def definitions(self, request: DesiredRelease) -> str:
        """Return the CustomResourceDefinitions that a chart contains, as YAML."""
        return self._charts.definitions(request)

    def render(self, request: DesiredRelease, *, kubernetes: str = "") -> str:
        """Render a chart without a cluster."""
        return self._charts.render(request, kubernetes=kubernetes)

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
