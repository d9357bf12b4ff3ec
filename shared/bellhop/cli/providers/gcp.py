"""The way into an installation on Google Cloud: Terraform's output, and the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.cli.contexts import GCP, Context
from bellhop.cli.outputs import checked
from bellhop.cli.providers import GKE, Managed, Opened, Wanted, reaching, unreachable, with_tools
from bellhop.errors import InvalidError
from bellhop.runtime.gcp.caller import Called, call, services_of
from bellhop.runtime.gcp.journal import Journal

_GATEWAYS = ("roles/gkehub.gatewayEditor", "roles/gkehub.viewer")
"""Beside its own rights in the cluster, whoever comes by the Connect gateway needs these."""


def opened(context: Context, environment: Mapping[str, str], *, create: bool) -> Called:
    """Open an installation; Terraform alone makes one.

    Raises:
        MissingError: the project has none of that name.
        TemporaryError: Google does not answer, or not to this caller.
    """
    del create
    return looked_into(context, environment)


def looked_into(context: Context, environment: Mapping[str, str]) -> Called:
    """Open an installation; who only looks writes nothing in it."""
    called = call(_place(context), environment, name=context.name)
    return replace(called, installation=with_tools(called.installation))


def journal(context: Context, environment: Mapping[str, str], stage: str) -> Journal:
    """Return what reads the logs of all functions, or of one.

    Raises:
        InvalidError: there is no such function.
    """
    place = _place(context)
    functions: Mapping[str, str] = place["services"]
    if not functions or (stage and stage not in functions):
        known = ", ".join(functions) or "none, as Terraform has put out no services"
        raise InvalidError(f"cannot read the logs of '{stage or 'all'}': the functions are {known}")
    logs = place.get("logs") or f"projects/{place['project']}"
    chosen = {stage: functions[stage]} if stage else functions
    return Journal(services_of(place, environment), logs, chosen)


def managed(context: Context, opened: Opened, wanted: Wanted) -> Managed:
    """Find a GKE cluster, in the installation's project and region or others.

    Raises:
        InvalidError: it is another service's, or the name is none.
        MissingError: there is none of that name.
    """
    if wanted.service != GKE:
        raise unreachable(wanted, "an installation on Google Cloud")
    assert isinstance(opened, Called)
    place = _place(context)
    full = opened.gke.named(wanted.name, wanted.region or place["region"])
    way = opened.gke.way(full)
    entries = []
    for stage in reaching(place["accounts"]):
        who = place["accounts"].get(stage) or f"ACCOUNT_OF_{stage.upper()}"
        entries += _entries(full, f"{place['secrets']}-{stage}", who, gateway=way.by_gateway)
    return Managed(full, opened.gke.kubeconfig(full), entries, way.over)


def _entries(full: str, name: str, who: str, *, gateway: bool) -> list[str]:
    """Write the commands that let a service account find a cluster, and do what it has to in it."""
    grant = f"gcloud projects add-iam-policy-binding {full.split('/')[1]}"
    member = f"--member serviceAccount:{who}"
    roles = ["roles/container.clusterViewer", *(_GATEWAYS if gateway else ())]
    let = f"kubectl create clusterrolebinding {name} --clusterrole cluster-admin --user {who}"
    return [*(f"{grant} {member} --role {role} --condition None" for role in roles), let]


def there(context: Context) -> bool:
    """Say that it is there: Terraform said so when the context was added."""
    del context
    return True


def running(context: Context) -> bool | None:
    """Say that nobody knows: what cannot be read cannot tell."""
    del context
    return None


def _place(context: Context) -> dict[str, Any]:
    """Read a context once more: who edited its file may have left something out."""
    return checked(context.place, f"context {context.name}", GCP)
