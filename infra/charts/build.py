"""Build the charts: their files as they are here, and what other files of the project define.

The version is Bellhop's. The definitions are made from the models, the rules of the account from
the kinds, and the alert rules are those of the documentation. `bellhop` contains the chart of the
forwarder.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bellhop import __version__
from bellhop.configuration.definitions import make_definitions
from bellhop.configuration.rights import list_rules
from bellhop.documents.document import dump
from bellhop.registration.forwarder_manifests import MESSAGING_NAMESPACE, NAMESPACE
from infra.release.archives import tarred

CHARTS = Path(__file__).parent
ROOT = CHARTS.parents[1]
BELLHOP, FORWARDER = "bellhop", "bellhop-forwarder"
_ALERTS = ROOT / "docs/examples/monitoring/alerts.yaml"
_RBAC = "rbac.authorization.k8s.io"
_WRITE = ("create", "patch", "delete")
_VERSIONED = f"version: {__version__}\nappVersion: {__version__}\n"
_DEPENDENCY = f"""\
dependencies:
  - name: {FORWARDER}
    alias: forwarder
    version: {__version__}
    condition: forwarder.enabled
"""


def chart_files(name: str) -> dict[str, bytes]:
    """Return the files of a chart by their paths in it."""
    files = _own_files(name)
    if name == FORWARDER:
        return files
    files["Chart.yaml"] += _DEPENDENCY.encode()
    files |= {
        f"charts/{FORWARDER}/{path}": content for path, content in _own_files(FORWARDER).items()
    }
    # Helm renders no templates there, and an API server before 1.25 refuses rules in CEL.
    for each in make_definitions(rules=False):
        files[f"crds/{each['metadata']['name']}.yaml"] = dump(each).encode()
    files["files/alerts.yaml"] = _ALERTS.read_bytes()
    for scope, rules in account_rules().items():
        files[f"files/{scope}-rules.yaml"] = _dump_rules(rules).encode()
    return files


def pack_chart(name: str, time: int = 0) -> bytes:
    """Return the archive of a chart as `helm package` makes it, and the same each time."""
    placed = {f"{name}/{path}": content for path, content in chart_files(name).items()}
    return gzip.compress(tarred(placed, time), mtime=0)


def archive_name(name: str) -> str:
    """Return the name of the archive, as `helm push` expects it."""
    return f"{name}-{__version__}.tgz"


def write_charts(dist: Path) -> Iterator[Path]:
    """Write both archives into a folder."""
    dist.mkdir(parents=True, exist_ok=True)
    for name in (BELLHOP, FORWARDER):
        path = dist / archive_name(name)
        path.write_bytes(pack_chart(name))
        yield path


def _own_files(name: str) -> dict[str, bytes]:
    folder = CHARTS / name
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    files["Chart.yaml"] += _VERSIONED.encode()
    return files


def account_rules() -> dict[str, list[dict[str, Any]]]:
    """Return the rules of the account that opens the cluster in which `serve` runs.

    They are those of the whole cluster, and by the name of a namespace those there. Objects that
    Bellhop writes for itself are named, except at their creation, when RBAC knows no name.
    """
    return {
        "cluster": [*_sender_rules(), *_configuration_rules()],
        NAMESPACE: [*_forwarder_rules()],
        MESSAGING_NAMESPACE: [_rule("", ["configmaps", "secrets"], ("get", *_WRITE))],
    }


def _dump_rules(rules: list[dict[str, Any]]) -> str:
    return "".join("- " + dump(each).rstrip().replace("\n", "\n  ") + "\n" for each in rules)


def _sender_rules() -> Iterator[dict[str, Any]]:
    """Yield what registration and resyncs write in the whole cluster, so that it sends events.

    The namespace of the cluster's own system distinguishes one cluster from another.
    """
    yield _rule("", ["namespaces"], ("create",))
    yield _rule("", ["namespaces"], ("get",), "kube-system")
    yield _rule("", ["namespaces"], ("get", "patch", "delete"), NAMESPACE)
    yield from _own(_RBAC, ["clusterrolebindings", "clusterroles"])
    yield from _own("admissionregistration.k8s.io", ["validatingwebhookconfigurations"])


def _forwarder_rules() -> Iterator[dict[str, Any]]:
    yield from _own("", ["secrets", "serviceaccounts"])
    yield from _own(_RBAC, ["rolebindings", "roles"])
    yield _rule("apps", ["deployments"], ("get",), FORWARDER)


def _configuration_rules() -> Iterator[dict[str, Any]]:
    """Yield what the configuration needs, and to read the definitions of its kinds."""
    for each in list_rules():
        yield _rule(each.group, list(each.resources), each.verbs)
    yield _rule("apiextensions.k8s.io", ["customresourcedefinitions"], ("get", "list"))


def _own(group: str, resources: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rules for objects of the forwarder's name."""
    yield _rule(group, resources, ("create",))
    yield _rule(group, resources, ("get", "patch", "delete"), FORWARDER)


def _rule(group: str, resources: list[str], verbs: tuple[str, ...], *names: str) -> dict[str, Any]:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": list(verbs)}
