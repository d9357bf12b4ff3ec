"""Builds the kustomizations of a profile, each once for all that want it alike.

A build takes kubectl up to a second, and plans are made often: for each cluster, and again for
each message. So what was built is kept, by a digest of all that it was built of.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bellhop.core.digest import digest
from bellhop.deploy.files import Found
from bellhop.errors import InvalidError, MissingError, TemporaryError
from bellhop.gotemplate import Limits
from bellhop.ports.clock import Clock
from bellhop.ports.kustomize import Kustomizations
from bellhop.rendering.secrecy import unforeseen
from bellhop.state.kustomization import ENTRY, Kustomization
from bellhop.state.record import Content
from bellhop.state.ttl_cache import TtlCache

if TYPE_CHECKING:
    from bellhop.rendering.kustomizations.targets import Build

_MOST = 32 * 1024 * 1024
"""Characters of all builds that are kept."""

_SECONDS = 86_400.0


class KustomizationBuilder:
    """Makes objects of kustomizations; without a program it says what is missing."""

    def __init__(self, kustomizations: Kustomizations | None, limits: Limits, clock: Clock) -> None:
        self._kustomizations = kustomizations
        self._limits = limits
        self._built: TtlCache[str, str] = TtlCache(clock, _SECONDS, _MOST, len)

    def built(
        self,
        content: Content,
        cluster: Mapping[str, Any],
        resources: Mapping[str, dict[str, Any]],
        files: Found | None = None,
    ) -> Content:
        """Return a content with the objects that its kustomization builds for a cluster, if any.

        It is built of its tarball, or of `files`.

        Raises:
            PermanentError: it cannot be built, or what it builds cannot be read.
            TemporaryError: it cannot be built now.
        """
        wanted = content.kustomization
        if wanted is None or content.missing:
            return content
        # Most users have no kustomizations, and a cold function is not to load what reads them.
        from bellhop.rendering.kustomizations.targets import build_for, objects_of  # noqa: PLC0415

        how = build_for(wanted, cluster, resources, self._limits)
        output = self._output(content, wanted, how, files)
        return objects_of(content, output, cluster, resources, self._limits)

    def _output(
        self, content: Content, wanted: Kustomization, how: Build, files: Found | None
    ) -> str:
        """Return what a kustomization builds; what goes wrong names where it is from."""
        source = f"{content.ref} {files.revision}" if files else wanted.tarball
        name = digest([source, how.path, how.components, how.namespace])
        with unforeseen(f"cannot build {content.ref}", secret=content.secret):
            try:
                return self._built.get(name, lambda: self._build(wanted, how, files))
            except (InvalidError, MissingError) as error:
                raise _told(error, content) from (None if content.secret else error)
            except TemporaryError as error:
                raise TemporaryError(f"{content.ref}: {error}", delay=error.delay) from error

    def _build(self, wanted: Kustomization, how: Build, files: Found | None) -> str:
        if self._kustomizations is None:
            raise MissingError(
                "cannot build kustomizations: they are switched off here; deploy the function"
                " `charts` with Terraform's variable of that name"
            )
        from bellhop.documents.tarball import unpack  # noqa: PLC0415 - as above

        packed = {ENTRY: base64.b64decode(wanted.tarball)}
        folder = files.files if files else unpack(packed)
        return self._kustomizations.build(
            folder, how.path, components=how.components, namespace=how.namespace
        )


def _told(error: InvalidError | MissingError, content: Content) -> InvalidError | MissingError:
    """Say which kustomization cannot be built; kustomize may quote a Secret that it is from."""
    sentence = str(error)
    if content.secret and isinstance(error, InvalidError):
        sentence = (
            "cannot build the kustomization; the reason is withheld, for it may quote the Secret:"
            " `kubectl kustomize` shows it in the folder of the tarball"
        )
    return type(error)(f"{content.ref}: {sentence}")
