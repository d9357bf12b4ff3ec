"""A fleet of clusters of both clouds: events of one of them change the add-ons of the others."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.aws.services import Services
from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.cli.conftest import NOWHERE, House, on_aws, on_gcp
from tests.functions.gcp_lab import Project, Stand, balanced, gone, ports
from tests.functions.lab import Account, Lambda
from tests.functions.sender import ClusterSender, to_lambda
from tests.lab.eks import NAME, Eks
from tests.lab.google_container import Gke
from tests.lab.moto import REGION, Moto
from tests.scenarios import ADDRESSES, EXAMPLES, TWIN, WEB
from tests.waiting import await_rights

pytestmark = pytest.mark.thorough

_ACCOUNT = {"namespace": "kube-system", "name": "bellhop"}
_DAY = 86_400


class Fleet:
    """A cluster that sends, two destinations, and the functions that work in them."""

    def __init__(self, source: Cluster, others: Mapping[str, Cluster], folder: Path) -> None:
        self._folder = folder
        self.source = Someone(source.kubeconfig())
        self._others = [Someone(each.kubeconfig()) for each in others.values()]
        self.sender = ClusterSender(source)
        self.kubeconfigs = {"source": source.kubeconfig()}
        self.kubeconfigs |= {name: by_account(each) for name, each in others.items()}

    def register(self, house: House, name: str, labels: str, *how: str) -> str:
        """Register a cluster by its kubeconfig; return the warnings."""
        path = self._folder / name
        path.write_text(json.dumps(self.kubeconfigs[name]))
        place = ("register", "cluster", f"fleet/{name}", "--kubeconfig", str(path))
        done = house(*place, "--labels", labels, *how)
        assert done.exit_code == 0, done.stderr
        return done.stderr

    def make(self) -> dict[str, Any]:
        """Make a balanced Service, and return what a forwarder sends of it."""
        self.source.create(balanced(60000))
        return {"object": self.source.give_address(WEB, "34.172.32.172")}

    def delete(self) -> dict[str, Any]:
        """Delete it, and return what a forwarder sends of it."""
        stored = self.source.get(WEB)
        assert stored
        self.source.delete(WEB)
        return {"gone": gone(stored)}

    def there(self, *expected: int) -> bool:
        """Say whether all others have just these ports."""
        found = [ports(each, key) for each in self._others for key in (TWIN, ADDRESSES)]
        return found == [list(expected)] * 4

    def close(self) -> None:
        for each in (self.source, *self._others):
            each.close()
        self.sender.close()


def by_account(cluster: Cluster) -> dict[str, Any]:
    """Return a kubeconfig with a token of an account, as the how-to says."""
    kubeconfig = cluster.kubeconfig()
    kube = KubeClient(cluster.name, sanitise(kubeconfig, reach=LOCAL), reach=LOCAL)
    group = "rbac.authorization.k8s.io"
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _ACCOUNT})
    kube.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bellhop"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **_ACCOUNT}],
        }
    )
    await_rights(kube, f"{_ACCOUNT['namespace']}/{_ACCOUNT['name']}", [Right("*", "*", "*")])
    token = kube.token_request(_ACCOUNT["namespace"], _ACCOUNT["name"], seconds=_DAY)
    kube.close()
    kubeconfig["users"][0]["user"] = {"token": token}
    return kubeconfig


@pytest.fixture
def managed() -> str:
    """The cluster that asks its cloud who calls; the other one knows its own accounts only."""
    return "gke"


@pytest.fixture
def fleet(
    source_cluster: Cluster,
    destination_cluster: Cluster,
    gke_cluster: Cluster,
    managed: str,
    tmp_path: Path,
) -> Iterator[Fleet]:
    others = {"eks": destination_cluster, "gke": destination_cluster, managed: gke_cluster}
    one = Fleet(source_cluster, others, tmp_path)
    yield one
    one.close()


@pytest.fixture
def stand(
    project: Project,
    gke: Gke,
    gke_cluster: Cluster,
    google_sources: Path,
    google_installed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stand]:
    """Functions that run as a service account, which the project's cluster `own` lets in."""
    key = str(gke.key_file(tmp_path))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key)
    project.environment["GOOGLE_APPLICATION_CREDENTIALS"] = key
    project.emulators["CONTAINER_EMULATOR_HOST"] = gke.address
    authority = base64.b64encode(gke_cluster.ca_pem.encode()).decode()
    gke.describe(
        f"projects/{project.name}/locations/europe-west1/clusters/own",
        {
            "masterAuth": {"clusterCaCertificate": authority},
            "endpoint": gke_cluster.server.removeprefix("https://"),
        },
    )
    one = Stand(project, google_sources, google_installed, tmp_path)
    yield one
    one.close()


