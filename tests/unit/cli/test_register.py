"""register and deregister, against a real API server."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from cryptography import x509

from bellhop.adapters.kube.client import KubeClient
from bellhop.engine.wiring import NAME, NAMESPACE
from bellhop.fleet.installation import Installation
from bellhop.fleet.undisturbed import undisturbed
from bellhop.model.gvk import GVK
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.lab.cluster import Cluster
from tests.fakes.kept import value_of
from tests.unit.cli import fleet

Bellhop = Callable[..., Result]
KEY = "prod/eu-1"
SERVICE = "bellhop-forwarder.bellhop-system.svc"
INGEST = ("--ingest-url", "https://ingest.example:8443")
SECRET = GVK("", "v1", "Secret")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


@pytest.fixture
def kubeconfig(source_cluster: Cluster, tmp_path: Path) -> Path:
    """The administrator's kubeconfig of a real cluster."""
    path = tmp_path / "admin.kubeconfig"
    source_cluster.kubeconfig(path)
    return path


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The cluster, for a look at what was done to it."""
    client = KubeClient("test", sanitise(source_cluster.kubeconfig(), reach=HERE), reach=HERE)
    yield client
    client.close()


@pytest.fixture
def register(bellhop: Bellhop, kubeconfig: Path) -> Bellhop:
    """Register the cluster as prod/eu-1."""

    def run(*arguments: str, path: Path = kubeconfig) -> Result:
        named = ("--namespace", "prod", "--cluster", "eu-1", "--kubeconfig", str(path))
        return bellhop("register", "cluster", *named, *arguments)

    return run


def entries(kube: KubeClient) -> dict[str, str]:
    """Read the forwarder's Secret."""
    secret = kube.get(SECRET, NAMESPACE, NAME)
    assert secret is not None
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_registers_a_cluster(
    register: Bellhop, here: Installation, kube: KubeClient, kubeconfig: Path
) -> None:
    """Record, credentials and the forwarder's objects are there, and a full sweep is asked for."""
    result = register("--labels", "env=fv,region=eu", *INGEST)

    assert result.exit_code == 0, result.output
    cluster = value_of(here.records.clusters.get(KEY))
    assert cluster is not None
    assert cluster.labels == {"env": "fv", "region": "eu"}
    assert cluster.kubernetes == kube.version()
    assert sanitise(here.secrets.read(f"kubeconfig/{KEY}"), reach=HERE) == sanitise(
        kubeconfig.read_text(), reach=HERE
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
    assert cluster.credentials == sanitise(kubeconfig.read_text(), reach=HERE).version
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
    """What the API server will be told to trust has signed what the forwarder shows."""
    register(*arguments, *INGEST)
    cluster = value_of(here.records.clusters.get(KEY))
    assert cluster is not None
    certificate = x509.load_pem_x509_certificate(entries(kube)["tls.crt"].encode())
    authority = x509.load_pem_x509_certificate(cluster.forwarder["ca"].encode())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)

    certificate.verify_directly_issued_by(authority)
    assert [str(name.value) for name in alternatives.value] == names
    assert cluster.forwarder["url"] == (arguments[1].rstrip("/") if arguments else "")


def test_registering_again_renews(register: Bellhop, here: Installation, kube: KubeClient) -> None:
    """Token and certificate are new, labels are kept unless given, and it is still one cluster."""
    register("--labels", "env=fv", *INGEST)
    first, before = value_of(here.records.clusters.get(KEY)), entries(kube)
    kept = register(*INGEST)
    second, after = value_of(here.records.clusters.get(KEY)), entries(kube)
    register("--labels", "env=prod", *INGEST)
    third = value_of(here.records.clusters.get(KEY))

    assert first is not None
    assert second is not None
    assert third is not None
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


