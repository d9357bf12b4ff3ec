"""How a cluster joins and leaves the fleet.

  look: reachable? which cluster? which version? which rights?     nothing is changed yet
  in the cluster: namespace, account, rights, if asked pods        harmless alone: nobody rings
  here: kubeconfig, then the record, `begun`                       a token counts before it is used
  in the cluster: the Secret                                       `fleet/ringing.py` draws how a
  here: the record, `told`                                         renewal does it without a gap

The record comes before the Secret, so that no forwarder ever has a token that nobody knows. A
registration that died in between left the mark `begun`, and the renewals finish it. Two at once
meet in the record, which is written on condition: one of them is told to wait. Leaving goes the
other way round, and needs no cluster that answers.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from bellhop.adapters.kube.client import KubeClient
from bellhop.engine.pods import IMAGE, forwarder_manifests, image_of
from bellhop.engine.wiring import NAME, NAMESPACE, forwarder_rights, forwarder_role
from bellhop.errors import (
    BellhopError,
    BusyError,
    ConflictError,
    DeniedError,
    MissingError,
    StaleError,
)
from bellhop.fleet import ringing
from bellhop.fleet.installation import Inbound, Installation
from bellhop.fleet.rewriting import rewrite
from bellhop.fleet.rights import missing_for_applying, missing_for_watching, watched
from bellhop.fleet.unwiring import (
    BY_HAND,
    DEPLOYMENT,
    identify,
    known_uid,
    leave_behind,
    silence,
    twin,
)
from bellhop.model.gvk import Resource
from bellhop.model.kubeconfig import Kubeconfig, sanitise
from bellhop.model.record import Cluster
from bellhop.ports.store import ABSENT

PATIENCE = timedelta(minutes=1)
"""How long a registration that has begun is taken to be at work still."""

_NO_FORWARDER = (
    "no forwarder is in the cluster yet, and nothing rings; register again with --install, or apply"
    " what --print-manifests writes"
)

Pause = Callable[[float], None]
_TRIES = 3


@dataclass(frozen=True)
class Registration:
    """What a user asks for; `labels` of None keeps those the cluster has.

    `twice` takes a cluster that is registered under another name already; `install` brings the
    forwarder's pods, with `image`, or where that is empty with the one they have. `eks` is the ARN
    of the EKS cluster that it is: then its kubeconfig is good for minutes, and is not stored.
    """

    namespace: str
    name: str
    kubeconfig: Kubeconfig
    labels: Mapping[str, str] | None
    inbound: Inbound
    forwarder_url: str = ""
    forwarder: bool = True
    twice: bool = False
    install: bool = False
    image: str = ""
    eks: str = ""

    @property
    def key(self) -> str:
        """Name the cluster: namespace/name."""
        return f"{self.namespace}/{self.name}"

    def manifests(self, image: str = "") -> list[dict[str, Any]]:
        """Return what the cluster's forwarder needs but its Secret.

        `image` is what its pods have already, if any.

        Raises:
            InvalidError: the image is none.
        """
        ports = map(_port, (self.inbound.url, self.kubeconfig.server))
        return forwarder_manifests(self.image or image or IMAGE, ports)


@dataclass(frozen=True)
class Registered:
    """What came of it; `secret` is the forwarder's, as it was applied, `image` that of its pods."""

    cluster: Cluster
    again: bool
    warnings: Sequence[str] = field(default_factory=tuple)
    secret: Mapping[str, Any] | None = field(default=None, repr=False)
    image: str = ""


def register(here: Installation, spec: Registration, *, pause: Pause = time.sleep) -> Registered:
    """Add a cluster, or renew one: credentials, labels, token and the forwarder's certificate.

    Raises:
        InvalidError: its address is one that this installation does not call.
        UnreachableError: the cluster does not answer; nothing is changed.
        DeniedError: rights are missing; nothing is changed.
        ConflictError: it is registered under another name; nothing is changed.
        BusyError: it is being registered by somebody else.
    """
    sanitise(spec.kubeconfig.to_dict(), reach=here.reach)
    kube = KubeClient(spec.key, spec.kubeconfig, reach=here.reach)
    try:
        for _ in range(_TRIES):
            attempt = _Attempt(here, spec, kube, pause)
            try:
                return attempt.run()
            except _OvertakenError:
                # Its labels were changed, say, since we read it: nothing is done yet.
                continue
        raise _busy(spec.key, "it keeps being changed by others")
    finally:
        kube.close()


