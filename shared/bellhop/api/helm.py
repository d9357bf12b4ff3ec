"""The Helm charts of a profile, and the options of Helm's own actions."""

from typing import Annotated, Any, Literal, Self

from msgspec.structs import replace
from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from bellhop.api.core_kinds import WRITTEN_NOW
from bellhop.api.policy_ref import ChartRef, PolicyRef
from bellhop.api.ref import SecretRef, ValueFrom
from bellhop.core.base import Many, Model, mistake
from bellhop.core.names import Duration, LabelsOrTemplates, Text, is_template, seconds_of
from bellhop.documents.document import read_documents
from bellhop.errors import InvalidError
from bellhop.state.chart import Chart, Login, Options, Removal
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import FLUX_SCHEMES, Handling, flux_path

_SCHEMES = ("http://", "https://", "oci://")
_LONGEST = 24 * 3600
"""Seconds of a timeout; no worker waits for so long."""


def _repository(url: str) -> str:
    flux = flux_path(url)
    if flux and not (flux.namespace and flux.name):
        raise mistake(
            f"a {flux.kind} is named as {flux.kind.lower()}://NAMESPACE/NAME/PATH, with the folder"
            " of the chart as PATH"
        )
    schemes = (*_SCHEMES, *FLUX_SCHEMES)
    if not is_template(url) and not url.lower().startswith(schemes):
        raise mistake(f"a repository begins with one of {', '.join(schemes)}")
    return url


def _argument(text: str) -> str:
    if "\0" in text:
        raise mistake("no program takes a text with a null character")
    return text


def _values(text: str, info: ValidationInfo) -> str:
    # What is stored is read: one profile must not keep all others from being read.
    written_now = (info.context or {}).get(WRITTEN_NOW)
    rendered_first = is_template(text) or "{%" in text
    if written_now and not rendered_first and (problem := values_problem(text)):
        raise mistake(problem)
    return text


def values_problem(text: str) -> str:
    """Return why a text cannot be values of a chart; empty if it can."""
    try:
        documents = read_documents(text, source="values", expand_lists=False, repeats=True)
    except InvalidError as error:
        return str(error)
    if all(isinstance(each.data, dict) for each in documents):
        return ""
    return "values of a chart must be a mapping, as in 'replicaCount: 2'"


class RegistryCredentials(Model):
    """The credentials of a chart's repository."""

    credentials: SecretRef | None = None
    key: str = ""
    ca: SecretRef | None = None
    insecure_skip_tls_verify: bool = Field(default=False, alias="insecureSkipTLSVerify")
    plain_http: bool = Field(default=False, alias="plainHTTP")


class InstallOptions(Model):
    """Options of an installation."""

    create_namespace: bool = True
    replace: bool = True
    disable_hooks: bool = False
    take_ownership: bool = False
    recover_after_consecutive_failures: int = 5


class UpgradeOptions(Model):
    """Options of an upgrade."""

    force: bool = False
    reset_values: bool = False
    reuse_values: bool = False
    reset_then_reuse_values: bool = False
    recreate: bool = False
    max_history: int = 2
    cleanup_on_fail: bool = False
    sub_notes: bool = False
    upgrade_crds: bool = Field(default=False, alias="upgradeCRDs")
    disable_hooks: bool = False
    take_ownership: bool = False


class UninstallOptions(Model):
    """Options of a removal."""

    keep_history: bool = False
    deletion_propagation: Literal["orphan", "foreground", "background"] | None = None
    disable_hooks: bool = False


