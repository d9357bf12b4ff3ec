"""Kustomizations on a real API server, built by the real kubectl: from declarations to objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.operations.previews import preview_now
from tests.contract.real_cluster import EAST, map_actions
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.tarballs import packed
from tests.unit.adapters.kustomize.conftest import kubectl  # noqa: F401 - a fixture
from tests.unit.deploy.features.test_kustomizations import files, kustomized

pytestmark = pytest.mark.usefixtures("kubectl")

CONFIG = GVK("", "v1", "ConfigMap")


def there(kube: KubeClient, feature: str = "Kustomize") -> dict[str, Any]:
    """Return what a feature's ConfigMaps say, by their places."""
    found = kube.list(CONFIG, labels=f"projectsveltos.io/reason={feature}")
    return {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["data"]["v"]
        for each in found
    }


def test_what_is_built_comes_changes_and_goes(fleet: Fleet, kube: KubeClient) -> None:
    """Into a namespace that is made for it; a preview lists it first."""
    ref = "path: over, components: [../more], targetNamespace: shop, values: {v: '{{ 1 }}'}"
    dry = kustomized(ref=ref, more="syncMode: DryRun")
    fleet.apply(join(packed("kust", files("v: 'v{{ .v }}'")), dry))
    fleet.pump()
    assert map_actions(preview_now(fleet.installation(), "p")) == {
        "over-web": "Create",
        "over-more": "Create",
    }
    assert there(kube) == {}

    fleet.apply(kustomized(ref=ref))
    fleet.pump()
    assert there(kube) == {"shop/over-web": "v1", "shop/over-more": "3"}

    fleet.apply(kustomized())
    fleet.apply(packed("kust", files("v: '2'")))
    fleet.pump()
    assert there(kube) == {"apps/web": "2"}

    fleet.declare.label(EAST, {"env": "test"})
    fleet.release()
    fleet.pump()
    assert there(kube) == {}


def test_an_object_moves_to_a_kustomization_and_back(fleet: Fleet, kube: KubeClient) -> None:
    """It keeps its uid, no matter which feature of one profile writes it."""
    refs = "kustomizationRefs: [{kind: ConfigMap, name: kust, namespace: default, path: base}]"
    moving, resting = config("web", 'v: "1"', namespace="apps"), config("a", 'v: "0"')
    own = join(packed("kust", files()), holder("own", moving, resting), profile())
    fleet.apply(own)
    fleet.pump()
    before = kube.get(CONFIG, "apps", "web")
    assert before

    fleet.apply(join(holder("own", resting), profile(more=refs)))
    fleet.pump()
    assert there(kube) == {"apps/web": "1"}
    fleet.apply(own)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert there(kube) == {}
    assert there(kube, "Resources") == {"apps/web": "1", "default/a": "0"}
    after = kube.get(CONFIG, "apps", "web")
    assert after
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
