"""`bellhop export --for-cluster`: one file for each manifest, and which folders it takes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from bellhop.cli.manifest_folder import name_file
from bellhop.installation import Installation
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.cli.conftest import Bellhop

SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: shop}
stringData: {password: opaque-word}
"""
NAMES_IT = profile(name="other", namespace="shop").replace(
    "kind: ConfigMap, name: other, namespace: default", "kind: Secret, name: other"
)


@pytest.fixture
def applied(bellhop: Bellhop) -> None:
    """A profile and its ConfigMap, a ConfigMap that nothing names, and a Secret."""
    unnamed = holder("unnamed", config("never"))
    text = join(profile(), holder("own", config("made")), unnamed, SECRET, NAMES_IT)
    done = bellhop("apply", "-f", "-", stdin=text)
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("applied")
def test_writes_one_file_for_each_manifest_for_its_owner_only(
    bellhop: Bellhop, tmp_path: Path
) -> None:
    """Run again it writes the same, and completes what an interrupted run has left."""
    folder = tmp_path / "fleet"
    done = bellhop("export", "--for-cluster", str(folder))

    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == [
        "clusterprofile.own.yaml",
        "configmap.default.own.yaml",
        "profile.shop.other.yaml",
        "secret.shop.other.yaml",
    ]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert (modes, stat.S_IMODE(folder.stat().st_mode)) == ({0o600}, 0o700)
    assert done.stdout.splitlines() == [
        f"4 files written to {folder}",
        "left out: 1 ConfigMap: named by no manifest",
        "to do: create the namespaces that the cluster lacks: shop",
    ]
    assert "1 file has a Secret in plain text" in done.stderr
    assert "opaque-word" not in done.output
    found = yaml.safe_load((folder / "clusterprofile.own.yaml").read_text())
    assert found["spec"]["policyRefs"][0]["name"] == "own"

    (folder / "clusterprofile.own.yaml").unlink()
    again = bellhop("export", "--for-cluster", str(folder))
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert (folder / "clusterprofile.own.yaml").exists()


@pytest.mark.usefixtures("applied")
def test_a_folder_with_other_manifests_is_refused_and_unchanged(
    bellhop: Bellhop, tmp_path: Path
) -> None:
    """They would be applied with the exported ones, such as one that was deleted since."""
    (tmp_path / "README.md").write_text("mine")
    assert bellhop("export", "--for-cluster", str(tmp_path)).exit_code == 0
    deleted = bellhop("delete", "clusterprofile", "own")
    assert deleted.exit_code == 0, deleted.output

    done = bellhop("export", "--for-cluster", str(tmp_path))
    assert done.exit_code == 1
    assert "clusterprofile.own.yaml" in done.stderr
    assert "choose an empty folder" in done.stderr

    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / "secret.shop.other.yaml").write_text("mine")
    done = bellhop("export", "--for-cluster", str(changed))
    assert (done.exit_code, len(list(changed.iterdir()))) == (1, 1)
    assert "the file is there with other contents" in done.stderr


@pytest.mark.usefixtures("applied")
def test_a_folder_that_cannot_be_written_is_one_sentence(bellhop: Bellhop, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file / "below", Path("/proc/1/none")):
        done = bellhop("export", "--for-cluster", str(path))
        assert done.exit_code != 0
        assert str(path) in done.stderr
        assert "Traceback" not in done.output


def test_nothing_applied_is_wrong_input(bellhop: Bellhop, here: Installation) -> None:
    assert here.catalogs.known().revision == 0
    done = bellhop("export", "--for-cluster", "anywhere")
    assert done.exit_code == 2
    assert "files have applied no manifest" in done.stderr


def test_a_long_name_is_cut_and_stays_one_of_a_kind() -> None:
    """A file has at most 255 bytes in its name; kind, namespace and name may have more."""
    first, second = (name_file("ConfigMap", "n" * 63, "a" * 252 + end) for end in "bc")
    assert (len(first), len(second), first == second) == (255, 255, False)
    assert name_file("ClusterProfile", "", "web") == "clusterprofile.web.yaml"
