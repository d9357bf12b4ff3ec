"""The scenes of the demo, and the timeline that it prints from the event log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis import timeline
from bellhop.state.event_log import Entry
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.cluster import Cluster

SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")
POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")

_AGENT = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "agent")
_OLD, _NEW = "agent:2.4.1", "agent:2.5.0"
_FIRST, _EDITED = (_OLD, ""), (_NEW, _OLD)
"""The agents of staging and production, as the promotion of the demo goes on."""

_BALANCED = ObjectKey(SERVICE, "default", "my-lb-service")
_EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
_PATIENCE = 30.0
_MARKS = {
    "rang": ("cyan", "changed"),
    "gone": ("cyan", "deleted"),
    "matched": ("blue", "matched"),
    "unmatched": ("blue", "unmatched"),
    "rendered": ("magenta", "rendered"),
    "applied": ("green", "applied"),
    "withdrawn": ("magenta", "withdrawn"),
    "removed": ("yellow", "removed"),
    "failed": ("red", "failed"),
}


def next_step(*, kept: bool) -> str:
    """Say what to try next: to leave the demo running only where it is not."""
    own = "docs/tutorial/two-clusters.md to run it on your own clusters."
    these = "docs/tutorial/first-fleet.md" if kept else "make demo KEEP=1"
    return f"Try next: {these} to play with these clusters, or {own}"


class Scenes:
    """Plays the examples of the docs on a stand and prints what happens."""

    def __init__(
        self, console: Console, stand: Stand, source: Cluster, destination: Cluster
    ) -> None:
        self._console = console
        self._stand = stand
        self._source = User(source.kubeconfig())
        self._destination = User(destination.kubeconfig())
        self._clusters = (source, destination)
        self._mark = ""
        self._begun = time.monotonic()

    def play(self) -> None:
        self._set_the_stage()
        self._discover_services("service-discovery", "EventTrigger")
        self._stand.do("delete", "-f", str(_EXAMPLES / "service-discovery"))
        self._discover_services("service-discovery-eventbasedaddon", "EventBasedAddOn")
        self._guard_services()
        self._publish_services()
        self._promote_a_release()
        self._console.print(
            "\n[bold]That was Bellhop:[/bold] a change in one cluster deployed add-ons, there or in"
            " another one, and its end removed them; a change of yours went from stage to stage."
        )

    def play_first(self) -> None:
        """Play the scene that the README shows."""
        self._set_the_stage()
        self._discover_services("service-discovery", "EventTrigger")

    def suggest(self) -> None:
        """Say what to try next where nothing is left running."""
        self._console.print(next_step(kept=False))

    def invite(self) -> None:
        """Say how to play with what is left running."""
        folder = self._stand.folder
        said = {
            "PATH": f"{Path(sys.executable).parent}:$PATH",
            "KUBECONFIG": folder / "source.kubeconfig",
            "BELLHOP_STATE": self._stand.state,
        }
        self._console.print("\n[bold]It is all still running.[/bold] In another terminal:")
        for name, value in said.items():
            self._console.print(f"  export {name}={value}", soft_wrap=True)
        for command in ("bellhop get clusters", "bellhop show events --follow"):
            self._console.print(f"  {command}")
        self._console.print(
            f"destination's kubeconfig is {folder / 'destination.kubeconfig'}.\n"
            f"{next_step(kept=True)}\n"
            "Ctrl-C ends everything and leaves nothing behind.",
            soft_wrap=True,
        )

    def close(self) -> None:
        """Close the clients of the clusters."""
        self._stand.close()
        self._source.close()
        self._destination.close()

    # Scenes ---------------------------------------------------------------------------------

    def _set_the_stage(self) -> None:
        source, destination = self._clusters
        with self._console.status("Starting Bellhop and registering both clusters …"):
            self._stand.serve()
            self._stand.register(source, namespace="demo", labels="env=production")
            self._stand.register(destination, namespace="demo", labels="dep=eng", forward=False)
        self._title("Two clusters, registered through the CLI")
        self._console.print(self._stand.do("get", "clusters").rstrip(), markup=False)

    def _discover_services(self, example: str, form: str) -> None:
        self._title(f"Cross-cluster service discovery, as {form}")
        self._declare(example)
        self._step("A Service of type LoadBalancer is created in source, and gets an address")
        self._source.create(_service("my-lb-service", "default", 60000, kind="LoadBalancer"))
        self._source.give_address(_BALANCED, "34.172.32.172")
        self._until(
            "its twin and its Endpoints are in destination",
            lambda: (
                self._external_ports(SERVICE) == [60000]
                and self._external_ports(ENDPOINTS) == [60000]
            ),
        )
        self._step("Its port changes")
        self._source.patch(_BALANCED, {"spec": {"ports": _ports(60001)}})
        self._until(
            "the twin has followed",
            lambda: (
                self._external_ports(SERVICE) == [60001]
                and self._external_ports(ENDPOINTS) == [60001]
            ),
        )
        self._step("It is deleted")
        self._source.delete(_BALANCED)
        self._until(
            "both are gone from destination",
            lambda: (
                self._external_ports(SERVICE) is None and self._external_ports(ENDPOINTS) is None
            ),
        )

    def _guard_services(self) -> None:
        self._title("One NetworkPolicy for each labelled Service, in the same cluster")
        self._declare("network-policy")
        for name, port in (("my-service", 80), ("another-service", 443)):
            self._step(f"Service {name} is created with the label sveltos: fv")
            self._source.create(_service(name, "default", port, labels={"sveltos": "fv"}))
            self._until(
                f"NetworkPolicy front-{name} is there", partial(self._has, POLICY, f"front-{name}")
            )
        self._step("Service another-service is deleted")
        self._source.delete(ObjectKey(SERVICE, "default", "another-service"))
        self._until(
            "its NetworkPolicy is gone, the other one stays",
            lambda: (
                not self._has(POLICY, "front-another-service")
                and self._has(POLICY, "front-my-service")
            ),
        )

    def _publish_services(self) -> None:
        self._title("One Ingress for all Services with an https port")
        self._declare("ingress")
        self._step("Two Services are created in namespace eng, with ports 443 and 8443")
        self._source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "eng"}})
        self._source.create(_service("my-service", "eng", 443))
        self._source.create(_service("my-service-2", "eng", 8443))
        self._until(
            "one Ingress serves both",
            lambda: self._paths() == [("/my-service", 443), ("/my-service-2", 8443)],
        )
        self._step("One of them is deleted")
        self._source.delete(ObjectKey(SERVICE, "eng", "my-service-2"))
        self._until(
            "the Ingress serves the other one", lambda: self._paths() == [("/my-service", 443)]
        )

    def _promote_a_release(self) -> None:
        self._title("One change, stage by stage: destination is staging, source is production")
        self._stand.do("label", "cluster", "demo/destination", "env=staging")
        self._declare("promotion")
        self._step("Release 1 goes to the first stage, where it stays for an hour")
        self._until("staging has it, and production has not", lambda: self._agents() == _FIRST)
        self._run("get", "promotions")
        self._step("It is promoted at once, as in an emergency")
        self._run("promote", "promotion", "agent", "--stage", "production", "--force")
        self._until("production has it", lambda: self._agents() == (_OLD, _OLD))
        self._step("Its ConfigMap is edited")
        edited = (_EXAMPLES / "promotion" / "agent.yaml").read_text().replace(_OLD, _NEW)
        self._stand.do("apply", "-f", "-", stdin=edited)
        self._until("staging has it, and production its own", lambda: self._agents() == _EDITED)
        self._run("get", "promotions")
        self._step("The promotion is deleted")
        self._run("delete", "clusterpromotion", "agent")
        self._until("both have left", lambda: self._agents() == ("", ""))
        self._stand.do("label", "cluster", "demo/destination", "env-")

    # What the clusters hold -----------------------------------------------------------------

    def _external_ports(self, gvk: GVK) -> list[int] | None:
        found = self._destination.get(ObjectKey(gvk, "external", "external-my-lb-service"))
        if found is None:
            return None
        ports = found["spec"]["ports"] if gvk == SERVICE else found["subsets"][0]["ports"]
        return [port["port"] for port in ports]

    def _has(self, gvk: GVK, name: str) -> bool:
        return self._source.get(ObjectKey(gvk, "default", name)) is not None

    def _agents(self) -> tuple[str, str]:
        """Return the images of the agent in staging and in production."""
        staging, production = (
            (user.get(_AGENT) or {"data": {"image": ""}})["data"]["image"]
            for user in (self._destination, self._source)
        )
        return staging, production

    def _paths(self) -> list[tuple[str, int]]:
        found = self._source.get(ObjectKey(INGRESS, "default", "ingress"))
        rules = found["spec"]["rules"] if found else []
        return [
            (path["path"], path["backend"]["service"]["port"]["number"])
            for rule in rules
            for path in rule["http"]["paths"]
        ]

    # Printing -------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/bold]")

    def _step(self, text: str) -> None:
        self._console.print(f"\n  {text}")
        self._begun = time.monotonic()

    def _run(self, *arguments: str) -> None:
        """Run a command, and show it with what it prints."""
        self._show(" ".join(arguments), self._stand.do(*arguments))

    def _show(self, command: str, said: str) -> None:
        lines = (f"$ bellhop {command}", *said.splitlines())
        self._console.print("\n".join(f"  {line}" for line in lines), style="dim")

    def _declare(self, example: str) -> None:
        said = self._stand.do("apply", "-f", str(_EXAMPLES / example))
        self._show(f"apply -f docs/examples/{example}", said)
        self._stand.settle("demo/source")

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        ends = time.monotonic() + _PATIENCE
        while not done():
            if time.monotonic() > ends:
                said = self._stand.bellhop("show", "failures").stdout
                raise RuntimeError(f"waited {_PATIENCE:.0f} s in vain until {what}.\n{said}")
            time.sleep(0.005)
        took = (time.monotonic() - self._begun) * 1000
        time.sleep(0.8)  # Entries of the event log are written together, half a second later.
        self._timeline()
        self._console.print(f"    [green]✓[/green] {what} [dim]({took:.0f} ms)[/dim]")

    def _timeline(self) -> None:
        """Print the entries of the event log since the last time."""
        day = datetime.now(UTC).date().isoformat()
        for mark, entry in timeline.read_day(self._stand.records(), day, after=self._mark):
            self._mark = mark
            if entry.trace:
                self._console.print(_line(entry), soft_wrap=True)


def _line(entry: Entry) -> str:
    colour, word = _MARKS.get(entry.what, ("white", entry.what))
    since = entry.context.get("since_ring_ms")
    clock = f"{since:8.1f} ms" if since is not None else " " * 11
    key = ObjectKey.parse(entry.object) if entry.object else None
    place = f"{key.gvk.kind} {key.namespace}/{key.name}" if key else ""
    triggers = ", ".join(entry.context.get("triggers", []))
    about = {
        "rang": f"{place} in {entry.cluster}",
        "gone": f"{place} from {entry.cluster}",
        "matched": f"{entry.context.get('source')} → {triggers}",
        "unmatched": str(entry.context.get("source")),
        "rendered": entry.detail,
        "withdrawn": str(entry.context.get("profile")),
        "applied": f"{entry.detail} → {entry.cluster}",
        "removed": f"{entry.detail} ← {entry.cluster}",
    }.get(entry.what, entry.detail)
    took = f" [dim]in {entry.took_ms:.1f} ms[/dim]" if entry.took_ms else ""
    return f"    [dim]{clock}[/dim]  [{colour}]{word:<9}[/{colour}] {escape(about)}{took}"


def _service(
    name: str,
    namespace: str,
    port: int,
    *,
    kind: str = "ClusterIP",
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "type": kind,
            "selector": {"app.kubernetes.io/name": name},
            "ports": _ports(port),
        },
    }


def _ports(port: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port, "targetPort": 50001}]
