"""Queries the metrics that a check's script is given, with the credentials of its Secret."""

from __future__ import annotations

from collections.abc import Mapping

from bellhop.catalog.catalog import cluster_object
from bellhop.errors import InvalidError, MissingError, PermanentError, UnmetError, UnreachableError
from bellhop.gotemplate import Limits
from bellhop.ports.metrics import ANONYMOUS, Credentials, Metrics
from bellhop.profiles.names import NameReservations
from bellhop.rendering.inputs import entries_of
from bellhop.rendering.templates import render
from bellhop.settings import Settings
from bellhop.state.check import Check, MetricSource
from bellhop.state.cluster import Cluster

_KEYS = ("token", "username", "password", "ca")


class MetricReader:
    """Reads the metrics of checks; the Secret is read each time, since credentials are rotated."""

    def __init__(self, names: NameReservations, metrics: Metrics, settings: Settings) -> None:
        self._names = names
        self._metrics = metrics
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def read(self, check: Check, cluster: Cluster, seconds: float) -> Mapping[str, float]:
        """Return the metrics of a check by name, within so many seconds; none if it has none.

        Raises:
            UnmetError: they are not known.
        """
        source = check.metrics
        if source is None:
            return {}
        root = {"Cluster": cluster_object(cluster)}
        try:
            url = render(source.address, root, name="metricSource.url", limits=self._limits)
            queries = {
                each.name: render(each.query, root, name=each.name, limits=self._limits)
                for each in source.queries
            }
            credentials = self._credentials(source, cluster)
            return self._metrics.query(url, queries, credentials, seconds)
        except (PermanentError, UnreachableError) as error:
            raise UnmetError(f"waits for check '{check.name}': {error}") from error

    def _credentials(self, source: MetricSource, cluster: Cluster) -> Credentials:
        if not source.secret:
            return ANONYMOUS
        place = source.namespace or cluster.namespace, source.secret
        named = f"Secret '{'/'.join(place)}'"
        holder = self._names.holder("Secret", *place)
        if holder is None:
            raise MissingError(f"cannot find {named} that metricSource.secretRef names; apply it")
        entries = entries_of(holder, "metricSource.secretRef")
        if not entries.keys() & set(_KEYS):
            raise InvalidError(f"cannot use {named}: it has none of the keys {', '.join(_KEYS)}")
        token, username, password, authority = (entries.get(key, "").strip() for key in _KEYS)
        return Credentials(token, username, password, authority)
