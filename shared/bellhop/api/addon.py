"""What triggers and profiles have in common: the add-ons, and how they are rolled out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from msgspec.structs import replace
from pydantic import Field, model_validator

from bellhop.api.policy_ref import PolicyRef, chart_reading, reading_of, ref_of
from bellhop.core.base import Later, Many, Model, mistake
from bellhop.core.names import (
    Annotations,
    Labels,
    NameOrTemplate,
    Namespace,
    NamespaceOrTemplate,
    Share,
    Text,
)
from bellhop.state.check import Check, When
from bellhop.state.record import Exclusion, Handling, PatchText, Reading, Sync

if TYPE_CHECKING:
    from bellhop.api.checks import Check as CheckSpec
    from bellhop.api.kustomize import KustomizationRef
    from bellhop.state.chart import Chart
    from bellhop.state.kustomization import Kustomization

Tier = Annotated[int, Field(ge=1, le=2**31 - 1)]
DeploymentType = Literal["Remote", "Local"]
ContentKind = Literal["ConfigMap", "Secret"]
PolicyRefKind = Literal["ConfigMap", "Secret", "GitRepository", "OCIRepository", "Bucket"]
StopMatchingBehavior = Literal["WithdrawPolicies", "LeavePolicies"]

_T = TypeVar("_T")

_Check = Annotated[Any, Later("checks", "Check")]
_DriftExclusion = Annotated[Any, Later("patches", "DriftExclusion")]
_HelmChart = Annotated[Any, Later("helm", "HelmChart")]
_KustomizationRef = Annotated[Any, Later("kustomize", "KustomizationRef")]
_Patch = Annotated[Any, Later("patches", "Patch")]
_RemoteUrl = Annotated[Any, Later("ref", "RemoteUrl")]
_TemplateResourceRef = Annotated[Any, Later("ref", "TemplateResourceRef")]
_ValueFrom = Annotated[Any, Later("ref", "ValueFrom")]


class ChartRef(NamedTuple):
    """A chart as it is written, and the ConfigMaps and Secrets that it is deployed with.

    `credentials` and `authority` are one Secret each, or none; `key` is the entry that counts.
    """

    chart: "Chart"
    values: tuple[PolicyRef, ...]
    credentials: tuple[PolicyRef, ...]
    authority: tuple[PolicyRef, ...]
    key: str
    how: Handling

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """List all that it is deployed with."""
        return (*self.values, *self.credentials, *self.authority)

    def within(self, namespace: str) -> "ChartRef":
        """Return it with all that it names in a namespace; an empty one changes nothing."""
        if not namespace:
            return self
        parts = (self.values, self.credentials, self.authority)
        values, credentials, authority = (
            tuple(each._replace(namespace=namespace) for each in refs) for refs in parts
        )
        return self._replace(values=values, credentials=credentials, authority=authority)


class KustomizationSource(NamedTuple):
    """A kustomization as it is written, what has its files, and what it is deployed with."""

    kustomization: "Kustomization"
    ref: PolicyRef
    values: tuple[PolicyRef, ...]

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """List the ConfigMaps and Secrets that it names."""
        return self.values if self.ref.files else (self.ref, *self.values)

    def within(self, namespace: str) -> "KustomizationSource":
        """Return it with all that it names in a namespace; an empty one changes nothing."""
        if not namespace:
            return self
        refs = (self.ref, *self.values)
        ref, *values = (each._replace(namespace=namespace) for each in refs)
        return self._replace(ref=ref, values=tuple(values))


class GeneratorRef(NamedTuple):
    """What is rendered into a ConfigMap or Secret of its own; all but `kind` may be templates.

    By `for_each` it is rendered once for each object that matches.
    """

    ref: PolicyRef
    name_format: str
    for_each: bool = False

    @property
    def field(self) -> str:
        """The field it was written in."""
        return "configMapGenerator" if self.ref.kind == "ConfigMap" else "secretGenerator"


class PolicyRefSpec(Model):
    """One entry of policyRefs, as written."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate = ""
    kind: PolicyRefKind | None = None
    path: str = ""
    deployment_type: DeploymentType = "Remote"
    optional: bool = False
    tier: Tier = 100
    skip_namespace_creation: bool = False
    force: bool = False
    remote_url: _RemoteUrl | None = Field(default=None, alias="remoteURL")

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        refuse_two_origins(self)
        return self


