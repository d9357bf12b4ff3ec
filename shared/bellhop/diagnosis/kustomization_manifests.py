"""Kustomizations of profiles that nobody wrote, as entries of `kustomizationRefs` have them."""

from __future__ import annotations

from typing import Any

from bellhop.diagnosis.chart_manifests import WITHHELD, sources_of
from bellhop.state.kustomization import Kustomization


def kustomization_manifest(kustomization: Kustomization) -> dict[str, Any]:
    """Return what a kustomization is built by; values of Secrets are not in it."""
    inline = f"{kustomization.field}.values."
    values = [each for each in kustomization.values if each.source.startswith(inline)]
    held = (each for each in kustomization.values if not each.source.startswith(inline))
    told = {
        "path": kustomization.path,
        "components": list(kustomization.components),
        "targetNamespace": kustomization.namespace,
        "values": {each.key: WITHHELD if each.secret else each.text for each in values},
        "valuesFrom": list(sources_of(held)),
    }
    return {field: value for field, value in told.items() if value}
