"""What keeps a label selector from clusters, and the labels that would mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bellhop.model.record import Cluster
from bellhop.model.selector import Requirement, Selector
from bellhop.model.shape import closest


class Near(NamedTuple):
    """A cluster that a selector does not take, and the requirements that its labels break."""

    cluster: Cluster
    broken: tuple[Requirement, ...]

    @property
    def lacking(self) -> str:
        """Say what the cluster has in place of what is asked for."""
        return " and ".join(_instead(each, self.cluster.labels) for each in self.broken)

    @property
    def labels(self) -> str:
        """Return the labels that would mend it, as `bellhop label cluster` takes them."""
        return " ".join(map(_mended, self.broken))

    @property
    def command(self) -> str:
        """Return the command that would mend it."""
        return f"`bellhop label cluster {self.cluster.key} {self.labels}`"


def near(selector: Selector, cluster: Cluster) -> Near | None:
    """Say how near a cluster comes to being selected; None if it is, or nothing can be."""
    broken = selector.broken(cluster.labels)
    return Near(cluster, broken) if broken else None


def nearest(selector: Selector, clusters: Iterable[Cluster]) -> Near | None:
    """Find the cluster that comes nearest to being selected, where none is."""
    found = [each for cluster in clusters if (each := near(selector, cluster))]
    return min(found, key=_distance, default=None)


def _distance(each: Near) -> tuple[int, int, str]:
    """Few broken requirements first; of these, labels that look like a typing mistake."""
    alike = sum(bool(_alike(asked, each.cluster.labels)) for asked in each.broken)
    return len(each.broken), -alike, each.cluster.key


def _instead(asked: Requirement, labels: Mapping[str, str]) -> str:
    if asked.key in labels:
        return f"has {asked.key}={labels[asked.key]}"
    alike = _alike(asked, labels)
    return f"has no label {asked.key}" + (f", but {alike}={labels[alike]}" if alike else "")


def _alike(asked: Requirement, labels: Mapping[str, str]) -> str:
    """Return the label that was probably meant; empty if none looks like it."""
    if asked.key in labels:
        return asked.key if closest(labels[asked.key], asked.values) else ""
    return closest(asked.key, labels)


def _mended(asked: Requirement) -> str:
    if asked.operator == "In":
        return f"{asked.key}={asked.values[0]}"
    return f"{asked.key}=VALUE" if asked.operator == "Exists" else f"{asked.key}-"
