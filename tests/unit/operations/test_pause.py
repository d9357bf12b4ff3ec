"""Pausing beside others who declare at the same time."""

from __future__ import annotations

import pytest
import yaml

from bellhop.api.kinds import DeclarationKey
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.errors import MissingError
from bellhop.operations.pause import find_pausable, pause_manifest
from tests.fakes.fleet import Fleet
from tests.fakes.hooks import before_next
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import config, holder, join, profile

OWN = DeclarationKey("ClusterProfile", "", "own")


def test_a_pause_keeps_what_another_applied_at_the_same_time(fleet: Fleet) -> None:
    """A write between its read and its own write is neither lost nor skipped."""
    east = fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", config("kept", "v: '1'"))))
    here = fleet.installation()

    def late() -> None:
        fleet.apply(profile("clusterSelector: {matchLabels: {env: none}}"))

    before_next(fleet.records.manifests, "put", late)
    assert pause_manifest(here, find_pausable(here, "", "own"), "true") == "configured"
    fleet.pump()

    kept = require_value(here.records.manifests.get(*OWN))
    assert "none" in yaml.safe_dump(kept["spec"])
    assert kept["metadata"]["annotations"] == {PROFILE_PAUSED: "true"}
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] in (["kept"], [])
    assert fleet.declare.resume() == 0


def test_what_is_deleted_meanwhile_cannot_be_paused(fleet: Fleet) -> None:
    """Nothing is made of it again."""
    fleet.apply(join(profile(), holder("own", config("kept"))))
    here = fleet.installation()
    key = find_pausable(here, "", "own")
    fleet.declare.delete([OWN])

    with pytest.raises(MissingError, match="it is not there any more"):
        pause_manifest(here, key, "true")
    assert not here.records.manifests.has(*OWN)
