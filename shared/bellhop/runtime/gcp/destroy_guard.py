"""What keeps Terraform from destroying an installation that clusters are registered in."""

from __future__ import annotations

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.errors import BellhopError, MissingError
from bellhop.runtime.gcp.resources import Resources

REGISTERED = "registered"
_WHY = b"clusters are registered: deregister them before the installation is destroyed\n"


class Guard:
    """An object in a bucket of its own, which cannot be destroyed for as long as it has one.

    It is looked at anew each time, since others may be at it as well: who is late is corrected
    within a minute. The bucket is made last and destroyed first, and nobody fails for it.
    """

    def __init__(self, here: Resources) -> None:
        self._clusters = here.records.clusters
        self._log = here.log
        self._blobs = CloudBlobs(here.services, here.guard) if here.guard else None

    def stand(self) -> None:
        """See that the object is there while clusters are, and not otherwise."""
        if self._blobs is None:
            return
        wanted = self._clusters.any()
        try:
            if wanted and not self._stands(self._blobs):
                self._blobs.put(REGISTERED, _WHY)
            elif not wanted and self._stands(self._blobs):
                self._blobs.delete(REGISTERED)
        except BellhopError as error:
            self._log.warning("Cannot guard the installation", error=str(error))

    def _stands(self, blobs: CloudBlobs) -> bool:
        try:
            return bool(blobs.get(REGISTERED))
        except MissingError:
            return False
