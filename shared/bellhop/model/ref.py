"""How manifests point at other things: Secrets, sources of values, remote files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bellhop.model.base import Model, mistake
from bellhop.model.names import Duration, NameOrTemplate, NamespaceOrTemplate

DeploymentType = Literal["Remote", "Local"]
Tier = Annotated[int, Field(ge=1, le=2**31 - 1)]

_REMOTE_SCHEMES = ("http://", "https://", "oci://")


def _remote(url: str) -> str:
    if not url.startswith(_REMOTE_SCHEMES):
        raise mistake(f"a remote URL begins with one of {', '.join(_REMOTE_SCHEMES)}")
    return url


class LocalSecretRef(Model):
    """A Secret, by name and namespace."""

    name: str = ""
    namespace: str = ""


class RemoteUrl(Model):
    """Manifests that are fetched from a URL."""

    url: Annotated[str, AfterValidator(_remote)]
    interval: Duration = "5m"
    secret_ref: LocalSecretRef | None = None
    template: bool = False
    insecure_skip_tls_verify: bool = Field(default=False, alias="insecureSkipTLSVerify")
    plain_http: bool = Field(default=False, alias="plainHTTP")


class ValueFrom(Model):
    """A ConfigMap or Secret that holds values or patches."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate
    kind: Literal["ConfigMap", "Secret"]
    optional: bool = False
