"""Refs of triggers and profiles: to ConfigMaps, Secrets, Flux sources, URLs, charts and files."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from bellhop.core.base import Later, Model, mistake
from bellhop.core.names import NameOrTemplate, NamespaceOrTemplate, is_template, seconds_of
from bellhop.state.content import (
    FLUX,
    FLUX_KINDS,
    PLAIN,
    REMOTE,
    Address,
    FileRef,
    Handling,
    Reading,
    flux_path,
    ref_name,
    shown_url,
)

if TYPE_CHECKING:
    from bellhop.api.kustomize import KustomizationRef
    from bellhop.state.chart import Chart
    from bellhop.state.content import Kustomization

_LONGEST_SECONDS = 365 * 86_400
"""For which a download counts."""


Tier = Annotated[int, Field(ge=1, le=2**31 - 1)]
DeploymentType = Literal["Remote", "Local"]
PolicyRefKind = Literal["ConfigMap", "Secret", "GitRepository", "OCIRepository", "Bucket"]

_RemoteUrl = Annotated[Any, Later("ref", "RemoteUrl")]


class PolicyRef(NamedTuple):
    """A source of manifests; `namespace` and `name` may be templates.

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
        """Return whether its name or namespace is a template."""
        return is_template(self.namespace + self.name)


class ChartRef(NamedTuple):
    """A chart as it is written, and the ConfigMaps and Secrets that it is deployed with.

    `credentials` and `authority` are one Secret each, or none; `key` is the entry that counts.
    """

    chart: "Chart"
    values: tuple[PolicyRef, ...]
    credentials: tuple[PolicyRef, ...]
    authority: tuple[PolicyRef, ...]
    key: str
    how: Handling

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """Return all ConfigMaps and Secrets that it is deployed with."""
        return (*self.values, *self.credentials, *self.authority)

    def with_namespace(self, namespace: str) -> "ChartRef":
        """Return it with all that it names in a namespace; an empty one changes nothing."""
        if not namespace:
            return self
        parts = (self.values, self.credentials, self.authority)
        values, credentials, authority = (
            tuple(each._replace(namespace=namespace) for each in refs) for refs in parts
        )
        return self._replace(values=values, credentials=credentials, authority=authority)


class KustomizationSource(NamedTuple):
    """A kustomization as it is written, what has its files, and what it is deployed with."""

    kustomization: "Kustomization"
    ref: PolicyRef
    values: tuple[PolicyRef, ...]

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """List the ConfigMaps and Secrets that it names."""
        return self.values if self.ref.files else (self.ref, *self.values)

    def with_namespace(self, namespace: str) -> "KustomizationSource":
        """Return it with all that it names in a namespace; an empty one changes nothing."""
        if not namespace:
            return self
        refs = (self.ref, *self.values)
        ref, *values = (each._replace(namespace=namespace) for each in refs)
        return self._replace(ref=ref, values=tuple(values))


class GeneratorRef(NamedTuple):
    """The origin of a generated ConfigMap or Secret; all but `kind` may be templates.

    By `for_each` it is rendered once for each object that matches.
    """

    ref: PolicyRef
    name_format: str
    for_each: bool = False

    @property
    def field(self) -> str:
        """The field it was written in."""
        return "configMapGenerator" if self.ref.kind == "ConfigMap" else "secretGenerator"


class PolicyRefSpec(Model):
    """One entry of policyRefs, as written."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate = ""
    kind: PolicyRefKind | None = None
    path: str = ""
    deployment_type: DeploymentType = "Remote"
    optional: bool = False
    tier: Tier = 100
    skip_namespace_creation: bool = False
    force: bool = False
    remote_url: _RemoteUrl | None = Field(default=None, alias="remoteURL")

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        refuse_two_origins(self)
        return self


def refuse_two_origins(ref: "PolicyRefSpec | KustomizationRef") -> None:
    """See that a ref names an object or a URL, and not both."""
    named = bool(ref.name) or ref.kind is not None
    if ref.remote_url is not None and named:
        raise mistake("remoteURL stands beside kind or name; keep one of them")
    if ref.remote_url is None and not (ref.name and ref.kind):
        raise mistake(f"{'kind' if ref.name else 'name'} is missing")


def ref_of(
    field: str, ref: "PolicyRefSpec | KustomizationRef", how: Handling, path: str = ""
) -> PolicyRef:
    """Return the source that a ref names, which was written in a field."""
    if ref.remote_url is not None:
        remote = FileRef(field, path, template=ref.remote_url.template)
        return PolicyRef("", shown_url(ref.remote_url.url), REMOTE, ref.optional, how, remote)
    assert ref.kind
    is_flux = ref.kind in FLUX_KINDS
    files = FileRef(field, path) if is_flux else None
    return PolicyRef(ref.namespace, ref.name, ref.kind, ref.optional, how, files)


def chart_reading(field: str, repository: str) -> Reading | None:
    """Return the Flux source of a chart, if it is in one, as a profile reads it."""
    flux = flux_path(repository)
    return flux and Reading(field, FLUX, flux.kind, flux.namespace, flux.name, field=field)


def reading_of(field: str, ref: "PolicyRefSpec | KustomizationRef") -> Reading | None:
    """Return the Flux source or URL of a ref, if it names one, as a profile reads it."""
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
