"""ClusterReports: what a profile in dry run would change in a cluster, as Sveltos names it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from bellhop.configuration.objects import Written

ResourceAction = Literal["No Action", "Create", "Update", "Delete", "Conflict", "Error"]
ReleaseAction = Literal["No Action", "Install", "Upgrade", "Delete", "Conflict", "Update Values"]


class ReportedResource(Written, frozen=True):
    """An object that a dry run would change."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str = ""
    last_applied_time: datetime | None = None
    ignore_for_configuration_drift: bool = False


class ResourceReport(Written, frozen=True):
    """The change of an object by a dry run."""

    resource: ReportedResource
    action: ResourceAction | None = None
    message: str = ""


class ReleaseReport(Written, frozen=True):
    """The change of a release by a dry run; `chart_name` is the name of the release."""

    release_namespace: str
    chart_name: str
    chart_version: str
    action: ReleaseAction | None = None
    message: str = ""


class ClusterReportSpec(Written, frozen=True):
    """The cluster of a dry run."""

    cluster_namespace: str
    cluster_name: str


class ClusterReportStatus(Written, frozen=True):
    """Status of a ClusterReport: a profile's dry run in one cluster."""

    release_reports: tuple[ReleaseReport, ...] = ()
    resource_reports: tuple[ResourceReport, ...] = ()
    kustomize_resource_reports: tuple[ResourceReport, ...] = ()
    helm_resource_reports: tuple[ResourceReport, ...] = ()
