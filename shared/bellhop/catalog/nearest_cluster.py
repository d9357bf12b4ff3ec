"""Requirements of a label selector that exclude clusters, and the labels that would fix it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from bellhop.api.fields import closest
from bellhop.core.selector import Requirement, Selector
from bellhop.state.cluster import Cluster

_COMPARED = 100
"""Clusters whose labels are compared letter by letter."""

_REQUIRES = ("In", "Exists")


class Near(NamedTuple):
    """A cluster that a selector does not take, and the requirements that its labels break."""

    cluster: Cluster
    broken: tuple[Requirement, ...]

    @property
    def lacking(self) -> str:
        """Return a text of the cluster's value where another one is required."""
        return " and ".join(_instead(each, self.cluster.labels) for each in self.broken)

    @property
    def labels(self) -> str:
        """Return the labels that would fix it, as `bellhop label cluster` takes them."""
        return " ".join(map(_mended, self.broken))

    @property
    def misspelt(self) -> bool:
        """Return whether all that it lacks looks like a typing mistake."""
        there = self.cluster.labels
        return all(each.operator in _REQUIRES and _alike(each, there) for each in self.broken)

    @property
    def command(self) -> str:
        """Return the command that would fix it."""
        changed = {each.partition("=")[0] for each in self.labels.split()}
        option = " --overwrite" if changed & self.cluster.labels.keys() else ""
        return f"`bellhop label cluster {self.cluster.key} {self.labels}{option}`"


def near(selector: Selector, cluster: Cluster) -> Near | None:
    """Return how near a cluster comes to being selected; None if it is, or nothing can be."""
    broken = selector.broken(cluster.labels)
    return Near(cluster, broken) if broken else None


def nearest(selector: Selector, clusters: Iterable[Cluster]) -> Near | None:
    """Return the cluster that is nearest to being selected, if none is.

    It breaks the fewest requirements; of several such clusters it is the one whose labels look most
    like a typing mistake. Of several clusters without any of the required labels none is nearest.
    """
    found = [each for cluster in clusters if (each := near(selector, cluster))]
    fewest = min((len(each.broken) for each in found), default=0)
    first = list(islice((each for each in found if len(each.broken) == fewest), _COMPARED))
    best = max(first, key=_alikeness, default=None)
    nothing = best and fewest == len(selector.requirements) and not _alikeness(best)
    return None if nothing and len(found) > 1 else best


def mending(selector: Selector) -> str:
    """Return the labels that would have any cluster selected."""
    return " ".join(map(_mended, selector.requirements))


def _alikeness(each: Near) -> int:
    """Return how similar a cluster's labels are to the required ones; a key counts most."""
    labels = each.cluster.labels
    there = sum(asked.key in labels for asked in each.broken)
    return 2 * there + sum(bool(_alike(asked, labels)) for asked in each.broken)


def _instead(asked: Requirement, labels: Mapping[str, str]) -> str:
    if asked.key in labels:
        return f"has {asked.key}={labels[asked.key]}"
    alike = _alike(asked, labels)
    return f"has no label {asked.key}" + (f", but {alike}={labels[alike]}" if alike else "")


def _alike(asked: Requirement, labels: Mapping[str, str]) -> str:
    """Return the label that was probably meant; empty if none looks like it."""
    if asked.key in labels:
        return asked.key if _like(labels[asked.key], asked.values) else ""
    return _like(asked.key, labels)


def _like(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, or shortened; empty if there is none."""
    found = [each for each in known if each]
    longer = (each for each in found if word and (each.startswith(word) or word.startswith(each)))
    return closest(word, found) or next(longer, "")


def _mended(asked: Requirement) -> str:
    if asked.operator == "In":
        return f"{asked.key}={asked.values[0]}"
    return f"{asked.key}=VALUE" if asked.operator == "Exists" else f"{asked.key}-"
