"""The page on notifications: typed where a real cluster fails; each receiver's text compared."""

from __future__ import annotations

import email
import email.policy
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.api.health_check import NoticeType
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.extras.health import state
from infra.lab.cluster import Cluster
from tests.docs.test_preview_page import served
from tests.docs.typed import type_page
from tests.fakes.chat import Chat, Post, chat, mail_server
from tests.fakes.incidents import GENIE_KEY, Incidents, incident_managers
from tests.waiting import eventually

__all__ = ["served"]

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/notify.md").read_text()
SHOWN = re.compile(r"^```(text|json) notice=(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EVENT = GVK("", "v1", "Event")


@dataclass
class Places:
    """The receivers: a chat, incident managers, a mailbox, and a cluster's Events."""

    chat: Chat
    post: Post
    kube: KubeClient
    managers: Incidents

    def list_received(self, place: str) -> list[str]:
        """Return all that a receiver got, as the page shows it."""
        bodies = [body for path, _, body in self.chat.taken if path == f"/{place}"]
        match place:
            case "teams":
                return [_card(each) for each in bodies]
            case "program":
                return [json.dumps(each, indent=2) for each in bodies]
            case "mail":
                return [_mail(text) for _, text in self.post.mails]
            case "incidents":
                return self._titles()
            case "event":
                found = self.kube.list(EVENT, namespace="default")
                return [each["message"] for each in found if each["reason"] == "ClusterHealthCheck"]
        return [each["text"] for each in bodies]

    def _titles(self) -> list[str]:
        """Return the titles of open incidents, each only if all three managers have it."""
        events = self.managers.opened.values()
        found = [
            [each["payload"]["summary"] for each in events if "payload" in each],
            [each["message"] for each in events if "message" in each],
            [each["annotations"]["summary"] for each in events if "annotations" in each],
        ]
        return sorted(set.intersection(*map(set, found)))


def _card(body: dict[str, Any]) -> str:
    [attached] = body["attachments"]
    return "\n".join(each["text"] for each in attached["content"]["body"])


def _mail(text: str) -> str:
    read = email.message_from_string(text, policy=email.policy.default)
    lines = read.get_content().splitlines()  # type: ignore[attr-defined]
    return "\n".join([f"Subject: {read['Subject']}", *lines])


@pytest.fixture
def places(destination_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Have Slack be on this machine, and half a second be the minute between two notices."""
    monkeypatch.setattr(state, "PAUSE", timedelta(seconds=0.5))
    kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
    kube = KubeClient("fleet/east", kubeconfig, reach=LOCAL)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}}
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
    uid = kube.apply(node)["metadata"]["uid"]
    kube.merge_status({**node, "status": {"conditions": [ready]}}, uid=uid)
    with chat() as found, mail_server() as post, incident_managers() as managers:
        post.password = "of-your-mailbox"
        monkeypatch.setitem(ENDPOINTS, "Slack", f"{found.url}/slack")  # type: ignore[arg-type]
        events = f"{managers.url}/v2/enqueue"
        monkeypatch.setitem(ENDPOINTS, "PagerDuty", events)  # type: ignore[arg-type]
        monkeypatch.setitem(ENDPOINTS, "Opsgenie", managers.url)  # type: ignore[arg-type]
        yield Places(found, post, kube, managers)
    kube.close()


def of_this_machine(page: str, places: Places) -> str:
    """Return the page with the addresses that its reader has."""
    url, port = places.chat.url, places.post.port
    return (
        page.replace("https://teams.example/of-your-workflow", f"{url}/teams")
        .replace("https://ops.example/notices", f"{url}/program")
        .replace("https://alertmanager.example", f"{places.managers.url}/am")
        .replace("OPSGENIE_API_KEY: of-your-integration", f"OPSGENIE_API_KEY: {GENIE_KEY}")
        .replace("SMTP_HOST: smtp.example", "SMTP_HOST: 127.0.0.1")
        .replace('SMTP_PORT: "587"', f'SMTP_PORT: "{port}"')
    )


def look(done: Callable[[], None]) -> None:
    """Look again until all is as the page says: a reader is slower than we are."""
    last = AssertionError()

    def is_so() -> bool:
        nonlocal last
        try:
            done()
        except AssertionError as error:
            last = error
            return False
        return True

    eventually(lambda: str(last), is_so, patience=60, pause=0.2)


def has_cloud_events(places: Places, place: str, shown: str) -> None:
    """Check that a receiver got what the page shows, where `…` stands for anything."""
    pattern = ".*".join(map(re.escape, shown.strip().split("…")))
    received = places.list_received(place)
    assert any(re.fullmatch(pattern, each.strip(), re.DOTALL) for each in received), received


def follow(text: str, folder: Path, places: Places) -> None:
    """Type the lines between two blocks for the shell, and check who got the text shown."""
    look(lambda: type_page(SHOWN.sub("", text), folder))
    for _, place, shown in SHOWN.findall(text):
        look(lambda place=place, shown=shown: has_cloud_events(places, place, shown))  # type: ignore[misc]


def has_none_open(places: Places) -> None:
    """See that each incident was closed when the cluster recovered."""
    assert places.managers.received
    assert places.managers.opened == {}


def shell(lines: str, folder: Path) -> None:
    """Type what the page writes for the shell."""
    for line in lines.splitlines():
        program, *words = shlex.split(line)
        if program == "bellhop":
            result = CliRunner().invoke(cli, words)
            assert result.exit_code == 0, result.output
        else:
            subprocess.run([program, *words], cwd=folder, check=True)


def test_each_receiver_gets_what_the_page_shows(served: Path, places: Places) -> None:
    """Slack, Teams, a mailbox, a program and a cluster's Events; one that refuses gets it later."""
    page = of_this_machine(PAGE, places)
    first, *rest = re.split(r"```sh\n(.*?)```\n", page, flags=re.DOTALL)
    type_page(first, served)
    for lines, text in zip(rest[::2], rest[1::2], strict=True):
        if "80000" in lines:
            places.chat.answer = b'{"ok": false, "error": "token_revoked"}'
        if "xoxb" in lines:
            places.chat.answer = b'{"ok": true}'
        shell(lines, served)
        follow(text, served, places)

    look(lambda: has_none_open(places))
    assert {token for path, token, _ in places.chat.taken if path == "/program"} == {
        "Bearer of-your-program"
    }
    written = " ".join(CliRunner().invoke(cli, ["describe", "clusterhealthcheck"]).output.split())
    for secret in ("xoxb", "of-your", "ann@example.com"):
        assert secret not in written


def test_every_place_is_named() -> None:
    """The table has each type that a notification may have."""
    assert [each for each in get_args(NoticeType) if f"| `{each}` |" not in PAGE] == []
