"""How a cluster joins the fleet.

  look: reachable? which cluster? which version? which rights?     nothing is changed yet
  in the cluster: namespace, account, rights, if asked pods        harmless alone: nobody rings
  here: kubeconfig, then the record, `begun`                       a token counts before it is used
  in the cluster: the Secret                                       `instructions.py` draws how a
  here: the record, `told`                                         renewal does it without a gap

The record comes before the Secret, so that no forwarder ever has a token that nobody knows. A
registration that died in between left the mark `begun`, and the renewals finish it. Two at once
meet in the record, which is written on condition: one of them is told to wait. Leaving goes the
other way round: `deregistration.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.installation_mark import marked, other, take_over
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.clusters.records.installations import InstallationId
from bellhop.core.critical_section import undisturbed
from bellhop.core.gvk import Resource
from bellhop.core.redaction import Redacted
from bellhop.errors import (
    BellhopError,
    BusyError,
    ConflictError,
    DeniedError,
    MissingError,
    PermanentError,
    StaleError,
)
from bellhop.extras.classifiers.labels import carry_in_set
from bellhop.ingest import service_accounts
from bellhop.installation.installation import Inbound, Installation
from bellhop.ports.store import ABSENT
from bellhop.registration import audited_clusters, instructions
from bellhop.registration.forwarder_manifests import (
    NAME,
    NAMESPACE,
    direct,
    forwarder_rights,
    forwarder_role,
    is_audited,
    is_direct,
)
from bellhop.registration.forwarder_pods import IMAGE, applied_by, forwarder_manifests, image_of
from bellhop.registration.permissions import missing_for_applying, missing_for_watching, watched
from bellhop.registration.record_update import rewrite
from bellhop.registration.removal import (
    BY_HAND,
    DEPLOYMENT,
    identify,
    known_uid,
    leave_behind,
    silence,
    twin,
)
from bellhop.state.record import Cluster, Issuer

PATIENCE = timedelta(minutes=1)
"""How long a registration that has begun is taken to be at work still."""

_NAMESPACE = "Namespace"

_LASTING = timedelta(days=30)
"""Credentials that end before are ones that somebody will have to think of."""

_WITHOUT_INSTALLING = "; --no-install needs fewer, and leaves the forwarder's pods to you"

_NO_REGISTRY = (
    f"the forwarder's image '{IMAGE}' has no registry: load it into the cluster's nodes, or"
    " register again with --image"
)

_NO_FORWARDER = (
    "no forwarder is in the cluster yet, and no events arrive; register again with --install, or"
    " apply"
    " what --print-manifests writes"
)

Pause = Callable[[float], None]
_TRIES = 3


class Registration(Struct, frozen=True):
    """What a user asks for; `labels` of None keeps those the cluster has.

    `twice` takes a cluster that is registered under another name already; `install` deploys the
    forwarder's pods, with `image`, or where that is empty with the one they have; None deploys them
    unless another field manager applies their Deployment; by `direct` the
    API server calls ingest itself, and there is no forwarder; nor is there where it sends its log
    by the files in the folder `audit`. `managed` is what its cloud calls it: then its kubeconfig is
    good for minutes, and is not stored; by `assume_role` and `external_id` it is reached, if by
    another role than the caller has. `renews` is when the cluster was registered that this one
    renews, with what is stored of it: another, or none, is not made of it. `pauses` is what its
    spec is to say of those, and of its data; what is not there stays as it is, and so do
    `annotations` of None. By `take_over` a cluster may have been another installation's. `applyset`
    is the set that it is a member of from now on, none if empty; None keeps the one that it has.
    """

    namespace: str
    name: str
    kubeconfig: Kubeconfig
    labels: Mapping[str, str] | None
    inbound: Inbound
    forwarder_url: str = ""
    forwarder: bool = True
    twice: bool = False
    install: bool | None = False
    image: str = ""
    direct: bool = False
    audit: Path | None = None
    managed: str = ""
    assume_role: str = ""
    external_id: str = ""
    renews: datetime | None = None
    pauses: Mapping[str, Any] = {}
    take_over: bool = False
    annotations: Mapping[str, str] | None = None
    applyset: str | None = None

    @property
    def key(self) -> str:
        """Name the cluster: namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def audience(self) -> str:
        """Say for whom the tokens of its forwarder's account are to be: where it sends to."""
        return self.inbound.url.rstrip("/")

    def manifests(self, image: str = "") -> list[dict[str, Any]]:
        """Return what the cluster's forwarder needs but its Secret.

        `image` is what its pods have already, if any.

        Raises:
            InvalidError: the image is none.
        """
        ports = map(_port, (self.inbound.url, self.kubeconfig.server))
        return forwarder_manifests(self.image or image or IMAGE, ports, self.audience)


