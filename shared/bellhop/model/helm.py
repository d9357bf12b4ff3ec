"""The Helm charts of a profile, and the options of Helm's own actions."""

from typing import Any, Literal

from pydantic import Field

from bellhop.model.base import Many, Model
from bellhop.model.names import Duration, Text
from bellhop.model.ref import SecretRef, ValueFrom


class RegistryCredentials(Model):
    """How a chart's repository is signed in to."""

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
    disable_open_api_validation: bool = Field(default=False, alias="disableOpenAPIValidation")
    atomic: bool = False
    dependency_update: bool = False
    labels: dict[str, str] = Field(default_factory=dict)
    enable_client_cache: bool = False
    description: str = ""
    pass_credentials_all: bool = False
    run_tests: bool = False
    post_render_strategy: Literal["combined", "separate", "nohooks"] | None = None
    install_options: InstallOptions | None = None
    upgrade_options: UpgradeOptions | None = None
    uninstall_options: UninstallOptions | None = None


class HelmChart(Model):
    """One release of a chart; most texts may be templates."""

    repository_url: Text = Field(alias="repositoryURL")
    repository_name: str = ""
    chart_name: str = ""
    chart_version: str = ""
    release_name: Text
    release_namespace: Text
    values: str = ""
    values_from: Many[ValueFrom] = ()
    helm_chart_action: Literal["Install", "Uninstall"] = "Install"
    options: HelmOptions | None = None
    registry_credentials_config: RegistryCredentials | None = None
    signature_verification: dict[str, Any] | None = None
    provenance_verification: dict[str, Any] | None = None
