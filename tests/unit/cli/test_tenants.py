"""Profiles and Sets as they are asked for: by NAMESPACE/NAME, beside those that have none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from bellhop.core.gvk import Identity
from bellhop.installation import Installation
from bellhop.state.cluster import Cluster
from bellhop.state.deployment import DeploymentStatus, Held, Inventory
from bellhop.state.profile import Profile
from tests.fakes.clock import START
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.test_completion import candidates

RULES = """
apiVersion: config.projectsveltos.io/v1beta1
kind: Profile
metadata: {name: web, namespace: team}
spec:
  setRefs: [some]
  tier: 50
  policyRefs: [{kind: ConfigMap, name: web}]
---
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: web}
spec:
  clusterSelector: env=production
  policyRefs: [{kind: ConfigMap, name: web, namespace: team}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: Set
metadata: {name: some, namespace: team}
spec: {clusterSelector: env=production, maxReplicas: 1}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: some}
spec: {clusterSelector: env=production}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: team}
data: {web.yaml: ""}
"""


@pytest.fixture
def two(bellhop: Bellhop, here: Installation) -> Installation:
    """A cluster in each of two namespaces, and of each kind one that is called alike."""
    for namespace in ("team", "other"):
        labels = {"env": "production"}
        here.declare.register(Cluster(namespace, "east", labels, "v1.34.2", namespace, START))
    assert bellhop("apply", "-f", "-", stdin=RULES).stderr == ""
    for name in ("web", "team/web"):
        applied(here, name)
    return here


def applied(here: Installation, name: str) -> None:
    """Note that a profile was deployed to the cluster of the team."""
    profile = Profile(
        name=name,
        trigger="",
        cluster="",
        object="",
        contents=(),
        destinations=("team/east",),
        tier=50,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
    )
    here.records.profiles.put(profile)
    here.records.outcomes.put(DeploymentStatus("team/east", name, "", "", "Provisioned", START))
    held = Held("sha", "ConfigMap team/web", START)
    key = Identity("", "ConfigMap", "default", f"of-{name.replace('/', '-')}")
    here.records.inventories.put(Inventory("team/east", name, {key: held}))


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.usefixtures("two")
def test_get_and_describe_distinguish_kinds(bellhop: Bellhop) -> None:
    assert words(bellhop("get", "profiles", "-o", "wide").stdout) == [
        "NAMESPACE NAME PROVISIONED STATE TIER MESSAGE",
        "team web 1/1 Provisioned 50",
    ]
    assert words(bellhop("get", "clusterprofiles").stdout)[1:] == ["web <own> 1/1 Provisioned"]
    assert words(bellhop("get", "sets").stdout) == [
        "NAMESPACE NAME SELECTS MATCHING SELECTED MAX FAILING",
        "team some env=production 1 1 1 0",
    ]
    assert bellhop("get", "profiles", "-o", "name").stdout == (
        "profile.config.projectsveltos.io/team/web\n"
    )
    assert "No profiles found in namespace 'other'." in bellhop("get", "pr", "-n", "other").stderr

    output = bellhop("describe", "profile", "team/web").stdout
    assert words(output)[0] == "Profile team/web"
    assert "ConfigMap default/of-team-web" in output
    story = words(bellhop("describe", "set", "team/some").stdout)
    assert "team/east selected Unknown" in story
    assert "Profile team/web" in story
    assert "Profile team/web" not in bellhop("describe", "clusterset", "some").stdout
    assert "Profile/team/web" in bellhop("describe", "cm", "team/web").stdout


@pytest.mark.usefixtures("two")
def test_what_is_shown_can_be_applied_again(bellhop: Bellhop) -> None:
    """With its namespace, and with where it is as its status."""
    for kind in ("profile", "set"):
        shown = bellhop("get", kind, "-n", "team", "-o", "yaml").stdout
        (one,) = yaml.safe_load(shown)["items"] if "items" in shown else [yaml.safe_load(shown)]
        assert one["metadata"]["namespace"] == "team"
        assert "status" in one
        assert "unchanged" in bellhop("apply", "-f", "-", stdin=shown).stdout


@pytest.mark.usefixtures("two")
def test_addons_and_usage_name_the_profile_with_its_namespace(bellhop: Bellhop) -> None:
    """As Profile/NAMESPACE/NAME, which is what they take."""
    for name in ("Profile/team/web", "team/web", "profile/team/web"):
        (row,) = json.loads(bellhop("show", "addons", "--profile", name, "-o", "json").stdout)
        assert (row["name"], row["profiles"]) == ("of-team-web", ["Profile/team/web"])
    (row,) = json.loads(bellhop("show", "addons", "--profile", "web", "-o", "json").stdout)
    assert row["profiles"] == ["ClusterProfile/web"]

    used = json.loads(bellhop("show", "usage", "--kind", "profile", "-o", "json").stdout)
    assert used == [
        {"kind": "Profile", "namespace": "team", "name": "web", "clusters": ["team/east"]}
    ]
    assert "Asked for 1 deployment." in bellhop("redeploy", "team/web").stdout


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("diff team/absent", "no profile has this name; `bellhop get profiles` lists"),
        ("diff absent", "no profile has this name; `bellhop get clusterprofiles` lists"),
        ("redeploy team/absent", "`bellhop get profiles` lists those that are"),
        (
            "diff Profile/web",
            "'Profile/web' is not a profile; write its NAME, ClusterProfile/NAME,",
        ),
        ("diff ClusterProfile/a/b", "'clusterprofile/a/b' is not a profile"),
        ("get profile other/web", "there is no profile 'other/web'"),
        ("delete set some", "cannot delete Set 'default/some': there is none"),
    ],
)
def test_what_is_not_there_is_said_by_its_kind(bellhop: Bellhop, command: str, said: str) -> None:
    """And where those that are there are listed."""
    result = bellhop(*command.split())

    assert said in " ".join(result.stderr.split())
    assert result.exit_code != 0


def test_each_is_deleted_by_its_namespace(bellhop: Bellhop, two: Installation) -> None:
    assert bellhop("delete", "set", "some", "-n", "team").exit_code == 0

    assert two.catalogs.current().sets.keys() == {"some"}
    output = " ".join(bellhop("show", "failures").stdout.split())
    assert "there is no Set 'team/some', which it names" in output
    assert bellhop("delete", "profile", "web", "-n", "team").exit_code == 0
    assert two.catalogs.current().profiles.keys() == {"web"}
    # It has not left its cluster yet.
    leaving = json.loads(bellhop("get", "profile", "team/web", "-o", "json").stdout)
    assert (leaving["kind"], leaving["metadata"]["namespace"]) == ("Profile", "team")


@pytest.mark.usefixtures("two")
def test_names_are_completed_of_their_own_kind(state: Path) -> None:
    """A Profile's has its namespace, and diff takes both, or a promotion."""
    typed = {
        word: candidates(*word.split(), "--state", str(state), "")
        for word in ("get profiles", "get clusterprofiles", "diff")
    }
    assert typed == {
        "get profiles": ["team/web"],
        "get clusterprofiles": ["web"],
        "diff": ["promotion", "team/web", "web"],
    }


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("set team/some", "set.lib.projectsveltos.io/some deleted"),
        ("profile/team/web", "profile.config.projectsveltos.io/web deleted"),
        ("set team/some -n other", "'team/some' and -n other name two namespaces"),
        ("clusterset team/some", "cannot delete 'team/some': clustersets have no namespace"),
    ],
)
def test_what_is_deleted_may_be_named_with_its_namespace(
    bellhop: Bellhop, words: str, said: str
) -> None:
    """As completion and `get -o name` write it."""
    result = bellhop("delete", *words.split())

    assert said in result.output
    assert (result.exit_code == 0) == said.endswith("deleted")
