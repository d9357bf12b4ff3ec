"""`bellhop register cluster -f`: what files declare is registered, each cluster for itself."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import is_direct
from bellhop.state.cluster import Cluster
from tests.fakes.gate import gate
from tests.fakes.kept import require_value
from tests.fakes.manifests import profile
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import INGEST

KEY = "prod/eu-1"


def declared(name: str = "eu-1", *, labels: str = "{env: prod}", spec: str = "{}") -> str:
    """A SveltosCluster, as users of Sveltos have them."""
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: SveltosCluster
metadata:
  namespace: prod
  name: {name}
  labels: {labels}
  annotations: {{region: eu}}
spec: {spec}
status: {{ready: true}}
---"""


def secret(kubeconfig: str, name: str = "eu-1-sveltos-kubeconfig", entry: str = "value") -> str:
    """The Secret with its kubeconfig."""
    data = base64.b64encode(kubeconfig.encode()).decode()
    return f"""
apiVersion: v1
kind: Secret
metadata: {{namespace: prod, name: {name}}}
data: {{{entry}: {data}}}
---"""


def registered(here: Installation) -> Cluster:
    return require_value(here.records.clusters.get(KEY))


def test_registers_what_is_declared_and_only_once(
    bellhop: Bellhop, here: Installation, kubeconfig: Path, kube: KubeClient, tmp_path: Path
) -> None:
    """A pipeline may run as often as it likes: nothing is rotated that is as declared."""
    folder = tmp_path / "clusters"
    folder.mkdir()
    data = "{paused: true, data: {zone: a}, consecutiveFailureThreshold: 3}"
    (folder / "eu-1.yaml").write_text(declared(spec=data))
    (folder / "secret.yaml").write_text(secret(kubeconfig.read_text()))
    first = bellhop("register", "cluster", "-f", str(folder), *INGEST)
    before = registered(here)
    second = bellhop("register", "cluster", "-f", str(folder), *INGEST)

    assert (first.exit_code, first.stdout) == (0, f"cluster/{KEY} registered\n")
    assert f"warning: {KEY}: spec.consecutiveFailureThreshold has no effect" in first.stderr
    assert (before.labels, before.annotations) == ({"env": "prod"}, {"region": "eu"})
    assert before.spec == {"paused": True, "data": {"zone": "a"}}
    assert before.kubernetes == kube.version()
    assert (second.exit_code, second.stdout) == (0, f"cluster/{KEY} unchanged\n")
    assert registered(here) == before


def test_changes_what_differs_and_asks_no_cluster(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """Labels, annotations, data and pauses; what a document does not speak of stays."""
    text = secret(kubeconfig.read_text())
    bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=declared() + text)
    before = registered(here)
    new = declared(labels="{env: test, tier: gold}", spec="{paused: true, data: {zone: b}}")
    done = bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=new + text)
    silent = declared(labels="{env: test, tier: gold}").replace("annotations: {region: eu}", "")
    same = bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=silent)

    after = registered(here)
    assert done.stdout == f"cluster/{KEY} configured\n"
    assert after.labels == {"env": "test", "tier": "gold"}
    assert after.spec == {"paused": True, "data": {"zone": "b"}}
    assert after.credentials == before.credentials
    assert same.stdout == f"cluster/{KEY} unchanged\n"
    resumed = declared(labels="{}", spec="{paused: false, data: {}}")
    bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=resumed)
    assert (registered(here).labels, registered(here).spec) == ({}, {"data": {}})


def test_renews_what_has_other_credentials(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """And all of them by --renew."""
    text = declared() + secret(kubeconfig.read_text(), entry="kubeconfig")
    bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=text)
    renewed = bellhop("register", "cluster", "-f", "-", "--no-forwarder", "--renew", stdin=text)

    assert renewed.stdout == f"cluster/{KEY} renewed\n"
    assert registered(here).labels == {"env": "prod"}


def test_a_cluster_is_a_member_of_its_set_until_somebody_registers_it_by_hand(
    bellhop: Bellhop, here: Installation, kubeconfig: Path, register: Bellhop
) -> None:
    """Its other labels stay."""
    text = declared() + secret(kubeconfig.read_text())
    options = ("--no-forwarder", "--applyset", "fleet")
    bellhop("register", "cluster", "-f", "-", *options, stdin=text)
    assert registered(here).labels == {"env": "prod", APPLYSET: "fleet"}

    assert register("--no-forwarder").exit_code == 0
    assert registered(here).labels == {"env": "prod"}


def test_a_cluster_keeps_the_way_it_sends(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """A pipeline that knows nothing of it renews what sends directly and what does not send."""
    text = declared() + secret(kubeconfig.read_text(), entry="kubeconfig")
    bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=text)
    bellhop("register", "cluster", "-f", "-", "--renew", *INGEST, stdin=text)
    assert registered(here).forwarder == {}

    bellhop("register", "cluster", "-f", "-", "--renew", "--direct", *INGEST, stdin=text)
    renewed = bellhop("register", "cluster", "-f", "-", "--renew", *INGEST, stdin=text)

    assert renewed.stdout == f"cluster/{KEY} renewed\n"
    assert is_direct(registered(here).forwarder)


