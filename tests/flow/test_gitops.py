"""Flux and Argo CD apply the configuration to a real API server, and find nothing that drifts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.configuration.definitions import DEFINITIONS, make_definitions
from bellhop.configuration.installer import has_rules
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import InvalidError, UnreachableError
from bellhop.settings import Settings
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.fakes.definitions import sveltos_definitions
from tests.fakes.fleet import Fleet, service
from tests.fakes.gitops import ArgoCD, Flux, GitOps
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.unit.configuration.objects import kube_of
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

HUB, PAGE = "fleet/hub", "docs/how-to/keep-the-configuration-in-a-cluster.md"
PROFILE = GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile")
EXPRS = "healthCheckExprs"
OWN = ObjectKey(PROFILE, "", "own")
TRIGGER = ObjectKey(GVK("lib.projectsveltos.io", "v1beta1", "EventTrigger"), "", "made")
EVENTS = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
SOON, INTERVAL = timedelta(seconds=3), timedelta(minutes=10)


class Installation:
    """A fleet whose configuration is in a real cluster; `east` gets the add-ons."""

    def __init__(self, folder: Path, cluster: Cluster, definitions: Iterable[Any]) -> None:
        self.fleet = Fleet(folder, Settings(hold_from=4, hold_share=0.5))
        self.user = User(cluster.kubeconfig())
        self.kube = kube_of(cluster)
        for each in definitions:
            self.kube.apply(each)
        for each in DEFINITIONS:
            gvk = GVK.parse(each.api_version, each.kind)
            eventually(f"{gvk} is served", lambda gvk=gvk: self.kube.resource(gvk))
        self.fleet.access.clusters[HUB] = self.kube  # type: ignore[assignment]
        self.fleet.register("hub")
        self.east = self.fleet.register("east", env="production")
        self.fleet.declare.configure(HUB, "on")
        self.fleet.pump()

    def follow(self) -> None:
        """Have what was written read, and do what follows from it."""
        self.fleet.resync(HUB)
        self.fleet.wait(SOON, times=4)

    def close(self) -> None:
        self.user.close()
        self.kube.close()
        self.fleet.close()


def read_page(title: str, number: int = 0) -> Any:
    """Return a YAML block below a title of the page on the configuration cluster."""
    text = (Path(__file__).parents[2] / PAGE).read_text().partition(f"\n## {title}\n")[2]
    return yaml.safe_load(re.findall(r"```yml\n(.*?)```", text, re.DOTALL)[number])


def make_flux(user: User) -> GitOps:
    """Return Flux with the expressions for Bellhop's definitions."""
    return Flux(user, {each["kind"]: each for each in read_page("With Flux", 0)["spec"][EXPRS]})


def make_flux_with_expressions(user: User) -> GitOps:
    """Return Flux with the expressions for Sveltos' definitions."""
    return Flux(user, {each["kind"]: each for each in read_page("With Flux", 1)[EXPRS]})


def make_argo(user: User) -> GitOps:
    [(name, script)] = read_page("With Argo CD")["data"].items()
    assert name.endswith("_ClusterProfile")
    return ArgoCD(user, dict.fromkeys(("ClusterProfile", "EventTrigger"), script))


@pytest.fixture(params=["Bellhop's", "Sveltos'"])
def origin(request: pytest.FixtureRequest) -> str:
    """The author of the cluster's definitions."""
    return str(request.param)


@pytest.fixture
def here(tmp_path: Path, source_cluster: Cluster, origin: str) -> Iterator[Installation]:
    """An installation whose configuration is in a real cluster."""
    version = kube_of(source_cluster).version()
    ours = make_definitions(rules=has_rules(version))
    definitions = ours if origin == "Bellhop's" else sveltos_definitions()
    one = Installation(tmp_path / "state", source_cluster, definitions)
    yield one
    one.close()


@pytest.fixture(params=["Flux", "Argo CD"])
def tool(request: pytest.FixtureRequest, here: Installation, origin: str) -> GitOps:
    """The controller that applies the repository."""
    if request.param == "Argo CD":
        return make_argo(here.user)
    make = make_flux if origin == "Bellhop's" else make_flux_with_expressions
    return make(here.user)


def load(*texts: str) -> list[dict[str, Any]]:
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def own(name: str, more: str = "") -> str:
    return join(profile(name=name, more=more), holder(name, config(name)))


