"""`bellhop explain` as it is typed, and in the forms that programs read."""

from __future__ import annotations

import pytest

from bellhop.core.identity import profile_name
from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


@pytest.fixture
def populated(here: Installation) -> Installation:
    """The example deployed, in a cluster that cannot be called: it has no credentials."""
    fleet.populate(here)
    name = profile_name("service-network-policy", "default/workload", str(fleet.SERVICE))
    here.records.profiles.put(fleet.profile(name=name))
    here.records.outcomes.put(fleet.outcome(profile=name))
    return here


@pytest.mark.parametrize(
    "words",
    [
        "default/workload service default/my-service",
        "default/workload service/my-service",
        "default/workload svc/default/my-service",
        "default/workload Service my-service -n default",
        "workload services my-service",
    ],
)
@pytest.mark.usefixtures("populated")
def test_an_object_is_named_as_everywhere(bellhop: Bellhop, words: str) -> None:
    """KIND NAME, KIND/NAME, NAMESPACE/NAME and -n; one cluster of a name needs no namespace."""
    result = bellhop("explain", *words.split())

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Service default/my-service in default/workload\n")


@pytest.mark.parametrize("words", ["trigger NAME", "trigger/NAME", "et NAME", "eventtrigger/NAME"])
@pytest.mark.usefixtures("populated")
def test_a_trigger_is_named_as_everywhere(bellhop: Bellhop, words: str) -> None:
    """By its kind, long or short."""
    result = bellhop("explain", *words.replace("NAME", "service-network-policy").split())

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("EventBasedAddOn service-network-policy\n")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("", 2, "write CLUSTER KIND [NAMESPACE/]NAME, or: trigger NAME"),
        ("trigger", 2, "write CLUSTER KIND [NAMESPACE/]NAME, or: trigger NAME"),
        ("a b c d", 2, "write CLUSTER KIND [NAMESPACE/]NAME, or: trigger NAME"),
        ("worklod svc x", 1, "there is no cluster 'worklod'; did you mean 'workload'?"),
        ("workload svc a/b -n c", 2, "'a/b' and -n c name two namespaces"),
        ("workload servce default/x", 1, "did you mean 'Service'?"),
        ("trigger network", 1, "`bellhop get eventtriggers` lists those that are there"),
    ],
)
@pytest.mark.usefixtures("populated")
def test_wrong_words_are_errors(bellhop: Bellhop, words: str, code: int, sentence: str) -> None:
    """With what was probably meant."""
    result = bellhop("explain", *words.split())

    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr
