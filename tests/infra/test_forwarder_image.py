"""What the forwarder's image holds is what the forwarder needs, and it runs as a pod runs it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from bellhop.registration.forwarder_manifests import (
    NAME,
    NAMESPACE,
    forwarder_role,
    webhook_configuration,
)
from bellhop.registration.forwarder_pods import forwarder_manifests
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.fakes.pod import Pod
from tests.infra.forwarder_rig import PATH, WATCHED, Rig
from tests.infra.image import Dockerfile, Image
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra" / "forwarder"
REQUIREMENTS = (FOLDER / "requirements.txt").read_text()
PINNED = dict(re.findall(r"^([\w.-]+)==(\S+)", REQUIREMENTS, re.MULTILINE))
HEAVY = ("pydantic", "cryptography", "lupa", "re2", "jinja2")
LATE = ("nats",)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """The image, in a folder that every user may enter.

    The first test that needs it waits until it is built.
    """
    folder = Path(tempfile.mkdtemp(prefix="bellhop-image-"))
    folder.chmod(0o755)
    (folder / "root").mkdir()
    yield Image(FOLDER / "Dockerfile", ROOT, folder / "root")
    shutil.rmtree(folder)


def test_is_pinned_by_digest_and_runs_as_nobody() -> None:
    """The base image by its digest, a user that is not root by its number, one process."""
    read = Dockerfile.read(FOLDER / "Dockerfile")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    deployment = next(each for each in forwarder_manifests("x") if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]

    name, _, digest = read.base.partition("@")
    assert re.fullmatch(rf"docker.io/library/python:{version}-slim-\w+", name)
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert read.user == f"{pod['securityContext']['runAsUser']}:65532"
    assert read.entrypoint == ["python", "-m", "bellhop.forwarder"]


def test_copies_only_what_is_there_and_what_the_build_is_given() -> None:
    """Every path exists in the checkout, and the ignore file lets it through."""
    copied = Dockerfile.read(FOLDER / "Dockerfile").copied
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()

    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied)


def test_pins_what_is_tested_with_the_hashes_of_the_lock() -> None:
    """The pins are the versions that these tests run with, and no file of them can be another."""
    installed = {name: importlib.metadata.version(name) for name in PINNED}
    lock = (ROOT / "requirements.lock").read_text()
    locked = {
        name: set(re.findall(r"sha256:[0-9a-f]{64}", text))
        for name, text in re.findall(r"^([\w.-]+)==(.*(?:\n .*)*)", lock, re.MULTILINE)
    }
    hashes = {
        name: set(re.findall(r"sha256:[0-9a-f]{64}", text))
        for name, text in re.findall(r"^([\w.-]+)==(.*(?:\n .*)*)", REQUIREMENTS, re.MULTILINE)
    }

    assert installed == PINNED
    assert {name: locked[name.lower()] for name in PINNED} == hashes


def test_holds_the_pinned_packages_and_no_others(image: Image) -> None:
    """What is in the image is what was copied and pinned; none of the stages' weight is."""
    inside = {path.name for path in image.inside("/app").iterdir()}

    assert {"bellhop", "requirements.txt", "h11", "uvicorn", "nats", "urllib3", "yaml"} <= inside
    assert not inside & {*HEAVY}


def test_two_builds_make_the_same_files(image: Image) -> None:
    """What is compiled holds the digest of its source, and not the time."""
    compiled = [*image.inside("/app").rglob("*.pyc")]
    unchecked_digest = 1

    assert compiled
    for path in compiled:
        assert int.from_bytes(path.read_bytes()[4:8], "little") == unchecked_digest


def test_runs_without_anything_that_it_does_not_hold(image: Image) -> None:
    """It starts from the image's files only, and loads none of the stages' weight.

    What NATS takes is loaded where a Secret asks for it.
    """
    run = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "import runpy\n"
        "try: runpy.run_module('bellhop.forwarder', run_name='__main__')\n"
        f"finally: assert not { {*HEAVY, *LATE}!r} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", run],
        env={"PYTHONPATH": str(image.inside("/app"))},
        cwd=image.inside("/app"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "--kubeconfig" in done.stdout


@contextmanager
def telling(log: Path) -> Iterator[None]:
    """Add what the pod has logged to what a wait in vain says."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error}; the pod says:\n{log.read_text()[-4000:]}") from error


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a process another root folder")
def test_sends_events_as_a_pod_of_the_image(
    image: Image, tmp_path: Path, source_cluster: Cluster
) -> None:
    """Its very entry point, as nobody, with nothing to write but its spool, forwards events.

    It is called as the Service in the cluster, by the account's mounted token.
    """
    with Nursery() as nursery:
        rig = Rig(tmp_path, source_cluster, nursery)
        pod = Pod(source_cluster, tmp_path, nursery)
        try:
            for manifest in (*forwarder_manifests("x"), forwarder_role(WATCHED)):
                rig.admin.apply(manifest)
            rig.instruct(host=f"{NAME}.{NAMESPACE}.svc")
            process = pod.run(image)
            authority = rig.authority.certificate_pem.decode()
            wired = {"ca": authority, "path": PATH}
            rig.admin.apply(webhook_configuration(WATCHED, wired))
            names = count()
            with telling(pod.log):
                eventually(
                    "an event comes",
                    lambda: rig.api.create(f"c-{next(names)}") and rig.inbox.items,
                    patience=60,
                )
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.stop(grace=45)

            assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.MULTILINE)
            assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
            assert process.returncode() == 0, pod.log.read_text()
        finally:
            pod.close()
            rig.close()
