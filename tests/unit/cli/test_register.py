"""Clusters join and leave an installation."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.certificates import make_authority
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import INSTALLATION
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from infra.lab.cluster import Cluster
from tests.fakes.kept import require_value
from tests.fakes.manifests import profile
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import (
    INGEST,
    KEY,
    SECRET,
    SERVICE,
    WEBHOOK,
    entries,
    limited,
    rules_of_the_how_to,
)


def test_registers_a_cluster(
    register: Bellhop, here: Installation, kube: KubeClient, kubeconfig: Path
) -> None:
    result = register("--labels", "env=fv,region=eu", *INGEST)

    assert result.exit_code == 0, result.output
    cluster = require_value(here.records.clusters.get(KEY))
    assert cluster.labels == {"env": "fv", "region": "eu"}
    assert cluster.kubernetes == kube.version()
    assert sanitise(here.secrets.read(f"kubeconfig/{KEY}"), reach=LOCAL) == sanitise(
        kubeconfig.read_text(), reach=LOCAL
    )
    secret = entries(kube)
    assert set(secret) == {
        "ingest-url",
        "ingest-ca",
        "cluster",
        "token",
        "path",
        "tls.crt",
        "tls.key",
    }
    assert (secret["ingest-url"], secret["cluster"]) == ("https://ingest.example:8443", KEY)
    assert hashlib.sha256(secret["token"].encode()).hexdigest() == cluster.token_digest
    assert cluster.forwarder["path"] == secret["path"]
    assert cluster.credentials == sanitise(kubeconfig.read_text(), reach=LOCAL).version
    (message,) = here.dead["sweep"].receive(10, wait=timedelta(0))
    assert dict(message.message.body) == {"do": "sweep", "cluster": KEY, "full": True}


def test_says_what_it_did_and_no_secret(register: Bellhop, kube: KubeClient) -> None:
    """A few lines, with neither the sender's token nor the cluster's."""
    result = register("--labels", "env=fv", *INGEST)
    lines = [line.strip().split("  ")[0] for line in result.stdout.splitlines()]

    assert lines == [
        "Cluster 'prod/eu-1' registered.",
        "reached",
        "labels",
        "forwarder",
        "applied",
        "installed",
        "next",
    ]
    secret = entries(kube)
    for value in (secret["token"], secret["path"], secret["tls.key"]):
        assert value not in result.output


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(
            (),
            [SERVICE, f"{SERVICE}.cluster.local"],
            id="a Service in the cluster",
        ),
        pytest.param(
            ("--forwarder-url", "https://10.0.0.5:9443/"), ["10.0.0.5"], id="an address outside"
        ),
    ],
)
def test_the_forwarder_has_a_certificate_for_its_address(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    arguments: tuple[str, ...],
    names: list[str],
) -> None:
    register(*arguments, *INGEST)
    cluster = require_value(here.records.clusters.get(KEY))
    certificate = x509.load_pem_x509_certificate(entries(kube)["tls.crt"].encode())
    authority = x509.load_pem_x509_certificate(cluster.forwarder["ca"].encode())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)

    certificate.verify_directly_issued_by(authority)
    assert [str(name.value) for name in alternatives.value] == names
    assert cluster.forwarder["url"] == (arguments[1].rstrip("/") if arguments else "")


def test_registering_again_renews(register: Bellhop, here: Installation, kube: KubeClient) -> None:
    """Token and certificate are new, labels are kept unless given, and it is still one cluster."""
    register("--labels", "env=fv", *INGEST)
    first, before = require_value(here.records.clusters.get(KEY)), entries(kube)
    kept = register(*INGEST)
    second, after = require_value(here.records.clusters.get(KEY)), entries(kube)
    register("--labels", "env=prod", *INGEST)
    third = require_value(here.records.clusters.get(KEY))

    assert "renewed: credentials, token and certificate" in kept.stdout
    assert before["token"] != after["token"]
    assert hashlib.sha256(after["token"].encode()).hexdigest() == second.token_digest
    assert (first.labels, second.labels, third.labels) == (
        {"env": "fv"},
        {"env": "fv"},
        {"env": "prod"},
    )
    assert first.registered_at == second.registered_at
    assert len(list(here.records.clusters.all())) == 1


def test_a_cluster_of_another_installation_is_taken_over_by_an_option(
    register: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """Without it the command says who has the cluster, and changes nothing."""
    assert register(*INGEST).exit_code == 0
    other = {"metadata": {"annotations": {INSTALLATION: "another"}}}
    kube.merge(GVK("", "v1", "Namespace"), "", NAMESPACE, other)
    before = entries(kube)
    refused = register(*INGEST)

    assert (refused.exit_code, "--take-over" in refused.stderr) == (1, True)
    assert entries(kube) == before
    assert register("--take-over", *INGEST).exit_code == 0
    space = kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE)
    assert space
    assert space["metadata"]["annotations"][INSTALLATION] == here.records.installations.get().id


def test_without_a_forwarder_nothing_is_done_in_the_cluster(
    register: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """--no-forwarder needs no address to send to, and leaves the cluster as it is.

    It is not repeated when the cluster is registered again.
    """
    assert register("--no-forwarder").exit_code == 0
    result = register()

    cluster = require_value(here.records.clusters.get(KEY))
    assert result.exit_code == 0
    assert cluster.forwarder == {}
    assert result.stdout.endswith("  next         a resync, which lists the cluster\n")
    assert kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None


def test_a_cluster_may_be_paused_from_the_first_moment_on(
    register: Bellhop, here: Installation
) -> None:
    """By hand, and outside of a window; registering it again without a word leaves both."""
    window = ("--active-from", "0 20 * * 5", "--active-to", "0  5 * * 1")
    first = register("--no-forwarder", "--paused", *window)
    expected = {"paused": True, "activeWindow": {"from": "0 20 * * 5", "to": "0 5 * * 1"}}

    assert first.exit_code == 0
    assert "  paused       it is paused until `bellhop resume`\n" in first.stdout
    before = require_value(here.records.clusters.get(KEY))
    assert register("--no-forwarder").exit_code == 0
    after = require_value(here.records.clusters.get(KEY))
    assert before.spec == after.spec == expected


def test_names_what_other_labels_would_remove(
    register: Bellhop, bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    """A typing mistake in a label at a second registration removes nothing until it is released."""
    register("--no-forwarder", "--labels", "env=production")
    path = tmp_path / "profile.yaml"
    path.write_text(profile("clusterSelector: {matchLabels: {env: production}}"))
    assert bellhop("apply", "-f", str(path)).exit_code == 0
    head = fleet.profile(
        name="own", trigger="", cluster="", object="", contents=(), destinations=("prod/eu-1",)
    )
    here.records.profiles.put(head)
    done = register("--no-forwarder", "--labels", "env=prodution", BELLHOP_HOLD_FROM="1")

    assert (
        "warning: ClusterProfile 'own' loses 1 of 1 add-ons (1 profile) in prod/eu-1" in done.stderr
    )
    assert "they are held: nothing is removed" in done.stderr
    assert [each.value.profile for each in here.records.removals.all()] == ["own"]


def test_needs_to_know_where_events_go(register: Bellhop, here: Installation) -> None:
    """Before `serve` ever ran, nobody knows."""
    result = register()

    assert result.exit_code == 1
    assert "start `bellhop serve` first, or give --ingest-url" in result.stderr
    assert here.records.clusters.get(KEY) is None


def test_warns_where_nothing_answers(register: Bellhop, state: Path) -> None:
    """An address that `serve` left behind is used, with a warning that it does not answer."""
    state.mkdir(mode=0o700)
    address = {"url": "https://127.0.0.1:1", "ca": ""}
    (state / "address.json").write_text(json.dumps(address))
    result = register()

    assert result.exit_code == 0
    assert "warning: nothing answers at https://127.0.0.1:1; start `bellhop serve`" in result.stderr
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = register()
    assert "1; `bellhop serve` is at it, so see whether clusters reach that" in result.stderr


def test_says_which_rights_are_missing_and_does_nothing(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    """Every right that registration needs is named at once; the cluster is as it was."""
    fleet.declare(here)
    rules = [{"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": ["get"]}]
    path = limited(kube, source_cluster, tmp_path, rules)
    result = register("--labels", "env=fv", *INGEST, path=path)

    assert result.exit_code == 1
    for sentence in (
        "they may not list services;",
        "they may not create, patch or delete namespaces;",
        "or delete validatingwebhookconfigurations.admissionregistration.k8s.io",
        "may not create, patch or delete secrets in namespace 'bellhop-system'",
    ):
        assert sentence in result.stderr
    assert here.records.clusters.get(KEY) is None
    assert list(here.secrets.names("kubeconfig/")) == []
    assert kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None


def test_warns_of_rights_that_add_ons_may_need_and_of_an_end(
    register: Bellhop, kube: KubeClient, source_cluster: Cluster, tmp_path: Path
) -> None:
    """Narrow credentials give a warning; so do credentials that expire soon."""
    path = limited(kube, source_cluster, tmp_path, [])
    result = register("--no-forwarder", path=path)

    assert result.exit_code == 0
    rights, end = result.stderr.splitlines()
    assert rights == (
        "warning: the credentials may not get, create, patch or delete objects of every kind:"
        " an add-on they may not write fails, and says so"
    )
    assert re.match(
        r"warning: its credentials end at \d{4}-\d\d-\d\d \d\d:\d\d UTC, and nobody", end
    )


def test_the_rights_of_the_how_to_are_enough(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    fleet.declare(here)
    path = limited(kube, source_cluster, tmp_path, rules_of_the_how_to())
    result = register("--labels", "env=fv", *INGEST, path=path)

    assert result.exit_code == 0, result.stderr


def test_an_unreachable_cluster_is_not_registered(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """Nobody answers: exit code 75, and nothing is kept."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    kubeconfig.write_text(yaml.safe_dump(document))
    named = ("--namespace", "prod", "--cluster", "eu-1", "--kubeconfig", str(kubeconfig))
    result = bellhop("register", "cluster", *named, *INGEST)

    assert result.exit_code == 75
    assert "'prod/eu-1'" in result.stderr
    assert here.records.clusters.get(KEY) is None


