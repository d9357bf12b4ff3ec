"""The events of the golden fleet, and the commands that are typed meanwhile."""

from __future__ import annotations

from datetime import timedelta

from bellhop.errors import UnreachableError
from bellhop.ports.queue import Again, Message
from tests.fakes.fleet import cloud_event, service, with_address
from tests.golden.cli.world import Scene, World

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def register(world: World) -> None:
    """Register two production clusters and one for staging, whose API server is away."""
    fleet = world.fleet
    fleet.repositories.put("web", "1.0.0", "1.1.0")
    for name, env in {"east": "production", "west": "production", "lab": "staging"}.items():
        fleet.register(name, env=env)
    world.work()


def work(world: World) -> None:
    """Work for a minute, often enough for what waits for something."""
    for _ in range(6):
        world.work(MINUTE / 6)


def send_events(world: World) -> None:
    """Have Services and Namespaces appear in east, and a build reported."""
    for name in ("ready", "pending"):
        labels = {"name": name, "namespace": "default", "labels": {"tier": "web"}}
        stored = service(name, metadata=labels)
        world.fleet.write("east", with_address(stored) if name == "ready" else stored)
    team = {"name": "blue", "labels": {"team": "blue"}}
    world.fleet.write("east", {"apiVersion": "v1", "kind": "Namespace", "metadata": team})
    world.fleet.tell("east", cloud_event("shop/front"))
    work(world)


def lose_lab(world: World) -> None:
    """Have the API server of the staging cluster answer no more."""
    error = UnreachableError("cannot call cluster 'fleet/lab': connection refused")
    world.fleet.access.clusters["fleet/lab"].fail_with(error)
    world.clock.advance(HOUR)
    work(world)


def find_lab(world: World) -> None:
    """Have it answer again."""
    world.fleet.access.clusters["fleet/lab"].fail_with(None)
    world.clock.advance(HOUR)
    work(world)


def lose_services(world: World) -> None:
    """Have twelve more Services in east, nine of which are deleted at once."""
    labels = {"namespace": "default", "labels": {"tier": "web"}}
    stored = [
        world.fleet.write(
            "east", with_address(service("shop", metadata={**labels, "name": f"shop-{number:02}"}))
        )
        for number in range(12)
    ]
    work(world)
    for each in stored[:9]:
        world.fleet.drop("east", each)
    work(world)


def bury(world: World) -> None:
    """Have a message fail as often as one is tried."""
    queue = world.fleet.queues["evaluate"]
    queue.publish([Message({"object": "x"}, "group")])
    for _ in range(world.fleet.settings.attempts):
        (delivery,) = queue.receive(1, wait=timedelta(seconds=5))
        queue.settle(delivery, Again(timedelta(0), "the cluster refused it"))


KINDS = "clusters eventsources eventtriggers eventreports clusterprofiles profiles clustersets sets"
MORE_KINDS = "classifiers clusterhealthchecks healthchecks rolerequests configmaps secrets held"

OFFLINE = (
    "--object ready.yaml --cluster fleet/east,env=production --destination fleet/lab,env=staging"
)