def test_without_a_forwarder_nothing_is_done_in_the_cluster(
    register: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """--no-forwarder needs no address to send to, and leaves the cluster as it is."""
    result = register("--no-forwarder")

    cluster = value_of(here.records.clusters.get(KEY))
    assert result.exit_code == 0
    assert cluster is not None
    assert cluster.forwarder == {}
    assert kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None


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
    assert "warning: nothing answers at https://127.0.0.1:1" in result.stderr


def limited(kube: KubeClient, source_cluster: Cluster, tmp_path: Path, rules: list[Any]) -> Path:
    """Make an account with some rights; return its kubeconfig."""
    account = {"namespace": "default", "name": "limited"}
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "limited"},
            "rules": rules,
        }
    )
    kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "limited"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "limited",
            },
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )
    document = source_cluster.kubeconfig()
    document["users"][0]["user"] = {"token": kube.token_request("default", "limited")}
    path = tmp_path / "limited.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


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
    """Narrow credentials are good credentials: a warning, and the cluster is registered.

    Another one tells when they end, if that is soon.
    """
    path = limited(kube, source_cluster, tmp_path, [])
    result = register("--no-forwarder", path=path)

    assert result.exit_code == 0
    rights, end = result.stderr.splitlines()
    assert rights == (
        "warning: the credentials may not get, create, patch or delete objects of every kind:"
        " an add-on they may not write fails, and says so"
    )
    assert re.match(r"warning: its token ends at \d{4}-\d\d-\d\d \d\d:\d\d UTC, and nobody", end)


def rules_of_the_how_to() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that the how-to gives."""
    page = Path(__file__).parents[3] / "docs/how-to/register-a-cluster.md"
    blocks = page.read_text().split("```yaml\n")[1:]
    documents = [
        document for block in blocks for document in yaml.safe_load_all(block.partition("```")[0])
    ]
    [role] = [each for each in documents if each["kind"] == "ClusterRole"]
    return list(role["rules"])


def test_the_rights_of_the_how_to_are_enough(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    """The ClusterRole that the how-to gives lets a cluster be registered and made to ring."""
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
    assert here.records.clusters.get(KEY) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--labels", "env"), "write key=value", id="label"),
        pytest.param(("--context", "other"), "has no context 'other'", id="context"),
        pytest.param(
            ("--forwarder-url", "http://a", *INGEST), "API servers call https alone", id="http"
        ),
        pytest.param(("--ingest-url", "http://a"), "it must be https", id="events over http"),
        pytest.param(("--ingest-ca", "/x"), "belongs to --ingest-url", id="authority alone"),
        pytest.param((*INGEST, "--ingest-ca", "/x"), "cannot read the authority", id="authority"),
        pytest.param(("--ingest-url", "https://a:b"), "its host or port is none", id="port"),
        pytest.param((*INGEST, "--install", "--image", "a b"), "is no image", id="image"),
        pytest.param(
            (*INGEST, "--print-manifests", "--image", "-"), "is no image", id="image to print"
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
            ("--direct", "--no-forwarder"), "has the cluster ring", id="directly, and not at all"
        ),
        pytest.param(("--direct", "--audit", "x"), "two ways to ring", id="in two ways"),
        pytest.param(
            ("--audit", "x", "--no-forwarder"), "--audit has the cluster ring", id="audited, not"
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
    """What cannot be meant is refused before the cluster is asked anything."""
    result = register(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert list(here.records.clusters.all()) == []


# Leaving ---------------------------------------------------------------------------------------


def test_deregisters_a_cluster(
    register: Bellhop, bellhop: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """What rang is gone from the cluster, and all that was kept of it from here."""
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
    assert "  rings        directly: its API server calls https://ingest.example:8443" in (
        result.stdout
    )
    token = here.records.callers.get(KEY)
    assert token
    assert token not in result.output
    assert kube.get(WEBHOOK, "", NAME) is not None
    assert kube.get(SECRET, NAMESPACE, NAME) is None
    described = bellhop("describe", "cluster", KEY)
    assert "directly: its API server calls ingest itself" in described.stdout
    assert token not in described.output
    again = register("--direct", *INGEST)
    assert f"Cluster '{KEY}' renewed: credentials and token." in again.stdout


def test_registers_a_cluster_that_sends_its_log(
    register: Bellhop, bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    """What its API server is to be given is written, and its token shown nowhere else."""
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
    rotated = bellhop("rotate", KEY, "--audit", str(folder))
    assert rotated.exit_code == 0, rotated.output
    cluster = value_of(here.records.clusters.get(KEY))
    assert cluster is not None
    assert cluster.former_digest == hashlib.sha256(token.encode()).hexdigest()


def test_rotates_a_token(
    register: Bellhop, bellhop: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """The forwarder is told another one, which is not shown; and until when the old one counts."""
    register(*INGEST)
    former = entries(kube)["token"]
    result = bellhop("rotate", KEY)

    assert result.exit_code == 0, result.output
    token = entries(kube)["token"]
    cluster = value_of(here.records.clusters.get(KEY))
    assert cluster is not None
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
    """A cluster that is gone for ever can still leave the fleet; what may be left is said."""
    register(*INGEST)
    source_cluster.stop()
    result = bellhop("deregister", "cluster", "--namespace", "prod", "--cluster", "eu-1")

    assert result.exit_code == 0
    assert "warning: what made it ring may still be there" in result.stderr
    assert here.records.clusters.get(KEY) is None


@pytest.mark.usefixtures("here")
def test_deregisters_nothing_that_is_not_registered(bellhop: Bellhop) -> None:
    """A wrong name is said."""
    result = bellhop("deregister", "cluster", "--namespace", "a", "--cluster", "b")

    assert result.exit_code == 1
    assert "there is no cluster 'a/b'" in result.stderr


# Ctrl-C ----------------------------------------------------------------------------------------


def test_ctrl_c_waits_for_what_must_be_whole() -> None:
    """The token in the cluster and the record here change together, or not at all."""
    code = (
        "import os, signal\n"
        "from bellhop.fleet.undisturbed import undisturbed\n"
        "try:\n"
        "    with undisturbed():\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        print('done')\n"
        "except KeyboardInterrupt:\n"
        "    print('then interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )

    assert done.stdout.split("\n")[:2] == ["done", "then interrupted"]


def test_threads_have_no_ctrl_c_to_wait_for() -> None:
    """Signals belong to the main thread; elsewhere the block just runs."""
    ran = []

    def work() -> None:
        with undisturbed():
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert ran == [True]


# The forwarder in the cluster ------------------------------------------------------------------

FORWARDER = {"Deployment": "apps/v1", "Service": "v1", "NetworkPolicy": "networking.k8s.io/v1"}
IMAGE = "registry.example.com/bellhop-forwarder:1"


def installed(kube: KubeClient) -> dict[str, dict[str, Any]]:
    """Return what there is of the forwarder's pods, by kind."""
    kinds = {kind: GVK(*_parted(version), kind) for kind, version in FORWARDER.items()}
    found = {kind: kube.get(gvk, NAMESPACE, NAME) for kind, gvk in kinds.items()}
    return {kind: manifest for kind, manifest in found.items() if manifest}


