"""What a function loads, and that loading it has no effect: snapshots are taken after it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Records who of us draws a number, reads the environment or opens a connection while importing;
# then looks for anything made that a restored snapshot would share with its siblings.
PROBE = """
import gc, json, os, sys, threading
effects = []
ours = (sys.argv[2] + "/shared/bellhop/", sys.argv[2] + "/functions/")

def watch(owner, name):
    real = getattr(owner, name)
    def watched(*args, **kwargs):
        caller = sys._getframe(1).f_code.co_filename
        if caller.startswith(ours):
            effects.append(f"{name} from {caller}")
        return real(*args, **kwargs)
    setattr(owner, name, watched)

import random, uuid, secrets, time
for owner, names in (
    (os, ["urandom", "getenv"]), (uuid, ["uuid4", "uuid1"]), (random, ["random", "uniform"]),
    (secrets, ["token_hex", "token_bytes"]), (time, ["time"]),
    (type(os.environ), ["__getitem__", "get"]),
):
    for name in names:
        watch(owner, name)
sys.addaudithook(lambda event, _: effects.append(event) if event == "socket.connect" else None)
module = __import__(f"functions.{sys.argv[1]}.{sys.argv[3]}", fromlist=["handle"])
assert callable(module.handle)
forbidden = {"BaseClient", "Session", "Services", "Sealer", "EventLog", "LoggedEventLog", "Records",
             "Log", "KubeClient", "KubeAccess", "ThreadPoolExecutor", "SqsQueue", "DynamoStore",
             "CloudFormatter", "PubsubQueue", "FirestoreStore", "Channel", "AuthorizedSession"}
collected, kept = gc.isenabled(), gc.get_freeze_count()
gc.unfreeze()  # Or nobody could see what was made.
made = [type(each).__name__ for each in gc.get_objects() if type(each).__name__ in forbidden]
threads = [each.name for each in threading.enumerate()]
loaded = sorted(sys.modules)
print(json.dumps({"effects": effects, "made": made, "threads": threads, "loaded": loaded,
                  "collected": collected, "kept": kept}))
"""

HEAVY = {
    "ingest": [
        *("lupa", "jinja2", "pydantic", "yaml", "bellhop.adapters.kube", "bellhop.luabox"),
        *(
            "bellhop.gotemplate",
            "bellhop.diagnosis",
            "bellhop.installation",
            "bellhop.operations",
            "bellhop.registration.registration",
            "bellhop.declarations.apply",
            "bellhop.runtime.handlers.deploy",
        ),
    ],
    "evaluate": [
        *(
            "bellhop.adapters.kube",
            "bellhop.diagnosis",
            "bellhop.installation",
            "bellhop.operations",
            "bellhop.registration.registration",
            "bellhop.ingest.handler",
        ),
        *("bellhop.runtime.handlers.deploy", "bellhop.ingest.admission", "jinja2"),
    ],
    "deploy": [
        *(
            "bellhop.diagnosis",
            "bellhop.installation",
            "bellhop.operations",
            "bellhop.registration.registration",
            "bellhop.ingest.handler",
            "bellhop.resync.resync",
        ),
        *("lupa", "bellhop.luabox", "bellhop.celbox", "yaml"),
    ],
    "charts": [
        *("bellhop.registration.registration", "bellhop.ingest.handler", "bellhop.resync.resync"),
        *(
            "bellhop.runtime.handlers.deploy",
            "bellhop.profiles.event_profiles",
            "bellhop.runtime.embedded",
        ),
        *("lupa", "bellhop.luabox", "bellhop.celbox"),
    ],
    "sweep": [
        *(
            "bellhop.ingest.handler",
            "bellhop.runtime.handlers.deploy",
            "bellhop.runtime.embedded",
            "bellhop.cli",
        ),
        *("bellhop.registration.registration", "bellhop.adapters.local.certificates", "yaml"),
    ],
    "schedule": [
        *(
            "bellhop.adapters.kube",
            "bellhop.diagnosis",
            "bellhop.installation",
            "bellhop.operations",
            "bellhop.registration.registration",
            "bellhop.ingest.handler",
            "lupa",
        ),
        *("pydantic", "bellhop.declarations.apply"),
    ],
}
"""What each function must not load, as its package is not to hold it."""

EVERYWHERE = [
    "rich",
    "h11",
    "uvicorn",
    "moto",
    "bellhop.adapters.local.server",
    "infra",
]
CLOUDS = {
    "aws": [
        "click",
        "flask",
        "google.api_core",
        "google.auth",
        "grpc",
        "bellhop.runtime.gcp",
        "bellhop.adapters.gcp",
    ],
    "gcp": ["boto3", "botocore", "bellhop.runtime.aws", "bellhop.adapters.aws"],
}
"""What the functions of a cloud must not load."""

_FLASKS = {"jinja2"}
"""The modules that Flask loads, used or not."""


@pytest.mark.parametrize("cloud", sorted(CLOUDS))
@pytest.mark.parametrize("stage", sorted(HEAVY))
def test_importing_a_function_has_no_effect_and_loads_only_its_own(stage: str, cloud: str) -> None:
    """No client, no number drawn, no thread, no word of the environment, and nothing heavy.

    What was loaded is kept from the collector of garbage, which goes on with all else.
    """
    command = [sys.executable, "-c", PROBE, stage, str(ROOT), cloud]
    answer = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}"}, stdout=-1, check=True
    )
    found = json.loads(answer.stdout)

    assert found["effects"] == []
    assert found["made"] == []
    assert found["threads"] == ["MainThread"]
    assert found["collected"]
    assert found["kept"] > len(found["loaded"])
    allowed = _FLASKS if cloud == "gcp" else set()
    for name in {*HEAVY[stage], *EVERYWHERE, *CLOUDS[cloud]} - allowed:
        loaded = [each for each in found["loaded"] if each == name or each.startswith(f"{name}.")]
        assert loaded == [], f"{stage} loads {name}"


@pytest.mark.parametrize("cloud", sorted(CLOUDS))
@pytest.mark.parametrize("stage", sorted(HEAVY))
def test_a_function_is_wiring(stage: str, cloud: str) -> None:
    """An entry point has forty lines at most."""
    assert len((ROOT / "functions" / stage / f"{cloud}.py").read_text().splitlines()) <= 40
