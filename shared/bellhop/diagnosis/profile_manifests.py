"""A profile as the ClusterProfile that Sveltos' users know, or as the Profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from bellhop.api.account import labels_of
from bellhop.api.helm import HelmOptions, InstallOptions, UninstallOptions, UpgradeOptions
from bellhop.api.profile import ClusterProfileSpec
from bellhop.core.allow import ANNOTATION as ALLOW
from bellhop.core.identity import ROLE_REQUEST, profile_kind, profile_place
from bellhop.diagnosis.releases import redact_url
from bellhop.rendering.origin_labels import origin_labels
from bellhop.state.chart import Chart
from bellhop.state.check import JobSource, MetricSource
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import (
    PLAIN,
    Exclusion,
    FileRef,
    Handling,
    Kustomization,
    PatchText,
    Target,
    ref_parts,
)
from bellhop.state.profile import Profile

WITHHELD = "<hidden>"
_REQUEST = "lib.projectsveltos.io/v1beta1"
_NAMES = ("kind", "namespace", "name")


def manifest(profile: Profile, source: str) -> dict[str, Any]:
    """Return a profile that nobody wrote, or no more; what it holds is in its refs.

    Of a RoleRequest that is on its way out no more is known than that.
    """
    if profile_kind(profile.name) == ROLE_REQUEST:
        metadata = {"name": profile_place(profile.name)}
        return {"apiVersion": _REQUEST, "kind": ROLE_REQUEST, "metadata": metadata, "spec": {}}
    refs: dict[tuple[str, bool, FileRef | None], dict[str, Any]] = {}
    charts = [chart_manifest(each.chart) for each in profile.contents if each.chart]
    kustomizations: dict[str, dict[str, Any]] = {}
    for content in profile.contents:
        if content.chart:
            continue
        kind, namespace, name = ref_parts(content.ref)
        own = _handling(content.how)
        ref = {"kind": kind, "namespace": namespace, "name": name, **own}
        if content.files:
            ref = _whence(profile, content.files, ref)
        if content.kustomization:
            built = {**ref, **kustomization_manifest(content.kustomization)}
            kustomizations[f"{content.kustomization.field} {content.ref}"] = built
        else:
            refs[content.ref, content.how.local, content.files] = ref
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": profile_kind(profile.name),
        "metadata": {
            "name": profile.shown.rpartition("/")[2],
            **({"namespace": profile.namespace} if profile.namespace else {}),
            "labels": {**origin_labels(profile, source), **labels_of(profile.account)},
            **({"annotations": {ALLOW: profile.allow}} if profile.allow else {}),
        },
        "spec": {
            "clusterRefs": [cluster_ref(each) for each in profile.matched],
            **ClusterProfileSpec.write_policy(profile),
            **_added(profile),
            **_read(profile),
            **_checked(profile),
            "policyRefs": list(refs.values()),
            **({"helmCharts": charts} if charts else {}),
            **({"kustomizationRefs": list(kustomizations.values())} if kustomizations else {}),
        },
    }


def _whence(profile: Profile, files: FileRef, ref: dict[str, Any]) -> dict[str, Any]:
    """Return a ref as it is written where it names files."""
    path = {"path": files.path} if files.path else {}
    for each in profile.reads:
        if each.field == files.field and each.address:
            secret = {"name": each.address.secret, "namespace": each.address.namespace}
            asked = {
                "url": each.address.url,
                "interval": f"{each.address.seconds:g}s",
                "secretRef": secret if each.address.secret else None,
                "template": files.template,
                "insecureSkipTLSVerify": each.address.insecure,
                "plainHTTP": each.address.plain,
            }
            own = {name: value for name, value in ref.items() if name not in _NAMES}
            return {**own, **path, "remoteURL": {key: it for key, it in asked.items() if it}}
    return {**ref, **path}


def _read(profile: Profile) -> dict[str, Any]:
    """Return the objects that templates read, as they are referred to."""
    refs = [
        {
            "identifier": each.identifier,
            "resource": {
                "apiVersion": each.api_version,
                "kind": each.kind,
                "namespace": each.namespace,
                "name": each.name,
            },
            **({"optional": True} if each.optional else {}),
        }
        for each in profile.reads
        if not each.field
    ]
    return {"templateResourceRefs": refs} if refs else {}


def _checked(profile: Profile) -> dict[str, list[dict[str, Any]]]:
    """Return the checks by the fields that they stand in."""
    fields: dict[str, list[dict[str, Any]]] = {when: [] for when in profile.checked}
    for each in profile.checks:
        rules = [{"name": rule.name, "rule": rule.rule} for rule in each.rules]
        asked = {
            "group": each.kind.group,
            "version": each.kind.version,
            "kind": each.kind.kind,
            "namespace": each.namespace,
            "labelFilters": [_filter(text) for text in each.labels.split(",") if text],
            "script": each.script,
            "evaluateCEL": rules,
            **_measured(each.metrics),
            **_run(each.job),
        }
        beside = {field: value for field, value in asked.items() if value}
        fields[each.when].append({"name": each.name, "featureID": each.feature, **beside})
    return fields


def _measured(source: MetricSource | None) -> dict[str, Any]:
    """Return where a check queries metrics, and which."""
    if source is None:
        return {}
    secret = {"name": source.secret, "namespace": source.namespace}
    beside = {"secretRef": secret} if source.secret else {}
    queries = [{"name": each.name, "query": each.query} for each in source.queries]
    return {
        "metricSource": {"url": source.url, "path": source.path, **beside},
        "metricQueries": queries,
    }


def _run(job: JobSource | None) -> dict[str, Any]:
    """Return the Job that a check runs."""
    if job is None:
        return {}
    ref = {"kind": job.kind, "namespace": job.namespace, "name": job.name}
    return {"jobCheck": {"jobRef": ref, "timeout": f"{job.seconds}s"}}


def _filter(text: str) -> dict[str, str]:
    """Return one condition of a label selector as labelFilters have it."""
    if text.startswith("!"):
        return {"key": text[1:], "operation": "DoesNotHave"}
    for sign, operation in (("!=", "Different"), ("=", "Equal")):
        key, found, value = text.partition(sign)
        if found:
            return {"key": key, "operation": operation, "value": value}
    return {"key": text, "operation": "Has"}


def _handling(how: Handling) -> dict[str, Any]:
    """Return what a ref asks for beside the usual."""
    asked = {"tier": how.tier, "force": how.force, "skipNamespaceCreation": how.skip_namespace}
    usual = (PLAIN.tier, PLAIN.force, PLAIN.skip_namespace)
    where = {"deploymentType": "Local"} if how.local else {}
    return where | {
        field: value
        for (field, value), default in zip(asked.items(), usual, strict=True)
        if value != default
    }


def _added(profile: Profile) -> dict[str, Any]:
    """Return the metadata that all objects of a profile get, as each of its contents has them."""
    how = profile.contents[0].how if profile.contents else PLAIN
    added = {"extraLabels": how.labels, "extraAnnotations": how.annotations}
    fields: dict[str, Any] = {field: dict(value) for field, value in added.items() if value}
    if how.patches:
        fields["patches"] = list(map(_patch, how.patches))
    return fields | (
        {"driftExclusions": list(map(_excluded, how.excluded))} if how.excluded else {}
    )


def _patch(patch: PatchText) -> dict[str, Any]:
    return {"patch": WITHHELD if patch.secret else patch.text, **_target(patch.target)}


def _excluded(exclusion: Exclusion) -> dict[str, Any]:
    asked = _target(exclusion.target)
    return {"paths": list(exclusion.paths), **(asked if asked["target"] else {})}


def _target(target: Target | None) -> dict[str, Any]:
    """Return the field that says for which objects something is; nothing where none does."""
    if target is None:
        return {}
    fields = {
        "group": target.group,
        "version": target.version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        "labelSelector": target.labels,
        "annotationSelector": target.annotations,
    }
    return {"target": {field: text for field, text in fields.items() if text}}


def cluster_ref(key: str) -> dict[str, str]:
    """Return a cluster as a ClusterProfile refers to it."""
    namespace, _, name = key.partition("/")
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "namespace": namespace,
        "name": name,
    }


def chart_manifest(chart: Chart) -> dict[str, Any]:
    """Return a chart as it may be written; values of Secrets, and credentials, are not in it."""
    inline = f"{chart.field}.values"
    values = [each for each in chart.values if each.source == inline]
    fields = {
        "chartName": chart.chart,
        "chartVersion": chart.version,
        "values": "\n".join(WITHHELD if each.secret else each.text for each in values),
        "valuesFrom": list(sources_of(each for each in chart.values if "/" in each.source)),
        "helmChartAction": "Uninstall" if chart.unwanted else "",
        "options": _options(chart),
    }
    return {
        "repositoryURL": redact_url(chart.repository),
        "releaseName": chart.release,
        "releaseNamespace": chart.namespace,
        **{field: value for field, value in fields.items() if value},
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
        "keep_history": removal.keep_history,
        "deletion_propagation": removal.propagation,
        "disable_hooks": not removal.hooks,
    }
    seconds = chart.install.timeout_seconds
    shared = {name: it for name, it in asdict(chart.install).items() if name != "disable_hooks"}
    own = {
        "timeout": f"{seconds}s" if seconds != HelmOptions().seconds else "",
        "pass_credentials_all": chart.login.everywhere,
        "install_options": InstallOptions.write(asdict(chart.install)),
        "upgrade_options": UpgradeOptions.write(asdict(chart.upgrade)),
        "uninstall_options": UninstallOptions.write(of_removal),
    }
    return HelmOptions.write({**shared, **own})


def kustomization_manifest(kustomization: Kustomization) -> dict[str, Any]:
    """Return what a kustomization is built by; values of Secrets are not in it."""
    inline = f"{kustomization.field}.values."
    values = [each for each in kustomization.values if each.source.startswith(inline)]
    held = (each for each in kustomization.values if not each.source.startswith(inline))
    fields = {
        "path": kustomization.path,
        "components": list(kustomization.components),
        "targetNamespace": kustomization.namespace,
        "values": {each.key: WITHHELD if each.secret else each.text for each in values},
        "valuesFrom": list(sources_of(held)),
    }
    return {field: value for field, value in fields.items() if value}
