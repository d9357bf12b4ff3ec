"""Every command of the README and the tutorial runs, in the order it is written."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.demo.stand import Stand
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


def commands(page: str) -> list[str]:
    """Return the commands of a page: of its bash blocks, and of its indented lines."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    indented = re.findall(
        r"^    (\S.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    lines = [line for block in blocks for line in block.splitlines()] + indented
    return [line for line in lines if line.strip()]


@pytest.fixture
def stand(
    tmp_path: Path,
    source_cluster: Cluster,
    destination_cluster: Cluster,
    control_plane_binaries: Binaries,
) -> Iterator[Stand]:
    """What `make demo KEEP=1` leaves running, with its programs on the PATH."""
    with Nursery() as nursery:
        one = Stand(tmp_path / "stand", nursery)
        kubectl = control_plane_binaries.kubectl
        assert kubectl, "the tutorial needs kubectl"
        path = [str(PROGRAMS), str(kubectl.parent), os.environ["PATH"]]
        one.environment |= {
            "PATH": os.pathsep.join(path),
            "KUBECONFIG": str(tmp_path / "stand" / "source.kubeconfig"),
        }
        one.serve()
        one.register(source_cluster, namespace="demo", labels="env=production")
        one.register(destination_cluster, namespace="demo", labels="dep=eng", forward=False)
        yield one
        one.close()


def run(stand: Stand, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=ROOT,
        env=stand.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def leave(stand: Stand, name: str) -> None:
    """Take out a cluster of the stand: one cluster is not registered under two names."""
    done = run(stand, f"bellhop deregister cluster --namespace demo --cluster {name}")
    assert done.returncode == 0, done.stderr


def test_the_tutorial_runs_as_it_is_written(stand: Stand) -> None:
    """Each command succeeds, and what was brought is there when the next one asks for it."""
    for command in commands("docs/tutorial/first-fleet.md"):
        if command.startswith("make "):
            continue
        deadline = time.monotonic() + 20
        done = run(stand, command)
        # A reader's hands are slower than ours: what follows from the last command may take it.
        while done.returncode and command.startswith("kubectl get") and time.monotonic() < deadline:
            time.sleep(0.1)
            done = run(stand, command)

        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_way_to_find_out_why_runs_as_it_is_written(stand: Stand) -> None:
    """Each question of the page is answered, on what the tutorial declares."""
    stand.do("apply", "-f", str(ROOT / "docs/examples/welcome"))
    for command in commands("docs/how-to/find-out-why.md"):
        done = run(stand, command)

        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_readme_runs_as_it_is_written(stand: Stand, tmp_path: Path) -> None:
    """The four commands work on clusters of one's own; only names and addresses differ."""
    (tmp_path / "stand" / "source.kubeconfig").rename(tmp_path / "eu-1.yaml")
    told = [line for line in commands("README.md") if line.startswith("bellhop ")]
    assert [shlex.split(line)[1] for line in told] == ["serve", "register", "apply", "show"]
    # The stand has registered the cluster under another name.
    told[1] = f"{told[1]} --allow-twice"
    for line in told[1:3]:
        done = run(stand, line.replace("eu-1.yaml", str(tmp_path / "eu-1.yaml")))
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_serves_and_follows_as_the_readme_says(stand: Stand, tmp_path: Path) -> None:
    """`serve` and `show events --follow` stay until Ctrl-C, and leave quietly."""
    serve, *_, follow = [line for line in commands("README.md") if line.startswith("bellhop ")]
    serve = serve.replace("0.0.0.0:8443", "127.0.0.1:0")
    own = {**stand.environment, "BELLHOP_STATE": str(tmp_path / "own")}
    for line, environment in ((serve, own), (follow, stand.environment)):
        process = subprocess.Popen(
            shlex.split(line), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)

        assert process.returncode in {0, 130}, errors.decode()
        assert b"Traceback" not in errors


def test_make_demo_plays_to_the_end_and_leaves_nothing(tmp_path: Path) -> None:
    """`make demo` shows every story, ends with what to try next, and tidies up."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHON": sys.executable}

    done = subprocess.run(
        ["make", "demo"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Try next" in done.stdout
    assert done.stdout.count("✓") == 11
    assert list(tmp_path.iterdir()) == []


def test_make_test_runs_all_tests() -> None:
    """What the README calls the tests is all of them."""
    done = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "python -m pytest" in done.stdout


def test_the_way_to_register_runs_as_it_is_written(stand: Stand) -> None:
    """Registering again, looking and deregistering work; only names and paths differ."""
    page = (ROOT / "docs/how-to/register-a-cluster.md").read_text()
    told = page.replace("\\\n", "").splitlines()
    ours = [line for line in told if line.startswith("bellhop ") and "serve" not in line]
    assert [shlex.split(line)[1] for line in ours] == ["register", "get", "describe", "deregister"]
    leave(stand, "destination")
    kubeconfig = stand.folder / "destination.kubeconfig"
    for line in ours:
        done = run(stand, line.replace("eu-1.kubeconfig", str(kubeconfig)))

        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
