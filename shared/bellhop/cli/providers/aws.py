"""Installations on AWS, opened with the outputs of Terraform and the caller's own rights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.cli.contexts import AWS
from bellhop.cli.providers.provider import (
    CloudProvider,
    ManagedCluster,
    OpenInstallation,
    list_calling_functions,
)
from bellhop.registration.managed_clusters import EKS, ClusterRequest
from bellhop.runtime.aws.installation import Called, call, services_of
from bellhop.runtime.aws.journal import Journal

_ADMIN = "AmazonEKSClusterAdminPolicy"
"""EKS' policy with the rights to apply whatever a profile holds."""


class AwsProvider(CloudProvider):
    """Finds EKS clusters in the account, or in that of an assumed role, in any region."""

    kind = AWS
    service = EKS
    name = "AWS"
    functions = "log_groups"
    no_functions = "log groups"
    connect = staticmethod(call)

    def make_log(
        self,
        outputs: Mapping[str, Any],
        environment: Mapping[str, str],
        functions: Mapping[str, str],
    ) -> Journal:
        del environment
        return Journal(services_of(outputs), functions)

    def make_cluster(
        self, outputs: Mapping[str, Any], opened: OpenInstallation, request: ClusterRequest
    ) -> ManagedCluster:
        assert isinstance(opened, Called)
        region = request.region or outputs["region"]
        cluster = opened.eks.find(request.name, region, request.assume_role, request.external_id)
        functions = [
            outputs["roles"].get(name) or f"ARN_OF_THE_ROLE_OF_{name.upper()}"
            for name in list_calling_functions(outputs["roles"])
        ]
        own = f"--cluster-name {request.name} --region {region}"
        policy = f"arn:{cluster.arn.split(':')[1]}:eks::aws:cluster-access-policy/{_ADMIN}"
        entries = [_trust(request, functions)] if request.assume_role else []
        for role in [request.assume_role] if request.assume_role else functions:
            principal = f"{own} --principal-arn {role}"
            grant = f"aws eks associate-access-policy {principal} --policy-arn {policy}"
            entries.append(f"aws eks create-access-entry {principal}")
            entries.append(f"{grant} --access-scope type=cluster")
        return ManagedCluster(cluster.arn, opened.eks.kubeconfig(cluster), entries)


def _trust(request: ClusterRequest, functions: Sequence[str]) -> str:
    """Write the command by which a role of another account trusts the functions' roles."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"AWS": list(functions)},
        "Action": "sts:AssumeRole",
    }
    if request.external_id:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": request.external_id}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    name = request.assume_role.rpartition("/")[2]
    return f"aws iam update-assume-role-policy --role-name {name} --policy-document '{document}'"


PROVIDER = AwsProvider()
