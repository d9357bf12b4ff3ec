"""Fields of the kinds that Bellhop does not support yet, with the sentence that refuses each.

A path may end in `=VALUE`, which refuses only that value of the field. A field at its default
asks for nothing and is never refused. The change that builds a feature removes its lines;
`docs/reference/kinds.md` is generated from the rest.
"""

from __future__ import annotations

_SIGNED = "signatures of charts are not verified yet; leave the field out, and pin a chartVersion"
_HOOKS = "hooks are patched as all else of a chart is; leave the field out"
_CHARTS = {
    "signatureVerification": _SIGNED,
    "provenanceVerification": _SIGNED,
    "options.upgradeOptions.recreate": "Helm 4 has no such option; use force",
    "options.postRenderStrategy=separate": _HOOKS,
    "options.postRenderStrategy=nohooks": _HOOKS,
}
_ADDONS = {
    **{f"helmCharts[].{field}": sentence for field, sentence in _CHARTS.items()},
}

_TRIGGER = {
    **_ADDONS,
}

NOT_YET: dict[str, dict[str, str]] = {
    "EventSource": {},
    "EventTrigger": {f"spec.{field}": sentence for field, sentence in _TRIGGER.items()},
    "ClusterProfile": {f"spec.{field}": sentence for field, sentence in _ADDONS.items()},
    "ClusterPromotion": {
        f"spec.profileSpec.{field}": sentence for field, sentence in _ADDONS.items()
    },
    "ClusterSet": {},
    "Set": {},
    "Classifier": {},
    "ClusterHealthCheck": {},
    "HealthCheck": {},
    "RoleRequest": {},
    "ConfigMap": {},
    "Secret": {},
}
NOT_YET["EventBasedAddOn"] = NOT_YET["EventTrigger"]
NOT_YET["Profile"] = NOT_YET["ClusterProfile"]

_BY_LABEL = "select clusters by label, and label them with 'bellhop label cluster'"
_CLUSTERS = "is not applied; clusters are registered, with 'bellhop register cluster'"
_PAUSES = (
    "is not applied; 'bellhop register cluster -f' registers what it declares, and a cluster is"
    " paused with 'bellhop pause cluster', or outside of an activeWindow with 'bellhop set"
    " maintenance-window'"
)
_WRITTEN = "is written by Sveltos for itself; leave it out"

_KNOWN = {
    "DebuggingConfiguration": "leave it out",
    "ManagementClusterClassifier": f"there is no management cluster; {_BY_LABEL}",
    "Techsupport": "'bellhop show events' shows what happened",
}

SVELTOS_RECORDS = (
    "ClassifierReport",
    "ClusterConfiguration",
    "ClusterReport",
    "ClusterSummary",
    "ConfigurationBundle",
    "ConfigurationGroup",
    "HealthCheckReport",
    "ManagementClusterClassifierReport",
    "Reloader",
    "ReloaderReport",
    "ResourceSummary",
)
"""Kinds that Sveltos writes for itself; there is nothing in them to keep."""

KNOWN: dict[str, str] = {
    **{kind: f"is known and not built yet; {instead}" for kind, instead in _KNOWN.items()},
    "AccessRequest": _CLUSTERS,
    "SveltosCluster": _PAUSES,
    "SveltosLicense": "is not needed: nothing here asks for a licence; leave it out",
    **dict.fromkeys(SVELTOS_RECORDS, _WRITTEN),
}
"""Sveltos' kinds that are not read, with the end of the sentence that says so."""
