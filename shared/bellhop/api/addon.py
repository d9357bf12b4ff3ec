"""The specification that triggers and profiles share: add-ons and their roll-out."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from msgspec.structs import replace
from pydantic import Field, model_validator

from bellhop.api.manifest import Declaration
from bellhop.api.policy_ref import (
    ChartRef,
    KustomizationSource,
    PolicyRef,
    PolicyRefSpec,
    Tier,
    chart_reading,
    reading_of,
    ref_of,
)
from bellhop.core.base import Later, Many, Model, camel, mistake
from bellhop.core.names import (
    Annotations,
    Labels,
    Namespace,
    Share,
    Text,
)
from bellhop.core.sveltos_annotations import ADOPT_FROM
from bellhop.state.check import Check, When
from bellhop.state.content import Exclusion, Handling, PatchText, Reading
from bellhop.state.profile import AddonPolicy, Rollout, Sync

if TYPE_CHECKING:
    from bellhop.api.checks import Check as CheckSpec
    from bellhop.api.kustomize import KustomizationRef

ContentKind = Literal["ConfigMap", "Secret"]
StopMatchingBehavior = Literal["WithdrawPolicies", "LeavePolicies"]

_T = TypeVar("_T")

_OF_DECLARATION = frozenset({"allow", "account", "checks", "rollout"})
_OF_SPEC = [each for each in AddonPolicy.__struct_fields__ if each not in _OF_DECLARATION]
"""Fields of a policy that a specification has under the same name."""

_Check = Annotated[Any, Later("checks", "Check")]
_DriftExclusion = Annotated[Any, Later("patches", "DriftExclusion")]
_HelmChart = Annotated[Any, Later("helm", "HelmChart")]
_KustomizationRef = Annotated[Any, Later("kustomize", "KustomizationRef")]
_Patch = Annotated[Any, Later("patches", "Patch")]
_TemplateResourceRef = Annotated[Any, Later("ref", "TemplateResourceRef")]
_ValueFrom = Annotated[Any, Later("ref", "ValueFrom")]


class AddonSpec(Model):
    """The add-ons and their roll-out, in EventTriggers and ClusterProfiles alike."""

    names_places: ClassVar[bool] = True
    """True if it has no namespace, so that its jobRefs have to name one."""

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
    def leaves_policies(self) -> bool:
        """`stopMatchingBehavior` as a policy has it."""
        return self.stop_matching_behavior == "LeavePolicies"

    @property
    def sync(self) -> Sync:
        """`syncMode` as a policy has it."""
        return self.sync_mode

    @property
    def share(self) -> str:
        """`maxUpdate` as a roll-out has it: a number of clusters, a percentage, or nothing."""
        return "" if self.max_update is None else str(self.max_update)

    @classmethod
    def write_policy(cls, policy: AddonPolicy) -> dict[str, Any]:
        """Return the fields of a manifest that make a policy; what is always shown comes first."""
        usual = {name: getattr(policy, name) for name in _OF_SPEC if name in cls.model_fields}
        stays = policy.leaves_policies
        always = {
            "syncMode": policy.sync,
            **{camel(name): value for name, value in usual.items()},
            "stopMatchingBehavior": "LeavePolicies" if stays else "WithdrawPolicies",
        }
        after = [each.rpartition("/")[2] for each in policy.rollout.after]
        return always | cls.write({"max_update": policy.rollout.share, "depends_on": after})

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
        """List the checks before and after a deployment or a removal."""
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


class AddonDeclaration(Declaration):
    """An EventTrigger or a profile: it deploys add-ons to clusters.

    All that one in a namespace names is in that namespace, whatever is written: so Sveltos has it
    (addon-controller, profile_controller).
    """

    deploys: ClassVar[bool] = True
    for_tenants: ClassVar[bool] = True

    spec: AddonSpec

    @property
    def addons(self) -> AddonSpec:
        """The add-ons and their roll-out, in which a RoleRequest says its own fields, too."""
        return self.spec

    @cached_property
    def policy(self) -> AddonPolicy:
        """The part of the specification that its profiles carry, filled by the fields' names."""
        spec = self.addons
        return AddonPolicy(
            allow=self.allow,
            account=self.account,
            adopts_sveltos=self.adopts_sveltos,
            checks=self.checks,
            rollout=self.rollout,
            # A trigger lacks some fields of ClusterProfiles: their defaults count.
            **{name: getattr(spec, name) for name in _OF_SPEC if hasattr(spec, name)},
        )

    @property
    def adopts_sveltos(self) -> bool:
        """Return whether an annotation has the profile take over what Sveltos deployed."""
        return ADOPT_FROM in self.annotations

    @property
    def policy_refs(self) -> tuple[PolicyRef, ...]:
        """The ConfigMaps, Secrets and files that have manifests, in their order."""
        return self._own(self.addons.refs())

    @property
    def patch_refs(self) -> tuple[PolicyRef, ...]:
        """The ConfigMaps and Secrets that hold patches, in their order."""
        return self._own(self.addons.patch_refs())

    @property
    def charts(self) -> tuple[ChartRef, ...]:
        """The Helm charts, in their order."""
        return tuple(each.with_namespace(self.namespace) for each in self.addons.charts())

    @property
    def kustomizations(self) -> tuple[KustomizationSource, ...]:
        """The kustomizations, in their order."""
        return tuple(each.with_namespace(self.namespace) for each in self.addons.kustomizations())

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The objects that templates of deploy time read."""
        found = self.addons.readings()
        return (
            tuple(each.with_namespace(self.namespace) for each in found)
            if self.namespace
            else found
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks before and after a deployment or a removal."""
        found = self.addons.checks()
        return (
            tuple(each.with_namespace(self.namespace) for each in found)
            if self.namespace
            else found
        )

    @property
    def local(self) -> bool:
        """Return whether any of it is deployed to the cluster `mgmt/mgmt`."""
        refs = (*self.addons.policy_refs, *self.addons.kustomization_refs)
        return any(ref.deployment_type == "Local" for ref in refs)

    @cached_property
    def holder_refs(self) -> tuple[PolicyRef, ...]:
        """All ConfigMaps and Secrets that it is rendered from, or its profiles are checked with."""
        return self._find_holder_refs()

    def _find_holder_refs(self) -> tuple[PolicyRef, ...]:
        charts = (ref for each in self.charts for ref in each.refs)
        kustomizations = (ref for each in self.kustomizations for ref in each.refs)
        held = (each for each in self.policy_refs if each.files is None)
        beside = self._own((*self.addons.check_refs(), *self.addons.login_refs()))
        return (*held, *self.patch_refs, *charts, *kustomizations, *beside)

    @property
    def after(self) -> tuple[str, ...]:
        """The places of the profiles that it comes after in each cluster."""
        names = self.addons.depends_on
        return self._places(names) if names else ()

    @property
    def rollout(self) -> Rollout:
        """Its dependencies, the clusters that change at a time, and what it restarts."""
        return Rollout(after=self.after, share=self.addons.share, reloads=self.addons.reloader)

    def _own(self, refs: tuple[PolicyRef, ...]) -> tuple[PolicyRef, ...]:
        if not self.namespace:
            return refs
        return tuple(each._replace(namespace=self.namespace) for each in refs)

    def _places(self, names: Iterable[str]) -> tuple[str, ...]:
        named = tuple(dict.fromkeys(names))
        return tuple(f"{self.namespace}/{each}" for each in named) if self.namespace else named


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
