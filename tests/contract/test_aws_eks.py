"""An EKS cluster is reached by the caller's role, and nothing of it is stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, urlsplit
from uuid import uuid4

import pytest

from bellhop.adapters.aws.eks import KEPT_SECONDS, EksCluster, EksClusters
from bellhop.adapters.aws.services import Services
from bellhop.adapters.kube.access import KubeAccess
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError, MissingError, TemporaryError
from bellhop.registration.managed_clusters import EKS, GKE, ClusterRequest
from bellhop.runtime.aws.access import OwnEks
from bellhop.runtime.cloud.managed import MadeKubeconfigs
from tests.aws_fixtures import Asked
from tests.contract.rigs.aws import Rig
from tests.fakes.clock import Hand
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY

STORED = Kubeconfig(server="https://10.0.0.1:6443", token="stored")
PLACE = "kubeconfig/prod/eu-1"
THEIRS = "arn:aws:iam::210987654321:role/bellhop"
Made = MadeKubeconfigs[EksCluster]


@pytest.fixture
def arn(hurried: Services) -> str:
    """The ARN of an EKS cluster."""
    answer = hurried.client("eks").create_cluster(
        name=f"prod-{uuid4().hex[:8]}",
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": ["subnet-1"]},
    )
    found: str = answer["cluster"]["arn"]
    return found


@pytest.fixture
def arns(arn: str) -> dict[str, str]:
    """The records of clusters."""
    return {"prod/eu-1": arn}


@pytest.fixture
def secrets(aws: Rig, hurried: Services, arns: dict[str, str], hand: Hand) -> Made:
    def found(cluster: str) -> EksCluster | None:
        return EksCluster(arns[cluster]) if cluster in arns else None

    return MadeKubeconfigs(aws.secrets(), EksClusters(hurried, seconds=hand), found)


def token_of(content: bytes) -> str:
    found: str = json.loads(content)["users"][0]["user"]["token"]
    return found


def test_makes_a_kubeconfig_that_is_taken(secrets: Made, hurried: Services, arn: str) -> None:
    """It leads where EKS says, and passes the validation of every kubeconfig."""
    described = hurried.client("eks").describe_cluster(name=arn.rpartition("/")[2])["cluster"]
    document = json.loads(secrets.read(PLACE))

    cluster = document["clusters"][0]["cluster"]
    assert cluster["server"] == described["endpoint"]
    assert cluster["certificate-authority-data"] == described["certificateAuthority"]["data"]
    assert sanitise(document, reach=LOCAL).token.startswith("k8s-aws-v1.")


def test_the_token_says_who_calls_and_for_which_cluster(secrets: Made, arn: str) -> None:
    """It is a request to STS of one minute, whose signature holds only for this cluster's name."""
    encoded = token_of(secrets.read(PLACE)).removeprefix("k8s-aws-v1.")
    address = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = dict(parse_qsl(address.query))
    day = query["X-Amz-Date"][:8]

    assert "=" not in encoded
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-Expires"] == "60"
    assert query["X-Amz-Credential"] == f"{ACCESS_KEY}/{day}/{REGION}/sts/aws4_request"
    signature = query.pop("X-Amz-Signature")
    assert signature == signed(query, address.netloc, arn.rpartition("/")[2])
    assert signature != signed(query, address.netloc, "another")


