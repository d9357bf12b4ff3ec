"""What a ref of a trigger or profile names: a ConfigMap or Secret, a Flux source, or a URL."""

from typing import TYPE_CHECKING, NamedTuple

from bellhop.core.names import is_template, seconds_of
from bellhop.state.file_ref import (
    FLUX,
    FLUX_KINDS,
    REMOTE,
    Address,
    FileRef,
    flux_path,
    ref_name,
    shown_url,
)
from bellhop.state.record import PLAIN, Handling, Reading

if TYPE_CHECKING:
    from bellhop.api.addon import PolicyRefSpec
    from bellhop.api.kustomize import KustomizationRef

_LONGEST_SECONDS = 365 * 86_400
"""For which a download counts."""


class PolicyRef(NamedTuple):
    """Where manifests are; `namespace` and `name` may be templates.

    Without `files` it is a ConfigMap or Secret.
    """

    namespace: str
    name: str
    kind: str
    optional: bool = False
    how: Handling = PLAIN
    files: FileRef | None = None

    def __str__(self) -> str:
        return ref_name(self.kind, self.namespace, self.name)

    @property
    def templated(self) -> bool:
        """Say whether its name or namespace is a template."""
        return is_template(self.namespace + self.name)


def ref_of(
    field: str, ref: "PolicyRefSpec | KustomizationRef", how: Handling, path: str = ""
) -> PolicyRef:
    """Return what a ref names, which was written in a field."""
    if ref.remote_url is not None:
        remote = FileRef(field, path, template=ref.remote_url.template)
        return PolicyRef("", shown_url(ref.remote_url.url), REMOTE, ref.optional, how, remote)
    assert ref.kind
    is_flux = ref.kind in FLUX_KINDS
    files = FileRef(field, path) if is_flux else None
    return PolicyRef(ref.namespace, ref.name, ref.kind, ref.optional, how, files)


def chart_reading(field: str, repository: str) -> Reading | None:
    """Return what is read for a chart that is in a Flux source."""
    flux = flux_path(repository)
    return flux and Reading(field, FLUX, flux.kind, flux.namespace, flux.name, field=field)


def reading_of(field: str, ref: "PolicyRefSpec | KustomizationRef") -> Reading | None:
    """Return what is read for a ref that names no ConfigMap or Secret."""
    remote = ref.remote_url
    if remote is not None:
        secret = remote.secret_ref
        address = Address(
            remote.url,
            min(seconds_of(remote.interval), _LONGEST_SECONDS),
            secret.name if secret else "",
            secret.namespace if secret else "",
            remote.insecure_skip_tls_verify,
            remote.plain_http,
        )
        return Reading(field, "", REMOTE, "", shown_url(remote.url), ref.optional, field, address)
    if ref.kind not in FLUX_KINDS:
        return None
    return Reading(field, FLUX, ref.kind, ref.namespace, ref.name, ref.optional, field)
