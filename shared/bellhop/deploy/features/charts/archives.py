"""Finds the archives of charts: in their repositories, or in what Flux has fetched."""

from __future__ import annotations

from bellhop.deploy.files import FilesReader, not_of_cluster
from bellhop.errors import InvalidError
from bellhop.ports.charts import Archive, Helm
from bellhop.rendering.charts.releases import Desired
from bellhop.state.file_ref import flux_path


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
        with not_of_cluster():
            flux = flux_path(each.place.repository)
            if flux is None:
                return helm.repositories.find(each.place)
            if each.source is None:
                raise InvalidError(
                    f"cannot read {flux} for {each.ref}: a template wrote its kind; begin"
                    f" repositoryURL with {flux.kind.lower()}://"
                )
            # A Profile reads what is in its own namespace, whatever the address says.
            about = each.source["metadata"]
            ref = f"{flux.kind} {about['namespace']}/{about['name']}"
            found = self._files.artifact(ref, each.source)
            return helm.repositories.pack(found.files, flux.path, f"{ref} {found.revision}")
