"""The way into an installation on AWS: what Terraform has put out, and the caller's own rights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.cli.contexts import AWS, Context
from bellhop.cli.outputs import OWN, checked
from bellhop.cli.providers import EKS, Managed, Opened, Wanted, reaching, unreachable, with_tools
from bellhop.errors import InvalidError
from bellhop.runtime.aws.caller import Called, call, services_of
from bellhop.runtime.aws.journal import Journal

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


def managed(context: Context, opened: Opened, wanted: Wanted) -> Managed:
    """Find an EKS cluster of the account, or of the one whose role is assumed, in any region.

    Raises:
        InvalidError: it is another service's, or AWS has no such role.
        MissingError: there is none of that name.
    """
    if wanted.service != EKS:
        raise unreachable(wanted, "an installation on AWS")
    assert isinstance(opened, Called)
    place = _place(context)
    region = wanted.region or place["region"]
    cluster = opened.eks.find(wanted.name, region, wanted.assume_role, wanted.external_id)
    functions = [
        place["roles"].get(stage) or f"ARN_OF_THE_ROLE_OF_{stage.upper()}"
        for stage in reaching(place["roles"])
    ]
    own = f"--cluster-name {wanted.name} --region {region}"
    policy = f"arn:{cluster.arn.split(':')[1]}:eks::aws:cluster-access-policy/{_ADMIN}"
    entries = [_trust(wanted, functions)] if wanted.assume_role else []
    for role in [wanted.assume_role] if wanted.assume_role else functions:
        whom = f"{own} --principal-arn {role}"
        let = f"aws eks associate-access-policy {whom} --policy-arn {policy}"
        entries += [f"aws eks create-access-entry {whom}", f"{let} --access-scope type=cluster"]
    return Managed(cluster.arn, opened.eks.kubeconfig(cluster), entries)


def _trust(wanted: Wanted, functions: Sequence[str]) -> str:
    """Write the command by which a role of another account trusts the functions' roles."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"AWS": list(functions)},
        "Action": "sts:AssumeRole",
    }
    if wanted.external_id:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": wanted.external_id}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    name = wanted.assume_role.rpartition("/")[2]
    return f"aws iam update-assume-role-policy --role-name {name} --policy-document '{document}'"


def there(context: Context) -> bool:
    """Say that it is there: Terraform said so when the context was added."""
    del context
    return True


def running(context: Context) -> bool | None:
    """Say that nobody knows: what cannot be read cannot tell."""
    del context
    return None
