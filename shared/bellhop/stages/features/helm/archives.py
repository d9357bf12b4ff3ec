"""Finds the archives of charts: in their repositories, or in what Flux has fetched."""

from __future__ import annotations

from bellhop.engine.charts.placing import Desired
from bellhop.errors import DeniedError, TemporaryError, UnauthorizedError, UnreachableError
from bellhop.model.file_ref import flux_path
from bellhop.ports.charts import Archive, Helm
from bellhop.stages.files import FilesReader


class Archives:
    """The archives of charts that profiles want."""

    def __init__(self, files: FilesReader) -> None:
        self._files = files

    def find(self, helm: Helm, each: Desired) -> Archive:
        """Find the chart of a release; what its repository does is not the cluster's doing.

        Raises:
            PermanentError: it is not there, or may not be read.
            TemporaryError: nobody tells now.
        """
        try:
            flux = flux_path(each.place.repository)
            if flux is None or each.source is None:
                return helm.repositories.find(each.place)
            found = self._files.artifact(str(flux), each.source)
            return helm.repositories.pack(found.files, flux.path, f"{flux} {found.revision}")
        except UnauthorizedError as error:
            raise DeniedError(str(error)) from error
        except UnreachableError as error:
            raise TemporaryError(str(error), delay=error.delay) from error
