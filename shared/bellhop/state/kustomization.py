"""A kustomization, as a profile wants it in its clusters; `kustomize.py` is how it is written.

It is built for each cluster when it is deployed, of the tarball that a ConfigMap or Secret holds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from bellhop.core.redaction import Redacted
from bellhop.state.cluster_text import HeldText

ENTRY = "kustomize.tar.gz"
"""The entry of a ConfigMap or Secret that counts, as in Sveltos."""


class Substitute(HeldText, frozen=True):
    """A value that is put into what a kustomization builds, where that names its `key`."""

    key: str = ""


class Kustomization(Redacted, frozen=True):
    """One kustomization; its path, components and namespace are templates of deploy time.

    They are not where it is `plain`, since events rendered them for good. Its `tarball` is base64.
    Of `values` with one key the last one counts.
    """

    secret_fields: ClassVar[Collection[str]] = ("tarball", "values")
    field: str
    path: str = ""
    components: tuple[str, ...] = ()
    namespace: str = ""
    values: tuple[Substitute, ...] = ()
    plain: bool = False
    tarball: str = ""

    @property
    def alike(self) -> bool:
        """Say whether each cluster gets the same of it."""
        texts = (self.path, *self.components, self.namespace)
        return not self.values and (self.plain or not any("{{" in each for each in texts))
