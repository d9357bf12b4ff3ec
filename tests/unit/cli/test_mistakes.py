"""A mistyped word is an error with a guess, and never looks like an empty list."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


@pytest.fixture
def two(here: Installation) -> Installation:
    """The example deployed, beside a cluster with a name that another has."""
    fleet.populate(here)
    here.declare.register(fleet.cluster("prod", "eu-1", env="prod"))
    here.declare.register(fleet.cluster("test", "eu-1", env="test"))
    return here


@pytest.mark.parametrize(
    "words",
    [
        "get clusters",
        "describe cm",
        "show addons",
        "show events",
        "show failures",
        "show usage",
        "status",
        "resync",
        "redeploy",
        "label cluster a/b c=d",
        "delete cm a",
        "deregister cluster a/b",
        "dead-letters list",
        "delete orphans --cluster a/b",
        "explain trigger a",
    ],
)
@pytest.mark.parametrize("there", [False, True], ids=["no folder", "an empty folder"])
def test_a_state_that_is_not_there_is_not_made(
    bellhop: Bellhop, state: Path, words: str, *, there: bool
) -> None:
    """Only what stores something makes a folder; a mistyped one is no empty installation."""
    if there:
        state.mkdir()
    result = bellhop(*words.split())

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: there is no state in '{state}'")
    assert (
        "start `bellhop serve`, which makes it, or name another folder by --state or BELLHOP_STATE"
        in result.stderr
    )
    assert state.exists() == there
    assert not list(state.glob("*"))


def test_a_state_that_lost_its_key_says_so(bellhop: Bellhop, state: Path) -> None:
    """It is there, and cannot be read: that is another sentence."""
    state.mkdir()
    (state / "store.db").touch()

    assert "its key 'key' is missing" in bellhop("get", "clusters").stderr


@pytest.mark.parametrize(
    "words",
    [
        "show addons --cluster prod/eu-2",
        "show addons --namespace prod --cluster eu-2",
        "show events --cluster prod/eu-2",
        "show orphans --cluster prod/eu-2",
        "show resources --cluster prod/eu-2",
        "resync prod/eu-2",
        "redeploy --cluster prod/eu-2",
        "redeploy cluster prod/eu-2",
        "redeploy cluster --namespace prod --cluster eu-2",
        "label cluster prod/eu-2 a=b",
        "delete orphans --cluster prod/eu-2",
        "deregister cluster prod/eu-2",
        "deregister cluster --namespace prod --cluster eu-2",
        "explain prod/eu-2 service default/web",
        "annotate cluster prod/eu-2 a=b",
        "doctor prod/eu-2",
        "release prod/eu-2 web",
    ],
)
@pytest.mark.usefixtures("two")
def test_a_cluster_that_is_not_there(bellhop: Bellhop, words: str) -> None:
    result = bellhop(*words.split())

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == ("error: there is no cluster 'prod/eu-2'; did you mean 'prod/eu-1'?\n")


@pytest.mark.parametrize(
    "words",
    ["show addons --cluster workload", "resync workload", "label cluster workload a=b"],
)
@pytest.mark.usefixtures("two")
def test_a_name_that_only_one_has_is_enough(bellhop: Bellhop, words: str) -> None:
    assert bellhop(*words.split()).exit_code == 0


@pytest.mark.usefixtures("two")
def test_a_name_that_two_have_is_asked_back(bellhop: Bellhop) -> None:
    result = bellhop("resync", "eu-1")

    assert result.exit_code == 2
    assert "prod/eu-1, test/eu-1 have that name; write NAMESPACE/NAME" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("get clusters -n prdo", "there is no namespace 'prdo'; did you mean 'prod'?"),
        ("get cm -n prdo -o json", "there is no namespace 'prdo'; did you mean 'prod'?"),
        ("get er a -n prdo", "there is no namespace 'prdo'; did you mean 'prod'?"),
        ("describe secret -n nirvana", "those that are there: default, infra, prod, test"),
        ("show addons --namespace prdo", "there is no cluster in namespace 'prdo'; did you"),
        ("get cluster prod/eu-2", "there is no cluster 'prod/eu-2'; did you mean 'eu-1'?"),
    ],
)
@pytest.mark.usefixtures("two")
def test_a_namespace_that_is_not_there(bellhop: Bellhop, words: str, sentence: str) -> None:
    """Nothing could be in it."""
    result = bellhop(*words.split())

    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


@pytest.mark.usefixtures("two")
def test_a_namespace_that_has_none_of_a_kind_is_no_error(bellhop: Bellhop) -> None:
    """It is there, and empty of these."""
    result = bellhop("get", "cm", "-n", "prod")

    assert (result.exit_code, result.stderr) == (0, "No configmaps found in namespace 'prod'.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("gte clusters", "there is no command 'gte'; did you mean 'get'?"),
        ("show addon", "there is no command 'addon'; did you mean 'addons'?"),
        ("frobnicate", "there is no command 'frobnicate'; `bellhop --help` shows how it is used"),
        ("get clusters --selctor a", "no such option '--selctor'. Did you mean '--selector'?"),
        ("get clsters", "there is no kind 'clsters'; did you mean 'clusters'?"),
        ("get svc", "there is no kind 'svc'; the kinds are clusters (cl), "),
        ("schema List", "there is no kind 'List'; the kinds are clusters (cl), "),
        ("get", "missing argument 'KIND'; `bellhop get --help` shows how it is used"),
        ("wait cluster a", "'--for'. Choose from: ready, provisioned, promoted, delete; `"),
        ("get cm -o jsn", "'jsn' is not one of 'table', 'wide', 'name', 'json', 'yaml'"),
        ("deregister cluster", "name one cluster, as NAMESPACE/NAME or with --namespace"),
        ("deregister cluster a/b --cluster c", "name one cluster"),
        ("deregister cluster a/b --namespace c", "name two namespaces"),
        ("register cluster --kubeconfig x", "name one cluster, as NAMESPACE/NAME"),
        ("register cluster eu-1 --kubeconfig x", "needs a namespace; write NAMESPACE/NAME"),
        ("register cluster a/b --namespace c --kubeconfig x", "name two namespaces"),
        (
            "delete orphans",
            "name the cluster: --cluster NAMESPACE/NAME; `bellhop delete orphans --h",
        ),
        ("delete orphans a/b", "got unexpected extra argument (a/b)"),
        ("redeploy a b", "name one profile, or one cluster"),
        ("redeploy cluster a/b --cluster c/d", "name one profile, or one cluster"),
        ("redeploy Foo/a", "'Foo/a' is not a profile"),
        ("history Foo/a", "'Foo/a' is not a profile"),
        ("rollback Foo/a", "'Foo/a' is not a profile"),
        ("pause Foo/a", "'Foo/a' is not a profile"),
        ("resume Foo/a", "'Foo/a' is not a profile"),
        ("redeploy a --namespace b", "--namespace goes with --cluster"),
        ("show addons --resources --helm-charts", "leave nothing to show"),
    ],
)
def test_errors_are_one_line_in_one_dialect(bellhop: Bellhop, words: str, said: str) -> None:
    """`error:`, what is wrong, and where the help is; wrong input is 2."""
    result = bellhop(*words.split())

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