SCENES: dict[str, Scene] = {
    "01-empty": (
        *("status", "get clusters", "get clusterprofiles -o json", "show events", "show failures"),
        *("show addons", "context list", "context show", "schema", "version --client"),
    ),
    "02-apply": (
        register,
        "apply -f events.yaml -f profiles.yaml --dry-run",
        "apply -f events.yaml -f profiles.yaml -f health.yaml",
        "apply -f events.yaml",
        "diff -f changed.yaml",
        work,
        send_events,
        "wait clusters --all --for=ready --timeout 0s",
        "wait clusterprofile base --for=provisioned --timeout 0s",
    ),
    "03-get": (
        *(f"get {kind}" for kind in f"{KINDS} {MORE_KINDS}".split()),
        *(f"get {kind} -o wide" for kind in ("clusters", "clusterprofiles", "eventtriggers")),
        "get eventsources,eventtriggers --no-headers",
        "get clusters -l env=staging -o name",
    ),
    "04-read": (
        "get clusters -o yaml",
        "get clusterprofile web -o yaml",
        "get clusterprofile base -o json",
        "get eventreports -o yaml",
        "get secret gateway -n fleet -o yaml",
        "get eventtriggers endpoints -o json",
    ),
    "05-describe": (
        *(f"describe {kind}" for kind in f"{KINDS} {MORE_KINDS}".split()),
        "describe cluster fleet/east",
    ),
    "06-show": (
        *("show addons", "show addons --verbose", "show addons -o json", "show usage"),
        *("show resources", "show dryrun", "show dryrun --raw-diff", "show helm-updates"),
        *("show orphans", "show failures", "show failures -o json", "dead-letters list"),
        *("history base", "get held", "sender list"),
    ),
    "07-events": (
        "show events",
        "show events -o wide",
        "show events -o json",
        "events --cluster fleet/lab",
    ),
    "08-explain": (
        "explain fleet/east service default/ready",
        "explain fleet/east service default/pending",
        "explain fleet/east service default/ready -o json",
        *(f"explain trigger {name}" for name in ("endpoints", "team-policies", "broken")),
        "explain trigger endpoints -o yaml",
        *("status", "status -o json", "doctor", "doctor fleet/east -o json", "version"),
    ),
    "09-offline": (
        "evaluate events.yaml --object objects.yaml",
        "evaluate web-services --object objects.yaml -o json",
        *(f"render -f events.yaml {OFFLINE} --trigger {name}" for name in ("endpoints", "broken")),
        f"render -f events.yaml {OFFLINE} --trigger endpoints -o json",
    ),
    "10-change": (
        "diff web",
        "diff base --live",
        "apply -f changed.yaml",
        work,
        *("history base", "history base -o json", "diff base", "rollback base"),
        work,
        *(
            "get clusterprofile base",
            "rollback base --end",
            "pause base",
            "pause cluster fleet/west",
        ),
        work,
        *(
            "get clusters",
            "describe clusterprofile base",
            "resume base",
            "resume cluster fleet/west",
        ),
        *("redeploy base", "resync fleet/east", "label cluster fleet/east zone=a"),
        *("annotate cluster fleet/east owner=red", "release --all"),
        "set maintenance-window fleet/west --from '0 20 * * 5' --to '0 5 * * 1'",
        "delete clusterprofile web --dry-run",
        "delete clusterprofile web",
        work,
        *("get clusterprofiles", "show addons --cluster fleet/east"),
    ),
    "11-lost": (
        lose_lab,
        *("status", "show failures", "get clusters -o wide", "doctor fleet/lab"),
        "describe cluster fleet/lab",
        find_lab,
    ),
    "12-guarded": (
        lose_services,
        *("get held", "get held -o yaml", "describe held", "show failures", "status"),
        *("describe eventreports -n fleet", "get eventtriggers"),
        "release fleet/east web-services",
        work,
        *("get held", "show addons --cluster fleet/lab", "delete eventtrigger endpoints"),
        work,
        *("get held", "describe held", "show failures", "release --all"),
        work,
        *("get held", "get clusterprofiles"),
    ),
    "13-dead-letters": (
        bury,
        *("dead-letters list", "dead-letters list -o wide", "dead-letters list -o json"),
        *("show failures", "status", "dead-letters replay --all"),
        "dead-letters list",
    ),
    "14-mistakes": (
        *("gett clusters", "get clusterz", "get cluster fleet/nowhere", "get clusters -o xml"),
        *("apply -f wrong.yaml", "apply -f absent.yaml", "describe eventtrigger absent"),
        *("explain fleet/nowhere service default/web", "explain trigger absent", "history absent"),
        *("rollback base --to 99", "pause absent", "delete eventsource absent", "diff absent"),
        *("release --change 00000000", "dead-letters replay deploy/1", "logs", "wait cluster x"),
        *("resync fleet/nowhere", "show events --since soon", "sender add fleet/nowhere ci"),
        *("context use absent", "label cluster fleet/nowhere a=b", "redeploy absent"),
        "evaluate absent --object objects.yaml",
        "render absent.tpl",
        "set maintenance-window fleet/east --from never --to '0 5 * * 1'",
        "wait clusterprofile needs-more --for=provisioned --timeout 0s",
        "deregister cluster fleet/nowhere",
    ),
    "15-promotions": (
        "apply -f promotion.yaml",
        work,
        *("get promotions", "describe promotion agent", "diff promotion agent --stage production"),
        "diff promotion agent --stage production -o json",
        *("diff promotion agent --stage staging", "diff promotion agent --stage prod"),
        *(
            "diff promotion absent --stage production",
            "diff promotion agent",
            "diff base --stage x",
        ),
        *("approve promotion agent --stage production", "approve promotion agent --release 7"),
        *("rollback promotion agent --stage production", "rollback agent-staging"),
        *("pause agent-staging", "delete clusterprofile agent-staging", "promote promotion agent"),
        "approve promotion agent --reason CHG-4711",
        work,
        *("get promotions", "diff promotion agent --stage production"),
    ),
}
