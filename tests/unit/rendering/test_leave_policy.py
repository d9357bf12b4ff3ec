"""Whether a profile is to leave a cluster, by what is declared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bellhop.api.kinds import ClusterProfile, EventSource, EventTrigger, parse_all, read_documents
from bellhop.catalog.catalog import Catalog
from bellhop.rendering.leave_policy import is_leaving
from bellhop.state.cluster import Cluster
from bellhop.state.profile import Profile
from tests.fakes.manifests import profile, source, trigger

ENG = "destinationClusterSelector: {matchLabels: {dep: eng}}"
NAMED = "destinationCluster: {namespace: fleet, name: '{{ .Resource.metadata.name }}'}"
PAUSED = "metadata: {annotations: {cluster.x-k8s.io/paused: 'yes'}, "


def catalog(*texts: str) -> Catalog:
    """Return what is declared of two clusters, of which both are in production, and west is eng."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    labels = {"east": {"env": "production"}, "west": {"env": "production", "dep": "eng"}}
    clusters = [Cluster("fleet", name, labels[name], "", "", at) for name in labels]
    documents = [each for text in texts for each in read_documents(text, source="test.yaml")]
    found = parse_all(documents)
    return Catalog(
        1,
        clusters,
        [each for each in found if isinstance(each, EventSource)],
        [each for each in found if isinstance(each, EventTrigger)],
        [each for each in found if isinstance(each, ClusterProfile)],
    )


def made(trigger: str = "made", *destinations: str) -> Profile:
    """Return a profile that was made for an event in east, or a user's own."""
    where = tuple(f"fleet/{each}" for each in destinations or ("east", "west"))
    cluster = "fleet/east" if trigger else ""
    flags = {"leaves_policies": False, "continue_on_conflict": False}
    return Profile("own", trigger, cluster, "", (), where, digest="d", **flags)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "leaves"),
    [
        pytest.param([source(), trigger(more=ENG)], {"east"}, id="a selector has only west"),
        pytest.param([source(), trigger()], {"west"}, id="it stays with its event"),
        pytest.param([source(), trigger(more=NAMED)], set(), id="a template may name any"),
        pytest.param([trigger(more=ENG)], {"east", "west"}, id="its source is gone"),
        pytest.param([source()], {"east", "west"}, id="the trigger is gone"),
        pytest.param(
            [trigger().replace("metadata: {", PAUSED)], set(), id="a paused trigger stays as it is"
        ),
        pytest.param(
            [trigger(origin="{{ .Cluster.nothing.at.all }}")], set(), id="nobody knows its source"
        ),
    ],
)
def test_what_a_trigger_made_leaves(declared: list[str], leaves: set[str]) -> None:
    """Where the trigger does not select it any more, as far as is known without an object."""
    found = {
        each for each in ("east", "west") if is_leaving(catalog(*declared), made(), f"fleet/{each}")
    }

    assert leaves == found


def test_what_it_has_left_already_is_left() -> None:
    """By its own record, though its declaration might select it there."""
    declared = catalog(source(), trigger(more=NAMED))

    assert is_leaving(declared, made("made", "west"), "fleet/east")


def test_a_users_own_that_is_paused_stays() -> None:
    """Wherever it selects nothing any more."""
    text = profile("clusterSelector: {matchLabels: {env: other}}")
    paused = text.replace(
        "metadata: {", "metadata: {annotations: {profile.projectsveltos.io/paused: 'yes'}, "
    )

    assert is_leaving(catalog(text), made(""), "fleet/east")
    assert not is_leaving(catalog(paused), made(""), "fleet/east")
