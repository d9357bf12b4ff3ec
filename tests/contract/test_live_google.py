"""Real projects of Google's: reached where one is named, by nobody else, and left as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bellhop.adapters.gcp.services import Services
from bellhop.errors import TemporaryError
from tests import live, live_google
from tests.lab.google import Emulator
from tests.lab.google_front import Front
from tests.lab.google_secrets import SecretManager
from tests.lab.google_storage import Storage

ROOT = Path(__file__).parents[2]
PREFIX = "bellhop-live"
SOME = "gcp and (writing_again or forgets or expiry_is_read or all_items)"


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a few tests of each suite in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SOME]
    suites = [f"tests/contract/test_{port}.py" for port in ("blobs", "secrets", "store")]
    return subprocess.run(
        [*command, *options, *suites],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_test_has_credentials_for_google() -> None:
    """Neither the laptop's own nor a machine's."""
    services = Services("a-project", sleep=lambda _: None)
    for act in (
        lambda: services.ask("GET", "https://storage.googleapis.com/storage/v1/b", doing="look"),
        lambda: services.call("firestore", "commit", {"database": "x"}, doing="look"),
    ):
        with pytest.raises(TemporaryError, match="log in again"):
            act()
    services.close()


def test_a_suite_runs_in_a_project_and_leaves_nothing(
    firestore: Emulator, secret_manager: SecretManager, storage: Storage, google_project: str
) -> None:
    """Everything it makes bears the prefix, and is deleted when its test is over."""
    before = storage.buckets()
    storage.requests()
    with Front(firestore.address) as front:
        done = run(
            *("--live", PREFIX, "--live-project", google_project, "--live-region", "europe-west1"),
            FIRESTORE_EMULATOR_HOST=front.address,
            SECRET_MANAGER_EMULATOR_HOST=secret_manager.address,
            STORAGE_EMULATOR_HOST=storage.address,
        )
        written = front.requests()["Commit"]

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert written > 150
    assert storage.requests()["POST"] > 4
    assert storage.buckets() == before
    assert secret_manager.alive(google_project) == {}
    asked = Request(
        f"http://{firestore.address}/v1/projects/{google_project}/databases/(default)/documents"
        ":listCollectionIds",
        b"{}",
        {"Authorization": "Bearer owner", "Content-Type": "application/json"},
    )
    with urlopen(asked) as answer:
        assert json.load(answer) == {}


class Options(dict[str, str]):
    """The options of a run."""

    getoption = dict.get


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"--live": PREFIX}, "say where", id="no region"),
        pytest.param({"--live-region": "europe-west1"}, "takes a prefix", id="no prefix"),
        pytest.param({"--live": "x"}, "say where|takes a prefix", id="a short prefix"),
        pytest.param({"--live-account": "123456789012"}, "name one", id="two clouds"),
    ],
)
def test_a_run_must_name_its_project(options: dict[str, str], said: str) -> None:
    """Half of the options are refused before anything is asked."""
    config: Any = Options({"--live-project": "a-project", **options})

    with pytest.raises(pytest.UsageError, match=said):
        live_google.chosen(config)
    assert live.chosen(config) is None
