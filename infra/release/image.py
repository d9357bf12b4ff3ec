"""Images of the forwarder and of `serve` as OCI archives, built by buildah without a daemon."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from bellhop import __version__
from bellhop.errors import MissingError, PermanentError
from bellhop.registration import forwarder_pods
from infra.release.archives import tarred
from infra.release.checkout import Checkout

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Image(Struct, frozen=True):
    """An image by the name under which the charts and `register` look for it, and its folder."""

    name: str
    folder: str

    @property
    def dockerfile(self) -> str:
        """Return its Dockerfile, with the file beside it that says what a build is given."""
        return f"{self.folder}/Dockerfile"


FORWARDER = Image(forwarder_pods.IMAGE, "infra/forwarder")
SERVE = Image(f"bellhop:{__version__}", "infra/serve")
IMAGES = (FORWARDER, SERVE)


def archive_name(image: Image, checkout: Checkout) -> str:
    """Return the name of an archive, which ends with the architecture of this machine."""
    machine = platform.machine()
    architecture = _ARCHITECTURES.get(machine, machine)
    name, _, _ = image.name.partition(":")
    return f"{name}-{checkout.version}-{architecture}.oci.tar"


def build_image(image: Image, checkout: Checkout) -> bytes:
    """Build an image of the commit for the architecture of this machine, as an OCI archive.

    The same base and commit make the same bytes. The variable BASE replaces the base image, for
    networks that reach only a mirror.

    Raises:
        MissingError: buildah is not on PATH.
        PermanentError: buildah cannot build it, for example without the base image's registry.
    """
    with _store() as folder:
        context, layout = folder / "context", folder / "layout"
        with tarfile.open(
            fileobj=io.BytesIO(checkout.archive([image.folder, "shared/bellhop"]))
        ) as opened:
            opened.extractall(context, filter="data")
        root = context / checkout.name
        _run(
            image,
            *("buildah", *_storage(folder), "build", "--quiet", *_arguments()),
            # The kernel's namespaces are not needed, so that it builds inside a container, too.
            *("--isolation", "chroot", "--timestamp", str(checkout.time)),
            *("--ignorefile", str(root / f"{image.dockerfile}.dockerignore")),
            *("--file", str(root / image.dockerfile)),
            # The whole name: containerd takes the name of an archive as it is.
            *("--tag", f"oci:{layout}:docker.io/library/{image.name}", str(root)),
        )
        paths = (path for path in layout.rglob("*") if path.is_file())
        files = {str(path.relative_to(layout)): path.read_bytes() for path in paths}
        # buildah's own archives hold the time at which they were packed.
        return tarred(files, checkout.time)


@contextmanager
def _store() -> Iterator[Path]:
    """Make a folder for a build, of which nothing is left."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            # Without root, files of the base image belong to users that only buildah may act as.
            command = ("buildah", *_storage(folder), "rmi", "--all", "--force")
            with suppress(OSError):
                subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - no shell


def _storage(folder: Path) -> tuple[str, ...]:
    """Return options by which nothing of a build stays on the machine."""
    return (
        *("--storage-driver", "vfs"),
        *("--root", str(folder / "store"), "--runroot", str(folder / "run")),
    )


def _arguments() -> Iterator[str]:
    # Build arguments stand in the image's history: no credentials may be among them.
    if base := os.environ.get("BASE"):
        yield f"--build-arg=BASE={base}"


def _run(image: Image, *command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - no shell
    except FileNotFoundError as error:
        raise MissingError(
            f"cannot build the image '{image.name}': buildah is not on PATH; install it, or set"
            " IMAGE=no"
        ) from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise PermanentError(
            f"cannot build the image '{image.name}': buildah failed: {said[-1000:]}; mend it, or"
            " set IMAGE=no"
        ) from error
