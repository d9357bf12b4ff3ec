"""get and describe: every kind, every form, and no value of a Secret."""

from __future__ import annotations

import base64
import json
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

from bellhop.api.kinds import EventSource, event_report, of
from bellhop.cli.views.sources import _conditions
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.installation import Installation
from bellhop.profiles.records import place
from bellhop.state.cluster import Health
from bellhop.state.content import NO_OBJECT
from bellhop.state.deployment import Ended, Held, Inventory
from bellhop.state.match import Match, Selected, Selection
from tests.fakes.kept import value_of
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

REPORT = "sveltos--sveltos-service--workload"


def read(result: Result) -> Any:
    """Read YAML output."""
    assert result.exit_code == 0, result.output
    return yaml.safe_load(result.stdout)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "kind", ["clusters", "es", "et", "er", "cp", "cm", "secrets"], ids=lambda kind: kind
)
def test_says_that_there_is_nothing(bellhop: Bellhop, kind: str) -> None:
    """An empty list is no error, and empty JSON is still a List."""
    table = bellhop("get", kind)
    listed = bellhop("get", kind, "-o", "json")

    assert (table.exit_code, table.stdout) == (0, "")
    assert table.stderr.startswith("No ")
    assert json.loads(listed.stdout) == {"apiVersion": "v1", "kind": "List", "items": []}
    assert read(bellhop("get", kind, "-o", "yaml"))["items"] == []


@pytest.mark.parametrize("form", ["wide", "json", "yaml"])
@pytest.mark.parametrize(
    "kind",
    [
        *("clusters", "es", "EventBasedAddOns", "er", "cm", "secret"),
        "clusterprofiles.config.projectsveltos.io",
    ],
)
def test_every_kind_has_every_form(
    bellhop: Bellhop, here: Installation, kind: str, form: str
) -> None:
    """Wide tables have more columns; JSON and YAML hold the same List."""
    fleet.populate(here)
    result = bellhop("get", kind, "-o", form)

    assert result.exit_code == 0
    if form == "wide":
        assert len(result.stdout) > len(bellhop("get", kind).stdout)
    else:
        parsed = yaml.safe_load(result.stdout)
        assert parsed["kind"] == "List"
        assert len(parsed["items"]) == 1


def swept(here: Installation) -> str:
    """Return when the cluster was looked at last, as it is shown."""
    at = here.records.health.head("default/workload").swept_at
    assert at
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_report_that_collects_nothing_has_only_references(
    bellhop: Bellhop, here: Installation
) -> None:
    """Without collectResources no object is read or shown."""
    fleet.populate(here)
    fleet.declare(
        here, fleet.MANIFESTS.replace("collectResources: true", "collectResources: false")
    )
    report = read(bellhop("get", "er", "sveltos--sveltos-service--workload", "-o", "yaml"))

    expected = event_report(
        "default", "workload", "sveltos-service", [fleet.service()], collect=False
    )
    assert report == {**expected, "status": {"phase": "Processed", "sweptAt": swept(here)}}


@pytest.mark.parametrize(
    ("match", "profile", "phase"),
    [
        pytest.param({"told": False}, {}, "WaitingForDelivery", id="nobody knows of it"),
        pytest.param({}, {"object": "/v1/Service/default/other"}, "Delivering", id="not rendered"),
        pytest.param({}, {"told": False}, "Delivering", id="its clusters were not asked"),
        pytest.param({}, {}, "Processed", id="all of it"),
        pytest.param({"matching": False}, {"told": False}, "Delivering", id="being taken away"),
    ],
)
def test_a_report_says_how_far_it_has_come(
    bellhop: Bellhop,
    here: Installation,
    match: dict[str, Any],
    profile: dict[str, Any],
    phase: str,
) -> None:
    fleet.populate(here)
    kept = here.records.matches.get("default/workload", "sveltos-service", fleet.SERVICE)
    assert kept
    here.records.matches.put(replace(kept.value, **match))
    here.records.profiles.put(fleet.profile(**profile))

    shown = read(bellhop("get", "er", "sveltos--sveltos-service--workload", "-o", "yaml"))
    assert shown["status"] == {"phase": phase, "sweptAt": swept(here)}
    assert phase in bellhop("get", "er").stdout.split()
    assert phase in bellhop("describe", "er", "sveltos--sveltos-service--workload").stdout


