"""The charts of a profile that nobody wrote, as an entry of `helmCharts` has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.diagnosis.releases import public
from bellhop.state.chart import Chart, Options, Removal
from bellhop.state.cluster_text import HeldText

WITHHELD = "<hidden>"
_SHARED = {
    "skip_crds": "skipCRDs",
    "skip_schema_validation": "skipSchemaValidation",
    "disable_openapi_validation": "disableOpenAPIValidation",
    "wait": "wait",
    "wait_for_jobs": "waitForJobs",
    "run_tests": "runTests",
    "atomic": "atomic",
    "labels": "labels",
    "description": "description",
}
_INSTALL = {
    "create_namespace": "createNamespace",
    "disable_hooks": "disableHooks",
    "take_ownership": "takeOwnership",
}
_UPGRADE = {
    "disable_hooks": "disableHooks",
    "take_ownership": "takeOwnership",
    "cleanup_on_fail": "cleanupOnFail",
    "force": "force",
    "reuse_values": "reuseValues",
    "reset_values": "resetValues",
    "reset_then_reuse_values": "resetThenReuseValues",
    "upgrade_crds": "upgradeCRDs",
    "max_history": "maxHistory",
}


def chart_manifest(chart: Chart) -> dict[str, Any]:
    """Return a chart as it may be written; values of Secrets, and credentials, are not in it."""
    inline = f"{chart.field}.values"
    values = [each for each in chart.values if each.source == inline]
    told = {
        "chartName": chart.chart,
        "chartVersion": chart.version,
        "values": "\n".join(WITHHELD if each.secret else each.text for each in values),
        "valuesFrom": list(sources_of(each for each in chart.values if "/" in each.source)),
        "helmChartAction": "Uninstall" if chart.unwanted else "",
        "options": _options(chart),
    }
    return {
        "repositoryURL": public(chart.repository),
        "releaseName": chart.release,
        "releaseNamespace": chart.namespace,
        **{field: value for field, value in told.items() if value},
    }


def sources_of(values: Iterator[HeldText]) -> Iterator[dict[str, str]]:
    """Yield the ConfigMaps and Secrets that values come from, each once."""
    named = {(each.source.rpartition("/")[0], each.secret) for each in values}
    for place, secret in sorted(named):
        namespace, _, name = place.partition("/")
        yield {"kind": "Secret" if secret else "ConfigMap", "namespace": namespace, "name": name}


def _options(chart: Chart) -> dict[str, Any]:
    removal = chart.removal
    of_removal = {
        "keepHistory": removal.keep_history,
        "deletionPropagation": removal.propagation,
        "disableHooks": not removal.hooks,
    }
    nested = {
        "installOptions": _asked(chart.install, _INSTALL),
        "upgradeOptions": _asked(chart.upgrade, _UPGRADE),
        "uninstallOptions": {field: value for field, value in of_removal.items() if value},
    }
    seconds = chart.install.timeout_seconds
    return {
        **_asked(chart.install, _SHARED),
        **({"timeout": f"{seconds}s"} if seconds != Removal().timeout_seconds else {}),
        **({"passCredentialsAll": True} if chart.login.everywhere else {}),
        **{field: value for field, value in nested.items() if value},
    }


def _asked(options: Options, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that are not as usual, by their fields."""
    usual = Options()
    return {
        field: getattr(options, name)
        for name, field in names.items()
        if getattr(options, name) != getattr(usual, name)
    }
