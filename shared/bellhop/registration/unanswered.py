"""Registration of a cluster that does not answer, or does not accept its credentials, yet.

    record, as a registration leaves it that was killed ─► renewals finish it once it answers

Nothing is checked in the cluster before that: neither rights nor another name or installation.
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from bellhop.clusters.kubeconfig import sanitise
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.registration import instructions
from bellhop.registration.request import Registration
from bellhop.state.cluster import Cluster

INSTALL = "install"
"""The entry of such a record on how it sends: the image of the forwarder's pods."""


def register_unanswered(here: Installation, spec: Registration) -> Cluster:
    """Register a new cluster, of no applyset, without a call to it; return its record.

    Raises:
        InvalidError: this installation does not call its address, or it has too many labels.
        StaleError: another process registers it.
    """
    sanitise(spec.kubeconfig.to_dict(), reach=here.reach)
    now = here.records.clock.now()
    cluster = Cluster(
        namespace=spec.namespace,
        name=spec.name,
        labels=dict(spec.labels or {}),
        kubernetes="",
        token_digest="",
        registered_at=now,
        credentials="" if spec.managed else spec.kubeconfig.version,
        annotations=spec.annotations or {},
        spec=spec.pauses,
        managed=spec.managed,
        assume_role=spec.assume_role,
        external_id=spec.external_id,
    )
    cluster.refuse_too_much()
    if spec.forwarder:
        former = instructions.Former()
        made = instructions.make_instructions(
            cluster.key, spec.forwarder_url, spec.inbound, now, former
        )
        record = {**made.record, INSTALL: spec.image}
        cluster = replace(cluster, token_digest=made.digest, forwarder=record)
    if not cluster.managed:
        # Stored first: the record names a version that is there.
        stored = json.dumps(spec.kubeconfig.to_dict()).encode()
        here.secrets.put(f"kubeconfig/{cluster.key}", stored)
    here.declare.register(cluster, expect=ABSENT)
    return cluster