def test_a_report_says_how_old_it_may_be(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    swept = here.records.clock.now() - timedelta(minutes=7)
    here.records.health.put("default/workload", Health("Healthy", swept_at=swept))

    report = read(bellhop("get", "er", "sveltos--sveltos-service--workload", "-o", "yaml"))
    assert report["status"]["sweptAt"] == f"{swept:%Y-%m-%dT%H:%M:%SZ}"
    wide = bellhop("get", "er", "-o", "wide").stdout.splitlines()
    at = wide[0].index("RESYNCED")
    assert wide[1][at:].split()[0] == "7m"


def test_a_source_says_which_kind_it_waits_for(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    assert "Waits for" not in bellhop("describe", "es", "sveltos-service").stdout
    health = here.records.health.get("default/workload").value
    unserved = (GVK("example.org", "v1", "Widget"), fleet.SERVICE.gvk)
    here.records.health.put("default/workload", replace(health, unserved=unserved))
    said = "Service.v1 in default/workload: not served there, looked for at each resync"

    assert said in bellhop("describe", "es", "sveltos-service").stdout
    assert said in bellhop("get", "es", "-o", "wide").stdout


def test_a_report_says_what_fails(bellhop: Bellhop, here: Installation) -> None:
    """Errors of scripts and of templates stand in the status, where Sveltos' users look."""
    fleet.populate(here)
    other = ObjectKey(fleet.SERVICE.gvk, "default", "odd")
    failed = Match(
        "default/workload",
        "sveltos-service",
        other,
        matching=False,
        digest="",
        since=fleet.now(),
        error="attempt to index a nil value",
    )
    here.records.matches.put(failed)
    here.records.profiles.put(fleet.profile(error="template: policy.yaml:1: oops"))
    report = read(bellhop("get", "er", "sveltos--sveltos-service--workload", "-o", "yaml"))
    wide = bellhop("get", "er", "-o", "wide").stdout

    assert report["status"] == {
        "phase": "WaitingForDelivery",
        "sweptAt": swept(here),
        "agentFailureMessage": "Service default/odd: attempt to index a nil value",
        "failureMessage": f"{fleet.PROFILE}: template: policy.yaml:1: oops",
    }
    assert len(report["spec"]["matchingResources"]) == 1
    assert "attempt to index a nil value" in wide


def test_a_report_is_what_a_script_selected(bellhop: Bellhop, here: Installation) -> None:
    """With an aggregatedSelection the report has what that returned, its message and its error."""
    fleet.populate(here)
    script = "  aggregatedSelection: function evaluate() return {} end\n---"
    fleet.declare(here, fleet.MANIFESTS.replace("---", script, 1))
    made = {"apiVersion": "v1", "kind": "Sum", "metadata": {"name": "all"}, "total": 7}
    selected = Selected(ObjectKey.of(made), "d", fleet.now(), made)
    selection = Selection(
        "default/workload", "sveltos-service", fleet.now(), (selected,), made=True, message="one"
    )
    here.records.selections.put(replace(selection, error="oh no"))
    report = read(bellhop("get", "er", "sveltos--sveltos-service--workload", "-o", "yaml"))
    story = bellhop("describe", "er", "sveltos--sveltos-service--workload").stdout
    failures = bellhop("show", "failures").stdout
    resources = bellhop("show", "resources").stdout

    assert report["spec"]["matchingResources"] == [
        {"apiVersion": "v1", "kind": "Sum", "name": "all"}
    ]
    assert '"total":7' in base64.b64decode(report["spec"]["resources"]).decode().replace(" ", "")
    assert report["status"]["agentFailureMessage"] == "aggregatedSelection: oh no"
    assert "1 of 1 object: one" in story
    assert "sveltos-service in default/workload" in failures
    assert "oh no" in failures
    assert "Sum" in resources
    assert "my-service" not in resources


@pytest.mark.parametrize("command", [("get", "secrets", "-o", "yaml"), ("describe", "secret")])
def test_hides_values_of_secrets(
    bellhop: Bellhop, here: Installation, command: tuple[str, ...]
) -> None:
    """Values are shown to who asks for them, and to nobody else."""
    fleet.populate(here)
    encoded = base64.b64encode(b"hunter2-is-secret").decode()
    plain = bellhop(*command).output
    shown = bellhop(*command, "--show-secrets").output

    assert "hunter2" not in plain
    assert encoded not in plain
    assert "password" in plain
    assert "hunter2" in shown or encoded in shown


def test_hides_values_of_secrets_in_reports(bellhop: Bellhop, here: Installation) -> None:
    """A Secret that a source collects is no less secret, nor is kubectl's copy of it."""
    fleet.populate(here)
    fleet.declare(here, fleet.MANIFESTS.replace('kind: "Service"', 'kind: "Secret"'))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "tls",
            "namespace": "default",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
        },
        "data": {"key": "aHVudGVyMg=="},
    }
    fleet.observe(here, secret)
    here.records.matches.put(
        Match(
            "default/workload",
            "sveltos-service",
            ObjectKey.of(secret),
            matching=True,
            digest="x",
            since=fleet.now(),
        )
    )
    name = "sveltos--sveltos-service--workload"
    plain = read(bellhop("get", "er", name, "-o", "yaml"))["spec"]["resources"]
    shown = read(bellhop("get", "er", name, "-o", "yaml", "--show-secrets"))["spec"]["resources"]

    assert "hunter2" not in base64.b64decode(plain).decode()
    assert "aHVudGVyMg==" not in base64.b64decode(plain).decode()
    assert "aHVudGVyMg==" in base64.b64decode(shown).decode()