def test_wrong_credentials_are_not_registered(
    register: Bellhop, here: Installation, kubeconfig: Path, tmp_path: Path
) -> None:
    """A token that the API server does not know is denied, and is in no message."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"]["token"] = "not-a-token-of-this-cluster"
    path = tmp_path / "wrong.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    result = register(*INGEST, path=path)

    assert result.exit_code == 1
    assert "not-a-token" not in result.output
    assert "it does not accept the credentials of the kubeconfig that was given; try" in (
        result.stderr
    )
    assert here.records.clusters.get(KEY) is None


def test_another_authority_gets_the_file(
    register: Bellhop, here: Installation, kubeconfig: Path, tmp_path: Path
) -> None:
    """Nothing is stored yet, and there is nothing to register again."""
    document = yaml.safe_load(kubeconfig.read_text())
    other = make_authority("other", now=datetime.now(UTC), validity=timedelta(days=1))
    authority = base64.b64encode(other.certificate_pem).decode()
    document["clusters"][0]["cluster"]["certificate-authority-data"] = authority
    path = tmp_path / "other.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    result = register(*INGEST, path=path)

    assert result.exit_code == 75
    assert "certificate authority of the kubeconfig that was given, or is for another" in (
        result.stderr
    )
    assert "stored" not in result.stderr
    assert "again" not in result.stderr
    assert here.records.clusters.get(KEY) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--labels", "env"), "write key=value", id="label"),
        pytest.param(("--kubeconfig-context", "other"), "has no context 'other'", id="context"),
        pytest.param(
            ("--forwarder-url", "http://a", *INGEST), "API servers only call https", id="http"
        ),
        pytest.param(("--ingest-url", "http://a"), "it must be https", id="events over http"),
        pytest.param(("--active-from", "* * * * *"), "belong together", id="half a window"),
        pytest.param(
            (*INGEST, "--active-from", "x", "--active-to", "* * * * *"),
            "cannot read the cron expression 'x': it needs five fields, and has 1",
            id="no cron expression",
        ),
        pytest.param(("--ingest-ca", "/x"), "belongs to --ingest-url", id="authority alone"),
        pytest.param((*INGEST, "--ingest-ca", "/x"), "cannot read the authority", id="authority"),
        pytest.param(("--ingest-url", "https://a:b"), "its host or port is invalid", id="port"),
        pytest.param((*INGEST, "--install", "--image", "a b"), "is not an image", id="image"),
        pytest.param(
            (*INGEST, "--print-manifests", "--image", "-"), "is not an image", id="image to print"
        ),
        pytest.param(
            ("--install", "--no-forwarder"), "are for a forwarder in the cluster", id="none"
        ),
        pytest.param(
            ("--print-manifests", "--forwarder-url", "https://a"),
            "are for a forwarder in the cluster",
            id="outside",
        ),
        pytest.param(
            ("--direct", "--install"), "--direct needs no forwarder", id="directly, with a pod"
        ),
        pytest.param(
            ("--direct", "--no-forwarder"),
            "has the cluster send events",
            id="directly, and not at all",
        ),
        pytest.param(("--direct", "--audit", "x"), "exclude each other", id="in two ways"),
        pytest.param(
            ("--audit", "x", "--no-forwarder"),
            "--audit has the cluster send events",
            id="audited, not",
        ),
        pytest.param(("--show-secrets",), "belongs to --print-manifests", id="secrets alone"),
        pytest.param(
            (*INGEST, "--ingest-ca", "/dev/zero"), "more than 65536 bytes", id="endless authority"
        ),
        pytest.param(("--cluster", "A_B"), "is not a name", id="name"),
        pytest.param(("--namespace", "a.b"), "is not a namespace", id="namespace"),
    ],
)
def test_refuses_wrong_input(
    register: Bellhop, here: Installation, arguments: tuple[str, ...], said: str
) -> None:
    result = register(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert list(here.records.clusters.all()) == []


# Leaving ---------------------------------------------------------------------------------------


def test_deregisters_a_cluster(
    register: Bellhop, bellhop: Bellhop, here: Installation, kube: KubeClient
) -> None:
    register(*INGEST)
    kube.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [],
        }
    )
    result = bellhop("deregister", "cluster", "--namespace", "prod", "--cluster", "eu-1")

    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "  removed ValidatingWebhookConfiguration 'bellhop-forwarder'" in result.stdout
    assert kube.get(WEBHOOK, "", NAME) is None
    assert kube.get(SECRET, NAMESPACE, NAME) is None
    assert here.records.clusters.get(KEY) is None
    assert list(here.secrets.names("kubeconfig/")) == []


def test_registers_a_cluster_that_calls_by_itself(
    register: Bellhop, bellhop: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """Nothing but the webhook configuration is applied, and its token is not shown."""
    result = register("--direct", *INGEST)

    assert result.exit_code == 0, result.output
    assert "  events       directly: its API server calls https://ingest.example:8443" in (
        result.stdout
    )
    assert result.stdout.endswith("lists the cluster and installs its webhook\n")
    token = here.records.callers.get(KEY)
    assert token
    assert token not in result.output
    assert kube.get(WEBHOOK, "", NAME) is not None
    assert kube.get(SECRET, NAMESPACE, NAME) is None
    described = bellhop("describe", "cluster", KEY)
    assert "directly: its API server calls ingest itself" in described.stdout
    assert token not in described.output
    for again in (register("--direct", *INGEST), register()):
        assert f"Cluster '{KEY}' renewed: credentials and token." in again.stdout
        assert "its API server calls https://ingest.example:8443" in again.stdout
    changed = register("--forwarder", "--no-install", *INGEST)
    assert changed.exit_code == 0, changed.output
    assert kube.get(SECRET, NAMESPACE, NAME) is not None


def test_registers_a_cluster_that_sends_its_log(
    register: Bellhop, bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    result = register("--audit", str(folder), *INGEST)

    assert result.exit_code == 0, result.output
    config = yaml.safe_load((folder / "audit-webhook.kubeconfig").read_text())
    token = config["users"][0]["user"]["token"]
    assert config["clusters"][0]["cluster"] == {
        "server": f"https://ingest.example:8443/clusters/{KEY}"
    }
    assert token not in result.output
    assert "audit-webhook.kubeconfig, a secret, in" in " ".join(result.stdout.split())
    assert "by its audit log" in bellhop("describe", "cluster", KEY).stdout
    refused = bellhop("rotate", KEY)
    assert (refused.exit_code, "give --audit" in refused.stderr) == (2, True)
    refused = register(*INGEST)
    assert (refused.exit_code, "register it with --audit FOLDER, or" in refused.stderr) == (2, True)
    rotated = bellhop("rotate", KEY, "--audit", str(folder))
    assert rotated.exit_code == 0, rotated.output
    cluster = require_value(here.records.clusters.get(KEY))
    assert cluster.former_digest == hashlib.sha256(token.encode()).hexdigest()


def test_rotates_a_token(
    register: Bellhop, bellhop: Bellhop, here: Installation, kube: KubeClient
) -> None:
    register(*INGEST)
    former = entries(kube)["token"]
    result = bellhop("rotate", KEY)

    assert result.exit_code == 0, result.output
    token = entries(kube)["token"]
    cluster = require_value(here.records.clusters.get(KEY))
    assert hashlib.sha256(token.encode()).hexdigest() == cluster.token_digest
    assert hashlib.sha256(former.encode()).hexdigest() == cluster.former_digest
    assert cluster.former_until is not None
    until = f"{cluster.former_until:%Y-%m-%dT%H:%M:%SZ}"
    assert result.stdout == (
        f"Cluster '{KEY}' has a new token.\n  former       counts until {until}\n"
    )
    unknown = bellhop("rotate", "prod/eu-2")
    assert (unknown.exit_code, "eu-2" in unknown.stderr) == (1, True)


def test_somebody_elses_namespace_stays(
    register: Bellhop, bellhop: Bellhop, kube: KubeClient
) -> None:
    """A namespace of that name without our label is not ours to remove."""
    register("--no-forwarder")
    namespace = GVK("", "v1", "Namespace")
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    bellhop("deregister", "cluster", "--namespace", "prod", "--cluster", "eu-1")

    found = kube.get(namespace, "", NAMESPACE)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


def test_deregisters_a_cluster_that_does_not_answer(
    register: Bellhop, bellhop: Bellhop, here: Installation, source_cluster: Cluster
) -> None:
    register(*INGEST)
    source_cluster.stop()
    result = bellhop("deregister", "cluster", "--namespace", "prod", "--cluster", "eu-1")

    assert result.exit_code == 0
    assert "warning: its webhook configuration and forwarder may still exist" in result.stderr
    assert here.records.clusters.get(KEY) is None


@pytest.mark.usefixtures("here")
def test_deregisters_nothing_that_is_not_registered(bellhop: Bellhop) -> None:
    """A wrong name is said."""
    result = bellhop("deregister", "cluster", "--namespace", "a", "--cluster", "b")

    assert result.exit_code == 1
    assert "there is no cluster 'a/b'" in result.stderr


@pytest.mark.parametrize("named", [(KEY,), ("--cluster", KEY)], ids=["argument", "option"])
def test_a_cluster_is_named_in_one_word(
    bellhop: Bellhop, here: Installation, kubeconfig: Path, named: tuple[str, ...]
) -> None:
    """NAMESPACE/NAME registers it, and takes it out again."""
    options = ("--kubeconfig", str(kubeconfig), "--no-forwarder", *INGEST)
    registered = bellhop("register", "cluster", *named, *options)

    assert registered.exit_code == 0, registered.output
    assert here.records.clusters.get(KEY)
    assert bellhop("deregister", "cluster", *named).exit_code == 0
    assert not here.records.clusters.get(KEY)


def test_takes_no_persons_token(register: Bellhop, here: Installation, kubeconfig: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"token": "k8s-aws-v1.aHR0cHM6Ly9zdHMu"}
    kubeconfig.write_text(yaml.safe_dump(document))
    result = register(*INGEST)

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "is one that `aws eks get-token` has made" in result.stderr
    assert here.records.clusters.get(KEY) is None