def signed(query: dict[str, str], host: str, cluster: str) -> str:
    """Sign as AWS' signature version 4 is written down."""

    def digest(key: bytes, text: str) -> bytes:
        return hmac.new(key, text.encode(), hashlib.sha256).digest()

    day = query["X-Amz-Date"][:8]
    asked = "&".join(f"{key}={quote(query[key], safe='-_.~')}" for key in sorted(query))
    headers = f"host:{host}\nx-k8s-aws-id:{cluster}\n\nhost;x-k8s-aws-id"
    canonical = f"GET\n/\n{asked}\n{headers}\n{hashlib.sha256(b'').hexdigest()}"
    scope = f"{day}/{REGION}/sts/aws4_request"
    whole = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope.split("/"):
        key = digest(key, part)
    return digest(key, f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{whole}").hex()


def test_a_cluster_may_be_in_another_region(aws: Rig, hurried: Services) -> None:
    """EKS and STS are asked where the cluster is, wherever Bellhop runs."""
    answer = hurried.client("eks", "us-east-2").create_cluster(
        name=f"far-{uuid4().hex[:8]}",
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": ["subnet-1"]},
    )

    content = MadeKubeconfigs(
        aws.secrets(), EksClusters(hurried), lambda _: EksCluster(answer["cluster"]["arn"])
    ).read(PLACE)

    encoded = token_of(content).removeprefix("k8s-aws-v1.")
    address = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    assert "%2Fus-east-2%2Fsts%2F" in address


def test_a_cluster_of_another_account_is_reached_by_a_role_there(
    hurried: Services, arn: str, hand: Hand, asked: Asked
) -> None:
    """EKS is asked in that account, and the token says who signed it: the role that is assumed."""
    name = arn.rpartition("/")[2]
    theirs = hurried.assuming(THEIRS, "an-id", doing="make a cluster")
    subnets = {"subnetIds": ["subnet-1"]}
    made = theirs.client("eks").create_cluster(
        name=name, roleArn="arn:aws:iam::210987654321:role/eks", resourcesVpcConfig=subnets
    )["cluster"]
    theirs.close()
    clusters = EksClusters(hurried, seconds=hand)
    asked()

    found = clusters.find(name, REGION, THEIRS, "an-id")
    made_for = clusters.kubeconfig(found)
    clusters.kubeconfig(found)

    assert found == EksCluster(made["arn"], THEIRS, "an-id")
    assert found.arn != arn
    encoded = made_for.token.removeprefix("k8s-aws-v1.")
    query = dict(parse_qsl(urlsplit(base64.urlsafe_b64decode(encoded + "==").decode()).query))
    assert ACCESS_KEY not in query["X-Amz-Credential"]
    assert query["X-Amz-Security-Token"]
    assert asked() == {"sts:POST": 2, "eks:GET": 2}


@pytest.mark.parametrize(
    ("role", "external_id", "said"),
    [
        ("arn:aws:iam::1:role/x", "", "'arn:aws:iam::1:role/x' is no ARN of a role"),
        (THEIRS, "a b", "'a b' is no external ID"),
    ],
)
def test_what_is_no_role_is_refused(
    hurried: Services, asked: Asked, role: str, external_id: str, said: str
) -> None:
    """Nobody is asked to assume it."""
    with pytest.raises(InvalidError, match=said):
        EksClusters(hurried).find("prod", REGION, role, external_id)
    assert asked() == {}


def test_one_kubeconfig_is_given_out_for_a_while(secrets: Made, asked: Asked, hand: Hand) -> None:
    """A client is kept as long as its credentials stay what they are; EKS is asked rarely."""
    first = secrets.read(PLACE)
    hand.at += KEPT_SECONDS - 1
    assert secrets.read(PLACE) == first
    assert asked().get("eks:GET") == 1

    hand.at += 1
    secrets.read(PLACE)
    assert asked() == {"eks:GET": 1}


def test_other_clusters_are_reached_by_what_is_stored(secrets: Made, asked: Asked) -> None:
    """Their kubeconfig, and every other secret, is the secret store's own affair."""
    content = json.dumps(STORED.to_dict()).encode()
    secrets.put("kubeconfig/lab/one", content)
    secrets.put("prod/eu-1", b"no kubeconfig")
    asked()

    assert secrets.read("kubeconfig/lab/one") == content
    assert secrets.read("prod/eu-1") == b"no kubeconfig"
    assert asked() == {"secretsmanager:GetSecretValue": 2}
    assert list(secrets.names()) == ["kubeconfig/lab/one", "prod/eu-1"]
    secrets.delete("kubeconfig/lab/one")
    with pytest.raises(MissingError):
        secrets.read("kubeconfig/lab/one")


def test_a_cluster_that_eks_does_not_know_is_missing(
    secrets: Made, hurried: Services, arn: str
) -> None:
    """It was deleted there, and Bellhop still has it."""
    hurried.client("eks").delete_cluster(name=arn.rpartition("/")[2])

    with pytest.raises(MissingError, match="there is no EKS cluster"):
        secrets.read(PLACE)


def test_a_namesake_in_this_account_is_not_taken_for_it(
    secrets: Made, arns: dict[str, str], arn: str
) -> None:
    """As after a move to another account: EKS is asked by name, and knows only its own."""
    arns["prod/eu-1"] = arn.replace("123456789012", "210987654321")

    with pytest.raises(InvalidError, match="the account that is called has another one"):
        secrets.read(PLACE)


@pytest.mark.parametrize(
    "wrong", ["prod", "arn:aws:eks:eu-west-1:1:cluster/x", "arn:aws:s3:::bucket", "x" * 5000]
)
def test_what_is_no_arn_is_refused(
    secrets: Made, arns: dict[str, str], asked: Asked, wrong: str
) -> None:
    """Nobody is asked for it."""
    arns["prod/eu-1"] = wrong

    with pytest.raises(InvalidError, match="this is not the ARN of one"):
        secrets.read(PLACE)
    assert asked() == {}


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, hurried: Services) -> Iterator[Services]:
    """Services on a machine that has no credentials, nor anybody to ask for some."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    endpoint = hurried.client("sts").meta.endpoint_url
    services = Services(region=REGION, endpoint=endpoint)
    yield services
    services.close()


def test_without_credentials_nothing_is_signed(nobody: Services) -> None:
    """The error asks the caller to log in."""
    with pytest.raises(TemporaryError, match="cannot sign in: AWS does not accept the credentials"):
        nobody.signed("sts", "Action=GetCallerIdentity", {}, doing="sign in", region=REGION)


def test_a_token_that_is_refused_is_given_out_no_more(
    hurried: Services, arn: str, hand: Hand, asked: Asked
) -> None:
    """A caller that comes late with the same token gets the one that was made since."""
    clusters = EksClusters(hurried, seconds=hand)
    cluster = EksCluster(arn)
    first = clusters.kubeconfig(cluster)
    clusters.refused(cluster, first.token)
    second = clusters.kubeconfig(cluster)
    clusters.refused(cluster, "an older one")

    assert first is not second is clusters.kubeconfig(cluster)
    assert asked().get("eks:GET") == 2


def test_a_client_is_kept_until_the_next_token(secrets: Made, hand: Hand) -> None:
    """The access of every cluster takes it for a secret store."""
    access = KubeAccess(secrets, reach=LOCAL, seconds=hand)
    first = access.open("prod/eu-1")
    hand.at += KEPT_SECONDS / 2

    assert access.open("prod/eu-1") is first


def test_a_workload_identity_finds_a_cluster_in_the_region_of_the_functions(
    hurried: Services, arn: str
) -> None:
    """Its kubeconfig leads there; a cluster of another cloud is refused."""
    own = OwnEks(hurried)

    found = own.find(ClusterRequest(EKS, arn.rpartition("/")[2]))

    assert found.name == arn
    assert found.kubeconfig.token
    with pytest.raises(InvalidError, match="has no account of Google Cloud"):
        own.find(ClusterRequest(GKE, "projects/a/locations/b/clusters/c"))
    with pytest.raises(MissingError):
        own.find(ClusterRequest(EKS, "nobody", REGION))
