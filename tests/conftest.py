"""What all tests share: clusters and AWS on demand, and an environment that tells them nothing."""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import coverage
import pytest
from xdist.scheduler import LoadFileScheduling

from bellhop import logs
from bellhop.adapters.gcp.services import EMULATORS
from tests import live, live_google, sharing

if TYPE_CHECKING:
    from xdist.remote import Producer

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
_TRACES_PROCESSES = "COVERAGE_PROCESS_CONFIG"
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
    r"|tests/flow/test_(checks|elsewhere|health|isolation|local|loops|modes|nats|operating|outages)"
    r"|tests/flow/test_(processes|renewing|steps|templated)"
    r"|tests/unit/(adapters/gcp/test_queue|gotemplate/test_oracle)"
)
"""What only `make check` runs, beside what is marked so: clouds from Terraform to zips, our tools,
and on real API servers what is neither a promise of the README nor the adapter to Kubernetes."""

_EMULATORS = ("aws", "gcp", "google")
"""Names of contract tests that need a cloud's emulators, which only `make check` runs, too."""

_TRACED = (
    *("tests/unit/", "tests/golden/", "tests/contract/", "tests/functions/", "tests/cli/"),
    *("tests/infra/test_forwarder_", "tests/flow/test_http.py"),
)
"""What says how much of the library the tests cover; no line of other tests is traced."""

_NOT_TRACED = (
    *("aws_queues", "gcp_queues", "test_live", "test_gcp_pipeline", "test_gcp_faults"),
    *("stages/test_properties", "stages/test_interleaving", "test_survives_death", "test_death_at"),
    *("test_who_dies", "stages/test_role_request_races"),
    *("cli/test_permissions", "functions/test_rights", "functions/test_faults"),
    *("functions/test_mov", "functions/test_mixed", "cli/test_secrets"),
    *("stages/test_ingest_hostile", "stages/test_loops"),
    *("stages/test_deaths", "wherever_it_dies", "whichever_write_was_the_last"),
    *("a_restore_that_was_killed", "functions/test_gcp_pages", "functions/test_imports"),
    *("functions/test_gcp_rights",),
)
"""Among it, what mostly waits for a cloud's queues, runs functions where nothing is traced, goes
through the same lines thousands of times, or does again what others do, by other rights or in the
midst of faults."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("test", "rest"),
        help="run only the tests of `make test`, or only those that `make check` adds",
    )
    live.add_options(parser)
    live_google.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the clouds out of reach, unless an account or a project is named."""
    _keep_in_memory()
    if live.chosen(config) is None and live_google.chosen(config) is None:
        live.forbid()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file whose tests are all of the other part."""
    name = f"{collection_path.relative_to(config.rootpath)}{'/' * collection_path.is_dir()}"
    return (config.getoption("--part") == "test" and _REST.match(name) is not None) or None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name no test by packed bytes: gzip writes the time into them, and workers differ by it."""
    packed = isinstance(val, bytes) and not val.isascii()
    return argname if packed else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other part, and begin with what is long: last, one worker waits for the other.

    What needs the same servers is one long part. The many short files of `unit` come last as they
    are, and end together.
    """
    part = config.getoption("--part")
    if part:
        other = [item for item in items if _is_rest(item) != (part == "rest")]
        config.hook.pytest_deselected(items=other)
        left_out = set(map(id, other))
        items[:] = [item for item in items if id(item) not in left_out]
        sharing.require_listed(items)
    items.sort(key=lambda item: _rank(item.nodeid.partition("::")[0]))


def _rank(file: str) -> int:
    if sharing.group_of(file):
        return -1
    return _LONG.index(file) if file in _LONG else len(_LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Give a worker whole files, or all files that need the same servers."""
    return sharing.Sharing(config, log)


def pytest_collection_finish() -> None:
    """Leave all that was collected out of later garbage collections, and have fewer of them.

    It is hundreds of thousands of objects: a collection that walks them takes a third of a second,
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Trace no lines in a test that says nothing new of what is covered."""
    tracer = coverage.Coverage.current()
    if tracer is None or _is_traced(item):
        return (yield)
    told = os.environ.pop(_TRACES_PROCESSES, None)
    tracer.stop()
    try:
        return (yield)
    finally:
        tracer.start()
        if told is not None:
            os.environ[_TRACES_PROCESSES] = told


def _is_rest(item: pytest.Item) -> bool:
    """Say whether only `make check` runs a test."""
    if item.get_closest_marker("rest"):
        return True
    contract = item.nodeid.startswith("tests/contract/")
    return bool(_REST.match(item.nodeid)) or (
        contract and any(name in item.nodeid for name in _EMULATORS)
    )


def _is_traced(item: pytest.Item) -> bool:
    """Say if a test tells what is covered; one that judges time would judge the tracing.

    Those unit tests of stages that only `make check` runs go through the lines of the others.
    """
    timed = item.get_closest_marker("timed") is not None
    return (
        not timed
        and not (_is_rest(item) and item.nodeid.startswith("tests/unit/stages/"))
        and item.nodeid.startswith(_TRACED)
        and not any(name in item.nodeid for name in _NOT_TRACED)
    )


def _keep_in_memory() -> None:
    """Have temporary folders in memory where it has room: an fsync takes a disk 20 ms."""
    roomy = Path(_MEMORY).is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES
    if "TMPDIR" not in os.environ and roomy:
        os.environ["TMPDIR"] = _MEMORY
        tempfile.tempdir = None  # It is read again.


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