class HelmOptions(Model):
    """Options of every action."""

    skip_crds: bool = Field(default=False, alias="skipCRDs")
    skip_schema_validation: bool = False
    wait: bool = False
    wait_for_jobs: bool = False
    timeout: Duration = "5m"
    disable_hooks: bool = False
    disable_openapi_validation: bool = Field(default=False, alias="disableOpenAPIValidation")
    atomic: bool = False
    dependency_update: bool = False
    labels: LabelsOrTemplates = Field(default_factory=dict)
    enable_client_cache: bool = False
    description: Annotated[str, AfterValidator(_argument)] = ""
    pass_credentials_all: bool = False
    run_tests: bool = False
    post_render_strategy: Literal["combined", "separate", "nohooks"] | None = None
    install_options: InstallOptions | None = None
    upgrade_options: UpgradeOptions | None = None
    uninstall_options: UninstallOptions | None = None

    @property
    def seconds(self) -> int:
        """Return the timeout, of at most a day."""
        return min(max(1, round(seconds_of(self.timeout))), _LONGEST)

    def install(self) -> Options:
        """Return the options of an installation."""
        return self._options(self.install_options or InstallOptions())

    def upgrade(self) -> Options:
        """Return the options of an upgrade."""
        own = self.upgrade_options or UpgradeOptions()
        install = self.install_options or InstallOptions()
        return replace(self._options(own), create_namespace=install.create_namespace)

    def removal(self) -> Removal:
        """Return the options of a removal."""
        own = self.uninstall_options or UninstallOptions()
        return Removal(
            keep_history=own.keep_history,
            propagation=own.deletion_propagation or "",
            hooks=not (self.disable_hooks or own.disable_hooks),
            timeout_seconds=self.seconds,
        )

    def _options(self, own: InstallOptions | UpgradeOptions) -> Options:
        """Return the options of an action and of all actions, filled by their names."""
        named = {
            name: getattr(options, name)
            for options in (self, own)
            for name in Options.__struct_fields__
            if name in type(options).model_fields
        }
        hooks = self.disable_hooks or own.disable_hooks
        return Options(**{**named, "disable_hooks": hooks, "timeout_seconds": self.seconds})


class HelmChart(Model):
    """One release of a chart; most texts may be templates."""

    repository_url: Annotated[Text, AfterValidator(_repository)] = Field(alias="repositoryURL")
    repository_name: str = ""
    chart_name: str = ""
    chart_version: str = ""
    release_name: Text
    release_namespace: Text
    values: Annotated[str, AfterValidator(_values)] = ""
    values_from: Many[ValueFrom] = ()
    helm_chart_action: Literal["Install", "Uninstall"] = "Install"
    options: HelmOptions | None = None
    registry_credentials_config: RegistryCredentials | None = None
    signature_verification: dict[str, Any] | None = None
    provenance_verification: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _names_a_chart(self) -> Self:
        if self.helm_chart_action == "Uninstall":
            return self
        named = ("oci://", *FLUX_SCHEMES)
        if not self.chart_name and not self.repository_url.lower().startswith(named):
            raise mistake("chartName is missing; only an oci:// repositoryURL may name the chart")
        return self

    def ref(self, number: int, how: Handling) -> ChartRef:
        """Return it, the entry of that number, with what it names."""
        asked = self.registry_credentials_config or RegistryCredentials()
        return ChartRef(
            self._record(f"helmCharts[{number}]"),
            tuple(
                PolicyRef(each.namespace, each.name, each.kind, each.optional)
                for each in self.values_from
            ),
            _secret(asked.credentials),
            _secret(asked.ca),
            asked.key,
            how,
        )

    def _record(self, field: str) -> Chart:
        """Return it as a profile carries it; what its references hold is not in it yet."""
        options = self.options or HelmOptions()
        how = self.registry_credentials_config or RegistryCredentials()
        return Chart(
            field,
            self.repository_url,
            self.chart_name,
            self.chart_version,
            self.release_name,
            self.release_namespace,
            values=(HeldText(self.values, f"{field}.values"),) if self.values else (),
            login=Login(
                insecure=how.insecure_skip_tls_verify,
                plain=how.plain_http,
                everywhere=options.pass_credentials_all,
            ),
            unwanted=self.helm_chart_action == "Uninstall",
            install=options.install(),
            upgrade=options.upgrade(),
            removal=options.removal(),
        )


def _secret(named: SecretRef | None) -> tuple[PolicyRef, ...]:
    return (PolicyRef(named.namespace, named.name, "Secret"),) if named and named.name else ()