def test_a_cluster_that_does_not_answer_delays_no_other(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """Clusters are registered at once, and their lines have the order of the files.

    Of three, the first answers only after the record of the last is written.
    """
    document = yaml.safe_load(kubeconfig.read_text())
    server = document["clusters"][0]["cluster"]["server"].removeprefix("https://")

    def last_is_registered() -> bool:
        return here.records.clusters.get("prod/last") is not None

    with gate(server, last_is_registered) as address:
        document["clusters"][0]["cluster"]["server"] = f"https://{address}"
        files = (
            declared("first")
            + secret(yaml.safe_dump(document), "first-sveltos-kubeconfig")
            + declared("lost")
            + declared("last")
            + secret(kubeconfig.read_text(), "last-sveltos-kubeconfig")
        )
        options = ("--no-forwarder", "--allow-twice")
        done = bellhop("register", "cluster", "-f", "-", *options, stdin=files)

    assert done.exit_code == 1
    assert done.stdout == "cluster/prod/first registered\ncluster/prod/last registered\n"
    lines = done.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["warning", "prod/first"],
        ["error", "prod/lost"],
        ["error", "1 of 3 clusters failed"],
    ]


def test_one_that_fails_does_not_stop_the_others(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """Each has a line, and the exit code is 1."""
    text = kubeconfig.read_text()
    dead = "\n".join(
        "    server: https://127.0.0.1:1" if "server:" in line else line
        for line in text.splitlines()
    )
    files = (
        declared("lost")
        + declared("empty")
        + secret("", "empty-sveltos-kubeconfig")
        + declared("dead", spec="{kubeconfigName: away, kubeconfigKeyName: file}")
        + secret(dead, "away", "file")
        + declared()
        + secret(text)
    )
    done = bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=files)

    assert done.exit_code == 1
    assert done.stdout == f"cluster/{KEY} registered\n"
    lost, empty, away, last = done.stderr.splitlines()
    assert lost == (
        "error: prod/lost: cannot register cluster 'prod/lost': no Secret"
        " 'prod/lost-sveltos-kubeconfig' with its kubeconfig is among the files"
    )
    assert empty.startswith("error: prod/empty: Secret 'prod/empty-sveltos-kubeconfig': ")
    assert away.startswith("error: prod/dead: ")
    assert last == "error: 3 of 4 clusters failed"
    assert [each.key for each in here.records.clusters.all()] == [KEY]


def test_runs_no_program_that_a_file_names(
    bellhop: Bellhop, kubeconfig: Path, tmp_path: Path
) -> None:
    """A person who may write into the repository may not run programs in the pipeline."""
    ran = tmp_path / "ran"
    plugin = (
        "users:\n- name: admin\n  user:\n    exec:\n"
        "      apiVersion: client.authentication.k8s.io/v1\n"
        f"      command: /bin/touch\n      args: [{ran}]\n"
    )
    text = kubeconfig.read_text().partition("users:")[0] + plugin
    done = bellhop("register", "cluster", "-f", "-", stdin=declared() + secret(text))

    assert done.exit_code == 1
    assert not ran.exists()


def test_names_what_other_labels_would_remove(bellhop: Bellhop, here: Installation) -> None:
    """A typing mistake in the repository removes nothing until it is released."""
    here.declare.register(fleet.cluster("prod", "eu-1", env="production"))
    bellhop("apply", "-f", "-", stdin=profile("clusterSelector: {matchLabels: {env: production}}"))
    head = fleet.profile(
        name="own", trigger="", cluster="", object="", contents=(), destinations=(KEY,)
    )
    here.records.profiles.put(head)
    wrong = declared(labels="{env: prodution}")
    done = bellhop("register", "cluster", "-f", "-", stdin=wrong, BELLHOP_HOLD_FROM="1")

    assert done.stdout == f"cluster/{KEY} configured\n"
    assert "they are held: nothing is removed" in done.stderr


def _two_with_a_profile(bellhop: Bellhop, here: Installation) -> tuple[str, str]:
    """Have a profile in two clusters; return their documents as they are, and mistyped."""
    keys = ("prod/eu-1", "prod/eu-2")
    for key in keys:
        here.declare.register(fleet.cluster("prod", key.partition("/")[2], env="production"))
    bellhop("apply", "-f", "-", stdin=profile("clusterSelector: {matchLabels: {env: production}}"))
    head = fleet.profile(
        name="own", trigger="", cluster="", object="", contents=(), destinations=keys
    )
    here.records.profiles.put(head)
    names = [key.partition("/")[2] for key in keys]
    right = "".join(declared(name, labels="{env: production}") for name in names)
    return right, right.replace("env: production", "env: prodution")


