"""References of manifests: to remote files, to other objects, and generators."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bellhop.core.base import Many, Model, camel, mistake
from bellhop.core.names import Duration, NameOrTemplate, NamespaceOrTemplate, Text

_REMOTE_SCHEMES = ("http://", "https://", "oci://")


def _remote(url: str) -> str:
    if not url.startswith(_REMOTE_SCHEMES):
        raise mistake(f"a remote URL begins with one of {', '.join(_REMOTE_SCHEMES)}")
    return url


class SecretRef(Model):
    """A Secret, by name and namespace."""

    name: str = ""
    namespace: str = ""


class RemoteUrl(Model):
    """Manifests that are fetched from a URL."""

    url: Annotated[str, AfterValidator(_remote)]
    interval: Duration = "5m"
    secret_ref: SecretRef | None = None
    template: bool = False
    insecure_skip_tls_verify: bool = Field(default=False, alias="insecureSkipTLSVerify")
    plain_http: bool = Field(default=False, alias="plainHTTP")


class ValueFrom(Model):
    """A ConfigMap or Secret that holds values or patches."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate
    kind: Literal["ConfigMap", "Secret"]
    optional: bool = False


class ObjectReference(Model):
    """An object, by what may be templates."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


_VIEWS = frozenset({"ClassifierReport", "EventReport", "HealthCheckReport", "HeldReport"})
"""Reports of Sveltos and Bellhop: no cluster stores them for Bellhop."""


class TemplateResourceRef(Model):
    """An object that templates may read, and the identifier they read it by; it may be empty."""

    resource: ObjectReference
    identifier: str
    optional: bool = False
    ignore_status_changes: bool = False
    watch_fields: Many[Text] = ()

    @model_validator(mode="after")
    def _names_an_object(self) -> Self:
        for field in ("kind", "name"):
            if not getattr(self.resource, field):
                raise mistake(f"resource.{camel(field)} is missing")
        if not self.api_version:
            raise mistake("resource.apiVersion is missing")
        if self.resource.kind in _VIEWS:
            raise mistake(
                f"resource.kind {self.resource.kind} is a view, which templates cannot read; the"
                " templates of an EventTrigger read matches as .Resource or .Resources"
            )
        return self

    @property
    def api_version(self) -> str:
        """Return the version in which the object is read: of a ConfigMap or Secret `v1` if unsaid.

        Of other kinds nobody else knows the group.
        """
        core = self.resource.kind in {"ConfigMap", "Secret"}
        return self.resource.api_version or ("v1" if core else "")


class Generator(Model):
    """A ConfigMap or Secret that is rendered into one of its own for each event."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate
    name_format: Text
    optional: bool = False
    instantiate_for_each_matching_resource: bool = False
