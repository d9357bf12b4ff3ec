"""Fetch packages from Debian's archive without installing any.

apt does the work and verifies every signature with the system's keyring, but with a
configuration, sources and state of its own: the machine's are neither read nor changed, and
nothing needs root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bellhop.errors import PermanentError, UnreachableError
from infra.lab.workshop import Workshop

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEFAULT_MIRROR = "http://deb.debian.org/debian"
ARCHIVE = "http://archive.debian.org/debian"
"""Where Debian moves releases that are no longer supported."""

RELEASE = "bookworm"
GO_RELEASE = "bullseye"

_CONFIGURATION = """\
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{folder}/state";
Dir::Cache "{folder}/cache";
APT::Default-Release "";
APT::Update::Error-Mode "any";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
// Root's downloads go to a folder that apt's own user may not enter.
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
"""


def is_at_hand() -> bool:
    """Return whether this machine has apt and the key that Debian signs with."""
    return all(map(shutil.which, ("apt-get", "dpkg-deb", "tar"))) and KEYRING.exists()


def mirror() -> str:
    """Name the mirror that this machine uses, Debian's default if it uses none."""
    apt = shutil.which("apt-get") or "apt-get"
    done = subprocess.run(  # noqa: S603 - asks apt, changes nothing
        [apt, "update", "--print-uris"], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r"^'(\S+/debian)/+dists/", done.stdout, re.MULTILINE)
    return found[1] if found else DEFAULT_MIRROR


class Archive:
    """Debian's archive as seen from a workshop."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop
        self._folder = shop.folder / "apt"
        self._packages = shop.folder / "packages"
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (self._folder / folder).mkdir(parents=True)
        self._packages.mkdir()
        self._configuration = self._folder / "apt.conf"
        self._configuration.write_text(_CONFIGURATION.format(folder=self._folder), "utf-8")

    def update(self) -> None:
        """Fetch the lists of packages.

        Raises:
            UnreachableError: No mirror answers with properly signed lists.
        """
        failures = []
        system = mirror()
        # A mirror drops a release some time after its support has ended.
        for go_mirror in (system, ARCHIVE):
            sources = "".join(f"{line}\n" for line in _sources(system, go_mirror))
            (self._folder / "sources.list").write_text(sources, "utf-8")
            try:
                self._apt("update", cwd=self._folder)
            except PermanentError as error:
                failures.append(error)
            else:
                return
        why = re.search(r"E: ([^|]+)", str(failures[0]))
        raise UnreachableError(
            f"cannot read Debian's archive at {system}: "
            f"{(why[1] if why else str(failures[0])).strip(' .')}"
        ) from failures[0]

    def fetch(self, *names: str) -> None:
        """Download binary packages."""
        self._apt("download", *names, cwd=self._packages)

    def unpack(self, into: Path) -> None:
        """Unpack everything that was fetched, as if `into` were the root folder."""
        for package in sorted(self._packages.glob("*.deb")):
            self._shop.run(["dpkg-deb", "-x", package, into])

    def fetch_source(self, name: str) -> Path:
        """Download a source package and name its upstream tarball."""
        folder = self._folder / "source"
        folder.mkdir()
        self._apt("source", "--download-only", name, cwd=folder)
        return next(folder.glob(f"{name}_*.orig.tar.gz"))

    def _apt(self, *arguments: str, cwd: Path) -> None:
        self._shop.run(["apt-get", "-q", "-c", self._configuration, *arguments], cwd=cwd)


def _sources(system: str, go_mirror: str) -> Iterator[str]:
    signed = f"signed-by={KEYRING}"
    yield f"deb [{signed}] {system} {RELEASE} main"
    yield f"deb-src [{signed}] {system} {RELEASE} main"
    expired = " check-valid-until=no" if go_mirror == ARCHIVE else ""
    yield f"deb [{signed}{expired}] {go_mirror} {GO_RELEASE} main"
