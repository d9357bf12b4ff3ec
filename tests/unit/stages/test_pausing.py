"""Pausing beside others who declare at the same time."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bellhop.api.kinds import DeclarationKey
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.errors import MissingError
from bellhop.operations.pause import mark, pausable
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
OWN = DeclarationKey("ClusterProfile", "", "own")


def test_a_pause_keeps_what_another_applied_at_the_same_time(fleet: Fleet) -> None:
    """What was written between our reading and our writing is neither lost nor passed over."""
    east = fleet.register("east", env="production")
    fleet.apply(join(profile(), holder("own", config("kept", "v: '1'"))))
    fleet.pump()
    here = fleet.installation()
    put = fleet.records.manifests.put

    def late(*args: Any, **more: Any) -> str:
        fleet.records.manifests.put = put  # type: ignore[method-assign]
        fleet.apply(profile("clusterSelector: {matchLabels: {env: none}}"))
        return put(*args, **more)

    fleet.records.manifests.put = late  # type: ignore[method-assign]
    assert mark(here, pausable(here, "", "own"), "true") == "configured"
    fleet.pump()

    kept = here.records.manifests.get(*OWN)
    assert kept
    assert "none" in yaml.safe_dump(kept.value["spec"])
    assert kept.value["metadata"]["annotations"] == {PROFILE_PAUSED: "true"}
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] in (["kept"], [])
    assert fleet.declare.resume() == 0


def test_what_is_deleted_meanwhile_cannot_be_paused(fleet: Fleet) -> None:
    """Nothing is made of it again."""
    fleet.apply(join(profile(), holder("own", config("kept"))))
    here = fleet.installation()
    key = pausable(here, "", "own")
    fleet.declare.delete([OWN])

    with pytest.raises(MissingError, match="it is not there any more"):
        mark(here, key, "true")
    assert not here.records.manifests.has(*OWN)
