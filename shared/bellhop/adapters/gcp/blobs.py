"""The blob store in one bucket of Cloud Storage, below `blobs/`.

Cloud Storage answers a read with the last finished write, and replaces an object whole.

Three requests of its JSON API are all that is needed of it, so that no client of it is loaded.
"""

from __future__ import annotations

from urllib.parse import quote

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.errors import MissingError
from bellhop.ports.store import object_key

_HOST = "https://storage.googleapis.com"
_ABSENT = frozenset({"NOT_FOUND"})


class CloudBlobs:
    """Bytes by name, in a bucket whose objects the installation's accounts may list.

    Without that right Cloud Storage answers that it denies what is not there.
    """

    def __init__(self, services: Services, bucket: str) -> None:
        self._services = services
        self._objects = f"/storage/v1/b/{quote(bucket, safe='')}/o"

    def get(self, name: str) -> bytes:
        doing = f"read the blob {name!r}"
        try:
            return self._services.ask(
                "GET", f"{self._place(name)}?alt=media", doing=doing, taken=_ABSENT
            )
        except RefusedError as refused:
            # It says the same of a bucket that is not there, which loses nothing for good.
            self._services.ask("GET", f"{_HOST}{self._objects}?maxResults=1", doing=doing)
            raise MissingError(f"there is no blob {name!r}") from refused

    def put(self, name: str, value: bytes) -> None:
        key = quote(object_key(name), safe="")
        self._services.ask(
            "POST",
            f"{_HOST}/upload{self._objects}?uploadType=media&name={key}",
            doing=f"write the blob {name!r}",
            body=value,
            headers={"Content-Type": "application/octet-stream"},
        )

    def delete(self, name: str) -> None:
        try:
            self._services.ask(
                "DELETE", self._place(name), doing=f"delete the blob {name!r}", taken=_ABSENT
            )
        except RefusedError:
            return

    def _place(self, name: str) -> str:
        return f"{_HOST}{self._objects}/{quote(object_key(name), safe='')}"