def test_a_generated_profile_is_a_cluster_profile(bellhop: Bellhop, here: Installation) -> None:
    """clusterRefs, policyRefs and where it comes from, as Sveltos writes them."""
    fleet.populate(here)
    profile = read(bellhop("get", f"cp/{fleet.PROFILE}", "-o", "yaml"))

    assert profile["kind"] == "ClusterProfile"
    assert profile["metadata"]["labels"] == {
        f"eventtrigger.lib.projectsveltos.io/{label}": value
        for label, value in {
            "eventtriggername": "service-network-policy",
            "clusterNamespace": "default",
            "clustername": "workload",
            "clustertype": "Sveltos",
            "eventreportname": "sveltos-service",
            "eventsourcename": "sveltos-service",
            "resourcenamespace": "default",
            "resourcename": "my-service",
        }.items()
    }
    assert [ref["name"] for ref in profile["spec"]["clusterRefs"]] == ["workload"]
    assert profile["spec"]["policyRefs"] == [
        {"kind": "ConfigMap", "namespace": "default", "name": "network-policy"}
    ]
    assert profile["status"]["state"] == "Provisioned"


OWN = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: mine, labels: {team: net}}
spec:
  clusterSelector: {matchLabels: {env: fv}}
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: network-policy}
"""


def test_a_users_profile_is_shown_before_anybody_has_resolved_it(
    bellhop: Bellhop, here: Installation
) -> None:
    fleet.populate(here)
    fleet.declare(here, OWN)
    listed = bellhop("get", "cp").stdout
    shown = read(bellhop("get", "cp", "mine", "-o", "yaml"))

    assert "mine                                  <own>" in listed
    assert shown == yaml.safe_load(OWN)
    assert "not taken to any cluster yet" in bellhop("describe", "cp", "mine").stdout


STATES = [
    pytest.param({}, {}, "Provisioned", "1/1", id="all well"),
    pytest.param({}, {"phase": "Failed"}, "Failed", "0/1", id="tried again"),
    pytest.param({}, {"phase": "FailedNonRetriable"}, "FailedNonRetriable", "0/1", id="given up"),
    pytest.param({"error": "oops"}, {}, "FailedNonRetriable", "1/1", id="not renewed"),
    pytest.param(
        {"destinations": ("default/workload", "a/b")}, {}, "Provisioning", "1/2", id="one to go"
    ),
    pytest.param(
        {"destinations": (), "leaves": True, "leaving": ("default/workload",)},
        {},
        "Removing",
        "0/0",
        id="leaving",
    ),
    pytest.param({"destinations": ()}, {}, "NoClusters", "0/0", id="nobody selected"),
]


@pytest.mark.parametrize(("profile", "outcome", "word", "provisioned"), STATES)
def test_sums_up_how_a_profile_stands(
    bellhop: Bellhop,
    here: Installation,
    profile: dict[str, Any],
    outcome: dict[str, Any],
    word: str,
    provisioned: str,
) -> None:
    """The worst of its clusters counts; an error of the trigger does too."""
    fleet.populate(here)
    stored = fleet.profile(**profile)
    here.records.profiles.put(stored)
    here.records.departures.begin(place(stored), stored.leaving)
    here.records.outcomes.put(fleet.outcome(**outcome))
    cells = bellhop("get", "cp").stdout.splitlines()[1].split()

    assert cells[-2:] == [provisioned, word]


def test_says_what_a_removal_waits_for(bellhop: Bellhop, here: Installation) -> None:
    """A cluster that is down keeps a profile that goes nowhere any more: it is no failure of it."""
    fleet.populate(here)
    stored = fleet.profile(destinations=(), leaves=True, leaving=("default/workload", "a/b"))
    here.records.profiles.put(stored)
    here.records.departures.begin(place(stored), stored.leaving)
    failed = fleet.outcome(phase="Failed", reason="Away", message="it does not answer")
    here.records.outcomes.put(failed)
    [shown] = json.loads(bellhop("get", "cp", "-o", "json").stdout)["items"]
    wide = bellhop("get", "cp", "-o", "wide").stdout

    assert shown["status"]["state"] == "Removing"
    assert (
        "it is still to be removed from 'default/workload': it does not answer (and from 1 other"
        " cluster)"
    ) in wide


def test_profiles_of_a_deleted_trigger_are_shown_until_they_are_deleted(
    bellhop: Bellhop, here: Installation
) -> None:
    fleet.populate(here)
    bellhop("delete", "et", "service-network-policy")

    assert fleet.PROFILE in bellhop("get", "cp").stdout


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param(("cm", "-l", "team=net"), True, id="a label that is there"),
        pytest.param(("cm", "-l", "team!=net"), False, id="a label that is not"),
        pytest.param(("cm", "-l", "team in (net,ops)"), True, id="a set"),
        pytest.param(("cm", "-n", "default"), True, id="a namespace"),
        pytest.param(("cm", "-n", "other"), False, id="another namespace"),
        pytest.param(("cm", "-A"), True, id="all namespaces"),
        pytest.param(("clusters", "-l", "env=fv"), True, id="labels of clusters"),
        pytest.param(
            ("er", "-l", "projectsveltos.io/eventsource-name=other"), False, id="of reports"
        ),
    ],
)
def test_selects(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], *, found: bool
) -> None:
    """-l and -n choose, for every kind alike."""
    fleet.populate(here)

    assert bool(bellhop("get", *arguments).stdout) == found


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("evensources",), 2, "did you mean 'eventsources'?", id="kind"),
        pytest.param(("pods",), 2, "the kinds are clusters (cl)", id="not ours"),
        pytest.param(("es.apps",), 2, "there is no kind 'es.apps'", id="another group"),
        pytest.param(
            ("es", "sveltos-servce"), 1, "did you mean 'sveltos-service'?", id="a near name"
        ),
        pytest.param(
            ("cluster", "default/xyz"),
            1,
            "there is no cluster 'default/xyz'; `bellhop get clusters` lists",
            id="no such name",
        ),
        pytest.param(("cm", "-l", "a in ("), 2, "cannot read the selector 'a in ('", id="selector"),
        pytest.param(
            ("cm", "a/b", "-n", "c"), 2, "'a/b' and -n c name two namespaces", id="two namespaces"
        ),
    ],
)
def test_says_what_it_cannot_find(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A wrong name gets the nearest right one."""
    fleet.populate(here)
    for command in ("get", "describe"):
        result = bellhop(command, *arguments)

        assert (result.exit_code, said in result.stderr, result.stdout) == (code, True, "")


