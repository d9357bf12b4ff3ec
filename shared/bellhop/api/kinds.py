"""Every kind users write, and the one way from a document to its frozen type.

read_documents(text) -> Documents -> parse_all(documents) -> declarations, or every mistake at once
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from bellhop.api import account, core_kinds
from bellhop.api.addon import ClusterRef
from bellhop.api.classifier import Classifier
from bellhop.api.cluster_set import ClusterSet, NamespacedSet
from bellhop.api.fields import nearest
from bellhop.api.health_check import ClusterHealthCheck, HealthCheck
from bellhop.api.manifest import (
    ConfigMap,
    Declaration,
    DeclarationKey,
    ObjectMeta,
    Secret,
    without_server_fields,
)
from bellhop.api.policy_ref import PolicyRef
from bellhop.api.problems import mistakes, refusals
from bellhop.api.profile import ClusterProfile, NamespacedProfile
from bellhop.api.promotion import ClusterPromotion
from bellhop.api.report import EventReport, event_report
from bellhop.api.role_request import RoleRequest
from bellhop.api.source import EventSource, LabelFilter, ResourceSelector
from bellhop.api.trigger import EventTrigger
from bellhop.api.unsupported import KNOWN
from bellhop.core import sveltos_annotations
from bellhop.core.gvk import GVK
from bellhop.core.selector import Requirement, Selector
from bellhop.documents.document import Document, InvalidDocuments, read_documents
from bellhop.errors import InvalidError

__all__ = [
    "KINDS",
    "Classifier",
    "ClusterHealthCheck",
    "ClusterProfile",
    "ClusterPromotion",
    "ClusterRef",
    "ClusterSet",
    "ConfigMap",
    "Declaration",
    "DeclarationKey",
    "Document",
    "EventReport",
    "EventSource",
    "EventTrigger",
    "HealthCheck",
    "InvalidDocuments",
    "LabelFilter",
    "ObjectMeta",
    "PolicyRef",
    "Requirement",
    "ResourceSelector",
    "RoleRequest",
    "Secret",
    "Selector",
    "event_report",
    "key_of",
    "of",
    "parse",
    "parse_all",
    "read_documents",
]

_LIB = ("lib.projectsveltos.io/v1beta1", "lib.projectsveltos.io/v1alpha1")
_CONFIG = ("config.projectsveltos.io/v1beta1", "config.projectsveltos.io/v1alpha1")

_DOMAIN = "projectsveltos.io"
_NEITHER = "; what goes to the clusters is put into a ConfigMap or Secret that policyRefs name"

KINDS: dict[str, tuple[type[Declaration], tuple[str, ...]]] = {
    "EventSource": (EventSource, _LIB),
    "EventTrigger": (EventTrigger, _LIB),
    "EventBasedAddOn": (EventTrigger, _LIB),
    "ClusterProfile": (ClusterProfile, _CONFIG),
    "Profile": (NamespacedProfile, _CONFIG),
    "ClusterPromotion": (ClusterPromotion, _CONFIG[:1]),
    "ClusterSet": (ClusterSet, _LIB),
    "Set": (NamespacedSet, _LIB),
    "Classifier": (Classifier, _LIB),
    "ClusterHealthCheck": (ClusterHealthCheck, _LIB),
    "HealthCheck": (HealthCheck, _LIB),
    "RoleRequest": (RoleRequest, _LIB),
    "ConfigMap": (ConfigMap, ("v1",)),
    "Secret": (Secret, ("v1",)),
    "EventReport": (EventReport, _LIB),
}


CLUSTER = GVK("lib.projectsveltos.io", "v1beta1", "SveltosCluster")
"""The kind of which each object registers a cluster: no manifest is stored of it."""

EVENT_REPORT = GVK("lib.projectsveltos.io", "v1beta1", "EventReport")
"""The kind of reports of events, which are read only for the CloudEvents in them."""

CONFIGURED_KINDS = (
    *(
        GVK.parse(versions[0], kind)
        for kind, (_, versions) in KINDS.items()
        if kind not in ("EventBasedAddOn", "EventReport")
    ),
    CLUSTER,
)
"""Kinds that are read where a cluster holds the configuration, in the version that is served."""


def is_namespaced(kind: str) -> bool:
    """Return whether objects of a kind of the configuration have a namespace."""
    return kind == CLUSTER.kind or KINDS[kind][0].namespaced


def parse(document: Document) -> Declaration:
    """Read one document as the kind it says it is.

    Raises:
        InvalidDocuments: with every mistake of the document.
    """
    (declaration,) = parse_all([document])
    return declaration


def parse_all(documents: Iterable[Document]) -> list[Declaration]:
    """Read every document, and refuse them all when one has a mistake.

    Raises:
        InvalidDocuments: with every mistake of every document, in reading order.
    """
    return _parse_all(documents, written_now=True)


def _parse_all(documents: Iterable[Document], *, written_now: bool) -> list[Declaration]:
    found: list[Declaration] = []
    problems: list[InvalidError] = []
    for document in documents:
        declaration = _read(document, problems, written_now=written_now)
        if declaration is not None:
            found.append(declaration)
    if problems:
        raise InvalidDocuments(problems)
    return found


def of(manifest: dict[str, Any], *, source: str = "manifest") -> Declaration:
    """Read a manifest that is stored, or that is data already.

    It reads all that an earlier version accepted, even if `parse` refuses it by now.

    Raises:
        InvalidDocuments: with every mistake of the manifest.
    """
    (declaration,) = _parse_all([Document(manifest, source)], written_now=False)
    return declaration


def key_of(manifest: Mapping[str, Any]) -> DeclarationKey:
    """Return the key of a manifest of a known kind, valid or not."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    namespace = str(metadata.get("namespace") or "default") if KINDS[kind][0].namespaced else ""
    return DeclarationKey(kind, namespace, metadata["name"])


