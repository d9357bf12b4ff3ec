"""Credentials of charts, and values of Secrets that no error shows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import (
    InvalidError,
    TemporaryError,
)
from tests.fakes.fleet import Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import join
from tests.fakes.releases import chart, charts, data, outcome

SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {values: "password: hush-hush"}
"""


DOCKER = '{{"auths": {{"{host}": {{"auth": "YW5uOmh1c2gtaHVzaA=="}}}}}}'


def test_values_of_a_secret_that_are_no_mapping_are_not_quoted(
    fleet: Fleet, east: FakeKube
) -> None:
    """A parser shows the line."""
    assert east
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    held = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {list: "hush: [hidden"}
"""
    fleet.deploy(join(held, charts(of=chart(more))))
    assert "default/more/list: it is not a mapping in YAML" in outcome(fleet)[1]
    assert "hidden" not in outcome(fleet)[1]


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("failure", [None, TemporaryError("killed half-way")])
def test_a_dry_run_shows_nothing_of_a_secret_that_was_deployed(
    fleet: Fleet, failure: TemporaryError | None
) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.deploy(join(SECRET, charts(of=chart(more))))
    if failure:
        fleet.charts.failures["web"] = failure
        fleet.deploy(charts(of=chart(more, version="1.1.0")))
    fleet.apply(charts(more="syncMode: DryRun"))
    fleet.wait(timedelta(minutes=20))
    kept = require_value(fleet.records.previews.get("fleet/east", "p"))
    assert [each.action for each in kept.changes] == ["Update", "Update"]
    assert "hush-hush" not in repr(kept.changes)


def test_a_tenants_charts_are_deployed_with_its_rights(fleet: Fleet, east: FakeKube) -> None:
    """It has to read Helm's own records of releases, as Helm does."""
    east.rbac.grant("team/bot", "Secret", "apps", "list")
    labels = (
        "labels: {projectsveltos.io/serviceaccount-name: bot,"
        " projectsveltos.io/serviceaccount-namespace: team}"
    )
    fleet.deploy(charts().replace("{name: p}", "{name: p, " + labels + "}"))
    assert fleet.charts.accounts == ["team/bot"]


def test_a_profile_limited_to_other_kinds_deploys_no_chart(fleet: Fleet, east: FakeKube) -> None:
    allowing = 'annotations: {bellhop.dev/allow: "ConfigMap in apps"}'
    fleet.deploy(charts().replace("{name: p}", "{name: p, " + allowing + "}"))
    kept = require_value(fleet.records.profiles.head("", "", "p"))
    assert "may not deploy a Release.helm.sh" in kept.error

    allowing = 'annotations: {bellhop.dev/allow: "Release.helm.sh in apps; ConfigMap in apps"}'
    fleet.deploy(charts().replace("{name: p}", "{name: p, " + allowing + "}"))
    assert set(data(east)) == {"web-config"}


def test_credentials_come_from_secrets_and_are_not_shown(fleet: Fleet, east: FakeKube) -> None:
    secret = """
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: default}
stringData: {username: ann, password: hush-hush}
"""
    more = "registryCredentialsConfig: {credentials: {name: login, namespace: default}}"
    fleet.deploy(join(secret, charts(of=chart(more))))
    login = fleet.repositories.found[-1].login
    assert (login.username, login.password) == ("ann", "hush-hush")
    assert "hush-hush" not in repr(fleet.repositories.found[-1])
    assert set(data(east)) == {"web-config"}


@pytest.mark.parametrize(
    ("host", "repository", "found"),
    [
        pytest.param("charts.example.com", "https://charts.example.com", True, id="its own"),
        pytest.param("https://index.docker.io/v1/", "OCI://registry-1.docker.io", True, id="hub"),
        pytest.param("other.example.com", "https://charts.example.com", False, id="another"),
    ],
)
def test_logins_are_for_the_host_that_docker_names(
    fleet: Fleet, east: FakeKube, host: str, repository: str, *, found: bool
) -> None:
    """A Secret may have one entry, whatever it is called."""
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: login, namespace: default}}
stringData: {{config.json: '{DOCKER.format(host=host)}'}}
"""
    more = "registryCredentialsConfig: {credentials: {name: login, namespace: default}}"
    of = chart(more).replace("https://charts.example.com", repository)
    fleet.repositories.put("example/web", "1.0.0")
    fleet.deploy(join(secret, charts(of=of)))
    if found:
        place = fleet.repositories.found[-1]
        assert (place.login.username, place.login.password) == ("ann", "hush-hush")
        assert place.repository == repository.lower()
        assert outcome(fleet) == ("Provisioned", "")
    else:
        assert data(east) == {}
        assert outcome(fleet)[1] == (
            "cannot use Secret default/login in"
            " helmCharts[0].registryCredentialsConfig.credentials: it has no login for"
            " 'charts.example.com'; log in there with docker, and write its configuration into the"
            " Secret"
        )


@pytest.mark.usefixtures("east")
def test_what_is_said_of_values_of_a_secret_is_withheld(fleet: Fleet) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = InvalidError("hush-hush is refused")
    fleet.deploy(join(SECRET, charts(of=chart(more))))
    assert "hush" not in outcome(fleet)[1]
    assert outcome(fleet)[1].startswith("cannot deploy the release 'apps/web': it is refused;")


@pytest.mark.usefixtures("east")
def test_what_a_rehearsal_says_of_values_of_a_secret_is_withheld(fleet: Fleet) -> None:
    """A second installation is rendered on trial first, where Helm quotes the values as well."""
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = TemporaryError("failed pre-install")
    fleet.deploy(join(SECRET, charts(of=chart(more))))
    fleet.charts.refused_rehearsals["web"] = InvalidError("hush-hush is refused")
    fleet.wait(timedelta(minutes=30))
    assert "hush" not in outcome(fleet)[1]
    assert outcome(fleet)[1].startswith("cannot deploy the release 'apps/web': it is refused;")
