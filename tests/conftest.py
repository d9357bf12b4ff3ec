"""What all tests share: clusters and AWS on demand, and an environment without settings."""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

from bellhop import logs
from bellhop.adapters.gcp.services import EMULATORS
from tests import live, live_google, sharing

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

pytest_plugins = [
    "tests.kube_fixtures",
    "tests.aws_fixtures",
    "tests.gcp_fixtures",
    "tests.lambda_fixtures",
    "tests.framework_fixtures",
]

_KEPT = frozenset({"CI", "HOME", "KUBEBUILDER_ASSETS", "LANG", "PATH", "TMPDIR", "XDG_CACHE_HOME"})
_OURS = ("BELLHOP_", "KUBE")
_MEMORY = "/dev/shm"
_MEMORY_BYTES = 4 * 10**9  # All parts at once leave less than a tenth of it.
_FAILURES = Path(__file__).with_name("failures.txt")
_AWS = ("AWS_",)
_GOOGLE = ("GOOGLE_", "GCLOUD_", "GCP_", "CLOUDSDK_", *EMULATORS)


_LONG = (
    *(f"tests/terraform/test_{each}.py" for each in ("deployed", "regions", "aws_page")),
    *("tests/functions/test_rights.py", "tests/cli/test_permissions.py"),
)
"""Files that take more minutes than any other, the longest first."""

_REST = re.compile(
    r"tests/(benchmarks|cli|fakes|functions|golden|package|terraform)/"
    r"|tests/infra/test_(demo|forwarder_(flood|image|nats|outages)|lab_|release|site)"
    r"|tests/contract/test_(helm|live|registries|(?!kube)\w+_api_server)"
    r"|tests/flow/test_(checks|elsewhere|health|isolation|local|nats|operating|outages|renewing)"
    r"|tests/flow/test_(configuration_(crashes|outages)|gitops|sveltos_definitions|templated)"
    r"|tests/unit/(adapters/gcp/test_queue|gotemplate/test_oracle)"
)
"""What only `make check` runs, beside what is marked so: clouds from Terraform to zips, our tools,
and on real API servers what is neither a promise of the README nor the adapter to Kubernetes."""

_EMULATORS = ("aws", "gcp", "google")
"""Names of contract tests that need a cloud's emulators, which only `make check` runs, too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("test", "landing", "thorough"),
        help="run the tests of `make test`, those of `make check`, or those of"
        " `make test-thorough`",
    )
    live.add_options(parser)
    live_google.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the clouds out of reach, unless an account or a project is named."""
    _keep_in_memory()
    if config.getoption("--part") == "thorough":
        os.environ.setdefault("BELLHOP_SHARE", "3")
    if live.chosen(config) is None and live_google.chosen(config) is None:
        live.forbid()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file whose tests are all of another part."""
    name = f"{collection_path.relative_to(config.rootpath)}{'/' * collection_path.is_dir()}"
    return (config.getoption("--part") == "test" and _REST.match(name) is not None) or None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name no test by packed bytes: gzip writes the time into them, and workers differ by it."""
    packed = isinstance(val, bytes) and not val.isascii()
    return argname if packed else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen part, the longest files first and the clocked tests last.

    A long file that begins late keeps one worker busy after the others have ended. The files that
    need the same servers are one long part.
    """
    part = config.getoption("--part")
    if part:
        others = [item for item in items if not _is_of(part, item)]
        config.hook.pytest_deselected(items=others)
        deselected = set(map(id, others))
        items[:] = [item for item in items if id(item) not in deselected]
        sharing.require_listed(items)
    items.sort(key=_rank)
    sharing.list_clocked(config, items)


def _rank(item: pytest.Item) -> int:
    file = item.nodeid.partition("::")[0]
    if item.get_closest_marker("clocked"):
        return len(_LONG) + 1
    if sharing.group_of(file):
        return -1
    return _LONG.index(file) if file in _LONG else len(_LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Have the worker list its clocked tests."""
    sharing.pass_file(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Give a worker whole files, or all files that need the same servers."""
    return sharing.Sharing(config, log)


def pytest_collection_finish() -> None:
    """Leave all that was collected out of later garbage collections, and have fewer of them.

    It is hundreds of thousands of objects: a collection that visits them takes a third of a second,
    a twentieth of the whole run, in the midst of what a test measures. The many short-lived objects
    of tests are looked through thirty times as seldom, which saves another twentieth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Finalize what earlier tests left, so that no collection falls into the midst of a small test.

    Where one uses up the stack, finalizers would find none, and the test would be blamed.
    """
    gc.collect(0)


def _is_of(part: str, item: pytest.Item) -> bool:
    """Return whether a part has a test; `make test-thorough` repeats the deaths in other steps."""
    thorough = item.get_closest_marker("thorough") is not None
    if part == "thorough":
        return thorough or hasattr(getattr(item, "module", None), "SHARE")
    return not thorough and (part == "landing" or not _is_rest(item))


def _is_rest(item: pytest.Item) -> bool:
    """Say whether only `make check` runs a test."""
    if item.get_closest_marker("rest"):
        return True
    contract = item.nodeid.startswith("tests/contract/")
    return bool(_REST.match(item.nodeid)) or (
        contract and any(name in item.nodeid for name in _EMULATORS)
    )


def _keep_in_memory() -> None:
    """Have temporary folders in memory if they fit there: an fsync takes a disk 20 ms."""
    roomy = Path(_MEMORY).is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES
    if "TMPDIR" not in os.environ and roomy:
        os.environ["TMPDIR"] = _MEMORY
        tempfile.tempdir = None  # It is read again.


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """List in a file of the repository what failed in CI, so that it is known the second time."""
    failed = [each for key in ("failed", "error") for each in terminalreporter.getreports(key)]
    in_worker = "PYTEST_XDIST_WORKER" in os.environ
    if os.environ.get("CI") != "true" or in_worker or not failed:
        return
    ask = ["git", "-C", str(_FAILURES.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(ask, capture_output=True, check=False)
    place = f"{datetime.now(UTC):%Y-%m-%d} {commit.stdout.decode().strip() or 'unknown'}"
    lines = sorted({f"{place} {report.nodeid}\n" for report in failed})
    with _FAILURES.open("a") as file:
        file.writelines(lines)
    terminalreporter.section("added to tests/failures.txt")
    terminalreporter.write("".join(lines))


@pytest.fixture(autouse=True)
def _scrubbed_environment(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Take away whatever a laptop's environment would whisper to the code under test."""
    aws = () if live.chosen(pytestconfig) else _AWS
    google = () if live_google.chosen(pytestconfig) else _GOOGLE
    for name in [name for name in os.environ if name.startswith((*_OURS, *aws, *google))]:
        if name not in _KEPT:
            monkeypatch.delenv(name)
    if not live_google.chosen(pytestconfig):
        for name, value in live_google.SILENCE.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def _unconfigured_logging() -> Iterator[None]:
    """Undo the configuration of an entry point that a test called in this process."""
    root, raises = logging.getLogger(), logging.raiseExceptions
    handlers, level = root.handlers[:], root.level
    yield
    logging.raiseExceptions, root.handlers[:] = raises, handlers
    root.setLevel(level)
    for name in (logs._NAME, *logs._LIBRARIES):
        logging.getLogger(name).setLevel(logging.NOTSET)