def test_one_mistake_in_all_files_is_one_change(bellhop: Bellhop, here: Installation) -> None:
    """A profile that would lose all clusters is held, though each of them loses one add-on."""
    right, wrong = _two_with_a_profile(bellhop, here)

    done = bellhop("register", "cluster", "-f", "-", stdin=wrong)

    assert done.exit_code == 0
    [found] = [each.value for each in here.records.removals.all()]
    assert found.rule == ("", "own")
    assert "they are held: nothing is removed" in done.stderr
    bellhop("register", "cluster", "-f", "-", stdin=right)
    assert list(here.records.removals.all()) == []


def test_a_dry_run_lists_what_labels_in_files_would_remove(
    bellhop: Bellhop, here: Installation
) -> None:
    """It says of each cluster what would become of it, and calls none."""
    right, wrong = _two_with_a_profile(bellhop, here)
    bellhop("register", "cluster", "-f", "-", stdin=right)

    same = bellhop("register", "cluster", "-f", "-", "--dry-run", stdin=right)
    assert same.stdout == (
        "cluster/prod/eu-1 unchanged (dry run)\ncluster/prod/eu-2 unchanged (dry run)\n"
    )
    assert same.stderr == ""

    dry = bellhop("register", "cluster", "-f", "-", "--dry-run", stdin=wrong + declared("new"))
    assert dry.exit_code == 1
    assert "cluster/prod/eu-2 configured (dry run)\n" in dry.stdout
    assert "loses 2 of 2 add-ons (1 profile) in prod/eu-1, prod/eu-2\n" in dry.stderr
    assert "would be held" in dry.stderr
    assert "error: prod/new: cannot register cluster 'prod/new': no Secret" in dry.stderr
    assert {each.labels["env"] for each in here.records.clusters.all()} == {"production"}


def test_a_cluster_of_a_cloud_is_registered_by_its_own_command(
    bellhop: Bellhop, here: Installation
) -> None:
    """Files have no account of a cloud."""
    identity = "{provider: AWS, endpoint: x, aws: {clusterName: one}}"
    done = bellhop(
        *("register", "cluster", "-f", "-", "--no-forwarder"),
        stdin=declared(spec=f"{{workloadIdentity: {identity}}}"),
    )

    assert (done.exit_code, "`bellhop register cluster-eks`" in done.stderr) == (1, True)
    assert not here.records.clusters.any()


def test_a_dry_run_belongs_to_files(bellhop: Bellhop) -> None:
    """One cluster that is registered by its name has no dry run."""
    done = bellhop("register", "cluster", "prod/eu-1", "--dry-run")

    assert (done.exit_code, "belong to -f" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "it has no SveltosCluster", id="nothing"),
        pytest.param(
            declared() * 2, "cluster 'prod/eu-1' is at standard input, document 2,", id="twice"
        ),
        pytest.param(declared(spec="{pased: true}"), "did you mean 'paused'?", id="unknown field"),
        pytest.param(
            declared(spec="{pullMode: true}"), "pullMode is not supported", id="pull mode"
        ),
        pytest.param(declared("EU_1"), "is not a name", id="name"),
        pytest.param(
            "\nkind: ConfigMap", "clusters are registered from a SveltosCluster", id="kind"
        ),
        pytest.param("\n- 1", "clusters are registered from a SveltosCluster", id="list"),
    ],
)
def test_registers_nothing_when_a_document_is_wrong(
    bellhop: Bellhop, state: Path, text: str, said: str
) -> None:
    """With its place, before any cluster is asked."""
    done = bellhop("register", "cluster", "-f", "-", stdin=declared("other") + text if text else "")

    assert (done.exit_code, said in done.stderr, done.stdout) == (2, True, "")
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("prod/eu-1", "-f", "x"), "name either one cluster", id="both"),
        pytest.param(("-f", "x", "--labels", "a=b"), "--labels is for one cluster", id="labels"),
        pytest.param(("prod/eu-1", "--renew"), "belong to -f", id="renew"),
        pytest.param(("prod/eu-1",), "give the cluster's --kubeconfig", id="no kubeconfig"),
    ],
)
def test_refuses_options_that_make_no_sense(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    """Before a file is read."""
    done = bellhop("register", "cluster", *arguments)

    assert (done.exit_code, said in done.stderr) == (2, True)


def test_of_two_names_of_one_cluster_one_is_registered(
    bellhop: Bellhop, here: Installation, kubeconfig: Path
) -> None:
    """Both may have stepped back: they are attempted again, one by one, and the other is named."""
    text = kubeconfig.read_text()
    names = ("first", "last")
    files = "".join(declared(each) + secret(text, f"{each}-sveltos-kubeconfig") for each in names)

    done = bellhop("register", "cluster", "-f", "-", "--no-forwarder", stdin=files)

    assert done.exit_code == 1
    [one] = here.records.clusters.all()
    assert f"it is cluster '{one.key}' already" in done.stderr
    assert "error: 1 of 2 clusters failed" in done.stderr
