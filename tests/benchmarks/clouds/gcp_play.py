"""Google Cloud on this machine: the real handlers over Google's emulators and the lab's servers.

Requests are counted where they are made. What is published is pulled, and handed over as a push.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bellhop.adapters.gcp.services import Services
from bellhop.state.messages import INBOXES
from tests.benchmarks.clouds.play import SOURCE, Play
from tests.functions.gcp_lab import Project
from tests.functions.gcp_run import Run, pushed
from tests.lab.google import FIRESTORE, PUBSUB, Emulator
from tests.lab.google_secrets import SecretManager
from tests.lab.google_storage import Storage

LEAST = 1_000
"""Bytes for which a request to Pub/Sub, or a push of its, is taken at least."""

_BESIDE = 40
"""Bytes of a message beside its body and attributes: its number, and when it was published."""

_AT_ONCE = 100


class MeteredServices(Services):
    """Services that note each request, and what Google would charge for it."""

    def __init__(self, project: str, emulators: Mapping[str, str]) -> None:
        super().__init__(project, emulators=emulators)
        self.asked: Counter[str] = Counter()
        self.units: Counter[str] = Counter(read=0, written=0, deleted=0, bytes=0)

    def call(self, service: str, operation: str, request: Any, **how: Any) -> Any:
        self.asked[f"{service}:{operation}"] += 1
        read = how.pop("read", lambda answer: answer)
        match operation:
            case "batch_get_documents":
                self.units["read"] += 1
            case "run_query":
                return super().call(
                    service, operation, request, read=partial(self._read, read), **how
                )
            case "commit":
                for write in type(request).pb(request).writes:
                    self.units["deleted" if write.delete else "written"] += 1
            case "publish":
                self.units["bytes"] += carried(request["messages"])
            case "pull":
                self.units["bytes"] += LEAST
        return super().call(service, operation, request, read=read, **how)

    def ask(self, method: str, url: str, **how: Any) -> bytes:
        self.asked[f"storage:{method}"] += 1
        return super().ask(method, url, **how)

    def _read(self, read: Callable[[Any], Any], answers: Any) -> Any:
        counted = _Counted(answers)
        try:
            return read(counted)
        finally:
            self.units["read"] += max(1, counted.documents)


class _Counted:
    """The answers to a query, which count their documents."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers
        self.documents = 0

    def __iter__(self) -> Iterator[Any]:
        for each in self._answers:
            self.documents += type(each).pb(each).HasField("document")
            yield each

    def cancel(self) -> None:
        self._answers.cancel()


def carried(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the bytes of publishing some messages at once, and of pushing each by itself."""
    sizes = [
        _BESIDE + len(each["data"]) + sum(map(len, (*each["attributes"], *_values(each))))
        for each in messages
    ]
    return max(LEAST, sum(sizes)) + sum(max(LEAST, size) for size in sizes)


def _values(message: Mapping[str, Any]) -> Sequence[str]:
    return list(message["attributes"].values())


class GooglePlay(Play):
    """An installation in a project of its own."""

    def __init__(self, place: str, storage: Storage, kubeconfig: Mapping[str, Any]) -> None:
        self._project = Project(place, storage, tries=100)
        self._project.services.close()
        emulators = self._project.emulators
        self._project.services = self._services = MeteredServices(self._project.name, emulators)
        self._by = Services(self._project.name, emulators=emulators)
        self._project.hold()
        super().__init__(self._project.owner(), kubeconfig)
        self.wake()

    def wake(self) -> None:
        """Start all functions cold."""
        self.functions = Run(partial(self._project.open, logs=True))

    def send(self, body: Any) -> int:
        """Have the source's sender send something."""
        return self.functions.send(SOURCE, body)

    def tick(self) -> None:
        """Have the schedule look."""
        assert self.functions.tick()[1] == 200

    def feed(self, noting: Callable[[str, Callable[[], Any]], Any]) -> bool:
        """Push to each function what waits for it, one message after the other."""
        found = 0
        for inbox, stage in INBOXES.items():
            topic = f"projects/{self._project.name}/topics/{self._project.topics[inbox]}"
            for each in self._pull(inbox):
                about = each.message
                event = pushed(topic, about.message_id, about.data, dict(about.attributes))
                noting(stage, lambda event=event, stage=stage: self.functions.pushes[stage](event))
                found += 1
        return bool(found)

    def _pull(self, inbox: str) -> Sequence[Any]:
        name = f"projects/{self._project.name}/subscriptions/{self._project.topics[inbox]}"
        request = {"subscription": name, "max_messages": _AT_ONCE, "return_immediately": True}
        found = self._by.call("subscriber", "pull", request, doing="push").received_messages
        if found:
            taken = {"subscription": name, "ack_ids": [each.ack_id for each in found]}
            self._by.call("subscriber", "acknowledge", taken, doing="push")
        return list(found)

    def asked(self) -> Counter[str]:
        """Count all requests until now."""
        return Counter(self._services.asked)

    def units(self) -> Counter[str]:
        """Count documents, and what Pub/Sub carries."""
        return Counter(self._services.units)

    def close(self) -> None:
        """Close the connections."""
        self._by.close()
        self._project.close()


@contextmanager
def google(folder: Path) -> Iterator[tuple[dict[str, str], Storage]]:
    """Start what stands in for Google; yield the addresses of it, and where the blobs are."""
    with (
        Emulator(FIRESTORE, folder) as firestore,
        Emulator(PUBSUB, folder) as pubsub,
        SecretManager() as secrets,
        Storage() as storage,
    ):
        emulators = {
            "FIRESTORE_EMULATOR_HOST": firestore.address,
            "PUBSUB_EMULATOR_HOST": pubsub.address,
            "SECRET_MANAGER_EMULATOR_HOST": secrets.address,
            "STORAGE_EMULATOR_HOST": storage.address,
        }
        yield emulators, storage
