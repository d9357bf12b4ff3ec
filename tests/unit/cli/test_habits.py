"""Commands that fingers know from kubectl and sveltosctl do what they expect."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bellhop.api.kinds import parse_all, read_documents
from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

PROGRAM = Path(sys.executable).parent / "bellhop"
PATIENCE = 30
NOTE = re.compile(r"^'.*' is a trigger: .*\n", re.MULTILINE)
"""Said only if nothing but the name shows that a trigger is meant."""


@pytest.fixture(autouse=True)
def populated(here: Installation) -> Installation:
    """The example deployed."""
    fleet.populate(here)
    return here


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("clusters", "cluster/default/workload"),
        ("es", "eventsource.lib.projectsveltos.io/sveltos-service"),
        ("cm", "configmap/default/network-policy"),
        ("er", "eventreport.lib.projectsveltos.io/default/"),
        ("cp", f"clusterprofile.config.projectsveltos.io/{fleet.PROFILE}"),
    ],
)
def test_names_can_be_given_back(bellhop: Bellhop, kind: str, name: str) -> None:
    """`-o name` is one a line, and each is what `get` takes."""
    (found,) = bellhop("get", kind, "-o", "name").stdout.split()

    assert found.startswith(name)
    assert bellhop("get", found, "-o", "name").stdout.split() == [found]


def test_several_kinds_are_listed_one_after_the_other(bellhop: Bellhop) -> None:
    """Each has its own titles, and all are one list for programs."""
    shown = bellhop("get", "clusters,es").stdout.split("\n\n")
    listed = json.loads(bellhop("get", "es,cm", "-o", "json").stdout)
    named = bellhop("get", "clusters,es", "-o", "name").stdout.splitlines()

    assert [each.split()[0] for each in shown] == ["NAMESPACE", "NAME"]
    assert [each["kind"] for each in listed["items"]] == ["EventSource", "ConfigMap"]
    assert len(named) == 2


def test_a_list_of_kinds_is_checked_whole(bellhop: Bellhop) -> None:
    result = bellhop("get", "clusters,evensources")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'eventsources'?" in result.stderr


@pytest.mark.parametrize("words", ["get clusters", "show addons", "show usage", "show failures"])
def test_a_table_without_titles(bellhop: Bellhop, words: str) -> None:
    """For scripts that read every line."""
    with_titles = bellhop(*words.split()).stdout.splitlines()
    without = bellhop(*words.split(), "--no-headers").stdout.splitlines()

    assert [line.split() for line in with_titles[1:]] == [line.split() for line in without]


@pytest.fixture
def watching(state: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command that goes on."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            env={**os.environ, "BELLHOP_STATE": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        with process:
            process.kill()


def test_watches_what_comes_changes_and_goes(
    here: Installation, watching: Callable[..., subprocess.Popen[str]]
) -> None:
    process = watching("get", "clusters", "-w", "--no-headers")
    assert process.stdout
    first = process.stdout.readline()
    here.declare.label("default/workload", {"more": "yes"})
    second = process.stdout.readline()
    here.declare.register(fleet.cluster("prod", "eu-1"))
    third = process.stdout.readline()
    here.declare.deregister("prod/eu-1")
    assert process.stderr
    deleted = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE)

    assert [line.split()[:3] for line in (first, second, third)] == [
        ["default", "workload", "env=fv"],
        ["default", "workload", "env=fv,more=yes"],
        ["prod", "eu-1", "env=fv"],
    ]
    assert deleted == "cluster/prod/eu-1 deleted\n"
    assert (rest, process.returncode) == ("", 0)


@pytest.mark.parametrize("words", ["get clusters,es -w", "get clusters -w -o json"])
def test_watches_one_table(bellhop: Bellhop, words: str) -> None:
    assert "--watch follows one kind" in bellhop(*words.split()).stderr


def test_follows_events_by_either_name(
    here: Installation, watching: Callable[..., subprocess.Popen[str]]
) -> None:
    """`bellhop events -f` is `bellhop show events --follow`."""
    process = watching("events", "-f", "--since", "1m")
    here.records.ledger.note(fleet.entry("rang", ago=5))
    assert process.stdout
    line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)

    assert "Service default/my-service in default/workload" in line
    assert process.returncode == 0


def test_reports_its_version(bellhop: Bellhop) -> None:
    """As a command, as an option, and for programs."""
    said = bellhop("version", "--client").stdout

    assert said == bellhop("--version").stdout
    assert said == f"bellhop {json.loads(bellhop('version', '-o', 'json').stdout)['bellhop']}\n"
    assert yaml.safe_load(bellhop("version", "-o", "yaml").stdout)["python"]


def test_shows_what_is_in_use_and_where(bellhop: Bellhop) -> None:
    """Profiles, and the ConfigMaps that they are made of."""
    rows = json.loads(bellhop("show", "usage", "-o", "json").stdout)

    assert [(row["kind"], row["namespace"], row["name"]) for row in rows] == [
        ("ClusterProfile", "", fleet.PROFILE),
        ("ConfigMap", "default", "network-policy"),
    ]
    assert {tuple(row["clusters"]) for row in rows} == {("default/workload",)}
    chosen = bellhop("show", "usage", "--kind", "configmap", "--name", "network-policy").stdout
    assert len(chosen.splitlines()) == 2
    assert bellhop("show", "usage", "--namespace", "x").stderr == "Nothing is in use.\n"


def test_shows_what_matches(bellhop: Bellhop, here: Installation) -> None:
    """One row an object, or the whole of it, without what Secrets hold."""
    (row,) = json.loads(bellhop("show", "resources", "--kind", "service", "-o", "json").stdout)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": "default"},
        "data": {"password": "aHVudGVyMg=="},
    }
    fleet.observe(here, secret)
    match = next(iter(here.records.matches.of("default/workload")))
    key = match.key._replace(gvk=match.key.gvk._replace(kind="Secret"), name="key")
    here.records.matches.put(type(match)(match.cluster, match.source, key, True, "x", match.since))  # noqa: FBT003
    whole = yaml.safe_load(bellhop("show", "resources", "--full").stdout)

    assert (row["cluster"], row["gvk"], row["name"]) == (
        *("default/workload", "v1/Service", "my-service"),
    )
    assert [each["kind"] for each in whole["items"]] == ["Secret", "Service"]
    assert whole["items"][0]["data"] == {"password": "<hidden>"}
    assert "No resources" in bellhop("show", "resources", "--group", "apps").stderr


@pytest.mark.parametrize(
    "words",
    [
        "redeploy cluster default/workload",
        "redeploy cluster --namespace default --cluster workload",
        "redeploy cluster --namespace=default --cluster=workload --cluster-type=Capi",
        "redeploy --cluster default/workload",
        f"redeploy ClusterProfile/{fleet.PROFILE}",
        f"redeploy {fleet.PROFILE} --namespace default --cluster workload",
    ],
)
def test_redeploys_in_their_words(bellhop: Bellhop, words: str) -> None:
    """A cluster or a profile, by argument or by options."""
    assert "Asked for 1 deployment." in bellhop(*words.split()).stdout


@pytest.mark.parametrize(
    ("words", "short"),
    [
        (f"history clusterprofile {fleet.PROFILE}", f"history {fleet.PROFILE}"),
        (f"history CP {fleet.PROFILE} -o json", f"history {fleet.PROFILE} -o json"),
        (f"diff clusterprofiles {fleet.PROFILE}", f"diff {fleet.PROFILE}"),
        (f"pause clusterprofile {fleet.PROFILE}", f"pause {fleet.PROFILE}"),
        ("pause eventtrigger service-network-policy", "pause trigger service-network-policy"),
        (f"rollback profile team/{fleet.PROFILE}", f"rollback Profile/team/{fleet.PROFILE}"),
        (f"history -o json cp {fleet.PROFILE}", f"history -o json {fleet.PROFILE}"),
        (
            "rollback --end eventtrigger service-network-policy",
            "rollback --end service-network-policy",
        ),
        ("redeploy et service-network-policy", "redeploy service-network-policy"),
        ("redeploy cl default/workload", "redeploy cluster default/workload"),
        ("pause clusters default/workload", "pause cluster default/workload"),
        ("history rolerequest none", "history RoleRequest/none"),
        ("resync cluster default/workload --full", "resync default/workload --full"),
        ("doctor cluster default/workload", "doctor default/workload"),
        ("rotate cluster default/none", "rotate default/none"),
        ("resync --full --cluster default/workload", "resync default/workload --full"),
        ("doctor --namespace default --cluster workload", "doctor default/workload"),
        ("rotate --cluster default/none", "rotate default/none"),
        (
            "explain service default/my-service --cluster default/workload",
            "explain default/workload service default/my-service",
        ),
        ("pause triggers/service-network-policy", "pause trigger service-network-policy"),
        ("pause cluster/default/workload", "pause cluster default/workload"),
        ("history et/service-network-policy", "history trigger service-network-policy"),
        (f"diff clusterprofiles/{fleet.PROFILE}", f"diff {fleet.PROFILE}"),
        (
            f"redeploy clusterprofile.config.projectsveltos.io/{fleet.PROFILE}",
            f"redeploy {fleet.PROFILE}",
        ),
        (f"rollback pr/team/{fleet.PROFILE}", f"rollback Profile/team/{fleet.PROFILE}"),
        ("redeploy clusters/default/workload", "redeploy cluster default/workload"),
        ("get triggers service-network-policy", "get et/service-network-policy"),
        ("delete trigger/none", "delete eventtrigger none"),
        ("explain et/service-network-policy", "explain trigger service-network-policy"),
        ("resync clusters/default/workload", "resync default/workload"),
        ("doctor --cluster cluster/default/workload", "doctor default/workload"),
        ("rotate cluster/default/none", "rotate default/none"),
        ("label cl/default/workload a=b", "label cluster default/workload a=b"),
        ("deregister clusters default/none", "deregister cluster default/none"),
        (
            "set maintenance-window cluster/default/workload --clear",
            "set maintenance-window default/workload --clear",
        ),
        # With nothing after it, it is the name of a profile.
        ("history clusterprofile", "history ClusterProfile/clusterprofile"),
    ],
)
def test_a_kind_may_stand_before_a_name(bellhop: Bellhop, words: str, short: str) -> None:
    """As in `kubectl VERB KIND NAME` and `KIND/NAME`, with the same answer as without it."""
    one, other = bellhop(*words.split()), bellhop(*short.split())

    assert one.exit_code == other.exit_code
    assert lasting(one.stdout) == lasting(other.stdout)
    assert one.stderr == NOTE.sub("", other.stderr)


def lasting(text: str) -> str:
    """Leave out what differs from one call to the next: free space, ages, and what was done."""
    return re.sub(r"[\d,]+ MiB|\d+ s ago", "", text.replace(" is paused already", " paused"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("history profile web", "a Profile is named by `profile NAMESPACE/NAME`"),
        ("rollback eventtrigger none", "there is no EventTrigger 'none'"),
        ("history web other", "name one profile, as NAME"),
        ("rotate default/a default/b", "name one cluster"),
        ("rotate", "name one cluster"),
        ("resync default/a --cluster default/b", "name one cluster"),
        ("doctor --namespace default", "name one cluster"),
    ],
)
def test_a_kind_with_a_wrong_name_is_refused(bellhop: Bellhop, words: str, said: str) -> None:
    """In one sentence, which says how to name it."""
    result = bellhop(*words.split())

    assert result.exit_code in {1, 2}
    assert said in result.stderr


def test_a_trigger_by_its_kind_is_no_profile_of_that_name(bellhop: Bellhop) -> None:
    """Without a kind the profile is meant, with it the trigger."""
    profile = yaml.safe_dump(
        {
            "apiVersion": "config.projectsveltos.io/v1beta1",
            "kind": "ClusterProfile",
            "metadata": {"name": "service-network-policy"},
            "spec": {"clusterSelector": {"matchLabels": {"none": "none"}}},
        }
    )
    assert bellhop("apply", "-f", "-", stdin=profile).exit_code == 0

    by_kind = bellhop("history", "eventtrigger", "service-network-policy")
    by_name = bellhop("history", "service-network-policy")

    assert "trigger 'service-network-policy' has made no profile" in by_kind.stderr
    assert "trigger" not in by_name.stderr


def test_tries_a_change_dry(bellhop: Bellhop, here: Installation) -> None:
    """`--dry-run=client` says what would become of each object, and stores nothing."""
    changed = fleet.MANIFESTS.replace("kind: NetworkPolicy", "kind: Ingress")
    more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"
    before = here.records.catalog.read()
    applied = bellhop("apply", "-f", "-", "--dry-run=client", stdin=f"{changed}---\n{more}")
    deleted = bellhop("delete", "cm", "network-policy", "--dry-run=client")

    assert applied.stdout.splitlines()[2:] == [
        "configmap/network-policy configured (dry run)",
        "secret/registry unchanged (dry run)",
        "configmap/more created (dry run)",
    ]
    assert deleted.stdout == "configmap/network-policy deleted (dry run)\n"
    assert here.records.catalog.read() == before
    assert here.records.manifests.has("ConfigMap", "default", "network-policy")
    assert not here.records.manifests.has("ConfigMap", "default", "more")


def test_a_dry_run_refuses_what_a_real_one_refuses(bellhop: Bellhop, here: Installation) -> None:
    one = fleet.MANIFESTS.replace("oneForEvent: true", "oneForEvent: false")
    result = bellhop("apply", "-f", "-", "--dry-run=client", stdin=one)

    assert result.exit_code == 2
    assert "Value is immutable" in result.stderr
    assert parse_all(read_documents(one, source="x"))
    assert here


@pytest.mark.parametrize(
    "command", ["label cluster {} a=b", "pause cluster {}", "deregister cluster {}"]
)
def test_a_namespace_may_be_called_like_the_kind(
    bellhop: Bellhop, here: Installation, command: str
) -> None:
    """A cluster of that name in another namespace is not meant."""
    words = command.format("clusters/workload").split()
    refused = bellhop(*words)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "there is no cluster 'clusters/workload'; did you mean" in refused.stderr

    here.declare.register(fleet.cluster("clusters"))
    done = bellhop(*words)
    assert (done.exit_code, "clusters/workload" in done.stdout) == (0, True)
