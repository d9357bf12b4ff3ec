"""`bellhop install crds`: definitions in a cluster, and on the way to a repository."""

from __future__ import annotations

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.configuration.definitions import DEFINITIONS, make_definitions
from bellhop.configuration.installer import CRD
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import INGEST

OURS = next(iter(make_definitions(rules=False)))
NAME = OURS["metadata"]["name"]


def results(text: str) -> dict[str, str]:
    """Return the result of each definition."""
    return {line.split()[0]: line.split(maxsplit=1)[1].strip() for line in text.splitlines()[1:]}


def test_installs_what_the_cluster_lacks(
    bellhop: Bellhop, register: Bellhop, kube: KubeClient
) -> None:
    """Run again, it finds all of it as it was."""
    assert register(*INGEST).exit_code == 0

    first = bellhop("install", "crds", "prod/eu-1")
    again = bellhop("install", "crds", "prod/eu-1")

    assert first.exit_code == 0, first.output
    assert results(first.stdout) == {each.name: "created" for each in DEFINITIONS}
    assert results(again.stdout) == {each.name: "unchanged" for each in DEFINITIONS}
    assert kube.get(CRD, "", NAME)


def test_leaves_those_of_others_and_of_a_newer_version(
    bellhop: Bellhop, register: Bellhop, kube: KubeClient
) -> None:
    """They serve what is needed, and change only with what installed them."""
    assert register(*INGEST).exit_code == 0
    kube.apply({**OURS, "metadata": {"name": NAME}})
    newer = [*make_definitions(rules=False)][1]
    version = {**newer["spec"]["versions"][0], "name": "v1", "storage": False}
    kube.apply(
        newer | {"spec": newer["spec"] | {"versions": [*newer["spec"]["versions"], version]}}
    )

    said = results(bellhop("install", "crds", "prod/eu-1").stdout)

    assert said[NAME] == "left      somebody else installed it"
    assert said[newer["metadata"]["name"]] == "left      a newer Bellhop installed it"
    found = kube.get(CRD, "", newer["metadata"]["name"])
    assert found
    assert [each["name"] for each in found["spec"]["versions"]] == ["v1beta1", "v1"]


def test_refuses_a_cluster_with_an_older_definition(
    bellhop: Bellhop, register: Bellhop, kube: KubeClient
) -> None:
    """Sveltos before its v1beta1: it says what is served, and what is needed."""
    assert register(*INGEST).exit_code == 0
    version = {**OURS["spec"]["versions"][0], "name": "v1alpha1"}
    old = {**OURS, "metadata": {"name": NAME}, "spec": {**OURS["spec"], "versions": [version]}}
    kube.apply(old)

    result = bellhop("install", "crds", "prod/eu-1")

    assert result.exit_code == 2
    assert (
        f"cannot use the definition '{NAME}' of this cluster: it serves v1alpha1, and v1beta1 is"
        " needed" in result.stderr
    )


@pytest.mark.parametrize(("version", "rules"), [((), True), (("--kubernetes", "1.24"), False)])
def test_prints_them_for_a_repository(
    bellhop: Bellhop, version: tuple[str, ...], *, rules: bool
) -> None:
    """As one YAML document each; for an old Kubernetes without rules that it does not know."""
    result = bellhop("install", "crds", "--print", *version)

    assert list(yaml.safe_load_all(result.stdout)) == list(make_definitions(rules=rules))
    assert ("x-kubernetes-validations" in result.stdout) is rules


@pytest.mark.parametrize("words", [(), ("prod/eu-1", "--print"), ("a/b", "--kubernetes", "1.24")])
def test_takes_a_cluster_or_prints(bellhop: Bellhop, words: tuple[str, ...]) -> None:
    """Never both, and never neither."""
    result = bellhop("install", "crds", *words)

    assert result.exit_code == 2
    assert "name a cluster, as NAMESPACE/NAME, or give --print" in result.stderr
