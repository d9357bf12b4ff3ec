"""`bellhop apply --applyset NAME --prune`: what left the folder is deleted, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.errors import StaleError
from bellhop.installation import Installation
from bellhop.operations.applysets import ApplySet
from tests.fakes.manifests import profile
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {v: 'VALUE'}\n"
PRUNE = ("--applyset", "fleet", "--prune")


def put(folder: Path, *names: str, value: str = "1") -> None:
    """Write a ConfigMap a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.yaml").write_text(MAP.replace("NAME", name).replace("VALUE", value))


def names(here: Installation) -> set[str]:
    """Name the ConfigMaps that are stored."""
    return {each["metadata"]["name"] for each in here.records.manifests.of("ConfigMap")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two ConfigMaps."""
    put(tmp_path / "fleet", "one", "two")
    return tmp_path / "fleet"


def test_deletes_what_left_the_folder_and_nothing_else(
    bellhop: Bellhop, here: Installation, folder: Path, tmp_path: Path
) -> None:
    """Objects of other sets stay, and so do those of none."""
    put(tmp_path / "other", "three")
    put(tmp_path / "none", "four")
    assert bellhop("apply", "-f", str(folder), *PRUNE).exit_code == 0
    bellhop("apply", "-f", str(tmp_path / "other"), "--applyset", "other", "--prune")
    bellhop("apply", "-f", str(tmp_path / "none"))
    (folder / "two.yaml").unlink()
    result = bellhop("apply", "-f", str(folder), *PRUNE)

    assert result.stdout == "configmap/one unchanged\nconfigmap/two pruned\n"
    assert names(here) == {"one", "three", "four"}
    kept = here.records.manifests.get("ConfigMap", "default", "one")
    assert kept is not None
    assert kept.value["metadata"]["labels"] == {APPLYSET: "fleet"}


def test_a_dry_run_shows_what_it_would_delete(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """With and without a word behind it; nothing is changed."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    (folder / "two.yaml").unlink()
    first = bellhop("apply", "-f", str(folder), *PRUNE, "--dry-run")
    second = bellhop("apply", "--dry-run=client", "-f", str(folder), *PRUNE)

    said = "configmap/one unchanged (dry run)\nconfigmap/two pruned (dry run)\n"
    assert first.stdout == second.stdout == said
    assert names(here) == {"one", "two"}


def test_without_prune_only_joins_the_set(bellhop: Bellhop, folder: Path) -> None:
    bellhop("apply", "-f", str(folder))
    joined = bellhop("apply", "-f", str(folder), "--applyset", "fleet")
    (folder / "two.yaml").unlink()

    assert joined.stdout == "configmap/one configured\nconfigmap/two configured\n"
    assert "pruned" not in bellhop("apply", "-f", str(folder), "--applyset", "fleet").stdout
    assert "configmap/two pruned" in bellhop("apply", "-f", str(folder), *PRUNE).stdout


def test_an_object_that_is_applied_without_a_set_leaves_it(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """So an object moves to another set, and is never deleted meanwhile."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    other = ("apply", "-f", str(folder / "two.yaml"), "--applyset", "other")
    refused = bellhop(*other)
    bellhop("apply", "-f", str(folder / "two.yaml"))
    moved = bellhop(*other)
    (folder / "two.yaml").unlink()

    assert refused.exit_code == 1
    assert refused.stderr == (
        "error: cannot apply ConfigMap default/two to applyset 'other': it is in applyset 'fleet';"
        " take it out of the files of that set, or out of the set by `bellhop apply -f FILE`"
        " without --applyset\n"
    )
    assert moved.exit_code == 0
    assert bellhop("apply", "-f", str(folder), *PRUNE).stdout == "configmap/one unchanged\n"
    assert names(here) == {"one", "two"}


@pytest.mark.parametrize("text", [None, "", "# nothing\n---\n"])
def test_an_empty_folder_prunes_nothing_by_accident(
    bellhop: Bellhop, here: Installation, folder: Path, text: str | None
) -> None:
    """A checkout that failed is empty, too; --allow-empty says that it is meant."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    for each in folder.iterdir():
        each.unlink()
    if text is not None:
        (folder / "empty.yaml").write_text(text)
    refused = bellhop("apply", "-f", str(folder), *PRUNE)
    kept = names(here)
    meant = bellhop("apply", "-f", str(folder), *PRUNE, "--allow-empty")

    assert refused.exit_code in {1, 2}
    assert refused.stderr.count("\n") == 1
    assert kept == {"one", "two"}
    assert meant.stdout == "configmap/one pruned\nconfigmap/two pruned\n"
    assert names(here) == set()


def test_a_folder_that_is_not_there_prunes_nothing(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    bellhop("apply", "-f", str(folder), *PRUNE)
    result = bellhop("apply", "-f", f"{folder}s", *PRUNE, "--allow-empty")

    assert "there is no such file" in result.stderr
    assert names(here) == {"one", "two"}


def test_a_file_that_cannot_be_read_prunes_nothing(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """A link that leads nowhere is no file that was removed."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    (folder / "two.yaml").unlink()
    (folder / "two.yaml").symlink_to(folder / "nowhere")
    result = bellhop("apply", "-f", str(folder), *PRUNE)

    assert result.stderr == f"error: cannot read '{folder}/two.yaml': there is no such file\n"
    assert names(here) == {"one", "two"}


def test_an_empty_file_beside_others_prunes_nothing(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """A program that failed may have left it so."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    (folder / "two.yaml").write_text("")
    result = bellhop("apply", "-f", str(folder), *PRUNE)

    assert f"cannot read '{folder}/two.yaml': it is empty; if it" in result.stderr
    assert names(here) == {"one", "two"}


def test_a_failed_apply_prunes_nothing(bellhop: Bellhop, here: Installation, folder: Path) -> None:
    """Not with a mistake in one file, and not where a change is refused."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    (folder / "two.yaml").unlink()
    (folder / "one.yaml").write_text("apiVersion: v1\nkind: ConfgMap\nmetadata: {name: one}\n")
    result = bellhop("apply", "-f", str(folder), *PRUNE)

    assert (result.exit_code, result.stdout) == (2, "")
    assert names(here) == {"one", "two"}


def test_what_pruning_takes_from_clusters_may_be_held(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """The deletion guard asks the same of it as of `bellhop delete`, in a dry run, too."""
    here.declare.register(fleet.cluster(env="production"))
    (folder / "own.yaml").write_text(profile("clusterSelector: {matchLabels: {env: production}}"))
    bellhop("apply", "-f", str(folder), *PRUNE)
    here.records.profiles.put(
        fleet.profile(name="own", trigger="", cluster="", object="", contents=())
    )
    (folder / "own.yaml").unlink()
    guarded = {"BELLHOP_HOLD_FROM": "1"}
    dry = bellhop("apply", "-f", str(folder), *PRUNE, "--dry-run", **guarded)
    done = bellhop("apply", "-f", str(folder), *PRUNE, **guarded)

    lost = "warning: ClusterProfile 'own' loses 1 of 1 add-ons (1 profile) in default/workload"
    assert dry.stdout.splitlines()[-1] == (
        "clusterprofile.config.projectsveltos.io/own pruned (dry run)"
    )
    assert lost in dry.stderr
    assert lost in done.stderr
    assert "they are held: nothing is removed" in done.stderr


def test_who_lost_the_lease_prunes_nothing(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """It took so long that another apply may have begun, whose objects are not its to delete."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    members = ApplySet(here, "fleet")
    with members.leased():
        left = members.left([])
        here.records.store.delete("applyset", "fleet")
        other = here.records.applysets.acquire("fleet")
        with pytest.raises(StaleError, match="took longer than 5 minutes"):
            members.prune(left)

    assert names(here) == {"one", "two"}
    here.records.applysets.renew("fleet", other)


def test_prunes_nothing_that_left_the_set_meanwhile(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """As when somebody applies it by hand while the set is applied."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    members = ApplySet(here, "fleet")
    with members.leased():
        left = members.left([])
        bellhop("apply", "-f", str(folder / "two.yaml"))
        pruned = members.prune(left)

    assert [each.name for each in pruned] == ["one"]
    assert names(here) == {"two"}


def test_of_two_at_once_the_second_is_refused(
    bellhop: Bellhop, here: Installation, folder: Path
) -> None:
    """It stores and deletes nothing; another set is applied meanwhile."""
    bellhop("apply", "-f", str(folder), *PRUNE)
    (folder / "two.yaml").unlink()
    put(folder, "three")
    token = here.records.applysets.acquire("fleet")
    second = bellhop("apply", "-f", str(folder), *PRUNE)
    other = bellhop("apply", "-f", "-", "--applyset", "o", stdin=MAP.replace("NAME", "four"))
    here.records.applysets.release("fleet", token)
    third = bellhop("apply", "-f", str(folder), *PRUNE)

    assert (second.exit_code, second.stdout) == (75, "")
    assert second.stderr.startswith(
        "error: cannot apply applyset 'fleet': another apply of it is under way; try again."
    )
    assert other.exit_code == third.exit_code == 0
    assert names(here) == {"one", "three", "four"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--prune",), "--prune needs --applyset NAME", id="no set"),
        pytest.param(("--allow-empty",), "--allow-empty belongs to --prune", id="no prune"),
        pytest.param(("--applyset", "a b"), "is not a label's value", id="no name"),
        pytest.param(("--applyset", ""), "it is empty", id="empty name"),
    ],
)
def test_refuses_options_that_make_no_sense(
    bellhop: Bellhop, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Before anything is read."""
    result = bellhop("apply", "-f", str(folder), *arguments)

    assert (result.exit_code, said in result.stderr) == (2, True)


def test_refuses_a_document_that_names_another_set(bellhop: Bellhop) -> None:
    """As one that was exported from there, with its place."""
    text = MAP.replace("{name: NAME}", "{name: one, labels: {bellhop.dev/applyset: other}}")
    result = bellhop("apply", "-f", "-", *PRUNE, stdin=text)

    assert result.exit_code == 2
    assert result.stderr == (
        "error: standard input, document 1, line 3, metadata.labels['bellhop.dev/applyset']: its"
        " label says applyset 'other', and it is applied as 'fleet'; remove the label\n"
    )
