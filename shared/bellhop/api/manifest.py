"""The base of all declarations, and ConfigMaps and Secrets, which hold add-ons."""

import base64
import binascii
import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from bellhop.api.account import account_of
from bellhop.core.allow import ANNOTATION as ALLOW
from bellhop.core.base import Model, mistake
from bellhop.core.identity import ROLE_REQUEST
from bellhop.core.names import Annotations, Labels, Name, Namespace, data_key_problem
from bellhop.core.sveltos_annotations import LAST_APPLIED

LARGEST_DATA = 1024 * 1024

# What an API server adds by itself; people pipe `kubectl get -o yaml`, and it means nothing here.
SERVER_METADATA = (
    "creationTimestamp",
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


class DeclarationKey(NamedTuple):
    """The key of a declaration; `namespace` is empty for kinds that have none."""

    kind: str
    namespace: str
    name: str

    @property
    def place(self) -> str:
        """Namespace and name as users write them; only the name where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def rule(self) -> str:
        """A name that is unique among profiles, of which a RoleRequest is one, too."""
        return f"{ROLE_REQUEST}:{self.name}" if self.kind == ROLE_REQUEST else self.place

    def __str__(self) -> str:
        return f"{self.kind} {self.place}"


class ObjectMeta(Model):
    """The metadata that mean something to Bellhop."""

    name: Name
    namespace: Namespace = ""
    labels: Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)


class Declaration(Model):
    """A manifest: what the user wrote, validated, and still able to say it in their words."""

    namespaced: ClassVar[bool] = False
    deploys: ClassVar[bool] = False
    """True for kinds that deploy add-ons, and may limit which."""
    pauses: ClassVar[str] = ""
    """The annotation that pauses it."""
    for_tenants: ClassVar[bool] = False
    """True for kinds that may count with the rights of a service account."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    _written: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in its metadata."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace, `default` when none was written; empty for a kind that has none."""
        return (self.metadata.namespace or "default") if self.namespaced else ""

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations in its metadata."""
        return self.metadata.annotations

    @property
    def key(self) -> DeclarationKey:
        """The key of this declaration."""
        return DeclarationKey(self.kind, self.namespace, self.name)

    @property
    def place(self) -> str:
        """Namespace and name, or only the name, as users write them."""
        return self.key.place

    @property
    def rule(self) -> str:
        """A name that is unique among triggers, or among profiles."""
        return self.key.rule

    @property
    def allow(self) -> str:
        """The kinds that it may deploy, as `read_allow` reads it; empty for everything."""
        return self.annotations.get(ALLOW, "")

    @property
    def account(self) -> str:
        """The service account whose rights count in clusters; empty for Bellhop's own."""
        return account_of(self.metadata.labels) if self.for_tenants else ""

    @property
    def paused(self) -> bool:
        """Return whether its results stay as they are; any value says so, as in Sveltos."""
        return self.pauses != "" and self.pauses in self.annotations

    @model_validator(mode="after")
    def _may_limit_add_ons(self) -> Self:
        if ALLOW in self.annotations and not self.deploys:
            raise mistake(f"{ALLOW} has no meaning here; it belongs on a trigger or profile")
        return self

    @property
    def written(self) -> dict[str, Any]:
        """The object as it was written, without additions of an API server; not to be changed."""
        return self._written

    def manifest(self) -> dict[str, Any]:
        """Return a copy of the object as it was written."""
        return copy.deepcopy(self._written)


def without_server_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Copy a manifest without its status and what else only an API server writes."""
    kept = {key: value for key, value in data.items() if key != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        metadata = {key: value for key, value in metadata.items() if key not in SERVER_METADATA}
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and LAST_APPLIED in annotations:
            metadata["annotations"] = {
                key: value for key, value in annotations.items() if key != LAST_APPLIED
            }
        kept["metadata"] = metadata
    return kept


class _Data(Declaration):
    namespaced: ClassVar[bool] = True

    @field_validator("data", "binary_data", "string_data", mode="before", check_fields=False)
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        """Check the keys, and read a value that is null as an empty one."""
        if not isinstance(data, dict):
            return data
        for key in data:
            if problem := data_key_problem(key):
                raise mistake(problem)
        return {key: "" if value is None else value for key, value in data.items()}


class ConfigMap(_Data):
    """Manifests, or templates of them, under keys."""

    data: dict[str, str] = Field(default_factory=dict)
    binary_data: dict[str, str] = Field(default_factory=dict)
    immutable: bool = False

    @field_validator("binary_data")
    @classmethod
    def _is_base64(cls, data: dict[str, str]) -> dict[str, str]:
        return _checked_base64(data)

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if both := sorted(self.data.keys() & self.binary_data.keys()):
            raise mistake(f"the key {both[0]!r} is in data and in binaryData; keep one of them")
        _check_size({**self.data, **self.binary_data})
        return self

    def decoded(self) -> dict[str, bytes]:
        """Give the bytes behind every key."""
        texts = {key: value.encode() for key, value in self.data.items()}
        return {**texts, **{k: base64.b64decode(v) for k, v in self.binary_data.items()}}


class Secret(_Data):
    """Manifests, or templates of them, that others must not read; `data` stays base64."""

    data: dict[str, str] = Field(default_factory=dict, repr=False)
    string_data: dict[str, str] = Field(default_factory=dict, repr=False)
    type: str = "Opaque"
    immutable: bool = False

    @model_validator(mode="before")
    @classmethod
    def _merge_string_data(cls, manifest: Any) -> Any:
        """Move stringData into data, where it wins, as an API server does."""
        if not isinstance(manifest, dict):
            return manifest
        texts, data = manifest.get("stringData"), manifest.get("data") or {}
        mergeable = (
            isinstance(texts, dict)
            and isinstance(data, dict)
            and all(isinstance(value, str | None) for value in texts.values())
        )
        if not texts or not mergeable:
            return manifest
        encoded = {k: base64.b64encode((v or "").encode()).decode() for k, v in texts.items()}
        kept = {key: value for key, value in manifest.items() if key != "stringData"}
        return {**kept, "data": {**data, **encoded}}

    @field_validator("data")
    @classmethod
    def _is_base64(cls, data: dict[str, str]) -> dict[str, str]:
        return _checked_base64(data)

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        _check_size(self.data)
        return self

    @cached_property
    def _decoded(self) -> dict[str, bytes]:
        return {key: base64.b64decode(value) for key, value in self.data.items()}

    def decoded(self) -> dict[str, bytes]:
        """Give the bytes behind every key."""
        return dict(self._decoded)


def _checked_base64(data: dict[str, str]) -> dict[str, str]:
    """Refuse what is not base64, and take line breaks out, as Go's decoder reads over them."""
    clean = {key: value.replace("\n", "").replace("\r", "") for key, value in data.items()}
    for key, value in clean.items():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise mistake(
                f"the value of {key!r} is not base64; encode it, or write it under stringData"
            ) from error
    return clean


def _check_size(data: dict[str, str]) -> None:
    size = sum(len(value.encode()) for value in data.values())
    if size > LARGEST_DATA:
        raise mistake(f"the data have {size:,} bytes and at most {LARGEST_DATA:,} are taken")