def test_reports_how_each_feature_of_a_profile_ended(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    at = fleet.now() + timedelta(minutes=5)
    failed = fleet.outcome(phase="Failed", reason="Conflict", message="no", retry_at=at)
    ended = Ended("Resources", "Failed", "Conflict", "no", at)
    here.records.outcomes.put(replace(failed, features=(ended,)))
    held = {fleet.POLICY: Held("d", "ConfigMap default/p", fleet.now(), adopted="Helm release 'a'")}
    here.records.inventories.put(Inventory("default/workload", fleet.PROFILE, held))

    output = " ".join(bellhop("describe", "cp").stdout.split())
    shown = read(bellhop("get", "cp", fleet.PROFILE, "-o", "yaml"))

    assert "default/workload Resources Failed (Conflict)" in output
    assert f"no; next try at {at:%H:%M:%S} UTC" in output
    assert "adopted from Helm release 'a'" in output
    (feature,) = shown["status"]["clusters"][0]["features"]
    assert feature.pop("nextTryTime")
    assert feature == {
        "featureID": "Resources",
        "phase": "Failed",
        "reason": "Conflict",
        "failureMessage": "no",
    }


@pytest.mark.parametrize("kind", ["cp", "cluster"])
def test_a_failure_is_as_old_as_its_first_attempt(
    bellhop: Bellhop, here: Installation, kind: str
) -> None:
    """The last attempt was a moment ago, and the first one hours before."""
    fleet.populate(here)
    since = fleet.now() - timedelta(hours=5)
    failed = fleet.outcome(phase="Failed", reason="Denied", message="no", at=fleet.now())
    here.records.outcomes.put(replace(failed, since=since, failures=9))

    assert " 5h " in bellhop("describe", kind).stdout
    shown = read(bellhop("get", "cp", fleet.PROFILE, "-o", "yaml"))["status"]["clusters"][0]
    assert shown["since"] != shown["lastAppliedTime"]


def test_reports_first_where_a_profile_fails(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    well = fleet.outcome(phase="Provisioned", message=NO_OBJECT)
    here.records.outcomes.put(well)
    shown = read(bellhop("get", "cp", fleet.PROFILE, "-o", "yaml"))["status"]["clusters"][0]
    assert shown["message"] == shown["features"][0]["message"] == NO_OBJECT
    assert "failureMessage" not in shown

    here.declare.register(fleet.cluster(name="other", env="test"))
    here.records.outcomes.put(replace(well, cluster="default/other", phase="Failed", message="no"))
    assert "default/other: no (and 1 other)" in bellhop("get", "cp", "-o", "wide").stdout


def test_describes_what_a_trigger_misses(bellhop: Bellhop, here: Installation) -> None:
    """A source or a ConfigMap that is not there is said, where it is named."""
    fleet.declare(here)
    bellhop("delete", "es", "sveltos-service")
    bellhop("delete", "cm", "network-policy")
    output = bellhop("describe", "et").stdout

    assert "there is no EventSource of that name" in output
    assert "not there: apply it" in output
    assert "no cluster" in output


def test_shows_how_a_cluster_is(bellhop: Bellhop, here: Installation) -> None:
    """A cluster that is down says why; its token's digest is nobody's business."""
    fleet.populate(here)
    here.records.health.put("default/workload", Health("Down", message="no answer"))
    wide = bellhop("get", "clusters", "-o", "wide").stdout
    shown = bellhop("get", "clusters", "-o", "yaml").stdout

    assert "Down" in wide
    assert wide.rstrip().endswith("no answer")
    assert "never" in wide
    assert "failureMessage: no answer" in shown
    assert "0" * 64 not in shown


def test_what_is_shown_can_be_applied_again(bellhop: Bellhop, here: Installation) -> None:
    """A List of manifests is a backup."""
    fleet.populate(here)
    for kind in ("es", "et", "cm"):
        shown = bellhop("get", kind, "-o", "yaml").stdout

        assert bellhop("apply", "-f", "-", stdin=shown).stdout.strip().endswith(" unchanged")


def test_hidden_values_cannot_be_applied_by_mistake(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    shown = bellhop("get", "secrets", "-o", "yaml").stdout
    result = bellhop("apply", "-f", "-", stdin=shown)

    assert result.exit_code == 2
    assert "is not base64" in result.stderr


def test_thousands_of_matches_are_a_list_like_any_other(
    bellhop: Bellhop, here: Installation
) -> None:
    """A report is a view over single records, and no line of a table is cut off."""
    fleet.populate(here)
    match = value_of(here.records.matches.get("default/workload", "sveltos-service", fleet.SERVICE))
    assert match is not None
    for number in range(2000):
        key = fleet.SERVICE._replace(name=f"service-{number:05d}-{'x' * 100}")
        here.records.matches.put(replace(match, key=key))
    result = bellhop("describe", "er")

    assert "2001 objects match" in result.stdout
    assert f"service-01999-{'x' * 100}" in result.stdout


def test_a_source_says_by_what_its_objects_are_reported() -> None:
    """Rules by their names, and that there is a script; either is enough."""
    rules = [{"name": "https", "rule": "true"}, {"name": "balanced", "rule": "true"}]
    selector = {"group": "", "version": "v1", "kind": "Service", "evaluateCEL": rules}
    source = of(
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventSource",
            "metadata": {"name": "s"},
            "spec": {"resourceSelectors": [{**selector, "evaluate": "function evaluate() end"}]},
        }
    )

    assert isinstance(source, EventSource)
    assert _conditions(source.selectors[0]) == (
        "any namespace, CEL rule https or CEL rule balanced or a Lua script"
    )


def test_the_charts_of_a_trigger_are_described(bellhop: Bellhop, here: Installation) -> None:
    """Each with its repository, and the release that is made of it."""
    chart = (
        "helmCharts: [{repositoryURL: 'https://charts.example.com', chartName: web,"
        " chartVersion: 1.0.0, releaseName: web, releaseNamespace: apps}]"
    )
    fleet.declare(here, fleet.MANIFESTS.replace("oneForEvent: true", chart))
    output = bellhop("describe", "eventtrigger", "service-network-policy").stdout

    assert re.search(r"chart web 1\.0\.0 of https://charts\.example\.com +release apps/web", output)
