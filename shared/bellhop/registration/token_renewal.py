"""Renewal of the token by which Bellhop logs in to a cluster, where its SveltosCluster asks for it.

    each interval ─► TokenRequest in the cluster ─► secret store, then the record

The kubeconfig that users gave stays in their Secret as it is: the record has its version, so that
only a change of the Secret takes the place of a renewed token.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.names import seconds_of
from bellhop.errors import MissingError
from bellhop.installation import Installation
from bellhop.registration.record_update import undisturbed, update_cluster
from bellhop.state.cluster import RENEWAL_OPTION, Cluster

RENEWED_AT = "bellhop.dev/token-renewed-at"
GIVEN = "bellhop.dev/given-credentials"
"""Annotations of a cluster with a renewed token: since when, and the version of what users gave."""

_SHORTEST = timedelta(minutes=1)
_LONGEST = timedelta(days=3650)
_SHORTEST_TOKEN = 600
"""Seconds of a token: API servers issue none that ends earlier."""

_USUAL_TOKEN = 3600
_JWT_PARTS = 3
_ACCOUNT = "system:serviceaccount:"


def find_token_renewal(cluster: Cluster) -> datetime | None:
    """Return when the token of a cluster is due for renewal; None if nobody asks for that."""
    option = cluster.spec.get(RENEWAL_OPTION)
    if not option or cluster.managed:
        return None
    begun = cluster.annotations.get(RENEWED_AT)
    since = datetime.fromisoformat(begun) if begun else cluster.registered_at
    return since + token_interval(cluster)


def find_given_version(cluster: Cluster) -> str:
    """Return the version of the kubeconfig that users gave, which a renewal may have replaced."""
    if cluster.spec.get(RENEWAL_OPTION):
        return cluster.annotations.get(GIVEN, cluster.credentials)
    return cluster.credentials


def forget_token(cluster: Cluster) -> Cluster:
    """Return a cluster without traces of a renewed token."""
    kept = {k: v for k, v in cluster.annotations.items() if k not in (RENEWED_AT, GIVEN)}
    return replace(cluster, annotations=kept)


def renew_token(here: Installation, cluster: Cluster) -> str:
    """Have a cluster issue a new token for the account of its kubeconfig, and log in by it.

    Raises:
        MissingError: neither the cluster's spec nor its token names a service account.
        UnreachableError: the cluster does not answer.
        DeniedError: the credentials may not make tokens of the account.
    """
    place = f"kubeconfig/{cluster.key}"
    kubeconfig = sanitise(here.secrets.read(place), reach=here.reach)
    option = cluster.spec[RENEWAL_OPTION]
    of_token = _read_account(kubeconfig)
    namespace = option.get("saNamespace") or of_token[0]
    name = option.get("saName") or of_token[1]
    if not (namespace and name):
        raise MissingError(
            f"cannot renew the token of cluster '{cluster.key}': its kubeconfig has none of a"
            " service account; name one by saNamespace and saName"
        )
    seconds = int(seconds_of(option.get("tokenDuration") or "")) or _USUAL_TOKEN
    kube = KubeClient(cluster.key, kubeconfig, reach=here.reach)
    try:
        token = kube.token_request(namespace, name, seconds=max(seconds, _SHORTEST_TOKEN))
    finally:
        kube.close()
    own = replace(kubeconfig, token=token, client_certificate_data="", client_key_data="")
    with undisturbed():
        here.secrets.put(place, json.dumps(own.to_dict()).encode())
        update_cluster(here, cluster.key, lambda found: _note(here, found, own.version))
    return f"renewed its token of service account '{namespace}/{name}'"


def token_interval(cluster: Cluster) -> timedelta:
    """Return the interval of renewals, within what a timer can wait for."""
    text = str(cluster.spec[RENEWAL_OPTION].get("renewTokenRequestInterval") or "")
    seconds = min(seconds_of(text), _LONGEST.total_seconds())
    return max(timedelta(seconds=seconds), _SHORTEST)


def _note(here: Installation, found: Cluster, version: str) -> Cluster:
    now = here.records.clock.now().isoformat(timespec="seconds")
    marks = {RENEWED_AT: now, GIVEN: find_given_version(found)}
    return replace(found, credentials=version, annotations={**found.annotations, **marks})


def _read_account(kubeconfig: Kubeconfig) -> tuple[str, str]:
    """Return namespace and name of the account of a token; nothing is verified."""
    parts = kubeconfig.token.split(".")
    if len(parts) != _JWT_PARTS:
        return "", ""
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        subject = str(json.loads(base64.urlsafe_b64decode(padded))["sub"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", ""
    if not subject.startswith(_ACCOUNT):
        return "", ""
    namespace, _, name = subject.removeprefix(_ACCOUNT).partition(":")
    return namespace, name
