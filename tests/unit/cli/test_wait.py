"""`bellhop wait`: exit codes that a pipeline can go by, and no stale success."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import Declaration, parse_all, read_documents
from bellhop.installation import Installation
from bellhop.ports.queue import Done
from bellhop.rendering.inputs import Inputs
from bellhop.state.cluster import Health
from tests.fakes.kept import require_value
from tests.fakes.manifests import profile as declared
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

KEY = "default/workload"
WAIT = ("wait", "clusterprofile", "own", "--for=provisioned", "--timeout")


def apply(here: Installation, text: str) -> list[Declaration]:
    """Declare what a text says."""
    found = parse_all(read_documents(text, source="test"))
    here.declare.apply(found)
    return found


def deploy(here: Installation, text: str = "", **changes: object) -> None:
    """Have a profile be rendered of what is declared, and deployed, as the stages do."""
    here.declare.register(fleet.cluster(env="production"))
    found = apply(here, text or declared())
    rendered = fleet.profile(name="own", trigger="", cluster="", object="", contents=())
    made_at = fleet.now() - timedelta(minutes=2)
    noted = Inputs(lambda _: None, *found).noted
    here.records.profiles.put(replace(rendered, recipe=noted, made_at=made_at))
    done = fleet.outcome(profile="own", trigger="", source="", phase="Provisioned")
    at = fleet.now() - timedelta(minutes=1)
    here.records.outcomes.put(replace(done, at=at, message="", **changes))


def test_a_profile_is_provisioned(bellhop: Bellhop, here: Installation) -> None:
    """At once, where nothing is under way, by name, by labels and among all."""
    deploy(here)
    one = bellhop(*WAIT, "0s")
    every = bellhop("wait", "cp", "--all", "--for=provisioned", "--timeout", "0s")

    assert (one.exit_code, one.stderr) == (0, "")
    assert one.stdout == "clusterprofile.config.projectsveltos.io/own provisioned\n"
    assert every.stdout == one.stdout


def test_what_was_deployed_of_a_former_manifest_does_not_count(
    bellhop: Bellhop, here: Installation
) -> None:
    """Else a pipeline would go on before its change was even rendered."""
    deploy(here)
    apply(here, declared(more="tier: 50"))
    result = bellhop(*WAIT, "0s")

    assert (result.exit_code, result.stdout) == (75, "")
    assert result.stderr == (
        "error: clusterprofile.config.projectsveltos.io/own: profile 'own' is not rendered again"
        " yet\nerror: timed out: 1 of 1 object is not provisioned yet\n"
    )


def test_what_was_deployed_of_a_former_rendering_does_not_count(
    bellhop: Bellhop, here: Installation
) -> None:
    deploy(here)
    kept = require_value(here.records.profiles.get("", "", "own"))
    here.records.profiles.put(replace(kept, made_at=fleet.now()))
    result = bellhop(*WAIT, "0s")

    assert result.exit_code == 75
    assert f"profile 'own' is not deployed again yet in {KEY}" in result.stderr


def test_empty_queues_say_that_nothing_more_follows(bellhop: Bellhop, here: Installation) -> None:
    """As where another label of a manifest renders the same."""
    deploy(here)
    apply(here, declared().replace("{name: own}", "{name: own, labels: {a: b}}", 1))
    for inbox in here.dead.values():
        for each in inbox.receive(100, wait=timedelta(0)):
            inbox.settle(each, Done())
    result = bellhop(*WAIT, "30s")

    assert (result.exit_code, result.stderr) == (0, "")


def test_says_what_a_profile_waits_for(bellhop: Bellhop, here: Installation) -> None:
    """The reason is that of the first cluster where it is not deployed."""
    deploy(here)
    kept = require_value(here.records.outcomes.get(KEY, "own"))
    here.records.outcomes.put(replace(kept, phase="Failed", message="no quota"))
    result = bellhop(*WAIT, "0s")

    assert result.exit_code == 75
    assert f"profile 'own' is Failed; {KEY}: no quota" in result.stderr


def test_goes_on_once_it_is_so(bellhop: Bellhop, here: Installation) -> None:
    """It looks again, and does not wait for the timeout."""
    here.declare.register(fleet.cluster())
    begun = time.monotonic()
    later = threading.Timer(0.5, lambda: here.records.health.put(KEY, Health("Healthy")))
    later.start()
    result = bellhop("wait", f"cluster/{KEY}", "--for=ready", "--timeout", "60s")
    later.join()

    assert (result.exit_code, result.stdout) == (0, f"cluster/{KEY} ready\n")
    assert time.monotonic() - begun < 30


def test_a_cluster_that_is_not_ready(bellhop: Bellhop, here: Installation) -> None:
    here.declare.register(fleet.cluster())
    here.declare.register(fleet.cluster(name="other"))
    here.records.health.put(KEY, Health("Healthy"))
    result = bellhop("wait", "clusters", "-l", "env=fv", "--for=ready", "--timeout", "0s")

    assert (result.exit_code, result.stdout) == (75, f"cluster/{KEY} ready\n")
    assert result.stderr == (
        "error: cluster/default/other: it is Unknown\n"
        "error: timed out: 1 of 2 objects is not ready yet\n"
    )


def test_a_trigger_is_provisioned_with_all_its_profiles(
    bellhop: Bellhop, here: Installation
) -> None:
    """One that has made none yet is not."""
    fleet.declare(here)
    none = bellhop("wait", "et", "service-network-policy", "--for=provisioned", "--timeout", "0s")
    here.declare.register(fleet.cluster())
    here.records.profiles.put(fleet.profile())
    here.records.outcomes.put(replace(fleet.outcome(), phase="Provisioned", message=""))
    some = bellhop("wait", "et", "service-network-policy", "--for=provisioned", "--timeout", "0s")

    assert (none.exit_code, "no profile is rendered yet" in none.stderr) == (75, True)
    assert (some.exit_code, some.stderr) == (0, "")


def test_waits_for_a_deletion(bellhop: Bellhop, here: Installation) -> None:
    """A profile is there as long as a cluster has something of it."""
    deploy(here)
    here.declare.delete([("ClusterProfile", "", "own")])
    still = bellhop("wait", "cp", "own", "--for=delete", "--timeout", "0s")
    here.records.profiles.delete("", "", "own")
    deleted = bellhop("wait", "cp", "own", "--for=delete", "--timeout", "0s")

    assert (still.exit_code, "it is still there" in still.stderr) == (75, True)
    assert (deleted.exit_code, deleted.stderr) == (0, "")
    assert deleted.stdout == "clusterprofile.config.projectsveltos.io/own deleted\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("cm", "own", "-n", "shop"), "configmap/shop/own deleted\n", id="namespace"),
        pytest.param(("cm", "own"), "configmap/own deleted\n", id="no namespace"),
        pytest.param(("cm", "a", "b"), "configmap/a deleted\nconfigmap/b deleted\n", id="two"),
        pytest.param(("profile", "a"), "profile.config.projectsveltos.io/a deleted\n", id="group"),
        pytest.param(("cm", "--all"), "", id="all of none"),
    ],
)
def test_says_of_what_was_deleted_before_that_it_is(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], said: str
) -> None:
    """A deletion may be quicker than the next command of a script."""
    deploy(here)
    result = bellhop("wait", *arguments, "--for=delete", "--timeout", "0s")

    assert (result.exit_code, result.stdout, result.stderr) == (0, said, "")


def test_says_of_two_that_one_is_deleted_and_one_is_not(
    bellhop: Bellhop, here: Installation
) -> None:
    """Each of them has its line."""
    deploy(here)
    result = bellhop("wait", "cp", "gone", "own", "--for=delete", "--timeout", "0s")

    assert result.stdout == "clusterprofile.config.projectsveltos.io/gone deleted\n"
    assert (result.exit_code, "own: it is still there" in result.stderr) == (75, True)


def test_a_trigger_is_there_until_its_profiles_are_removed(
    bellhop: Bellhop, here: Installation
) -> None:
    """Its manifest goes at once, and what it deployed later."""
    fleet.declare(here)
    here.declare.register(fleet.cluster())
    here.records.profiles.put(fleet.profile())
    here.records.outcomes.put(fleet.outcome())
    here.declare.delete([("EventBasedAddOn", "", "service-network-policy")])
    wait = ("wait", "et", "service-network-policy", "--for=delete", "--timeout", "0s")
    still = bellhop(*wait)
    here.records.profiles.delete("service-network-policy", KEY, fleet.PROFILE)

    assert (still.exit_code, f"profile '{fleet.PROFILE}' is still" in still.stderr) == (75, True)
    deleted = "eventtrigger.lib.projectsveltos.io/service-network-policy deleted\n"
    assert bellhop(*wait).stdout == deleted


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("cp", "own", "--for=ready"), 2, "have --for=provisioned and", id="kind"),
        pytest.param(
            ("cm", "own", "--for=ready"), 2, "configmaps have --for=delete", id="no state"
        ),
        pytest.param(("cp", "--for=provisioned"), 2, "NAMES, -l SELECTOR or --all", id="nothing"),
        pytest.param(
            ("cp", "a", "--all", "--for=provisioned"), 2, "NAMES, -l SELECTOR or --all", id="both"
        ),
        pytest.param(
            ("cp", "own", "--for=provisioned", "--timeout", "5"), 2, "as a duration", id="timeout"
        ),
        pytest.param(("cp", "default/own", "--for=delete"), 2, "have no namespace", id="place"),
        pytest.param(("cp", "owm", "--for=provisioned"), 1, "did you mean 'own'?", id="missing"),
        pytest.param(("cl", "-l", "a=b", "--for=ready"), 1, "there are none of these", id="none"),
    ],
)
def test_says_at_once_what_cannot_be_waited_for(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A typing mistake does not cost the whole timeout."""
    deploy(here)
    result = bellhop("wait", *arguments)

    assert (result.exit_code, said in result.stderr) == (code, True)
