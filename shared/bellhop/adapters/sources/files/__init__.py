"""Files of add-ons from URLs, OCI registries and Flux, read by the guarded client."""

from bellhop.adapters.sources.files.downloads import FileDownloads

__all__ = ["FileDownloads"]
