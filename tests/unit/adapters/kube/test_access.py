"""A cluster opens with what is stored for it, and with what is stored now."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bellhop.adapters.kube import access
from bellhop.adapters.kube.access import FRESH_SECONDS, KubeAccess
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, InvalidError, MissingError
from tests.fakes.clock import Hand
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

CONFIG_MAP = GVK("", "v1", "ConfigMap")
OBJECT = Answer(body={"kind": "ConfigMap"})


class CountedSecrets(dict[str, bytes]):
    """Secrets in memory that count how often each is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def register(self, cluster: str, server: str, token: str = "first") -> str:
        """Store a kubeconfig, as registration does; return the version for the record."""
        document = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        self[f"kubeconfig/{cluster}"] = json.dumps(document).encode()
        return sanitise(document, reach=LOCAL).version

    def read(self, name: str) -> bytes:
        """Read one."""
        self.reads.append(name)
        if name not in self:
            raise MissingError(f"there is no secret '{name}'")
        return self[name]

    def put(self, name: str, value: bytes) -> None:
        """Write one."""
        self[name] = value

    def delete(self, name: str) -> None:
        """Forget one."""
        self.pop(name, None)

    def names(self, prefix: str = "") -> object:
        """List them."""
        return iter(sorted(name for name in self if name.startswith(prefix)))


@pytest.fixture
def secrets() -> CountedSecrets:
    """Start with nothing stored."""
    return CountedSecrets()


@pytest.fixture
def hand() -> Hand:
    """Start anywhere."""
    return Hand()


@pytest.fixture
def opener(secrets: CountedSecrets, hand: Hand) -> KubeAccess:
    """Open what is in `secrets`, by the time of `hand`."""
    return KubeAccess(secrets, reach=LOCAL, seconds=hand)


def test_opens_with_the_stored_kubeconfig(
    opener: KubeAccess, secrets: CountedSecrets, api: ScriptedApi
) -> None:
    """The client talks to the stored server with the stored token."""
    secrets.register("prod/eu-1", api.url)
    api.script = [OBJECT]

    opener.open("prod/eu-1").get(CONFIG_MAP, "web", "a")

    assert secrets.reads == ["kubeconfig/prod/eu-1"]
    assert api.seen[0].headers["Authorization"] == "Bearer first"


def test_a_cluster_without_credentials_is_missing(opener: KubeAccess) -> None:
    """The error names the cluster and says what to do."""
    with pytest.raises(MissingError, match="cluster 'prod/eu-1' has no stored credentials; reg"):
        opener.open("prod/eu-1")


def test_a_stored_kubeconfig_that_is_not_taken_is_invalid(
    opener: KubeAccess, secrets: CountedSecrets
) -> None:
    """It is checked again: it may have been stored by another hand."""
    secrets["kubeconfig/prod/eu-1"] = b"users: []"

    with pytest.raises(InvalidError, match="of cluster 'prod/eu-1': the kubeconfig has no cont"):
        opener.open("prod/eu-1")