@pytest.mark.oldest
def test_an_hour_shows_no_drift(here: Installation, tool: GitOps) -> None:
    """Statuses, finalizers and resyncs are no change to either, nor is a failing cluster."""
    repository = load(own("own"), EVENTS)
    assert len(tool.sync(repository)) == len(repository)
    here.follow()
    here.fleet.write("east", service("a"))
    here.fleet.pump()
    assert here.east.names() == ["for-a", "own"]

    versions = set()
    for number in range(6):
        here.east.fail_with(UnreachableError("no route") if number % 2 else None)
        here.fleet.register(f"west-{number}", env="production")
        here.fleet.wait(INTERVAL)
        here.fleet.resync(HUB)
        assert tool.find_drift(repository) == []
        assert tool.sync(repository) == []
        found = here.user.get(OWN)
        assert found
        versions.add(found["metadata"]["resourceVersion"])
    assert len(versions) > 1
    assert here.east.names() == ["for-a", "own"]


def test_what_is_pruned_is_withdrawn_and_goes(here: Installation, tool: GitOps) -> None:
    """It stays until nothing of it is left in any cluster."""
    repository = load(own("own"), EVENTS)
    tool.sync(repository)
    here.follow()
    here.fleet.write("east", service("a"))
    here.fleet.pump()
    here.east.fail_with(UnreachableError("no route"))

    rest = load(own("other"))
    tool.sync(rest)
    here.follow()
    assert here.user.get(OWN)
    assert here.user.get(TRIGGER)
    assert tool.sync(rest) == []
    here.east.fail_with(None)
    here.fleet.wait(INTERVAL, times=3)

    assert here.user.names(PROFILE) == ["other"]
    assert here.user.get(TRIGGER) is None
    assert here.east.names() == ["other"]
    assert tool.find_drift(rest) == []


def test_a_prune_of_everything_is_held(here: Installation, tool: GitOps) -> None:
    """The objects name the change, and go once it is released."""
    names = [f"p{number}" for number in range(6)]
    tool.sync(load(*map(own, names)))
    here.follow()
    assert here.east.names() == names

    tool.sync([])
    here.follow()
    here.fleet.wait(INTERVAL, times=6)
    assert here.east.names() == names
    (change,) = {each.value.change for each in here.fleet.records.removals.all()}
    marks = [each["metadata"].get("annotations", {}) for each in here.user.list(PROFILE)]
    assert [each.get("bellhop.dev/held") for each in marks] == [change] * len(names)
    assert tool.find_drift([]) == tool.sync([]) == []

    here.fleet.release()
    here.fleet.wait(INTERVAL, times=3)
    assert here.east.names() == here.user.names(PROFILE) == []


def break_cluster(here: Installation, tool: GitOps) -> None:
    """Have a change of the profile fail in its cluster."""
    here.east.fail_with(InvalidError("refused"), "apply")
    tool.sync(load(profile(name="own"), holder("own", config("more"))))
    here.follow()


def mend_cluster(here: Installation, _: GitOps) -> None:
    here.east.fail_with(None)
    here.fleet.wait(INTERVAL, times=3)


def mistype(here: Installation, tool: GitOps) -> None:
    """Have the profile be invalid in a way that the definition allows."""
    tool.sync(load(profile(name="own", more="maxUpdate: many"), holder("own", config("more"))))
    here.follow()


ACTS: Sequence[Callable[[Installation, GitOps], object]] = (
    lambda _, tool: tool.sync(load(own("own"))),
    lambda here, _: here.follow(),
    break_cluster,
    mend_cluster,
    mistype,
)


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("origin", "make", "health"),
    [
        pytest.param(
            "Bellhop's",
            make_flux,
            ("InProgress", "Current", "InProgress", "Current", "Failed"),
            id="Flux",
        ),
        pytest.param(
            "Sveltos'",
            make_flux_with_expressions,
            # Of the version that is in force: there is no field for the one that is invalid.
            ("InProgress", "Current", "Failed", "Current", "Current"),
            id="Flux, with expressions",
        ),
        pytest.param(
            "Bellhop's",
            make_argo,
            ("Progressing", "Healthy", "Progressing", "Healthy", "Degraded"),
            id="Argo CD",
        ),
    ],
)
def test_both_know_whether_a_profile_is_deployed(
    here: Installation, make: Callable[[User], GitOps], health: Sequence[str]
) -> None:
    """By what the page has for them, over statuses as the API server shows them."""
    tool = make(here.user)
    for act, expected in zip(ACTS, health, strict=True):
        act(here, tool)
        found = here.user.get(OWN) or {}
        assert tool.read_health(OWN) == expected, found.get("status")
