"""A mistyped label of a cluster, on a real API server: all of its add-ons stay, or its only one.

Nothing sends events here: resyncs find changes. All runs in this process, as `serve` runs it.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellhop.cli.main import cli
from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, profile, trigger
from tests.fakes.manifests import source as event_source
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
NAMESPACE = "addons"
MATCHES = [f"m{number:02}" for number in range(26)]
PROFILES = [f"own{number}" for number in range(5)]
TYPO = "clusterSelector: {matchLabels: {env: prodution}}"


class Shell:
    """Commands of one installation with one cluster."""

    def __init__(self, state: Path, user: User) -> None:
        self._environment = {"BELLHOP_STATE": str(state)}
        self._user = user

    def type(self, line: str, stdin: str | None = None) -> Result:
        """Type a command that succeeds."""
        done = CliRunner(env=self._environment).invoke(cli, line.split(), input=stdin)
        assert done.exit_code == 0, done.output
        return done

    def uids(self) -> dict[str, str]:
        """Return the add-ons' objects in the cluster, with their uids."""
        found = self._user.list(CONFIG, NAMESPACE)
        return {x["metadata"]["name"]: x["metadata"]["uid"] for x in found}

    def mistype(self, turn: int, addons: int) -> dict[str, str]:
        """Mistype the label, wait until what the typo selects has come, and return the rest."""
        dry = self.type("label cluster fleet/source env=prodution --overwrite --dry-run")
        assert dry.stderr.count(" add-ons (") == addons
        done = self.type("label cluster fleet/source env=prodution --overwrite")
        assert ("they are held: nothing is removed" in done.stderr) == (addons > 1)
        witness = f"witness{turn}"
        self.type("apply -f -", stdin=own(witness, TYPO))
        eventually("the witness comes", lambda: witness in self.uids())
        return {name: uid for name, uid in self.uids().items() if "witness" not in name}

    def correct(self, turn: int) -> None:
        """Correct the label, and wait until the objects that the typo selected are deleted."""
        self.type("label cluster fleet/source env=production --overwrite")
        self.type(f"delete clusterprofile witness{turn}")
        eventually("the witness goes", lambda: f"witness{turn}" not in self.uids())
        assert json.loads(self.type("get held -o json").stdout)["items"] == []


def own(name: str, selected: str = "clusterSelector: {matchLabels: {env: production}}") -> str:
    made = config(name, namespace=NAMESPACE)
    return join(profile(selected, name=name), holder(name, made))


def labelled(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"wanted": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.fixture
def user(source_cluster: Cluster) -> User:
    return User(source_cluster.kubeconfig())


def test_a_mistyped_label_empties_no_cluster(
    tmp_path: Path, source_cluster: Cluster, user: User
) -> None:
    """Of 26 add-ons of a trigger and five profiles all stay, as do six; a single one is removed."""
    user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for name in MATCHES:
        user.create(labelled(name))
    state, kubeconfig = tmp_path / "state", tmp_path / "kubeconfig"
    source_cluster.kubeconfig(kubeconfig)
    shell = Shell(state, user)
    watched = event_source("ConfigMap", more=", labelFilters: [{key: wanted, operation: Has}]")
    made = holder("made", config(FOR_EACH, namespace=NAMESPACE), annotations=INSTANTIATE)
    with running(state, Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        shell.type(
            f"register cluster fleet/source --no-forwarder --kubeconfig {kubeconfig}"
            " --labels env=production"
        )
        shell.type("apply -f -", stdin=join(watched, trigger(), made, *map(own, PROFILES)))
        eventually("all is deployed", lambda: len(shell.uids()) == 31)
        before = shell.uids()
        assert shell.mistype(1, addons=6) == before
        shell.correct(1)
        assert shell.uids() == before

        shell.type("delete eventtrigger made --withdraw")
        shell.type("apply -f -", stdin=own("own5"))
        eventually("six are left", lambda: sorted(shell.uids()) == [*PROFILES, "own5"])
        before = shell.uids()
        assert shell.mistype(2, addons=6) == before
        shell.correct(2)
        assert shell.uids() == before

        shell.type(f"delete clusterprofile {' '.join(PROFILES)}")
        eventually("one is left", lambda: sorted(shell.uids()) == ["own5"])
        shell.mistype(3, addons=1)
        eventually("the last one goes", lambda: sorted(shell.uids()) == ["witness3"])
    user.close()