class Registered(Redacted, frozen=True):
    """What came of it; `secret` is the forwarder's, as it was applied, `image` that of its pods.

    `installed` says whether this registration applied the pods.
    """

    secret_fields: ClassVar[Collection[str]] = ("secret",)
    cluster: Cluster
    again: bool
    warnings: Sequence[str] = field(default_factory=tuple)
    secret: Mapping[str, Any] | None = None
    image: str = ""
    installed: bool = False


def register(here: Installation, spec: Registration, *, pause: Pause = time.sleep) -> Registered:
    """Add a cluster, or renew one: credentials, labels, token and the forwarder's certificate.

    Raises:
        InvalidError: its address is one that this installation does not call.
        UnreachableError: the cluster does not answer; nothing is changed.
        DeniedError: rights are missing; nothing is changed.
        ConflictError: it is registered under another name, or by another installation; nothing is
            changed.
        BusyError: it is being registered by somebody else.
        MissingError: what it renews is not registered any more; nothing is changed.
    """
    # A renewal uses the stored one, and the kubeconfig of a cloud's cluster is no user's file.
    with nullcontext() if spec.renews is not None or spec.managed else as_given():
        return _register(here, spec, pause)


def _register(here: Installation, spec: Registration, pause: Pause) -> Registered:
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


