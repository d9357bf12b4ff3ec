"""A fleet in which anything may happen, and a model that says what must be there in the end.

The model looks at what is declared and at the objects that exist, never at how it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bellhop.engine.naming import profile_name
from bellhop.errors import DeniedError, MissingError, UnreachableError
from bellhop.messages import Apply, Evaluate, Instantiate, Sweep
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.settings import Settings
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.mortal import Fate, Killed, Mortal, MortalAccess

CONFIG = GVK("", "v1", "ConfigMap")
ACCOUNT = GVK("", "v1", "ServiceAccount")
CLUSTERS = ("east", "west")
NAMES = ("a", "b")


def _source(name: str, kind: str, more: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec:
  collectResources: true
  resourceSelectors: [{{group: "", version: v1, kind: {kind}{more}}}]
"""


def _trigger(name: str, source: str, one: str, more: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: '{source}'
  oneForEvent: {one}
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
{more}"""


def _profile(tier: int, chosen: str) -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: own}}
spec:
  tier: {tier}
  {chosen}
  policyRefs: [{{kind: ConfigMap, name: own, namespace: default}}]
"""


def _holder(name: str, content: str, annotations: str = "projectsveltos.io/instantiate: ok") -> str:
    body = "\n".join("    " + line for line in content.strip().splitlines())
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
data:
  main.yaml: |
{body}
"""


def _made(name: str, value: str) -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: '{name}', namespace: made}}
data: {{v: '{value}'}}
"""


_RING = ", selector: {matchLabels: {ring: 'yes'}}"
_ENG = "  destinationClusterSelector: {matchLabels: {dep: eng}}\n"
_EACH = "each-{{ .Cluster.metadata.name }}-{{ lower .Resource.kind }}-{{ .Resource.metadata.name }}"
_V = "{{ .Resource.metadata.labels.v }}"
_ALL = "{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}"
_LATER = '{{ "{{ len .Cluster.metadata.labels }}" }}'
_BOTH = "projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok"

DECLARED: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("EventSource", "", "watched"): (
        _source("watched", "Service", _RING),
        _source("watched", "Service", ""),
        _source("watched", "ServiceAccount", _RING),
    ),
    ("EventSource", "", "of-east"): (_source("of-east", "Service", _RING),),
    ("EventTrigger", "", "each"): (
        _trigger("each", "watched", "true", ""),
        _trigger("each", "watched", "true", _ENG),
        _trigger("each", "watched", "true", "  tier: 70\n"),
    ),
    ("EventTrigger", "", "all"): (
        _trigger("all", "watched", "false", ""),
        _trigger("all", "watched", "false", _ENG),
        _trigger("all", "of-{{ .Cluster.metadata.name }}", "false", "  tier: 70\n"),
    ),
    ("ConfigMap", "default", "each"): (
        _holder("each", _made(_EACH, f"v{_V}")),
        _holder("each", _made(_EACH, f"w{_V}")),
        _holder("each", _made(_EACH, f"{_LATER}-{_V}"), _BOTH),
    ),
    ("ConfigMap", "default", "all"): (
        _holder("all", _made("all-{{ .Cluster.metadata.name }}", _ALL)),
    ),
    ("ClusterProfile", "", "own"): (
        _profile(50, "clusterSelector: {matchLabels: {dep: eng}}"),
        _profile(200, "clusterSelector: {matchLabels: {dep: eng}}"),
        _profile(50, "clusterRefs: [{namespace: fleet, name: east, kind: SveltosCluster}]"),
    ),
    ("ConfigMap", "default", "own"): (
        _holder("own", _made("own", "1"), ""),
        _holder("own", _made("own", "2") + "---" + _made("all-east", "mine"), ""),
    ),
}
"""What users may declare, each in its variants; `own` and `all` may want the same object."""

KEYS = sorted(DECLARED)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Wish:
    """A profile as the model wants it: who it is, where it goes, and what it brings."""

    name: str
    tier: int
    destinations: frozenset[str]
    objects: Mapping[str, str]
    """Values by the names of ConfigMaps; LEN stands for the number of the destination's labels."""


