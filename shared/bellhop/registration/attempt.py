"""One attempt to register a cluster, from one reading of its record."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.installation_mark import marked, other, take_over
from bellhop.clusters.records import InstallationId
from bellhop.core.gvk import Resource
from bellhop.errors import (
    BellhopError,
    ConflictError,
    DeniedError,
    MissingError,
    PermanentError,
    StaleError,
)
from bellhop.extras.classifiers.labels import carry_in_set
from bellhop.ingest import service_accounts
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.registration import audited_clusters, instructions
from bellhop.registration.forwarder_manifests import (
    forwarder_rights,
    forwarder_role,
    is_audited,
    is_direct,
    make_direct_record,
)
from bellhop.registration.forwarder_pods import (
    DEPLOYMENT,
    IMAGE,
    NO_FORWARDER,
    NO_REGISTRY,
    find_applier,
    find_deployment,
    read_image,
    warn_of_image,
)
from bellhop.registration.permissions import check_applying, check_watching, list_watched
from bellhop.registration.record_update import undisturbed, update_cluster
from bellhop.registration.removal import (
    BY_HAND,
    find_twin,
    find_uid,
    forget_abandoned,
    read_uid,
    remove_former_sender,
    remove_sender,
    store_former_credentials,
    withdraw,
)
from bellhop.registration.request import (
    PATIENCE,
    LostRaceError,
    Pause,
    Registered,
    Registration,
    busy_error,
    second_name_error,
)
from bellhop.state.cluster import Cluster
from bellhop.state.ingest_policy import Issuer

_NAMESPACE = "Namespace"
_WITHOUT_INSTALLING = "; --no-install needs fewer, and leaves the forwarder's pods to you"


class RegistrationAttempt:
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
        self._require_registered()
        cluster = self._inspect()
        if self._taken:
            take_over(self._kube, self._mine)
        forwarder = self._make_instructions(cluster) if self._spec.forwarder else None
        if forwarder and not self._spec.has_no_sender:
            # Only an administrator may bind a role that is not there yet.
            for manifest in (forwarder_role(self._resources), *self._manifests()):
                ours = manifest["kind"] == _NAMESPACE
                self._kube.apply(marked(manifest, self._mine) if ours else manifest)
        with undisturbed():
            cluster = self._begin(cluster, forwarder)
            self._withdraw_second_name(cluster)
            if forwarder and not self._spec.audit:
                self._instruct_forwarder(cluster, forwarder)
                cluster = self._finish(cluster.key, forwarder.digest)
            elif self._old and self._old.forwarder and not is_audited(self._old.forwarder):
                self._remove_sender()
            if cluster.abandoned:
                cluster = self._leave_former(cluster)
        secret = forwarder.secret if forwarder else None
        again = self._old is not None
        return Registered(cluster, again, self._warnings, secret, self._image, self._installs)

    def _require_registered(self) -> None:
        """Refuse to renew a cluster that was deregistered meanwhile, between any two steps."""
        renews = self._spec.renews
        if renews is not None and (self._old is None or self._old.registered_at != renews):
            raise MissingError(
                f"cannot renew cluster '{self._spec.key}': it was deregistered meanwhile"
            )

    def _inspect(self) -> Cluster:
        self._refuse_concurrent()
        spec, old = self._spec, self._old
        version = self._kube.version()
        self._uid = read_uid(self._kube)
        self._refuse_second_name()
        self._refuse_other_installation()
        annotations = old.annotations if old else {}
        if spec.annotations is not None:
            annotations = spec.annotations
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
            annotations=annotations,
            spec={**(old.spec if old else {}), **spec.pauses},
            managed=spec.managed,
            assume_role=spec.assume_role,
            external_id=spec.external_id,
            given=given,
            configuration=old.configuration if old else "",
        )
        cluster.refuse_too_much()
        self._resources = list_watched(self._kube, self._here.catalogs.current(), cluster)
        self._installs = self._decides_to_install()
        missing = check_watching(
            self._kube,
            self._resources,
            webhook=spec.forwarder and not spec.audit,
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
        if spec.forwarder and not self._spec.has_no_sender:
            self._issuer = self._read_issuer()
        self._warnings += [
            f"the credentials {each}: an add-on they may not write fails, and says so"
            for each in check_applying(self._kube)
        ]
        self._warnings += spec.warn_of_expiry(self._now)
        return cluster

    def _read_issuer(self) -> Issuer | None:
        """Return the keys that sign tokens of the cluster's accounts; None if they cannot be read.

        That is no reason to refuse the cluster: its forwarder has a token of ours as well.
        """
        try:
            return service_accounts.ask(self._kube, self._spec.audience, self._now)
        except PermanentError as error:
            self._warnings.append(
                f"its forwarder cannot prove itself by its account, and does so by the token in its"
                f" Secret: {error}"
            )
            return None

    def _refuse_concurrent(self) -> None:
        begun = self._old.forwarder.get("begun") if self._old else None
        if begun and timedelta(0) <= self._now - datetime.fromisoformat(begun) < PATIENCE:
            raise busy_error(self._spec.key, "another registration of it has begun")

    def _refuse_second_name(self) -> None:
        other = find_twin(self._here, self._spec.key, self._uid)
        if other is None:
            return
        was_here = self._old is not None and find_uid(self._here, self._old) == self._uid
        if not self._spec.twice and not was_here:
            raise second_name_error(self._spec.key, other.key)
        self._warnings.append(
            f"it is cluster '{other.key}', too: add-ons are applied twice, and its forwarder"
            " sends for the name that was registered last"
        )

    def _refuse_other_installation(self) -> None:
        """Refuse the cluster of another installation, unless it is to be taken over."""
        installations = self._here.records.installations
        self._mine = installations.get(self._here.inbound.url)
        self._taken = other(installations, self._kube)
        if self._taken and not self._spec.take_over:
            raise ConflictError(
                f"cannot register cluster '{self._spec.key}': {self._taken} has it, and two would"
                " undo each other's work; deregister it there first, or give --take-over if that"
                " installation no longer exists"
            )

    def _manifests(self) -> list[dict[str, Any]]:
        """Return the objects to apply before any event is sent; remember the image of the pods."""
        there = find_deployment(self._kube)
        self._image = read_image(there) if there else ""
        if not self._installs:
            if there is None and not self._spec.forwarder_url:
                self._warnings.append(NO_FORWARDER)
            return forwarder_rights()
        manifests = self._spec.manifests(self._image)
        [self._image] = (read_image(each) for each in manifests if each["kind"] == DEPLOYMENT.kind)
        status = (there or {}).get("status") or {}
        if self._image == IMAGE and not status.get("availableReplicas"):
            self._warnings.append(NO_REGISTRY)
        return manifests

    def _decides_to_install(self) -> bool:
        """Return whether to apply the Deployment: not one that another tool applies.

        If it cannot be read, only a forwarder that this cluster has already is left unchanged.
        """
        if self._spec.install is not None:
            return self._spec.install
        there = find_deployment(self._kube)
        if there is None:
            return True
        if not there:
            return not (self._old and "path" in self._old.forwarder) or self._is_other_cluster()
        tool = find_applier(there)
        self._warnings += warn_of_image(tool, self._spec.image, there)
        return not tool

    def _make_instructions(self, cluster: Cluster) -> instructions.Instructions:
        former: instructions.Former = instructions.Former()
        old = self._old.forwarder if self._old else {}
        if self._spec.has_no_sender:
            way = "audit" if self._spec.audit else "direct"
            renews, audit = self._spec.renews is not None, self._spec.audit
            token = audited_clusters.choose_token(self._old, audit, self._now, renews=renews)
            made = instructions.make_direct_instructions(
                way, cluster.key, self._spec.inbound, self._now, token
            )
        else:
            if old and "path" in old and not self._is_other_cluster():
                former = instructions.Former(old, instructions.find_entries(self._kube))
            made = instructions.make_instructions(
                cluster.key, self._spec.forwarder_url, self._spec.inbound, self._now, former
            )
        if self._spec.inbound == self._here.inbound:
            return made
        # A renewal sends to the same address as this registration.
        place = {"ingest-url": self._spec.inbound.url, "ingest-ca": self._spec.inbound.ca}
        return replace(made, record={**made.record, **place})

    def _is_other_cluster(self) -> bool:
        """Return whether the name is to mean another cluster than before."""
        before = find_uid(self._here, self._old) if self._old else ""
        return bool(self._uid and before and before != self._uid)

    def _begin(self, cluster: Cluster, forwarder: instructions.Instructions | None) -> Cluster:
        """Write kubeconfig and record; from here on old and new token are accepted."""
        key, old = cluster.key, self._old
        if forwarder and self._spec.audit:
            kinds = self._resources, audited_clusters.list_configured(self._kube, cluster)
            audited_clusters.write_files(self._spec.audit, forwarder, *kinds)
        if forwarder:
            cluster = replace(cluster, token_digest=forwarder.digest, forwarder=forwarder.record)
        stored = json.dumps(self._spec.kubeconfig.to_dict()).encode()
        if old and self._is_other_cluster():
            store_former_credentials(self._here, old, stored)
            # Nobody of the former cluster sends for this one.
            self._here.records.issuers.delete(key)
            cluster = replace(cluster, abandoned=find_uid(self._here, old))
        elif old:
            former = instructions.find_token_digest(old, self._find_entries()) if forwarder else ""
            abandoned = old.abandoned if old.abandoned != self._uid else ""
            cluster = replace(cluster, former_digest=former, abandoned=abandoned)
        if forwarder and self._spec.audit:
            cluster = audited_clusters.set_former_end(cluster, old, self._now)
        if not cluster.managed and not self._spec.renews:
            # Stored first: the record names a version that is there.
            self._here.secrets.put(f"kubeconfig/{key}", stored)
        try:
            self._here.declare.register(cluster, expect=self._token)
        except StaleError as error:
            raise LostRaceError(str(error)) from error
        if self._issuer:
            self._here.records.issuers.put(key, self._issuer)
        else:
            self._here.records.issuers.delete(key)
        if cluster.managed and old and not old.managed:
            # The stored credential is not used any more.
            self._here.secrets.delete(f"kubeconfig/{key}")
        return cluster

    def _withdraw_second_name(self, cluster: Cluster) -> None:
        """Withdraw if another process registered the cluster under another name just now.

        Each of two writes its record before it reads, so that at least one sees the other; if both
        do, both withdraw.
        """
        other = find_twin(self._here, cluster.key, self._uid)
        if other and not self._old and not self._spec.twice:
            withdraw(self._here, cluster)
            raise second_name_error(cluster.key, other.key)

    def _find_entries(self) -> dict[str, str]:
        """Return the last instructions of the sender, as far as they can be read."""
        if self._old and is_direct(self._old.forwarder):
            return {"token": self._here.records.callers.get(self._old.key)}
        return instructions.find_entries(self._kube)

    def _instruct_forwarder(self, cluster: Cluster, forwarder: instructions.Instructions) -> None:
        try:
            if self._spec.direct:
                self._configure_direct(cluster, forwarder.entries["token"])
                return
            if "next-path" in cluster.forwarder:
                instructions.configure_webhook(
                    self._kube, self._resources, cluster.forwarder, self._mine
                )
                self._pause(instructions.SPREAD_SECONDS)
            self._kube.apply(forwarder.secret)
        except BellhopError:
            # One that is renewed goes on as it was, and the renewals finish what was begun.
            if self._old is None:
                withdraw(self._here, cluster)
            raise

    def _configure_direct(self, cluster: Cluster, token: str) -> None:
        """Configure the API server to call ingest, with a token that is accepted by now."""
        self._here.records.callers.put(cluster.key, token)
        instructions.configure_webhook(
            self._kube, self._resources, make_direct_record(cluster.forwarder, token), self._mine
        )
        if self._old and "path" in self._old.forwarder:
            # The forwarder sends its pending objects while it ends.
            self._remove_sender(sends=True)

    def _finish(self, key: str, digest: str) -> Cluster:
        """Record that the forwarder is instructed, despite concurrent changes of the cluster."""
        now = self._here.records.clock.now()

        def finished(cluster: Cluster) -> Cluster | None:
            if cluster.token_digest != digest:
                return None
            until = now + instructions.OVERLAP if cluster.former_digest else None
            record = instructions.mark_secret_written(cluster.forwarder, now)
            return replace(cluster, forwarder=record, former_until=until)

        cluster = update_cluster(self._here, key, finished)
        if cluster is None:
            if self._here.records.clusters.get(key) is None:
                # Deregistered meanwhile: what was written since would send with a dead token.
                self._remove_sender()
            raise busy_error(key, "it was registered or deregistered by somebody else meanwhile")
        self._here.records.refusals.delete(key)
        return cluster

    def _remove_sender(self, *, sends: bool = False) -> None:
        """Remove the sender; a cluster that `rings` sends events in another way from now on."""
        try:
            for _ in remove_sender(self._kube, self._spec.key, sends=sends):
                pass
        except BellhopError as error:
            self._warnings.append(
                f"its webhook configuration and forwarder may still exist: {error}; {BY_HAND}"
            )

    def _leave_former(self, cluster: Cluster) -> Cluster:
        self._warnings += filter(None, [remove_former_sender(self._here, cluster)])
        return forget_abandoned(self._here, cluster.key) or cluster
