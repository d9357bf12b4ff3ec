"""Builds the kustomizations of a profile, each once for all equal inputs.

A build takes kubectl up to a second, and plans are made often: for each cluster, and again for
each message. So the result is cached by a digest of all its inputs.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from bellhop.core.digest import digest
from bellhop.deploy.files import Found
from bellhop.errors import InvalidError, MissingError, TemporaryError
from bellhop.ports.clock import Clock
from bellhop.ports.tools import Kustomizations
from bellhop.rendering.secrecy import withhold_unforeseen
from bellhop.rendering.templates import RenderContext
from bellhop.state.content import ENTRY, Content, Kustomization
from bellhop.state.ttl_cache import TtlCache

if TYPE_CHECKING:
    from bellhop.rendering.kustomizations.targets import Build

_MOST = 32 * 1024 * 1024
"""Characters of all builds that are kept."""

_SECONDS = 86_400.0


class KustomizationBuilder:
    """Makes objects of kustomizations; without a program it says what is missing."""

    def __init__(self, kustomizations: Kustomizations | None, clock: Clock) -> None:
        self._kustomizations = kustomizations
        self._built: TtlCache[str, str] = TtlCache(clock, _SECONDS, _MOST, len)

    def built(
        self, content: Content, context: RenderContext, files: Found | None = None
    ) -> Content:
        """Return a content with the objects that its kustomization builds for a cluster, if any.

        It is built of its tarball, or of `files`.

        Raises:
            PermanentError: it cannot be built, or what it builds cannot be read.
            TemporaryError: it cannot be built now.
        """
        kustomization = content.kustomization
        if kustomization is None or content.missing:
            return content
        # Most users have no kustomizations, and a cold function is not to load what reads them.
        from bellhop.rendering.kustomizations.targets import build_for, objects_of  # noqa: PLC0415

        how = build_for(kustomization, context)
        output = self._output(content, kustomization, how, files)
        return objects_of(content, output, context)

    def _output(
        self, content: Content, kustomization: Kustomization, how: Build, files: Found | None
    ) -> str:
        """Return what a kustomization builds; what goes wrong names where it is from."""
        source = f"{content.ref} {files.revision}" if files else kustomization.tarball
        name = digest([source, how.path, how.components, how.namespace])
        with withhold_unforeseen(f"cannot build {content.ref}", secret=content.secret):
            try:
                return self._built.get(name, lambda: self._build(kustomization, how, files))
            except (InvalidError, MissingError) as error:
                raise _locate(error, content) from (None if content.secret else error)
            except TemporaryError as error:
                raise TemporaryError(f"{content.ref}: {error}", delay=error.delay) from error

    def _build(self, kustomization: Kustomization, how: Build, files: Found | None) -> str:
        if self._kustomizations is None:
            raise MissingError(
                "cannot build kustomizations: they are switched off here; deploy the function"
                " `charts` with Terraform's variable of that name"
            )
        from bellhop.documents.tarball import unpack  # noqa: PLC0415 - as above

        packed = {ENTRY: base64.b64decode(kustomization.tarball)}
        folder = files.files if files else unpack(packed)
        return self._kustomizations.build(
            folder, how.path, components=how.components, namespace=how.namespace
        )


def _locate(error: InvalidError | MissingError, content: Content) -> InvalidError | MissingError:
    """Say which kustomization cannot be built; kustomize may quote a Secret that it is from."""
    sentence = str(error)
    if content.secret and isinstance(error, InvalidError):
        sentence = (
            "cannot build the kustomization; the reason is withheld, for it may quote the Secret:"
            " `kubectl kustomize` shows it in the folder of the tarball"
        )
    return type(error)(f"{content.ref}: {sentence}")
