"""Real accounts: reached where one is named, by nobody else, and left as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bellhop.adapters.aws.services import Services
from bellhop.errors import UnreachableError
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

ROOT = Path(__file__).parents[2]
ACCOUNT = "123456789012"


# Busy threads have each other wait wherever Python code is run.
TRACED = """
import sys, threading
from tests import live

live.forbid()
sys.setswitchinterval(1e-6)
ran, busy = [], True

def work():
    while busy:
        pass

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
threading.settrace(lambda *_: None)
for _ in range(30):
    several = [threading.Thread(target=ran.append, args=(1,)) for _ in range(16)]
    for each in several:
        each.start()
    for each in several:
        each.join()
busy = False
print(len(ran))
"""


def run(
    moto: Moto, *options: str, where: str = "test_blobs.py"
) -> subprocess.CompletedProcess[str]:
    """Run a suite in a process of its own, where the moto server is all of AWS."""
    endpoint = {
        "AWS_ENDPOINT_URL": moto.url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "aws"]
    return subprocess.run(
        [*command, *options, f"tests/contract/{where}"],
        cwd=ROOT,
        env={**os.environ, **endpoint},
        capture_output=True,
        text=True,
        check=False,
    )


def named(moto: Moto, prefix: str) -> list[str]:
    """Return what there is whose name begins so."""
    services = Services(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
    found = services.client("dynamodb").list_tables()["TableNames"]
    found += [each["Name"] for each in services.client("s3").list_buckets()["Buckets"]]
    services.close()
    return [each for each in found if each.startswith(prefix)]


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("https://sqs.eu-west-1.amazonaws.com", id="a forgotten endpoint"),
        pytest.param("https://sqs.cn-north-1.amazonaws.com.cn", id="another partition"),
        pytest.param("https://sqs.us-east-1.api.aws", id="a dual-stack endpoint"),
        pytest.param("http://169.254.169.254", id="where machines of AWS get credentials"),
    ],
)
def test_no_test_can_reach_aws(address: str) -> None:
    """Its names are not looked up, nor its machines' own address called."""
    services = Services(region="eu-west-1", endpoint=address, keys=("a", "b"), sleep=lambda _: None)
    with pytest.raises(UnreachableError) as met:
        services.call("sqs", "list_queues", {}, doing="look")
    services.close()

    assert "a test reaches for a cloud" in str(met.value.__cause__)


def test_threads_that_begin_at_once_are_traced() -> None:
    """None is refused its trace function for what keeps this process from the clouds."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert (done.stdout, done.stderr) == ("480\n", "")


def test_a_suite_runs_in_an_account_and_leaves_nothing(moto: Moto) -> None:
    """Everything it makes bears the prefix, and is deleted when its test is over."""
    options = ("--live", "bellhop-live", "--live-account", ACCOUNT, "--live-region", REGION)
    before = moto.requests()
    done = run(moto, *options)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert moto.requests()["s3:PUT"] > before.get("s3:PUT", 0)
    assert named(moto, "bellhop-live") == []


def test_another_account_ends_the_run(moto: Moto) -> None:
    """Credentials of an account that was not named make nothing."""
    options = ("--live", "bellhop-else", "--live-account", "000000000000", "--live-region", REGION)
    done = run(moto, *options)

    assert done.returncode != 0
    assert f"credentials of the account {ACCOUNT}: nothing was made" in done.stdout + done.stderr
    assert named(moto, "bellhop-else") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--live", "bellhop-live"), "say in which account", id="no account"),
        pytest.param(("--live", "x"), "takes a prefix", id="a short prefix"),
        pytest.param(("--live-account", ACCOUNT), "takes a prefix", id="no prefix"),
        pytest.param(
            ("--live", "bellhop-live", "--live-account", "1", "--live-region", REGION),
            "say in which account",
            id="no account's number",
        ),
    ],
)
def test_a_run_must_name_its_account(moto: Moto, options: tuple[str, ...], said: str) -> None:
    """Half of the options are refused before anything is asked."""
    done = run(moto, *options)

    assert done.returncode == 4
    assert said in done.stderr