def refuse_two_origins(ref: "PolicyRefSpec | KustomizationRef") -> None:
    """See that a ref names an object or a URL, and not both."""
    named = bool(ref.name) or ref.kind is not None
    if ref.remote_url is not None and named:
        raise mistake("remoteURL stands beside kind or name; keep one of them")
    if ref.remote_url is None and not (ref.name and ref.kind):
        raise mistake(f"{'kind' if ref.name else 'name'} is missing")


class AddonSpec(Model):
    """The add-ons and their roll-out, in EventTriggers and ClusterProfiles alike."""

    names_places: ClassVar[bool] = True
    """Whether it is in no namespace, so that its jobRefs have to name one."""

    sync_mode: Sync = "Continuous"
    tier: Tier = 100
    continue_on_conflict: bool = False
    max_update: Share | None = None
    stop_matching_behavior: StopMatchingBehavior = "WithdrawPolicies"
    reloader: bool = False
    depends_on: Many[Text] = ()
    template_resource_refs: Many[_TemplateResourceRef] = ()
    policy_refs: Many[PolicyRefSpec] = ()
    helm_charts: Many[_HelmChart] = ()
    kustomization_refs: Many[_KustomizationRef] = ()
    pre_deploy_checks: Many[_Check] = ()
    validate_healths: Many[_Check] = ()
    pre_delete_checks: Many[_Check] = ()
    post_delete_checks: Many[_Check] = ()
    patches: Many[_Patch] = ()
    patches_from: Many[_ValueFrom] = ()
    drift_exclusions: Many[_DriftExclusion] = ()
    extra_labels: Labels = Field(default_factory=dict)
    extra_annotations: Annotations = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reads_each_by_its_own_identifier(self) -> Self:
        names = [each.identifier for each in self.template_resource_refs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise mistake(f"two of templateResourceRefs have the identifier {twice[0]!r}")
        return self

    @model_validator(mode="after")
    def _asks_something_of_what_goes(self) -> Self:
        for check in self.checks():
            if check.of_removal and not (check.script or check.rules or check.job):
                raise mistake(
                    f"the check {check.name!r} of {check.when} asks nothing, and would always pass;"
                    " give it a script or evaluateCEL"
                )
        return self

    @model_validator(mode="after")
    def _says_where_jobs_are(self) -> Self:
        for check in self.checks() if self.names_places else ():
            if check.job and not check.job.namespace:
                raise mistake(
                    f"jobRef of the check {check.name!r} names no namespace; write that of its"
                    f" {check.job.kind}"
                )
        return self

    def refs(self) -> tuple[PolicyRef, ...]:
        """List what has the manifests, in its order."""
        return tuple(
            ref_of(field, ref, self._handling(ref), ref.path)
            for field, ref in _numbered("policyRefs", self.policy_refs)
        )

    def patch_refs(self) -> tuple[PolicyRef, ...]:
        """List the ConfigMaps and Secrets that hold patches, in their order."""
        return tuple(
            PolicyRef(ref.namespace, ref.name, ref.kind, ref.optional) for ref in self.patches_from
        )

    def charts(self) -> tuple[ChartRef, ...]:
        """List the Helm charts, in their order."""
        return tuple(
            each.ref(number, self._common()) for number, each in enumerate(self.helm_charts)
        )

    def kustomizations(self) -> tuple[KustomizationSource, ...]:
        """List the kustomizations, in their order."""
        return tuple(
            each.source(number, self._handling(each))
            for number, each in enumerate(self.kustomization_refs)
        )

    @property
    def local(self) -> bool:
        """Tell whether any of it is brought to the cluster `mgmt/mgmt`."""
        refs = (*self.policy_refs, *self.kustomization_refs)
        return any(ref.deployment_type == "Local" for ref in refs)

    @property
    def sync(self) -> Sync:
        """How it is kept in its clusters."""
        return self.sync_mode

    @property
    def share(self) -> str:
        """How many clusters change at a time: a number, a percentage, or nothing."""
        return "" if self.max_update is None else str(self.max_update)

    def readings(self) -> tuple[Reading, ...]:
        """List the objects that templates of deploy time read, and what has files of add-ons."""
        refs = (
            *_numbered("policyRefs", self.policy_refs),
            *_numbered("kustomizationRefs", self.kustomization_refs),
        )
        files = (reading_of(field, ref) for field, ref in refs)
        charts = (
            chart_reading(field, each.repository_url)
            for field, each in _numbered("helmCharts", self.helm_charts)
            if each.helm_chart_action != "Uninstall"
        )
        return (*self._resources(), *filter(None, (*files, *charts)))

    def _resources(self) -> Iterator[Reading]:
        return (
            Reading(
                each.identifier,
                each.api_version,
                each.resource.kind,
                each.resource.namespace,
                each.resource.name,
                each.optional,
            )
            for each in self.template_resource_refs
        )

    def checks(self) -> tuple[Check, ...]:
        """List what must be so in a cluster before and after it is brought, and taken back."""
        written = self.checks_written().items()
        return tuple(each.record(when) for when, checks in written for each in checks)

    def check_refs(self) -> tuple[PolicyRef, ...]:
        """List the Secrets of checks' metrics, and what holds their Jobs."""
        return tuple(_refs_of(self.checks()))

    def login_refs(self) -> tuple[PolicyRef, ...]:
        """List the Secrets that URLs are downloaded with."""
        addresses = (each.address for each in self.readings() if each.address)
        return tuple(
            PolicyRef(each.namespace, each.secret, "Secret") for each in addresses if each.secret
        )

    def checks_written(self) -> "Mapping[When, tuple[CheckSpec, ...]]":
        """Return the checks as they are written, by their fields."""
        return {
            "preDeployChecks": self.pre_deploy_checks,
            "validateHealths": self.validate_healths,
            "preDeleteChecks": self.pre_delete_checks,
            "postDeleteChecks": self.post_delete_checks,
        }

    def _handling(self, ref: "PolicyRefSpec | KustomizationRef") -> Handling:
        return replace(
            self._common(),
            tier=ref.tier,
            force=ref.force,
            skip_namespace=ref.skip_namespace_creation,
            local=ref.deployment_type == "Local",
        )

    def _common(self) -> Handling:
        """Return what is done to every object that a profile deploys."""
        return Handling(
            labels=self.extra_labels,
            annotations=self.extra_annotations,
            excluded=self._excluded(),
            patches=self._patches(),
        )

    def _patches(self) -> tuple[PatchText, ...]:
        return tuple(each.record(f"patches[{number}]") for number, each in enumerate(self.patches))

    def _excluded(self) -> tuple[Exclusion, ...]:
        """List what is others' to decide; without drift detection nothing is, as in Sveltos."""
        if self.sync != "ContinuousWithDriftDetection":
            return ()
        return tuple(each.exclusion() for each in self.drift_exclusions)


def _numbered(field: str, refs: Iterable[_T]) -> Iterator[tuple[str, _T]]:
    return ((f"{field}[{number}]", ref) for number, ref in enumerate(refs))


def _refs_of(checks: Iterable[Check]) -> Iterator[PolicyRef]:
    for each in checks:
        if each.metrics and each.metrics.secret:
            yield PolicyRef(each.metrics.namespace, each.metrics.secret, "Secret")
        if each.job:
            yield PolicyRef(each.job.namespace, each.job.name, each.job.kind)


class ClusterRef(NamedTuple):
    """One cluster of the fleet."""

    namespace: str
    name: str


class ClusterReference(Model):
    """One entry of clusterRefs, as written."""

    namespace: Namespace
    name: Text
    kind: str = "SveltosCluster"
    api_version: str = "lib.projectsveltos.io/v1beta1"
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class NearReference(ClusterReference):
    """One entry of clusterRefs in a kind that has a namespace: it means that one, if any."""

    namespace: Namespace = ""
