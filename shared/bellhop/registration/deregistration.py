"""How a cluster leaves the fleet: what rings in it goes as far as it answers, then all we keep.

No cluster is needed that answers: whoever deregisters one may do so because it is no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from bellhop.clusters.installation_mark import refuse_taken
from bellhop.core.critical_section import undisturbed
from bellhop.errors import BellhopError, ConflictError, MissingError
from bellhop.installation.installation import Installation
from bellhop.registration.removal import BY_HAND, leave_behind, silence
from bellhop.state.record import Cluster


class Deregistered(Struct, frozen=True):
    """What was taken out of the cluster, and what could not be, in a sentence."""

    removed: Sequence[str]
    left: str = ""


def deregister(
    here: Installation,
    key: str,
    *,
    uninstall: bool = False,
    check: Callable[[Cluster], None] = lambda _: None,
) -> Deregistered:
    """Take a cluster out: what rings in it as far as it answers, then all that is kept of it.

    With `uninstall` what was installed of its forwarder goes even where its namespace stays. The
    `check` gets the cluster as it is after its calls, which may last; what it raises keeps it.

    Raises:
        MissingError: there is no such cluster.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(
            f"cannot deregister cluster '{key}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    cluster = kept.value
    removed: list[str] = []
    left = leave_behind(here, cluster) if cluster.abandoned else ""
    try:
        kube = here.access.open(key, version=cluster.credentials)
        refuse_taken(here.records.installations, kube)
        removed.extend(silence(kube, key, uninstall=uninstall))
    except ConflictError as error:
        left = f"its webhook configuration and forwarder were left unchanged: {error}"
    except BellhopError as error:
        left = (
            f"its webhook configuration and forwarder may still exist: {error}; once it"
            f" answers, {BY_HAND}"
        )
    if now := here.records.clusters.get(key):
        check(now.value)
    with undisturbed():
        here.secrets.delete(f"abandoned/{key}")
        here.secrets.delete(f"kubeconfig/{key}")
        here.declare.deregister(key)
    return Deregistered(removed, left)