@contextmanager
def as_given() -> Iterator[None]:
    """Word errors for a kubeconfig that was given now, and is not stored yet."""
    try:
        yield
    except BellhopError as error:
        given = error.context.get("given")
        if not given:
            raise
        raise type(error)(str(given)) from error


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
        self._installs = False
        self._mine = InstallationId("")
        self._taken = ""
        self._issuer: Issuer | None = None
        self._resources: list[Resource] = []
        self._warnings: list[str] = []

    def run(self) -> Registered:
        self._refuse_to_revive()
        cluster = self._look()
        if self._taken:
            take_over(self._kube, self._mine)
        forwarder = self._instructions(cluster) if self._spec.forwarder else None
        if forwarder and not self._bare:
            # Only an administrator may bind a role that is not there yet.
            for manifest in (forwarder_role(self._resources), *self._manifests()):
                ours = manifest["kind"] == _NAMESPACE
                self._kube.apply(marked(manifest, self._mine) if ours else manifest)
        with undisturbed():
            cluster = self._begin(cluster, forwarder)
            self._step_back_from_a_second_name(cluster)
            if forwarder and not self._spec.audit:
                self._tell(cluster, forwarder)
                cluster = self._finish(cluster.key, forwarder.digest)
            elif self._old and self._old.forwarder and not is_audited(self._old.forwarder):
                self._still()
            if cluster.abandoned:
                cluster = self._leave(cluster)
        secret = forwarder.secret if forwarder else None
        again = self._old is not None
        return Registered(cluster, again, self._warnings, secret, self._image, self._installs)

    # Before anything is changed ---------------------------------------------------------------

    def _refuse_to_revive(self) -> None:
        """Renew only what is there: who deregisters a cluster may come between any two steps."""
        renews = self._spec.renews
        if renews is not None and (self._old is None or self._old.registered_at != renews):
            raise MissingError(
                f"cannot renew cluster '{self._spec.key}': it was deregistered meanwhile"
            )

    def _look(self) -> Cluster:
        self._refuse_while_another_is_at_it()
        spec, old = self._spec, self._old
        version = self._kube.version()
        self._uid = identify(self._kube)
        self._refuse_a_second_name()
        self._refuse_anothers()
        labels, given = carry_in_set(old, spec.labels, spec.applyset)
        cluster = Cluster(
            namespace=spec.namespace,
            name=spec.name,
            labels=labels,
            kubernetes=version,
            token_digest="",
            registered_at=old.registered_at if old else self._now,
            credentials="" if spec.managed else spec.kubeconfig.version,
            uid=self._uid,
            annotations=self._annotations(),
            spec={**(old.spec if old else {}), **spec.pauses},
            managed=spec.managed,
            assume_role=spec.assume_role,
            external_id=spec.external_id,
            given=given,
        )
        cluster.refuse_too_much()
        self._resources = watched(self._kube, self._here.catalogs.current(), cluster)
        self._installs = self._decide_to_install()
        missing = missing_for_watching(
            self._kube,
            self._resources,
            ringing=spec.forwarder and not spec.audit,
            installing=self._installs,
            direct=spec.direct,
        )
        if missing:
            raise DeniedError(
                f"cannot register cluster '{spec.key}': its credentials lack rights, which the"
                " how-to 'Register a cluster' lists: they "
                + "; they ".join(missing)
                + (_WITHOUT_INSTALLING if self._installs and spec.install is None else "")
            )
        if spec.forwarder and not self._bare:
            self._issuer = self._ask_for_keys()
        self._warnings += [
            f"the credentials {each}: an add-on they may not write fails, and says so"
            for each in missing_for_applying(self._kube)
        ]
        self._warn_of_the_end()
        return cluster

    def _annotations(self) -> Mapping[str, str]:
        if self._spec.annotations is not None:
            return self._spec.annotations
        return self._old.annotations if self._old else {}

    def _warn_of_the_end(self) -> None:
        """Say when the credentials end, if that is soon; whom a cloud knows gets new ones."""
        ends_at = None if self._spec.managed else self._spec.kubeconfig.ends_at
        if ends_at and ends_at - self._now < _LASTING:
            self._warnings.append(
                f"its credentials end at {ends_at:%Y-%m-%d %H:%M} UTC, and nobody gets into the"
                " cluster after that: register it again before, or by a token that does not end, as"
                " the how-to 'Register a cluster' says"
            )

    def _ask_for_keys(self) -> Issuer | None:
        """Read with which keys the tokens of its accounts are signed; None where that is not told.

        No reason to refuse the cluster: its forwarder has a token of ours as well.
        """
        try:
            return service_accounts.ask(self._kube, self._spec.audience, self._now)
        except PermanentError as error:
            self._warnings.append(
                f"its forwarder cannot prove itself by its account, and does so by the token in its"
                f" Secret: {error}"
            )
            return None

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

    def _refuse_anothers(self) -> None:
        """Refuse a cluster that another installation has, unless it is to be taken over."""
        installations = self._here.records.installations
        self._mine = installations.get(self._here.inbound.url)
        self._taken = other(installations, self._kube)
        if self._taken and not self._spec.take_over:
            raise ConflictError(
                f"cannot register cluster '{self._spec.key}': {self._taken} has it, and two would"
                " undo each other's work; deregister it there first, or give --take-over if that"
                " installation no longer exists"
            )

    # The change itself ------------------------------------------------------------------------

    def _manifests(self) -> list[dict[str, Any]]:
        """Return what is to be there before anybody rings, and note which image the pods have."""
        there = self._deployment()
        self._image = image_of(there) if there else ""
        if not self._installs:
            if there is None and not self._spec.forwarder_url:
                self._warnings.append(_NO_FORWARDER)
            return forwarder_rights()
        manifests = self._spec.manifests(self._image)
        [self._image] = (image_of(each) for each in manifests if each["kind"] == DEPLOYMENT.kind)
        status = (there or {}).get("status") or {}
        if self._image == IMAGE and not status.get("availableReplicas"):
            self._warnings.append(_NO_REGISTRY)
        return manifests

    def _decide_to_install(self) -> bool:
        """Leave a Deployment that another tool applies.

        If it cannot be read, only a forwarder that this cluster has already is left as it is.
        """
        if self._spec.install is not None:
            return self._spec.install
        there = self._deployment()
        if there is None:
            return True
        if not there:
            return not (self._old and "path" in self._old.forwarder) or self._moves()
        tool = applied_by(there)
        if tool and self._spec.image and self._spec.image != image_of(there):
            self._warnings.append(
                f"the image is not changed: '{tool}' applies the forwarder's Deployment; change it"
                " there, or give --install"
            )
        return not tool

    def _deployment(self) -> Mapping[str, Any] | None:
        """Read the forwarder's Deployment; None if it is not there, empty if nobody may look."""
        try:
            return self._kube.get(DEPLOYMENT, NAMESPACE, NAME)
        except DeniedError:
            # Without --install nobody needs the right.
            return {}

    def _instructions(self, cluster: Cluster) -> instructions.Instructions:
        former: instructions.Former = instructions.Former()
        old = self._old.forwarder if self._old else {}
        if self._bare:
            way = "audit" if self._spec.audit else "direct"
            made = instructions.draw_up_direct(
                way, cluster.key, self._spec.inbound, self._now, self._token_that_stays()
            )
        else:
            if old and "path" in old and not self._moves():
                former = instructions.Former(old, instructions.entries_in(self._kube))
            made = instructions.draw_up(
                cluster.key, self._spec.forwarder_url, self._spec.inbound, self._now, former
            )
        if self._spec.inbound == self._here.inbound:
            return made
        # A renewal sends to where this one was told to.
        place = {"ingest-url": self._spec.inbound.url, "ingest-ca": self._spec.inbound.ca}
        return replace(made, record={**made.record, **place})

    def _token_that_stays(self) -> str:
        """Return the token that an API server's file has, if it counts and is not to be rotated."""
        if self._spec.audit is None:
            return ""
        if self._old and is_audited(self._old.forwarder) and self._spec.renews:
            audited_clusters.refuse_to_rotate_again(self._old, self._now)
            return ""
        return audited_clusters.kept_token(self._old, self._spec.audit)

    def _moves(self) -> bool:
        """Say if the name is to mean another cluster than it did."""
        before = known_uid(self._here, self._old) if self._old else ""
        return bool(self._uid and before and before != self._uid)

    def _begin(self, cluster: Cluster, forwarder: instructions.Instructions | None) -> Cluster:
        """Write kubeconfig and record; from here on old and new token count."""
        key, old = cluster.key, self._old
        if forwarder and self._spec.audit:
            audited_clusters.write(self._spec.audit, forwarder, self._resources)
        if forwarder:
            cluster = replace(cluster, token_digest=forwarder.digest, forwarder=forwarder.record)
        stored = json.dumps(self._spec.kubeconfig.to_dict()).encode()
        if old and self._moves():
            self._put_aside(old, stored)
            # Nobody of the former cluster sends for this one.
            self._here.records.issuers.delete(key)
            cluster = replace(cluster, abandoned=known_uid(self._here, old))
        elif old:
            former = instructions.in_use(old, self._entries()) if forwarder else ""
            abandoned = old.abandoned if old.abandoned != self._uid else ""
            cluster = replace(cluster, former_digest=former, abandoned=abandoned)
        if forwarder and self._spec.audit:
            cluster = audited_clusters.settled(cluster, old, self._now)
        if not cluster.managed and not self._spec.renews:
            # Stored first: the record names a version that is there.
            self._here.secrets.put(f"kubeconfig/{key}", stored)
        try:
            self._here.declare.register(cluster, expect=self._token)
        except StaleError as error:
            raise _OvertakenError(str(error)) from error
        if self._issuer:
            self._here.records.issuers.put(key, self._issuer)
        else:
            self._here.records.issuers.delete(key)
        if cluster.managed and old and not old.managed:
            # What was stored is a credential that nobody uses any more.
            self._here.secrets.delete(f"kubeconfig/{key}")
        return cluster

    def _put_aside(self, old: Cluster, stored: bytes) -> None:
        """Keep the credentials of the cluster that had the name, where there are any to keep."""
        if old.managed:
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

    @property
    def _bare(self) -> bool:
        """Say if nothing of ours runs in the cluster."""
        return self._spec.direct or self._spec.audit is not None

    def _entries(self) -> dict[str, str]:
        """Read what the sender has been told last, as it can be read."""
        if self._old and is_direct(self._old.forwarder):
            return {"token": self._here.records.callers.get(self._old.key)}
        return instructions.entries_in(self._kube)

    def _tell(self, cluster: Cluster, forwarder: instructions.Instructions) -> None:
        try:
            if self._spec.direct:
                self._have_it_call(cluster, forwarder.entries["token"])
                return
            if "next-path" in cluster.forwarder:
                instructions.wire(self._kube, self._resources, cluster.forwarder, self._mine)
                self._pause(instructions.SPREAD_SECONDS)
            self._kube.apply(forwarder.secret)
        except BellhopError:
            # One that is renewed goes on as it was, and the renewals finish what was begun.
            if self._old is None:
                self._take_back(cluster.key)
            raise

    def _have_it_call(self, cluster: Cluster, token: str) -> None:
        """Have the API server call ingest, with a token that counts by now."""
        self._here.records.callers.put(cluster.key, token)
        instructions.wire(self._kube, self._resources, direct(cluster.forwarder, token), self._mine)
        if self._old and "path" in self._old.forwarder:
            # What its forwarder owes it sends while it ends.
            self._still(rings=True)

    def _finish(self, key: str, digest: str) -> Cluster:
        """Note that the forwarder is told, whatever else was changed of the cluster meanwhile."""
        now = self._here.records.clock.now()

        def finished(cluster: Cluster) -> Cluster | None:
            if cluster.token_digest != digest:
                return None
            until = now + instructions.OVERLAP if cluster.former_digest else None
            record = instructions.told(cluster.forwarder, now)
            return replace(cluster, forwarder=record, former_until=until)

        cluster = rewrite(self._here, key, finished)
        if cluster is None:
            if self._here.records.clusters.get(key) is None:
                # Deregistered meanwhile: what was written since would send with a dead token.
                self._still()
            raise _busy(key, "it was registered or deregistered by somebody else meanwhile")
        self._here.records.refusals.delete(key)
        return cluster

    def _still(self, *, rings: bool = False) -> None:
        """Silence a cluster that is to be swept alone from now on, or `rings` in another way."""
        try:
            for _ in silence(self._kube, self._spec.key, rings=rings):
                pass
        except BellhopError as error:
            self._warnings.append(
                f"its webhook configuration and forwarder may still exist: {error}; {BY_HAND}"
            )

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
