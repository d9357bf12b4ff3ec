"""What `bellhop register` prints: the result of a registration, and the forwarder's manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bellhop.cli.output import pairs, raw, say

if TYPE_CHECKING:
    from bellhop.registration.registration import Registered, Registration

_HEAD = """\
# The forwarder of a cluster, as `bellhop register cluster --print-manifests` writes it.
# Its Secret is not among them unless asked: registration applies it, and a renewal writes it again,
# so it does not belong in a repository. Registration also writes its ClusterRole, which follows the
# EventSources, and the annotation of its Namespace that names the installation.
"""


def show_manifests(manifests: Sequence[Mapping[str, Any]]) -> None:
    """Print manifests as one file, as a repository keeps it."""
    from bellhop.documents.document import dump

    raw(_HEAD + "---\n".join(map(dump, manifests)))


def report(done: Registered, spec: Registration, *, err: bool) -> None:
    """Print what a registration has done, on standard error if `err`, and its warnings."""
    from bellhop.clusters.pause import standing
    from bellhop.registration.audit_config import KUBECONFIG, POLICY

    found = done.cluster
    renewed = "credentials, token and certificate"
    if spec.direct or spec.audit:
        renewed = "credentials and token" if spec.direct else "credentials and files"
    word = f"renewed: {renewed}" if done.again else "registered"
    lines = [
        f"Cluster '{found.key}' {word}.",
        f"  reached      {spec.kubeconfig.describe()}; Kubernetes {found.kubernetes}",
        f"  labels       {pairs(found.labels)}",
    ]
    if spec.direct:
        lines.append(f"  events       directly: its API server calls {spec.inbound.url}")
    elif spec.audit:
        lines += [
            f"  events       by its audit log, which its API server sends to {spec.inbound.url}",
            f"  written      {POLICY} and {KUBECONFIG}, a secret, in {spec.audit}",
        ]
    elif spec.forwarder:
        where = spec.forwarder_url or "a Service in the cluster"
        lines += [
            f"  forwarder    {where}; it sends to {spec.inbound.url}",
            "  applied      namespace, account, rights and Secret of the forwarder",
        ]
    else:
        lines.append("  forwarder    none: only resyncs find changes")
    if done.installed:
        lines.append(
            f"  installed    its Deployment, Service and NetworkPolicy; image {done.image}"
        )
    if found.spec.get("paused") or found.spec.get("activeWindow"):
        lines.append(f"  paused       it {standing(found, datetime.now(UTC))}")
    installs = " and installs its webhook" if spec.direct or spec.forwarder else ""
    lines.append(f"  next         a resync, which lists the cluster{installs}")
    for line in lines:
        say(line, err=err)
    for warning in done.warnings:
        say(f"warning: {warning}", err=True)