class _OvertakenError(StaleError):
    """The cluster's record is not the one that this attempt was made from."""


class _Attempt:
    """One attempt, from one reading of the record."""

    def __init__(
        self, here: Installation, spec: Registration, kube: KubeClient, pause: Pause
    ) -> None:
        self._here = here
        self._spec = spec
        self._kube = kube
        self._pause = pause
        self._now = here.records.clock.now()
        kept = here.records.clusters.get(spec.key)
        self._token = kept.token if kept else ABSENT
        self._old = kept.value if kept else None
        self._uid = ""
        self._image = ""
        self._resources: list[Resource] = []
        self._warnings: list[str] = []

    def run(self) -> Registered:
        cluster = self._look()
        forwarder = self._instructions(cluster) if self._spec.forwarder else None
        if forwarder:
            # Only an administrator may bind a role that is not there yet.
            for manifest in (forwarder_role(self._resources), *self._manifests()):
                self._kube.apply(manifest)
        with undisturbed():
            cluster = self._begin(cluster, forwarder)
            self._step_back_from_a_second_name(cluster)
            if forwarder:
                self._tell(cluster, forwarder)
                cluster = self._finish(cluster.key, forwarder.digest)
            elif self._old and self._old.forwarder:
                self._still()
            if cluster.abandoned:
                cluster = self._leave(cluster)
        secret = forwarder.secret if forwarder else None
        again = self._old is not None
        return Registered(cluster, again, self._warnings, secret, self._image)

    # Before anything is changed ---------------------------------------------------------------

    def _look(self) -> Cluster:
        self._refuse_while_another_is_at_it()
        spec, old = self._spec, self._old
        version = self._kube.version()
        self._uid = identify(self._kube)
        self._refuse_a_second_name()
        cluster = Cluster(
            namespace=spec.namespace,
            name=spec.name,
            labels=dict((old.labels if old else {}) if spec.labels is None else spec.labels),
            kubernetes=version,
            token_digest="",
            registered_at=old.registered_at if old else self._now,
            credentials="" if spec.eks else spec.kubeconfig.version,
            uid=self._uid,
            annotations=old.annotations if old else {},
            spec=old.spec if old else {},
            eks=spec.eks,
        )
        cluster.refuse_too_much()
        self._resources = watched(self._kube, self._here.catalogs.current(), cluster)
        missing = missing_for_watching(
            self._kube, self._resources, ringing=spec.forwarder, installing=spec.install
        )
        if missing:
            raise DeniedError(
                f"cannot register cluster '{spec.key}': its credentials lack rights, which the"
                " how-to 'Register a cluster' lists: they " + "; they ".join(missing)
            )
        self._warnings += [
            f"the credentials {each}: an add-on they may not write fails, and says so"
            for each in missing_for_applying(self._kube)
        ]
        return cluster

    def _refuse_while_another_is_at_it(self) -> None:
        begun = self._old.forwarder.get("begun") if self._old else None
        if begun and timedelta(0) <= self._now - datetime.fromisoformat(begun) < PATIENCE:
            raise _busy(self._spec.key, "another registration of it has begun")

    def _refuse_a_second_name(self) -> None:
        other = twin(self._here, self._spec.key, self._uid)
        if other is None:
            return
        was_here = self._old is not None and known_uid(self._here, self._old) == self._uid
        if not self._spec.twice and not was_here:
            raise _second_name(self._spec.key, other.key)
        self._warnings.append(
            f"it is cluster '{other.key}', too: add-ons are applied twice, and its forwarder"
            " sends for the name that was registered last"
        )

    # The change itself ------------------------------------------------------------------------

    def _manifests(self) -> list[dict[str, Any]]:
        """Return what is to be there before anybody rings, and note which image the pods have."""
        there = self._deployment()
        self._image = image_of(there) if there else ""
        if not self._spec.install:
            if there is None and not self._spec.forwarder_url:
                self._warnings.append(_NO_FORWARDER)
            return forwarder_rights()
        manifests = self._spec.manifests(self._image)
        [self._image] = (image_of(each) for each in manifests if each["kind"] == DEPLOYMENT.kind)
        return manifests

    def _deployment(self) -> Mapping[str, Any] | None:
        """Read the forwarder's Deployment; None if it is not there, empty if nobody may look."""
        try:
            return self._kube.get(DEPLOYMENT, NAMESPACE, NAME)
        except DeniedError:
            # Without --install nobody needs the right.
            return {}

    def _instructions(self, cluster: Cluster) -> ringing.Instructions:
        former: ringing.Former = ringing.Former()
        if self._old and self._old.forwarder and not self._moves():
            former = ringing.Former(self._old.forwarder, ringing.entries_in(self._kube))
        made = ringing.draw_up(
            cluster.key, self._spec.forwarder_url, self._spec.inbound, self._now, former
        )
        if self._spec.inbound == self._here.inbound:
            return made
        # A renewal sends to where this one was told to.
        place = {"ingest-url": self._spec.inbound.url, "ingest-ca": self._spec.inbound.ca}
        return replace(made, record={**made.record, **place})

    def _moves(self) -> bool:
        """Say if the name is to mean another cluster than it did."""
        before = known_uid(self._here, self._old) if self._old else ""
        return bool(self._uid and before and before != self._uid)

    def _begin(self, cluster: Cluster, forwarder: ringing.Instructions | None) -> Cluster:
        """Write kubeconfig and record; from here on old and new token count."""
        key, old = cluster.key, self._old
        if forwarder:
            cluster = replace(cluster, token_digest=forwarder.digest, forwarder=forwarder.record)
        stored = json.dumps(self._spec.kubeconfig.to_dict()).encode()
        if old and self._moves():
            self._put_aside(old, stored)
            cluster = replace(cluster, abandoned=known_uid(self._here, old))
        elif old:
            former = ringing.in_use(old, ringing.entries_in(self._kube)) if forwarder else ""
            abandoned = old.abandoned if old.abandoned != self._uid else ""
            cluster = replace(cluster, former_digest=former, abandoned=abandoned)
        if not cluster.eks:
            # Stored first: the record names a version that is there.
            self._here.secrets.put(f"kubeconfig/{key}", stored)
        try:
            self._here.declare.register(cluster, expect=self._token)
        except StaleError as error:
            raise _OvertakenError(str(error)) from error
        if cluster.eks and old and not old.eks:
            # What was stored is a credential that nobody uses any more.
            self._here.secrets.delete(f"kubeconfig/{key}")
        return cluster

    def _put_aside(self, old: Cluster, stored: bytes) -> None:
        """Keep the credentials of the cluster that had the name, where there are any to keep."""
        if old.eks:
            return
        before = self._here.secrets.read(f"kubeconfig/{old.key}")
        if before != stored:
            # Else an attempt that was overtaken has put them aside already.
            self._here.secrets.put(f"abandoned/{old.key}", before)

    def _step_back_from_a_second_name(self, cluster: Cluster) -> None:
        """Step back where somebody registered the cluster under another name just now.

        Each of two writes its record before it looks, so that at least one sees the other; where
        both do, both step back.
        """
        other = twin(self._here, cluster.key, self._uid)
        if other and not self._old and not self._spec.twice:
            self._take_back(cluster.key)
            raise _second_name(cluster.key, other.key)

    def _tell(self, cluster: Cluster, forwarder: ringing.Instructions) -> None:
        try:
            if "next-path" in cluster.forwarder:
                ringing.wire(self._kube, self._resources, cluster.forwarder)
                self._pause(ringing.SPREAD_SECONDS)
            self._kube.apply(forwarder.secret)
        except BellhopError:
            # One that is renewed goes on as it was, and the renewals finish what was begun.
            if self._old is None:
                self._take_back(cluster.key)
            raise

    def _finish(self, key: str, digest: str) -> Cluster:
        """Note that the forwarder is told, whatever else was changed of the cluster meanwhile."""
        now = self._here.records.clock.now()

        def finished(cluster: Cluster) -> Cluster | None:
            if cluster.token_digest != digest:
                return None
            until = now + ringing.OVERLAP if cluster.former_digest else None
            record = ringing.told(cluster.forwarder, now)
            return replace(cluster, forwarder=record, former_until=until)

        cluster = rewrite(self._here, key, finished)
        if cluster is None:
            if self._here.records.clusters.get(key) is None:
                # Deregistered meanwhile: what was written since would send with a dead token.
                self._still()
            raise _busy(key, "it was registered or deregistered by somebody else meanwhile")
        self._here.records.refusals.delete(key)
        return cluster

    def _still(self) -> None:
        """Silence a cluster that is to be swept alone from now on."""
        try:
            for _ in silence(self._kube, self._spec.key):
                pass
        except BellhopError as error:
            self._warnings.append(f"what made it ring may still be there: {error}; {BY_HAND}")

    def _leave(self, cluster: Cluster) -> Cluster:
        left = leave_behind(self._here, cluster)
        if left:
            self._warnings.append(left)
        return forget_abandoned(self._here, cluster.key) or cluster

    def _take_back(self, key: str) -> None:
        self._here.secrets.delete(f"kubeconfig/{key}")
        self._here.declare.deregister(key)


