"""The way into an installation on AWS: what Terraform has put out, and the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.aws.caller import Called, call, services_of
from bellhop.aws.journal import Journal
from bellhop.cli.contexts import AWS, Context
from bellhop.cli.outputs import OWN, checked
from bellhop.cli.places import EKS, Managed, Opened, reaching, unreachable, with_tools
from bellhop.errors import InvalidError

_ADMIN = "AmazonEKSClusterAdminPolicy"
"""EKS' policy with the rights to apply whatever a profile holds."""


def opened(context: Context, environment: Mapping[str, str], *, create: bool) -> Called:
    """Open an installation; Terraform alone makes one.

    Raises:
        MissingError: the caller's account has none of that name.
        TemporaryError: AWS does not answer, or not to this caller.
    """
    del create
    return looked_into(context, environment)


def looked_into(context: Context, environment: Mapping[str, str]) -> Called:
    """Open an installation; who only looks writes nothing in it."""
    called = call(_place(context), environment, name=context.name)
    return replace(called, installation=with_tools(called.installation))


def journal(context: Context, environment: Mapping[str, str], stage: str) -> Journal:
    """Return what reads the log groups of all functions, or of one.

    Raises:
        InvalidError: there is no such function.
    """
    del environment
    place = _place(context)
    groups: Mapping[str, str] = place["log_groups"]
    if not groups or (stage and stage not in groups):
        known = ", ".join(groups) or "none, as Terraform has put out no log groups"
        raise InvalidError(f"cannot read the logs of '{stage or 'all'}': the functions are {known}")
    return Journal(services_of(place), {stage: groups[stage]} if stage else groups)


def _place(context: Context) -> dict[str, Any]:
    """Read a context once more: who edited its file may have left something out."""
    kept = {key: context.place[key] for key in OWN if key in context.place}
    return {**checked(context.place, f"context {context.name}", AWS), **kept}


def managed(context: Context, opened: Opened, service: str, name: str, region: str) -> Managed:
    """Find an EKS cluster of the account, in the installation's region or another one.

    Raises:
        InvalidError: it is another service's.
        MissingError: there is none of that name.
    """
    if service != EKS:
        raise unreachable(service, name, "an installation on AWS")
    assert isinstance(opened, Called)
    place = _place(context)
    arn = opened.eks.arn(name, region or place["region"])
    own = f"--cluster-name {name} --region {region or place['region']}"
    policy = f"arn:{arn.split(':')[1]}:eks::aws:cluster-access-policy/{_ADMIN}"
    entries = []
    for stage in reaching(place["roles"]):
        role = place["roles"].get(stage) or f"ARN_OF_THE_ROLE_OF_{stage.upper()}"
        whom = f"{own} --principal-arn {role}"
        let = f"aws eks associate-access-policy {whom} --policy-arn {policy}"
        entries += [f"aws eks create-access-entry {whom}", f"{let} --access-scope type=cluster"]
    return Managed(arn, opened.eks.kubeconfig(arn), entries)


def there(context: Context) -> bool:
    """Say that it is there: Terraform said so when the context was added."""
    del context
    return True


def running(context: Context) -> bool | None:
    """Say that nobody knows: what cannot be read cannot tell."""
    del context
    return None