@pytest.fixture
def eks(
    moto: Moto, gke: Gke, gke_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Eks]:
    """EKS, of which the cluster is that asks its cloud."""
    with Eks(moto.url) as one:
        monkeypatch.setenv("AWS_ENDPOINT_URL", moto.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_EKS", one.address)
        gke.believe(one.review)
        one.describe(gke_cluster)
        yield one
        gke.believe(lambda _: "")


@pytest.fixture
def functions(account: Account, eks: Eks) -> Iterator[Lambda]:  # noqa: ARG001 - it is found by it
    """Functions that are called by a role of their own, as Lambda calls them."""
    mine = copy.copy(account)
    mine.services = Services(region=REGION, keys=assume(account.services, account.name))
    yield Lambda(mine)
    mine.services.close()


def assume(services: Any, role: str) -> tuple[str, str]:
    """Make a role that may do anything, and return keys of it."""
    iam, any_of = services.client("iam"), {"Version": "2012-10-17"}
    trust = json.dumps({**any_of, "Statement": []})
    made = iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)["Role"]
    allowed = {"Effect": "Allow", "Action": ["*"], "Resource": ["*"]}
    policy = json.dumps({**any_of, "Statement": [allowed]})
    iam.put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=policy)
    sts = services.client("sts")
    credentials = sts.assume_role(RoleArn=made["Arn"], RoleSessionName="function")["Credentials"]
    return credentials["AccessKeyId"], credentials["SecretAccessKey"]


@pytest.mark.timeout(600)
def test_an_installation_on_google_has_clusters_of_both_clouds(
    fleet: Fleet, stand: Stand, tmp_path: Path
) -> None:
    """Its functions get into GKE's as their account, and into others by what is stored."""
    house = on_gcp(tmp_path, stand.project, ingest_url=stand.functions["ingest"].url)
    fleet.register(house, "source", "env=production", "--forwarder-url", NOWHERE)
    fleet.register(house, "eks", "dep=eng", "--no-forwarder")
    words = "register cluster-gke fleet/gke --gke own --no-forwarder --labels dep=eng"
    done = house(*words.split())
    assert done.exit_code == 0, done.stderr
    assert list(house.here.secrets.names()) == ["kubeconfig/fleet/eks", "kubeconfig/fleet/source"]
    assert house("apply", "-f", str(EXAMPLES / "service-discovery")).exit_code == 0

    fleet.sender.send(fleet.make())
    stand.wait(lambda: fleet.there(60000))
    fleet.sender.send(fleet.delete())
    stand.wait(fleet.there)
    house.opened.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("managed", ["eks"])
def test_an_installation_on_aws_has_clusters_of_both_clouds(
    fleet: Fleet, account: Account, functions: Lambda, eks: Eks, tmp_path: Path
) -> None:
    """Its functions get into EKS' as their role, and into Google's by an account's token."""
    own = {"AWS_ENDPOINT_URL": account.moto.url, "AWS_ENDPOINT_URL_EKS": eks.address}
    house = on_aws(tmp_path, account, environment=own)
    refused = house("register", "cluster-gke", "fleet/gke", "--gke", "own")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "`bellhop register cluster` takes a kubeconfig" in refused.stderr
    mine = fleet.kubeconfigs["gke"]
    people = json.loads(json.dumps(mine))
    people["users"][0]["user"]["token"] = "ya29.a0ASRK0Gb"
    (tmp_path / "people").write_text(json.dumps(people))
    refused = house("register", "cluster", "fleet/gke", "--kubeconfig", str(tmp_path / "people"))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "user.token: is one that `gcloud` has made, and ends within an hour" in refused.stderr
    assert house.here.records.clusters.get("fleet/gke") is None

    fleet.register(house, "source", "env=production", "--forwarder-url", NOWHERE)
    warned = fleet.register(house, "gke", "dep=eng", "--no-forwarder")
    assert "its credentials end at " in warned
    words = f"register cluster-eks fleet/eks --eks {NAME} --no-forwarder --labels dep=eng"
    done = house(*words.split())
    assert done.exit_code == 0, done.stderr
    assert list(house.here.secrets.names()) == ["kubeconfig/fleet/gke", "kubeconfig/fleet/source"]
    assert house("apply", "-f", str(EXAMPLES / "service-discovery")).exit_code == 0

    eks.judged.clear()
    by = to_lambda(functions)
    fleet.sender.send(fleet.make(), by)
    functions.pump(until=lambda: fleet.there(60000))
    fleet.sender.send(fleet.delete(), by)
    functions.pump(until=fleet.there)
    assert {who.split("/")[1] for who in eks.judged.values()} == {account.name}
    house.opened.close()