def test_keeps_the_client_for_a_minute(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """The secret store is asked once a minute for each cluster."""
    secrets.register("a/b", "https://127.0.0.1:1")
    first = opener.open("a/b")
    hand.at += FRESH_SECONDS - 1

    assert opener.open("a/b") is first
    assert len(secrets.reads) == 1


def test_keeps_the_client_while_the_secret_is_the_same(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """Connections and discovery survive the minute."""
    secrets.register("a/b", "https://127.0.0.1:1")
    first = opener.open("a/b")
    hand.at += FRESH_SECONDS

    assert opener.open("a/b") is first
    assert len(secrets.reads) == 2


def test_makes_a_new_client_when_the_secret_changed(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """A cluster registered again is reached at its new place after a minute at most."""
    secrets.register("a/b", "https://127.0.0.1:1")
    first = opener.open("a/b")
    secrets.register("a/b", "https://127.0.0.1:2")
    hand.at += FRESH_SECONDS

    assert opener.open("a/b") is not first


def test_forgets_at_once_on_request(opener: KubeAccess, secrets: CountedSecrets) -> None:
    """Registration in the same process does not wait a minute; forgetting twice is fine."""
    secrets.register("a/b", "https://127.0.0.1:1")
    first = opener.open("a/b")
    opener.forget("a/b")
    opener.forget("a/b")

    assert opener.open("a/b") is not first


def test_a_cluster_that_was_removed_is_missing_after_a_minute(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """The old client is not used on."""
    secrets.register("a/b", "https://127.0.0.1:1")
    opener.open("a/b")
    secrets.delete("kubeconfig/a/b")
    hand.at += FRESH_SECONDS

    with pytest.raises(MissingError):
        opener.open("a/b")


def test_a_rotated_token_costs_no_failure(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand, api: ScriptedApi
) -> None:
    """Refused credentials are read again at once, within the minute, and the client stays."""
    secrets.register("a/b", api.url)
    client = opener.open("a/b")
    secrets.register("a/b", api.url, token="second")
    hand.at += 10
    api.script = [Answer(401), OBJECT]

    client.get(CONFIG_MAP, "web", "a")

    assert [seen.headers["Authorization"] for seen in api.seen] == ["Bearer first", "Bearer second"]
    assert opener.open("a/b") is client
    assert len(secrets.reads) == 2


def test_another_program_gets_the_name_of_the_server(
    opener: KubeAccess, secrets: CountedSecrets
) -> None:
    """A server behind an ingress is found by it; the account of a tenant's calls is sent, too."""
    secrets.register("a/b", "https://rancher.example/k8s/clusters/c")

    document = json.loads(opener.kubeconfig("a/b", account="team/alice"))

    assert document["clusters"][0]["cluster"]["server"] == "https://rancher.example/k8s/clusters/c"
    user = document["users"][0]["user"]
    assert user == {"token": "first", "as": "system:serviceaccount:team:alice"}


def test_the_maker_of_tokens_gets_the_refused_one(
    secrets: CountedSecrets, hand: Hand, api: ScriptedApi
) -> None:
    """He makes another one before it is read again, as early as that is."""
    secrets.register("a/b", api.url)
    refused_ones: list[tuple[str, str]] = []

    def refused(cluster: str, token: str) -> None:
        refused_ones.append((cluster, token))
        secrets.register(cluster, api.url, token="second")

    opener = KubeAccess(secrets, reach=LOCAL, refused=refused, seconds=hand)
    api.script = [Answer(401), OBJECT, Answer(401)]
    client = opener.open("a/b")
    client.get(CONFIG_MAP, "web", "a")
    with pytest.raises(DeniedError):
        client.get(CONFIG_MAP, "web", "a")

    assert refused_ones == [("a/b", "first")]


def test_refused_credentials_are_read_again_only_now_and_then(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand, api: ScriptedApi
) -> None:
    """A cluster that refuses for good does not turn each call into a billed read."""
    secrets.register("a/b", api.url)
    client = opener.open("a/b")
    hand.at += 10
    api.script = [Answer(401)] * 5

    for _ in range(5):
        with pytest.raises(DeniedError):
            client.get(CONFIG_MAP, "web", "a")

    assert len(secrets.reads) == 2


def test_a_new_registration_is_reached_at_its_new_address_at_once(
    opener: KubeAccess, secrets: CountedSecrets
) -> None:
    """The first message that has read the new record goes there, with no minute in between."""
    first = secrets.register("a/b", "https://127.0.0.1:1")
    old = opener.open("a/b", version=first)
    second = secrets.register("a/b", "https://127.0.0.1:2")

    new = opener.open("a/b", version=second)

    assert new is not old
    assert opener.open("a/b", version=second) is new
    assert opener.open("a/b") is new
    assert len(secrets.reads) == 2


def test_a_version_that_stays_costs_no_read(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """The record says that nothing changed, after whatever time."""
    version = secrets.register("a/b", "https://127.0.0.1:1")
    client = opener.open("a/b", version=version)
    hand.at += 100_000

    assert opener.open("a/b", version=version) is client
    assert len(secrets.reads) == 1


def test_who_has_read_an_old_record_gets_the_new_client(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand
) -> None:
    """It does not go back and forth, nor read the secret each time."""
    old = secrets.register("a/b", "https://127.0.0.1:1")
    new = secrets.register("a/b", "https://127.0.0.1:2")
    client = opener.open("a/b", version=new)

    for _ in range(5):
        assert opener.open("a/b", version=old) is client
        assert opener.open("a/b", version=new) is client
    assert len(secrets.reads) == 2

    hand.at += 10
    assert opener.open("a/b", version=old) is client
    assert len(secrets.reads) == 3


def test_registering_the_same_credentials_again_keeps_the_client(
    opener: KubeAccess, secrets: CountedSecrets
) -> None:
    """Nothing changed: connections and discovery stay."""
    first = secrets.register("a/b", "https://127.0.0.1:1")
    client = opener.open("a/b", version=first)
    second = secrets.register("a/b", "https://127.0.0.1:1")

    assert second == first
    assert opener.open("a/b", version=second) is client


def test_versions_distinguish_credentials_and_no_more() -> None:
    """Another token or place is another version, from which neither can be read."""
    secrets = CountedSecrets()
    versions = {
        secrets.register("a/b", server, token)
        for server in ("https://127.0.0.1:1", "https://127.0.0.1:2")
        for token in ("first", "second")
    }

    assert len(versions) == 4
    assert {len(each) for each in versions} == {32}


def test_a_rotation_that_moves_the_server_forgets_its_kinds(
    opener: KubeAccess, secrets: CountedSecrets, hand: Hand, api: ScriptedApi
) -> None:
    """Another server serves other kinds: what was known of the old one is asked for again."""
    secrets.register("a/b", f"{api.url}/old")
    client = opener.open("a/b")
    carts = {"resources": [{"name": "carts", "kind": "Cart", "namespaced": True}]}
    api.script = [Answer(body=carts)]
    cart = GVK("shop.example", "v1", "Cart")
    assert client.resource(cart) is not None
    secrets.register("a/b", f"{api.url}/new", token="second")
    hand.at += 10

    api.script = [Answer(401), Answer(body={"versions": [], "gitVersion": "v1"})]
    assert client.version() == "v1"
    api.script = [Answer(body={"resources": []}), Answer(body=b"ok")]
    assert client.resource(cart) is None
    assert api.seen[-2].path == "/new/apis/shop.example/v1"


def test_what_was_stored_is_held_to_where_calls_may_go(secrets: CountedSecrets) -> None:
    """In a cloud a stored loopback address is refused, however it was stored."""
    secrets.register("a/b", "http://127.0.0.1:9001/2018-06-01/runtime")

    with pytest.raises(InvalidError, match=r"cluster 'a/b'.*is the machine that calls itself"):
        KubeAccess(secrets, reach=PUBLIC).open("a/b")


def test_threads_share_one_client(opener: KubeAccess, secrets: CountedSecrets) -> None:
    """Sixteen threads that come at once read the secret once."""
    secrets.register("a/b", "https://127.0.0.1:1")
    together = threading.Barrier(16)

    def open_together(_: int) -> object:
        together.wait(10)
        return opener.open("a/b")

    with ThreadPoolExecutor(16) as threads:
        clients = list(threads.map(open_together, range(16)))

    assert len({id(client) for client in clients}) == 1
    assert len(secrets.reads) == 1


def test_keeps_so_many_clients_and_no_more(
    opener: KubeAccess, secrets: CountedSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large fleet, the clusters used last stay open."""
    monkeypatch.setattr(access, "_KEPT", 2)
    for name in "abc":
        secrets.register(f"x/{name}", "https://127.0.0.1:1")
    first = opener.open("x/a")
    opener.open("x/b")

    assert opener.open("x/a") is first
    opener.open("x/c")
    opener.open("x/a")
    opener.open("x/b")
    assert [name[-1] for name in secrets.reads] == ["a", "b", "c", "b"]


def test_clients_of_a_fleet_taken_in_order_stay_open(
    opener: KubeAccess, secrets: CountedSecrets
) -> None:
    """A profile for a thousand clusters goes through them again and again."""
    fleet = [f"x/c{number}" for number in range(1000)]
    versions = [secrets.register(name, "https://127.0.0.1:1") for name in fleet]

    for _ in range(2):
        for name, version in zip(fleet, versions, strict=True):
            opener.open(name, version=version)

    assert len(secrets.reads) == len(fleet)