def _read(
    document: Document, problems: list[InvalidError], *, written_now: bool
) -> Declaration | None:
    model = _model(document, problems)
    if model is None:
        return None
    written = without_server_fields(document.data)
    kind = written["kind"]
    found = dict([*refusals(kind, model, written), *sveltos_annotations.refusals(kind, written)])
    if model.for_tenants:
        found |= dict(account.mistakes(written))
    declaration: Declaration | None = None
    try:
        declaration = model.model_validate(written, context={core_kinds.WRITTEN_NOW: written_now})
    except ValidationError as error:
        sentences = [*found.items(), *mistakes(error, model, found)]
    else:
        sentences = list(found.items())
        declaration._written = written  # noqa: SLF001 - the manifest is kept by the one who read it
    sentences.sort(key=lambda problem: document.line_of(problem[0]))
    problems.extend(InvalidError(said, where=document.where(path)) for path, said in sentences)
    return declaration


def _model(document: Document, problems: list[InvalidError]) -> type[Declaration] | None:
    def refuse(sentence: str, *path: str) -> None:
        problems.append(InvalidError(sentence, where=document.where(path)))

    data = document.data
    if not isinstance(data, dict):
        refuse("a manifest must be a mapping with apiVersion and kind")
        return None
    missing = [name for name in ("apiVersion", "kind") if not isinstance(data.get(name), str)]
    if missing:
        refuse(f"this is not a manifest: {' and '.join(missing)} must be a string", missing[0])
        return None
    name, api_version = data["kind"], data["apiVersion"]
    if name in KNOWN and api_version.partition("/")[0].endswith(f".{_DOMAIN}"):
        refuse(f"{name} {KNOWN[name]}", "kind")
        return None
    if name not in KINDS:
        guess = nearest(name, KINDS) or _NEITHER
        refuse(f"the kind {name!r} is not known{guess}", "kind")
        return None
    model, versions = KINDS[name]
    if api_version not in versions:
        guess = nearest(api_version, versions)
        known = "" if guess else f"; it has {' and '.join(versions)}"
        refuse(f"{name} has no apiVersion {api_version!r}{guess}{known}", "apiVersion")
        return None
    if model is EventReport:
        refuse("EventReports are written by Bellhop; read them and apply EventSources instead")
        return None
    return model