def _parted(version: str) -> tuple[str, str]:
    group, _, name = version.rpartition("/")
    return group, name


def test_installs_the_forwarder_and_says_so(register: Bellhop, kube: KubeClient) -> None:
    """Deployment, Service and NetworkPolicy, which lets it call where it sends to."""
    result = register("--install", "--image", IMAGE, *INGEST)
    found = installed(kube)

    assert result.exit_code == 0, result.output
    line = f"  installed    its Deployment, Service and NetworkPolicy; image {IMAGE}\n"
    assert line in result.stdout
    assert set(found) == {*FORWARDER}
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    called = found["NetworkPolicy"]["spec"]["egress"][1]["ports"]
    assert 8443 in [each["port"] for each in called]


def test_installing_twice_changes_nothing_of_its_pods(register: Bellhop, kube: KubeClient) -> None:
    """No pod is replaced, its image and what somebody else added to the Deployment stay."""
    register("--install", "--image", IMAGE, *INGEST)
    deployment = GVK("apps", "v1", "Deployment")
    kube.merge(deployment, NAMESPACE, NAME, {"metadata": {"annotations": {"own": "er"}}})
    before = installed(kube)
    result = register("--install", *INGEST)
    after = installed(kube)

    assert result.exit_code == 0, result.output
    for kind, manifest in before.items():
        for same in ("uid", "generation"):
            assert after[kind]["metadata"].get(same) == manifest["metadata"].get(same)
    assert after["Deployment"]["metadata"]["annotations"]["own"] == "er"


def test_installs_nothing_without_the_rights(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    source_cluster: Cluster,
    tmp_path: Path,
) -> None:
    """What registering takes is not enough to install; what is missing is said at once."""
    rules = rules_of_the_how_to()
    narrow = [rule for rule in rules if "deployments" not in rule["resources"]]
    path = limited(kube, source_cluster, tmp_path, narrow)
    refused = register("--install", *INGEST, path=path)

    assert refused.exit_code == 1
    assert "may not get, create, patch or delete deployments.apps in namespace" in refused.stderr
    assert here.records.clusters.get(KEY) is None
    assert kube.get(GVK("", "v1", "Namespace"), "", NAMESPACE) is None
    path = limited(kube, source_cluster, tmp_path, rules)
    taken = register("--install", *INGEST, path=path)
    assert taken.exit_code == 0, taken.stderr


