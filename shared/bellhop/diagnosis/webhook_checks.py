"""Checks of a cluster's webhook and forwarder, by which its events arrive."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK, Resource
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.condition import Condition, failed, passed, unknown
from bellhop.errors import BellhopError
from bellhop.ingest.admission import INGEST, KNOCKER
from bellhop.installation import Installation
from bellhop.registration.forwarder_manifests import (
    CONFIGURATION,
    HOLDERS,
    NAME,
    NAMES,
    NAMESPACE,
    is_direct,
)
from bellhop.registration.instructions import digest_token, read_entries
from bellhop.state.cluster import Cluster

REGISTER_AGAIN = "register the cluster again: `bellhop register cluster`"
_SEGMENT = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_SAMPLE = 20
_WEBHOOKS = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
_ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
_BINDING = GVK("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
_DEPLOYMENT = GVK("apps", "v1", "Deployment")
_INSTALL = "register the cluster again with its forwarder: `bellhop register cluster`"


class WebhookChecks:
    """The checks of one cluster whose API server answers, and which has a webhook."""

    def __init__(
        self, here: Installation, cluster: Cluster, kube: KubeClient, resources: Sequence[Resource]
    ) -> None:
        self._here = here
        self._cluster = cluster
        self._record = cluster.forwarder
        self._direct = is_direct(cluster.forwarder)
        self._kube = kube
        self._resources = resources
        self._now = here.records.clock.now()

    def run(self) -> Iterator[Condition]:
        yield from run_checks(("webhook", self._check_webhook))
        if not self._direct:
            yield from run_checks(
                ("Secret", self._check_secret),
                ("account", self._check_account),
                ("forwarder", self._check_pods),
            )
        yield from run_checks(("webhook call", self._call_webhook))

    def _check_webhook(self) -> Iterator[Condition]:
        resync = f"`bellhop resync {self._cluster.key}` writes it again, or reports what fails"
        found = self._kube.get(_WEBHOOKS, "", NAME)
        hooks = (found or {}).get("webhooks") or []
        if found is None:
            health = self._here.records.health.head(self._cluster.key)
            why = f": {health.message}" if health.mute else ""
            yield failed("webhook", f"its webhook configuration is missing{why}", resync)
            return
        problems = {each for hook in hooks for each in self._compare_webhook(hook)}
        lacking = {each.plural for each in self._resources} - _list_webhook_resources(hooks)
        if lacking:
            problems.add(f"does not send events of {', '.join(sorted(lacking))}")
        for each in sorted(problems):
            yield failed("webhook", f"it {each}", resync)
        if moved := cluster_status.describe_address_change(self._here, self._cluster):
            yield failed("webhook", moved, f"{REGISTER_AGAIN}, or serve at that address again")
        elif not problems:
            where = self._record.get("url") or "the Service in the cluster"
            yield passed("webhook", f"it calls {'ingest itself' if self._direct else where}")

    def _compare_webhook(self, hook: Mapping[str, Any]) -> Iterator[str]:
        """Yield the differences of a webhook from the registration."""
        client = hook.get("clientConfig") or {}
        service = client.get("service") or {}
        path = str(service.get("path") or "")
        url = self._record.get("url", "")
        called = str(client.get("url") or path)
        of_names = hook["name"] in (CONFIGURATION, HOLDERS) and not self._direct
        if not called.endswith(self._record.get("path", "") + NAMES * of_names):
            yield "calls another path than the forwarder's"
        token = digest_token(called.rpartition("/")[2])
        if self._direct and token not in self._cluster.gate((), 0).digests(self._now):
            yield "calls ingest with a token that is not accepted"
        if url and not called.startswith(url):
            yield f"does not call '{url}', where the forwarder is said to be"
        if not url and not service:
            yield "does not call the Service in the cluster"
        if path and not all(map(_SEGMENT.fullmatch, path.strip("/").split("/"))):
            yield "has a path that API servers refuse"
        if self._record.get("ca", "") != _decode(client.get("caBundle")):
            whose = "ingest's" if self._direct else "the forwarder's"
            yield f"trusts another authority than that of {whose} certificate"

    def _check_secret(self) -> Iterator[Condition]:
        entries = read_entries(self._kube)
        cluster, inbound = self._cluster, self._here.inbound.url
        if not entries:
            yield failed("Secret", f"'{NAMESPACE}/{NAME}' is not there", REGISTER_AGAIN)
            return
        if entries.get("cluster") != cluster.key:
            serves = entries.get("cluster", "")[:128]
            yield failed("Secret", f"the forwarder serves cluster '{serves}'", REGISTER_AGAIN)
            return
        digest = digest_token(entries.get("token", ""))
        if digest == cluster.token_digest:
            yield passed("Secret", "its token is the one that is accepted")
        elif digest == cluster.former_digest:
            yield passed("Secret", "its token is the former one, which is accepted for now")
        else:
            yield failed("Secret", "its token is not accepted", REGISTER_AGAIN)
        url = self._record.get("ingest-url") or inbound
        if entries.get("ingest-url", "").rstrip("/") != url.rstrip("/"):
            sent = entries.get("ingest-url", "")[:256]
            cure = f"{REGISTER_AGAIN}, or serve at that address again"
            yield failed("Secret", f"the forwarder sends to {sent}, and Bellhop is at {url}", cure)

    def _check_account(self) -> Iterator[Condition]:
        role = self._kube.get(_ROLE, "", NAME)
        binding = self._kube.get(_BINDING, "", NAME)
        may = {
            (group, plural)
            for rule in (role or {}).get("rules") or []
            for group in rule.get("apiGroups") or []
            for plural in rule.get("resources") or []
            if "get" in (rule.get("verbs") or [])
        }
        lacking = [r.plural for r in self._resources if (r.gvk.group, r.plural) not in may]
        resync = f"`bellhop resync {self._cluster.key}` grants it"
        if lacking:
            what = ", ".join(sorted(lacking))
            yield failed(
                "account", f"the forwarder may not read {what}, whose events it receives", resync
            )
        if binding is None:
            yield failed("account", f"ClusterRoleBinding '{NAME}' is not there", REGISTER_AGAIN)
        if binding is not None and not lacking:
            yield passed("account", "the forwarder may read the objects of its events")

    def _check_pods(self) -> Iterator[Condition]:
        if self._record.get("url"):
            return
        found = self._kube.get(_DEPLOYMENT, NAMESPACE, NAME)
        cure = f"`kubectl -n {NAMESPACE} get pods` and `kubectl -n {NAMESPACE} logs deploy/{NAME}`"
        if found is None:
            yield failed("forwarder", "its Deployment is not there", _INSTALL)
        elif not (found.get("status") or {}).get("readyReplicas"):
            yield failed("forwarder", "none of its pods is ready", f"{cure} say why")

    def _call_webhook(self) -> Iterator[Condition]:
        receiver = "ingest" if self._direct else "the forwarder"
        where = self._record.get("url") or f"its Service '{NAMESPACE}/{NAME}'"
        key = self._find_sample()
        if key is None:
            yield unknown("webhook call", "there is no object of a watched kind for a dry-run call")
            return
        said = self._kube.knock(*key, manager=KNOCKER)
        if f"{NAME} " in said or f"{INGEST} " in said:
            yield passed("webhook call", f"its API server reaches {receiver}")
            return
        yield failed(
            "webhook call",
            f"its API server does not reach {receiver} at {where}",
            f"see whether {receiver} runs, and is reached from the API server at that address,"
            " and read its log",
        )

    def _find_sample(self) -> tuple[GVK, str, str] | None:
        """Return an object that the webhook sends: not one of the forwarder's own namespace."""
        for resource in self._resources:
            for item in self._kube.page(resource.gvk, limit=_SAMPLE).items:
                metadata = item["metadata"]
                place = metadata.get("namespace", "")
                own = metadata["name"] if resource.gvk.kind == "Namespace" else place
                if own != NAMESPACE:
                    return resource.gvk, place, metadata["name"]
        return None


def run_checks(
    *checks: tuple[str, Callable[[], Iterable[Condition]]],
) -> Iterator[Condition]:
    """Run checks; an error of one does not end the others."""
    for name, check in checks:
        try:
            yield from list(check())
        except BellhopError as error:
            yield unknown(name, str(error))


def _list_webhook_resources(hooks: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the resources that webhooks send for all objects."""
    return {
        str(plural)
        for hook in hooks
        if not (hook.get("objectSelector") or {}).get("matchLabels")
        for rule in hook.get("rules") or []
        for plural in rule.get("resources") or []
    }


def _decode(bundle: Any) -> str:
    try:
        return base64.b64decode(str(bundle or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
