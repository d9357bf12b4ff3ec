"""Pages for operators, played: a lost machine, an upgrade under load, and the end of it all."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest
import urllib3

from bellhop.core.gvk import GVK, ObjectKey
from tests.docs.terminal import Terminal, Typed, typed
from tests.flow.conftest import EXAMPLES, Flow
from tests.flow.test_renewing import knock
from tests.scenarios import POLICY, SERVICE, service
from tests.waiting import eventually

# Each command of a page is a process of its own.
pytestmark = pytest.mark.timeout(600)

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
NAMESPACE = GVK("", "v1", "Namespace")
SOURCE = "fleet/source"
PASSPHRASE = "four words and a number 7\n"
SLACK = "{apiVersion: v1, kind: Secret, metadata: {name: slack}, stringData: {SLACK_TOKEN: x}}"


class Reader:
    """Somebody who types the commands of a page, in its order, as far as they are asked to."""

    def __init__(self, page: str, terminal: Terminal, **names: str) -> None:
        self._terminal = terminal
        self._names = {"prod/eu-1": SOURCE, **names}
        self._lines = typed(HOW_TO / page)

    def type(self, beginning: str) -> None:
        """Type the next command of the page, which begins so; it must succeed."""
        line = self._lines.pop(0)
        assert line.command.startswith(beginning), line.command
        command = line.command
        for name, ours in self._names.items():
            command = command.replace(name, ours)
        self._terminal.follow(Typed(command, line.shown))

    def rest(self) -> list[str]:
        """Return what is left to type."""
        return [line.command for line in self._lines]


@pytest.fixture
def terminal(flow: Flow) -> Iterator[Terminal]:
    """A shell of the operator, in the folder of the installation."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with Terminal({**flow.stand.environment, "PATH": path}, flow.stand.folder) as one:
        yield one


def policies(flow: Flow) -> dict[str, str]:
    """Return the deployed policies, each with its uid."""
    found = [each["metadata"] for each in flow.source.list(POLICY)]
    return {each["name"]: each["uid"] for each in found}


def create(flow: Flow, *names: str) -> None:
    for name in names:
        flow.source.create(service(name, sveltos="fv"))


def end(flow: Flow, name: str) -> None:
    flow.source.delete(ObjectKey(SERVICE, "default", name))


def manifests(flow: Flow, folder: str) -> Path:
    """Copy the example to where the operator keeps it."""
    return Path(shutil.copytree(EXAMPLES / "network-policy", flow.stand.folder / folder))


def change(folder: Path, old: str, new: str) -> None:
    """Change what a trigger deploys."""
    path = folder / "trigger.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def callers(flow: Flow) -> set[str]:
    """Return the accounts that the policies let in."""
    return {
        each["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"]
        for each in flow.source.list(POLICY)
    }


def sends_again(flow: Flow) -> bool:
    """Create another Service, and say whether one of these has had its effect by now."""
    create(flow, f"after-{time.monotonic_ns()}")
    time.sleep(0.5)
    with suppress(urllib3.exceptions.HTTPError):
        knock(flow)
    return any(name.startswith("front-after-") for name in policies(flow))


def heard(flow: Flow, policy: str) -> bool:
    """Have the forwarder read its Secret now, and say whether an event has had its effect."""
    # Its certificate is renewed meanwhile.
    with suppress(urllib3.exceptions.HTTPError):
        knock(flow)
    return policy in policies(flow)


def dead_letters(flow: Flow) -> str:
    return flow.stand.do("dead-letters", "list", "-o", "json").strip()


def test_a_lost_machine_is_restored_with_nothing_lost(flow: Flow, terminal: Terminal) -> None:
    """Events, ends and changes after the backup all come right; what lives keeps its uid."""
    (flow.stand.folder / "passphrase").write_text(PASSPHRASE)
    folder = manifests(flow, "fleet")
    page = Reader("back-up-and-restore.md", terminal)
    flow.apply("network-policy")
    create(flow, "kept", "ended", "lost")
    eventually("all are there", lambda: len(policies(flow)) == 3)
    create(flow, "meanwhile")
    page.type("bellhop backup")

    create(flow, "late", "brief")
    end(flow, "ended")
    change(folder, "app: internal", "app: changed")
    flow.stand.do("apply", "-f", str(folder))
    eventually("the end is known", lambda: "front-ended" not in policies(flow))
    flow.stand.do("rotate", SOURCE)
    eventually(
        "the change is there", lambda: callers(flow) == {"changed"} and len(policies(flow)) == 5
    )
    before = policies(flow)
    flow.stand.kill("serve")
    flow.stand.close()
    shutil.rmtree(flow.stand.state)
    create(flow, "missed")
    end(flow, "lost")
    end(flow, "brief")

    page.type("bellhop restore")
    flow.stand.serve()
    page.type("bellhop apply")
    expected = {f"front-{name}" for name in ("kept", "meanwhile", "late", "missed")}
    orphans = {"front-brief"}
    eventually("the cluster is right", lambda: policies(flow).keys() - orphans == expected)
    eventually("the change is back", lambda: callers(flow) == {"changed"})
    after = policies(flow)
    assert {name: after[name] for name in expected - {"front-missed"}} == {
        name: before[name] for name in expected - {"front-missed"}
    }
    flow.stand.settle(SOURCE)
    page.type("bellhop resync")
    flow.stand.settle(SOURCE)
    page.type("bellhop show orphans")
    page.type("bellhop delete orphans")
    assert policies(flow) == {name: after[name] for name in expected}
    page.type("bellhop status")
    # The renewal after the restore goes on meanwhile, and an event of these seconds may be missed.
    eventually("its forwarder sends events again", lambda: sends_again(flow))
    assert dead_letters(flow) == "[]"
    page.type("bellhop --state drill restore")
    page.type("bellhop --state drill get clusters")
    assert not page.rest()