def forget_abandoned(here: Installation, key: str) -> Cluster | None:
    """Note that the cluster which had this name before needs no more care; return the cluster."""
    cluster = rewrite(here, key, lambda found: replace(found, abandoned=""))
    here.secrets.delete(f"abandoned/{key}")
    return cluster


def _port(url: str) -> int:
    return urlsplit(url).port or 443


def _busy(key: str, why: str) -> BusyError:
    return BusyError(f"cannot register cluster '{key}': {why}; look at it, and try in a minute")


def _second_name(key: str, other: str) -> ConflictError:
    return ConflictError(
        f"cannot register cluster '{key}': it is cluster '{other}' already (their kube-system has"
        f" one uid), and everything would be applied to it twice; deregister '{other}' first, or"
        " give --allow-twice if they are copies of one backup"
    )


@dataclass(frozen=True)
class Deregistered:
    """What was taken out of the cluster, and what could not be, in a sentence."""

    removed: Sequence[str]
    left: str = ""


def deregister(here: Installation, key: str, *, uninstall: bool = False) -> Deregistered:
    """Take a cluster out: what rings in it as far as it answers, then all that is kept of it.

    With `uninstall` what was installed of its forwarder goes even where its namespace stays.

    Raises:
        MissingError: there is no such cluster.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(
            f"cannot deregister cluster '{key}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    cluster = kept.value
    removed: list[str] = []
    left = leave_behind(here, cluster) if cluster.abandoned else ""
    try:
        kube = here.access.open(key, version=cluster.credentials)
        removed.extend(silence(kube, key, uninstall=uninstall))
    except ConflictError as error:
        left = f"what makes it ring stays: {error}"
    except BellhopError as error:
        left = f"what made it ring may still be there: {error}; once it answers, {BY_HAND}"
    with undisturbed():
        here.secrets.delete(f"abandoned/{key}")
        here.secrets.delete(f"kubeconfig/{key}")
        here.declare.deregister(key)
    return Deregistered(removed, left)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait until the block is done: it must happen as a whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before: Callable[[int, Any], Any] | int | None = signal.signal(
        signal.SIGINT, lambda number, _frame: waiting.append(number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
