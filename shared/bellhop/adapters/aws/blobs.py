"""The blob store in one S3 bucket, below `blobs/`.

S3 answers a read with the last finished write, and replaces an object whole.
"""

from __future__ import annotations

from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import MissingError
from bellhop.ports.blobs import object_key

_ABSENT = frozenset({"NoSuchKey"})


class S3Blobs:
    """Bytes by name, in a bucket that the installation's role may list.

    Without that right S3 answers that it denies what is not there.
    """

    def __init__(self, services: Services, bucket: str) -> None:
        self._services = services
        self._bucket = bucket

    def get(self, name: str) -> bytes:
        """Read a blob.

        Raises:
            MissingError: there is none of that name.
        """
        try:
            answer = self._call("get_object", name, f"read the blob {name!r}")
        except RefusedError as error:
            raise MissingError(f"there is no blob {name!r}") from error
        value: bytes = answer["Body"]
        return value

    def put(self, name: str, value: bytes) -> None:
        """Write a blob, whole or not at all; writing it again replaces it."""
        self._call("put_object", name, f"write the blob {name!r}", Body=value)

    def delete(self, name: str) -> None:
        """Delete a blob; one that is not there is fine."""
        self._call("delete_object", name, f"delete the blob {name!r}")

    def _call(self, operation: str, name: str, doing: str, **more: Any) -> dict[str, Any]:
        request = {"Bucket": self._bucket, "Key": object_key(name), **more}
        return self._services.call("s3", operation, request, doing=doing, taken=_ABSENT)