class Writer:
    """Somebody who creates a Service again and again, and ends every fifth one before it."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.count = 0
        self.living: set[str] = set()

    def wait_for(self, more: int) -> None:
        goal = self.count + more
        eventually("more is written", lambda: self.count >= goal)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._stop.wait(0.03):
            name = f"web-{self.count}"
            manifest = service(name, sveltos="fv")
            # Headless: a cluster has 254 addresses.
            manifest["spec"]["clusterIP"] = "None"
            self._flow.source.create(manifest)
            self.living.add(name)
            self.count += 1
            if self.count % 5 == 0:
                ended = f"web-{self.count - 3}"
                end(self._flow, ended)
                self.living.remove(ended)


def test_serve_is_replaced_while_the_cluster_changes(flow: Flow, terminal: Terminal) -> None:
    """Each object has its add-on, written once; nothing is dead-lettered, no one is left over."""
    (flow.stand.folder / "passphrase").write_text(PASSPHRASE)
    page = Reader("upgrade.md", terminal)
    flow.apply("network-policy")
    page.type("bellhop status")
    second = flow.stand.bellhop("serve", "--listen", "127.0.0.1:0")
    shown = (
        (HOW_TO / "plan-availability.md")
        .read_text()
        .replace("/var/lib/bellhop", str(flow.stand.state))
    )
    assert (second.returncode, second.stderr.removeprefix("error: ") in shown) == (75, True)
    with Writer(flow) as writer:
        for time in range(2):
            writer.wait_for(10)
            assert flow.stand.stop("serve") == 0
            if time == 0:
                page.type("bellhop backup")
            writer.wait_for(20)
            flow.stand.serve()
        writer.wait_for(10)

    expected = {f"front-{name}" for name in writer.living}
    eventually("each has its policy", lambda: policies(flow).keys() == expected, patience=60)
    assert {each["metadata"]["generation"] for each in flow.source.list(POLICY)} == {1}
    page.type("bellhop version")
    page.type("bellhop dead-letters list")
    page.type("bellhop status")
    assert dead_letters(flow) == "[]"
    assert not page.rest()


def test_nothing_of_bellhop_is_left_in_a_cluster(flow: Flow, terminal: Terminal) -> None:
    """Add-ons, webhook, rights and namespace go; what users created stays."""
    manifests(flow, "manifests")
    page = Reader("uninstall.md", terminal)
    flow.apply("network-policy")
    create(flow, "one", "two")
    eventually("both are there", lambda: len(policies(flow)) == 2)

    assert flow.source_cluster.remember().mentions("bellhop")
    for command in ("delete", "delete", *["wait"] * 3, "show addons", "deregister"):
        page.type(f"bellhop {command}")
    assert not page.rest()
    # No controller of the lab's cluster ends a namespace that was deleted.
    namespace = flow.source.get(ObjectKey(NAMESPACE, "", "bellhop-system"))
    assert namespace is None or namespace["metadata"]["deletionTimestamp"]
    left = flow.source_cluster.remember().mentions("bellhop", "projectsveltos")
    assert set(left) <= {"namespaces/bellhop-system"}
    assert {"one", "two"} <= set(flow.source.names(SERVICE, "default"))
    flow.stand.do("deregister", "cluster", "fleet/destination")
    assert flow.stand.do("get", "clusters", "-o", "name") == ""
    assert not list((flow.stand.state / "secrets").glob("*.sealed"))


def test_keys_and_tokens_are_replaced(flow: Flow, terminal: Terminal) -> None:
    """After each command of the page events still arrive, and a new folder has new keys."""
    folder = flow.stand.folder
    (folder / "passphrase").write_text(PASSPHRASE)
    (folder / "slack.yaml").write_text(SLACK)
    known = flow.stand.records().clusters.get(SOURCE)
    assert known
    url = known.value.forwarder["url"]
    kubeconfig = f"{folder}/source.kubeconfig --forwarder-url {url}"
    page = Reader("rotate-credentials.md", terminal, **{"eu-1.kubeconfig": kubeconfig})
    flow.apply("network-policy")
    flow.stand.do("sender", "add", SOURCE, "ci")
    for command in ("register", "doctor", "rotate", *["sender"] * 2):
        page.type(f"bellhop {command}")
    create(flow, "one")
    eventually("the first is there", lambda: policies(flow).keys() == {"front-one"})

    assert flow.stand.stop("serve") == 0
    flow.stand.close()
    page.type("bellhop backup")
    page.type("bellhop --state new-state restore")
    create(flow, "two")
    old = flow.stand.state.rename(folder / "old-state")
    (folder / "new-state").rename(flow.stand.state)
    flow.stand.serve()
    eventually("the second is there", lambda: len(policies(flow)) == 2)
    create(flow, "three")
    eventually("the third is there", lambda: heard(flow, "front-three"))
    for name in ("key", "tls/authority.json"):
        assert (old / name).read_bytes() != (flow.stand.state / name).read_bytes()
    page.type("bellhop apply")
    assert not page.rest()