@pytest.mark.parametrize("last", ["ClusterRole", "Namespace", "RoleBinding", *FORWARDER])
def test_an_installation_that_is_killed_is_done_by_the_next(
    register: Bellhop,
    here: Installation,
    kube: KubeClient,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
) -> None:
    """Whichever object it died at, nothing is known of it here, and once more brings all."""
    apply = KubeClient.apply

    def mortal(self: KubeClient, manifest: dict[str, Any], *, dry_run: bool = False) -> Any:
        if manifest["kind"] == last:
            raise KeyboardInterrupt
        return apply(self, manifest, dry_run=dry_run)

    with monkeypatch.context() as doomed:
        doomed.setattr(KubeClient, "apply", mortal)
        died = register("--install", *INGEST)
    known = here.records.clusters.get(KEY), kube.get(SECRET, NAMESPACE, NAME)
    again = register("--install", *INGEST)

    assert died.exit_code != 0
    assert known == (None, None)
    assert again.exit_code == 0, again.output
    assert set(installed(kube)) == {*FORWARDER}
    assert entries(kube)["cluster"] == KEY


def test_prints_all_but_the_secret_for_a_repository(
    register: Bellhop, here: Installation, kube: KubeClient
) -> None:
    """Standard output is a file that an API server takes; the rest is said beside it."""
    result = register("--print-manifests", "--image", IMAGE, *INGEST)
    printed = list(yaml.safe_load_all(result.stdout))
    secret = entries(kube)

    assert result.exit_code == 0, result.output
    assert "Cluster 'prod/eu-1' registered." in result.stderr
    assert "warning: no forwarder is in the cluster yet, and nothing rings" in result.stderr
    assert here.records.clusters.get(KEY) is not None
    assert [each["kind"] for each in printed] == [
        "Namespace",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRoleBinding",
        "Service",
        "Deployment",
        "NetworkPolicy",
    ]
    assert installed(kube) == {}
    for manifest in printed:
        kube.apply(manifest, dry_run=True)
    for value in (secret["token"], secret["path"], secret["tls.key"]):
        assert base64.b64encode(value.encode()).decode() not in result.output
        assert value not in result.output


def test_prints_the_image_that_is_there(register: Bellhop, kube: KubeClient) -> None:
    """What is printed to be kept changes nothing of what runs; and no forwarder is missed."""
    register("--install", "--image", IMAGE, *INGEST)
    result = register("--print-manifests", *INGEST)

    assert f"image: {IMAGE}\n" in result.stdout
    assert "no forwarder is in the cluster" not in result.stderr
    kinds = {each["kind"] for each in yaml.safe_load_all(result.stdout)}
    assert set(installed(kube)) == {*FORWARDER} & kinds


def test_prints_the_secret_when_asked(register: Bellhop, kube: KubeClient) -> None:
    """It is the one that was applied."""
    result = register("--print-manifests", "--show-secrets", *INGEST)
    *_, secret = yaml.safe_load_all(result.stdout)
    applied = kube.get(SECRET, NAMESPACE, NAME)

    assert applied is not None
    assert (secret["kind"], secret["data"]) == ("Secret", applied["data"])


@pytest.mark.parametrize("uninstall", [True, False])
def test_takes_away_what_it_installed_where_the_namespace_is_not_ours(
    register: Bellhop, bellhop: Bellhop, kube: KubeClient, *, uninstall: bool
) -> None:
    """A namespace of ours goes with all in it; in another one, what was asked to go goes."""
    register("--install", *INGEST)
    taken = {"metadata": {"labels": {"app.kubernetes.io/part-of": "others"}}}
    kube.merge(GVK("", "v1", "Namespace"), "", NAMESPACE, taken)
    named = ("--namespace", "prod", "--cluster", "eu-1")
    result = bellhop("deregister", "cluster", *named, *(["--uninstall"] if uninstall else []))

    assert result.exit_code == 0, result.output
    assert set(installed(kube)) == (set() if uninstall else {*FORWARDER})
    assert ("removed Deployment" in result.stdout) is uninstall
    assert kube.get(SECRET, NAMESPACE, NAME) is None


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
    """What ends within the hour would fail later: one sentence says so now."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"token": "k8s-aws-v1.aHR0cHM6Ly9zdHMu"}
    kubeconfig.write_text(yaml.safe_dump(document))
    result = register(*INGEST)

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "is one that `aws eks get-token` has made" in result.stderr
    assert here.records.clusters.get(KEY) is None
