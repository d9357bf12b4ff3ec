"""Every command of the README and the tutorial runs, in the order it is written."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process
from tests.docs.terminal import Terminal, Typed, typed
from tests.fakes.pod import Pod
from tests.waiting import eventually

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


def run(stand: Stand, command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
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


@pytest.mark.rest
def test_the_way_to_find_out_why_runs_as_it_is_written(stand: Stand, tmp_path: Path) -> None:
    """Each question of the page is answered, on what the tutorial declares.

    It takes long: every command of the page starts a process of its own.
    """
    stand.do("apply", "-f", str(ROOT / "docs/examples/welcome"))
    for command in commands("docs/how-to/find-out-why.md"):
        done = run(stand, command, tmp_path)

        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_tutorial_runs_as_it_is_written(
    tmp_path: Path, control_plane_binaries: Binaries
) -> None:
    """Every line is typed into one shell that knows nothing else, and shows what the page says.

    `make demo` plays all its stories before, and leaves nothing behind.
    """
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the tutorial needs kubectl"
    (tmp_path / "home").mkdir()
    (tmp_path / "demo").mkdir()
    laptop = {"PATH": f"{kubectl.parent}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    start, *rest = typed(ROOT / "docs/tutorial/first-fleet.md")
    assert start.command == "make demo KEEP=1"
    with Nursery() as nursery, Terminal(laptop, ROOT) as terminal:
        log = tmp_path / "demo.log"
        given = {**os.environ, "TMPDIR": str(tmp_path / "demo"), "PYTHON": sys.executable}
        make = str(shutil.which("make"))
        demo = nursery.start([make, *start.command.split()[1:]], log, cwd=ROOT, env=given)
        eventually(
            demo.last_words,
            lambda: demo.returncode() is not None or "Ctrl-C ends everything" in log.read_text(),
            patience=600,
            pause=0.2,
        )
        said = log.read_text()
        assert demo.returncode() is None, said[-3000:]
        assert said.count("✓") == 15
        exports = iter(re.findall(r"^  (export .*)$", said, re.MULTILINE))
        for line in rest:
            if line.command.startswith("export "):
                # The page has one reader's folder, the demo has printed ours.
                printed = next(exports)
                assert printed.partition("=")[0] == line.command.partition("=")[0]
                terminal.follow(Typed(printed))
            else:
                terminal.follow(line)
        os.killpg(demo.pid, signal.SIGINT)
        demo.wait(60)

    assert next(exports, None) is None
    assert "nothing is left behind" in log.read_text()
    assert list((tmp_path / "demo").iterdir()) == []


def test_the_readme_leads_to_an_event_that_is_seen(
    tmp_path: Path, source_cluster: Cluster, control_plane_binaries: Binaries
) -> None:
    """On a machine that has no state yet: only the addresses differ, and nothing is left out.

    It takes seconds: `bellhop serve`, a forwarder and the commands of the page start as processes
    of their own.
    """
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the README needs kubectl"
    (tmp_path / "home").mkdir()
    own = {"PATH": f"{PROGRAMS}:{kubectl.parent}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    own |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    source_cluster.kubeconfig(tmp_path / "eu-1.yaml")
    port = free_port()
    text = (ROOT / "README.md").read_text()
    for there, here in (
        ("--listen 0.0.0.0:8443", f"--listen 127.0.0.1:{port}"),
        ("https://bellhop.example.com:8443", f"https://127.0.0.1:{port}"),
        ("eu-1.yaml", str(tmp_path / "eu-1.yaml")),
    ):
        assert there in text
        text = text.replace(there, here)
    (tmp_path / "README.md").write_text(text)
    lines = [each.command for each in typed(tmp_path / "README.md")]
    bellhop = [shlex.split(line) for line in lines if line.startswith("bellhop ")]
    assert [words[1] for words in bellhop] == ["serve", "register", "get", "apply", "show"]
    serve, register, get, apply, show = bellhop
    with Nursery() as nursery, Terminal(own, ROOT) as terminal:
        pod = Pod(source_cluster, tmp_path, nursery)
        user = User(source_cluster.kubeconfig())
        program = str(PROGRAMS / "bellhop")
        served = nursery.start([program, *serve[1:]], tmp_path / "serve.log", cwd=ROOT, env=own)
        _await(tmp_path / "serve.log", '"Bellhop serves"', served)
        terminal.follow(Typed(shlex.join(register)))
        # The table is as wide as the terminal.
        assert "no heartbeat" in terminal.type(shlex.join(get))[1]
        # What nodes do, of which this cluster has none.
        pod.run()
        terminal.follow(Typed(shlex.join(apply)))
        log = tmp_path / "show.log"
        following = nursery.start([program, *show[1:]], log, cwd=ROOT, env=own)
        # A reader is slower: the resync that follows `apply` registers the webhook, and API servers
        # follow that a moment later.
        numbers = itertools.count()

        def is_called() -> bool:
            name = f"probe-{next(numbers)}"
            labels = {"team": "web"}
            metadata = {"name": name, "labels": labels}
            user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            return any(
                f"Namespace probe-{each} " in log.read_text() for each in range(int(name[6:]))
            )

        eventually("the API server calls the webhook", is_called, patience=60, pause=0.5)
        for line in lines:
            if line.startswith("kubectl "):
                terminal.follow(Typed(line))
        for told in (
            "changed   Namespace shop in prod/eu-1",
            "applied   Namespace shop in prod/eu-1",
        ):
            _await(log, told, following)
        for process in (following, served):
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(60) in {0, 130}, process.last_words()
        user.close()
        pod.close()

    assert "Traceback" not in log.read_text()
    assert (tmp_path / "home" / ".local").is_dir()


def _await(log: Path, text: str, process: Process) -> None:
    def written() -> bool:
        assert process.returncode() is None, process.last_words()
        return text in log.read_text()

    eventually(lambda: f"{text}\n{log.read_text()[-2000:]}", written)


def test_make_test_runs_the_tests() -> None:
    """What the README calls the tests is what CI begins with, which chooses a part of its own."""
    own = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    done = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, env=own, capture_output=True, text=True, check=True
    )

    assert "-m pytest" in done.stdout
    assert "--part test" in done.stdout


@pytest.mark.rest
def test_the_way_to_register_runs_as_it_is_written(stand: Stand, tmp_path: Path) -> None:
    """Registering, again for a repository, looking and deregistering work; only paths differ.

    It takes seconds: every command of the page starts a process of its own.
    """
    page = (ROOT / "docs/how-to/register-a-cluster.md").read_text()
    lines = page.replace("\\\n", "").splitlines()
    ours = [line for line in lines if line.startswith("bellhop ") and "serve" not in line]
    verbs = [shlex.split(line)[1] for line in ours]
    ways = ["register", "register", "rotate", "register", "register", "rotate", "register"]
    assert verbs == [*ways, "get", "describe", "deregister"]
    # What has no forwarder comes last: nobody here ends a namespace, which is needed until then.
    for line in [each for each in ours[: len(ways)] if "--direct" in each or "--audit" in each]:
        ours.remove(line)
        ours.insert(len(ways) - 1, line)
    leave(stand, "destination")
    kubeconfig = stand.folder / "destination.kubeconfig"
    printed = tmp_path / "forwarder.yaml"
    for line in ours:
        here = line.replace("eu-1.kubeconfig", str(kubeconfig))
        here = here.replace("./eu-1-audit", str(tmp_path / "audit"))
        if "register cluster" in line and "--audit" in line:
            # A user who changed the way a day ago may rotate; nobody waits for that here.
            run(stand, "bellhop deregister cluster --namespace prod --cluster eu-1")
        done = run(stand, here.replace("forwarder.yaml", str(printed)))

        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        if "--print-manifests" in line:
            kustomization = {"resources": [printed.name]}
            (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
            taken = run(stand, f"kubectl --kubeconfig {kubeconfig} apply -o name -k {tmp_path}")
            assert "deployment.apps/bellhop-forwarder" in taken.stdout, taken.stderr