class World:
    """A fleet in which anything may happen, and what must be there in the end."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.fate = Fate()
        self.fleet = Fleet(folder, settings)
        self.fleet.access = MortalAccess(self.fate)
        self.fleet.store._store = Mortal(self.fleet.store._store, self.fate)  # type: ignore[assignment]
        self.fleet.queues = {
            name: Mortal(queue, self.fate)  # type: ignore[misc]
            for name, queue in self.fleet.queues.items()
        }
        self.fleet.reread()
        self.labels: dict[str, dict[str, str]] = {}
        self.declared: dict[tuple[str, str, str], int] = {}
        self.deaths = 0
        self.late: list[tuple[str, dict[str, Any]]] = []
        for name in CLUSTERS:
            self.labels[name] = {"env": "production", "dep": "eng"}
            self.fleet.register(name, **self.labels[name])

    def begin(self, variants: Sequence[int]) -> None:
        """Declare everything, each in one of its variants."""
        texts = [DECLARED[key] for key in KEYS]
        chosen = [variant % len(each) for variant, each in zip(variants, texts, strict=True)]
        self.declared = dict(zip(KEYS, chosen, strict=True))
        self.fleet.apply(*(each[variant] for variant, each in zip(chosen, texts, strict=True)))

    # What may happen ----------------------------------------------------------------------

    def do_put(self, cluster: str, kind: str, name: str, ring: str, v: int, push: str) -> None:
        labels = {"ring": ring, "v": str(v)}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        manifest = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
        stored = self.fleet.access.clusters[f"fleet/{cluster}"].put(manifest)
        self._push(cluster, {"object": stored}, push)

    def do_drop(self, cluster: str, kind: str, name: str, push: str) -> None:
        key = ObjectKey(GVK("", "v1", kind), "default", name)
        kube = self.fleet.access.clusters[f"fleet/{cluster}"]
        there = [each for each in kube.objects(key.gvk) if ObjectKey.of(each) == key]
        if not there:
            return
        kube.drop(*key)
        metadata = there[0]["metadata"]
        gone = {"key": str(key), "uid": metadata["uid"], "version": metadata["resourceVersion"]}
        self._push(cluster, {"gone": gone}, push)

    def do_lose(self, cluster: str, which: int) -> None:
        """Delete something that was applied, as somebody with kubectl would."""
        kube = self.fleet.access.clusters[f"fleet/{cluster}"]
        there = kube.objects(CONFIG)
        if there:
            kube.drop(*ObjectKey.of(there[which % len(there)]))

    def do_late(self, which: int, again: bool) -> None:  # noqa: FBT001 - drawn by position
        if self.late:
            number = which % len(self.late)
            item = self.late[number] if again else self.late.pop(number)
            self._send(*item)

    def do_label(self, cluster: str, name: str, value: str | None) -> None:
        labels = {**self.labels[cluster], name: value}
        self.labels[cluster] = {each: text for each, text in labels.items() if text is not None}
        self._insist(lambda: self.fleet.declare.label(f"fleet/{cluster}", {name: value}))

    def do_apply(self, which: int, variant: int) -> None:
        key = KEYS[which]
        variant %= len(DECLARED[key])
        self.declared[key] = variant
        self._insist(lambda: self.fleet.apply(DECLARED[key][variant]))

    def do_delete(self, which: int) -> None:
        if self.declared.pop(KEYS[which], None) is None:
            return

        def delete() -> None:
            # A try before may have been killed only after it had deleted it.
            with suppress(MissingError):
                self.fleet.declare.delete([KEYS[which]])

        self._insist(delete)

    def do_down(self, cluster: str, how: str, *verbs: str) -> None:
        errors = {"silent": UnreachableError("does not answer"), "denied": DeniedError("may not")}
        self.fleet.access.clusters[f"fleet/{cluster}"].fail_with(errors.get(how), *verbs)

    def do_sweep(self, cluster: str, full: bool) -> None:  # noqa: FBT001 - drawn by position
        with self._mourned():
            self.fleet.publisher.publish([Sweep(f"fleet/{cluster}", full=full)])

    def do_echo(self, cluster: str, kind: str, name: str) -> None:
        key = ObjectKey(GVK("", "v1", kind), "default", name)
        with self._mourned():
            self.fleet.publisher.publish([Evaluate(f"fleet/{cluster}", str(key), "echo")])
            self.fleet.publisher.publish(
                [
                    Instantiate("each", f"fleet/{cluster}", str(key)),
                    Apply(
                        "each",
                        f"fleet/{cluster}",
                        profile_name("each", f"fleet/{cluster}", str(key)),
                        f"fleet/{CLUSTERS[0]}",
                    ),
                ]
            )

    def do_work(self, seconds: int, stages: str, doom: int) -> None:
        self.fleet.clock.advance(_SECOND * seconds)
        if doom:
            self.fate.doom(doom)
        with self._mourned():
            for name in stages.split():
                for _ in range(200):
                    deliveries = self.fleet.queues[name].receive(50, wait=timedelta(0))
                    self.fleet.work(name, deliveries)
                    if not deliveries:
                        break

    def do_doom(self, steps: int) -> None:
        self.fate.doom(steps)

    def do_leave(self, cluster: str) -> None:
        """Deregister a cluster and register it again; what it holds by then is nobody's."""
        labels = self.labels[cluster]
        key = f"fleet/{cluster}"

        def deregister() -> None:
            with suppress(MissingError):
                self.fleet.declare.deregister(key)

        self._insist(deregister)
        for each in self.fleet.access.clusters[key].objects(CONFIG):
            self.fleet.access.clusters[key].drop(*ObjectKey.of(each))
        self._insist(lambda: self.fleet.register(cluster, **labels))

    def _push(self, cluster: str, item: dict[str, Any], push: str) -> None:
        if push == "late":
            self.late.append((cluster, item))
        elif push == "sent":
            self._send(cluster, item)

    def _send(self, cluster: str, item: dict[str, Any]) -> None:
        reply = None
        with self._mourned():
            reply = self.fleet.send(cluster, item)
        if reply is None:
            self.late.append((cluster, item))
        else:
            assert reply.status == 200

    def _insist(self, change: Any) -> None:
        """Do what a user does: the same command again, if it was killed."""
        done = False
        while not done:
            with self._mourned():
                change()
                done = True

    @contextmanager
    def _mourned(self) -> Iterator[None]:
        """Begin a new process if this one is killed."""
        try:
            yield
        except Killed:
            self.deaths += 1
            self.fate.revive()
            self.fleet.reread()
            for queue in self.fleet.queues.values():
                queue.release()

    # The end ------------------------------------------------------------------------------

    def heal(self) -> None:
        """Let everybody answer, everything be sent, and time pass; sweep each cluster once."""
        self.fate.revive()
        for kube in self.fleet.access.clusters.values():
            kube.fail_with(None)
        while self.late:
            self.do_late(0, again=False)
        for key in KEYS:
            if key[0] == "ConfigMap" and key not in self.declared:
                self.do_apply(KEYS.index(key), 0)
        # Longer than the lease of one who died: what is his is nobody's to put back.
        self.fleet.clock.advance(timedelta(seconds=130))
        self.fleet.declare.resume()
        for cluster in CLUSTERS:
            self.do_sweep(cluster, full=False)
        while self.fleet.pump():
            # Longer than any pause, and than the lease of one who died.
            self.fleet.clock.advance(timedelta(seconds=130))

    def wishes(self) -> list[Wish]:
        """Return what the model wants: a function of what is, not of what was."""
        found = [self._own()] if ("ClusterProfile", "", "own") in self.declared else []
        for cluster in CLUSTERS:
            for trigger in ("each", "all"):
                found += self._wished(trigger, cluster)
        return found

    def matching(self, cluster: str, trigger: str) -> list[dict[str, Any]]:
        """Return the objects that match a trigger's source in a cluster, by key."""
        variant = self.declared.get(("EventTrigger", "", trigger))
        if variant is None or self.labels[cluster].get("env") != "production":
            return []
        by_name = trigger == "all" and variant == 2
        source = ("EventSource", "", f"of-{cluster}" if by_name else "watched")
        return self._selected(cluster, self.declared.get(source), by_name=by_name)

    def _selected(
        self, cluster: str, variant: int | None, *, by_name: bool
    ) -> list[dict[str, Any]]:
        if variant is None:
            return []
        kind = ACCOUNT if variant == 2 else SERVICE
        return [
            each
            for each in self.fleet.access.clusters[f"fleet/{cluster}"].objects(kind)
            if each["metadata"]["labels"]["ring"] == "yes" or (variant == 1 and not by_name)
        ]

    def _own(self) -> Wish:
        variant = self.declared["ClusterProfile", "", "own"]
        clusters = {"east"} if variant == 2 else self._engineering()
        both = self.declared["ConfigMap", "default", "own"] == 1
        objects = {"own": "2", "all-east": "mine"} if both else {"own": "1"}
        return Wish("own", (50, 200, 50)[variant], frozenset(clusters), objects)

    def _wished(self, trigger: str, cluster: str) -> list[Wish]:
        matching = self.matching(cluster, trigger)
        if not matching:
            return []
        variant = self.declared["EventTrigger", "", trigger]
        where = frozenset(self._engineering() if variant == 1 else {cluster})
        tier = 70 if variant == 2 else 100
        if trigger == "all":
            text = "".join(
                each["metadata"]["name"] + each["metadata"]["labels"]["v"] + " "
                for each in matching
            )
            name = profile_name("all", f"fleet/{cluster}")
            return [Wish(name, tier, where, {f"all-{cluster}": text})]
        form = ("v{}", "w{}", "LEN-{}")[self.declared["ConfigMap", "default", "each"]]
        wishes = []
        for each in matching:
            profile = profile_name("each", f"fleet/{cluster}", str(ObjectKey.of(each)))
            name = f"each-{cluster}-{each['kind'].lower()}-{each['metadata']['name']}"
            text = form.format(each["metadata"]["labels"]["v"])
            wishes.append(Wish(profile, tier, where, {name: text}))
        return wishes

    def _engineering(self) -> set[str]:
        return {name for name in CLUSTERS if self.labels[name].get("dep") == "eng"}
