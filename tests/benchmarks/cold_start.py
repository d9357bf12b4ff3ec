"""Until a cold stage has done its first work: `python -m tests.benchmarks.cold_start [RUNS]`.

Each run is a process of its own, with warm files.

First over a copy of one state, with the adapters of the embedded mode: the first use of ingest is
a forwarder's batch answered, that of evaluate an object checked by a script, and that of deploy and
resync a client made from stored credentials and its first call sent, to where nobody listens. The
floor is an empty Python.

Then the packages for Lambda, by its runtime client and over moto: the first event of deploy is one
whose profile is rendered, and that of schedule a tick. The floor is a handler in ingest's package
that imports botocore and nothing of ours. What Lambda takes to fetch and unpack a package, and how
long AWS answers, is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bellhop.adapters.local.certificates import make_authority
from bellhop.api.kinds import parse_all, read_documents
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request
from bellhop.logs import Log
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from infra.package.build import build
from infra.package.interpreter import machine_architecture
from tests.benchmarks.figures import ROOT, run, spread, table
from tests.benchmarks.ingest import batch
from tests.functions.lab import Account, Context, User, event
from tests.lab.lambdas import Function, Lambdas, Outcome
from tests.lab.moto import Moto
from tests.package.zipped import Zipped

SMALLEST = (1,)

_HOUSE = """
from bellhop.adapters.local.store import FileBlobs
from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.store import SqliteStore
from bellhop.logs import Log
from bellhop.state.messages import INBOXES, Publisher
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from bellhop.settings import Settings
"""
_OPEN = """
clock, settings = SystemClock(), Settings()
store, sealer = SqliteStore(state / "store.db"), Sealer((state / "key").read_bytes())
records = Records(store, FileBlobs(state / "blobs"), sealer, clock)
queues = {name: SqliteQueue(state / "queue.db", name, clock=clock) for name in INBOXES}
publisher = Publisher(queues)
"""
_FRONT = """
from bellhop.adapters.local.http_app import run
from bellhop.runtime.embedded.http import Front
from bellhop.ingest.handler import Ingest
"""
_ANSWER = """
environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/clusters/fleet/east/east"}
body = (state / "batch.json").read_bytes()
environ["CONTENT_LENGTH"] = str(len(body))
answer = run(Front(Ingest(records, publisher, settings, Log())), environ, body)
assert answer.code == 200, answer
"""
_EVALUATOR = """
from bellhop.state.messages import Evaluate as Message
from bellhop.catalog.cache import Catalogs
from bellhop.events.evaluator import Evaluator
from bellhop.state.consumer import Inbox
"""
_EVALUATE = """
message = Message("fleet/east", "/v1/Service/default/web-0", "cold", "")
Evaluator(records, Catalogs(records), publisher, settings, Log()).handle(message)
assert list(store.query("match/fleet/east")), "nothing matched"
"""
_CLIENT = """
from bellhop.adapters.kube.access import KubeAccess
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.errors import UnreachableError
from bellhop.core.gvk import GVK
from bellhop.core.address_policy import LOCAL
from bellhop.catalog.cache import Catalogs
"""
_CALL = """
access = KubeAccess(FileSecrets(state / "secrets", (state / "key").read_bytes()), reach=LOCAL)
try:
    access.open("fleet/east").get(GVK("", "v1", "Service"), "default", "web-0")
except UnreachableError:
    pass
"""
_DEPLOY = """
from bellhop.runtime.handlers.deploy import make_deploy_table
"""

FLOOR = "(botocore)"
PACKAGES = ("ingest", "evaluate", "deploy", "sweep", "schedule")
_FLOOR = """import botocore.session


def handle(event, context):
    return {}
"""

STAGES = {
    "ingest": (_HOUSE + _FRONT, _OPEN + _ANSWER, 100),
    "evaluate": (_HOUSE + _EVALUATOR, _OPEN + _EVALUATE, 150),
    "deploy": (_HOUSE + _CLIENT + _DEPLOY, _OPEN + _CALL, 250),
    "sweep": (
        _HOUSE + _CLIENT + "from bellhop.runtime.handlers.sweep import make_sweep_table",
        _OPEN + _CALL,
        250,
    ),
}
"""What a composition imports, what its first work is, and the aim for both in ms."""

_PROBE = """
import pathlib, sys, time
state = pathlib.Path(sys.argv[1])
begun, worked = time.perf_counter(), time.process_time()
{imports}
loaded = time.perf_counter()
{work}
done, worked = time.perf_counter(), time.process_time() - worked
size = next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]
print((loaded - begun) * 1000, (done - loaded) * 1000, worked * 1000, int(size) / 1024)
"""


def prepare(state: Path) -> None:
    """Make a state with a cluster, sources, triggers and an object that is not evaluated yet."""
    embedded = open_state(state, Settings())
    here = embedded.installation
    digest = hashlib.sha256(b"east").hexdigest()
    cluster = Cluster("fleet", "east", {"env": "production"}, "v1.20.2", digest, datetime.now(UTC))
    here.declare.register(cluster)
    for path in sorted((ROOT / "docs/examples/service-discovery").glob("*.yaml")):
        here.declare.apply(parse_all(read_documents(path.read_text(), source=path.name)))
    here.secrets.put("kubeconfig/fleet/east", json.dumps(credentials().to_dict()).encode())
    ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
    assert ingest.respond(Request("fleet/east", "east", batch(1, 1))).status == 200
    embedded.close()
    (state / "batch.json").write_bytes(batch(1, 2))


def credentials() -> Kubeconfig:
    """Return those of a cluster that refuses connections."""
    now = datetime.now(UTC)
    authority = make_authority("nobody", now=now, validity=timedelta(days=1))
    trusted = base64.b64encode(authority.certificate_pem).decode()
    return Kubeconfig("https://127.0.0.1:1", ca_data=trusted, token="nobody")


def measure(state: Path, imports: str, work: str, runs: int) -> list[tuple[float, ...]]:
    """Return ms of imports and of the first work, processor ms of both, and MB, of each run."""
    program = _PROBE.format(imports=imports, work=work)
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(state, Path(folder) / "state")
            argv = [sys.executable, "-c", program, str(copy)]
            done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
        found.append(tuple(map(float, done.stdout.split()[-4:])))
    return found


class Deployed:
    """The packages, deployed again for each run: the next event of each is its first."""

    def __init__(self, folder: Path, moto: Moto, lambdas: Lambdas) -> None:
        here = machine_architecture()
        made = build(folder / "packages", architectures=[here], charts=False)
        self._packages = dict.fromkeys(PACKAGES, made[f"functions-{here}"])
        self._layer = folder / "floor"
        (self._layer / "python").mkdir(parents=True)
        (self._layer / "python" / "floor.py").write_text(_FLOOR)
        self._moto = moto
        self._lambdas = lambdas

    def run(self) -> dict[str, Outcome]:
        """Have each package of an installation answer its first event, one caused by another."""
        bare = Function(self._packages["ingest"], "floor.handle", layers=[self._layer])
        self._lambdas.replace(FLOOR, bare)
        account = Account(self._moto)
        user = User(account)
        user.register("east", credentials().to_dict(), env="production", dep="eng")
        for path in sorted((ROOT / "docs/examples/service-discovery").glob("*.yaml")):
            user.apply(path.read_text())
        functions = Zipped(account, self._lambdas, self._packages)
        assert functions.send("east", json.loads(batch(1, 1)))["statusCode"] == 200
        for stage in ("evaluate", "deploy", "sweep"):
            functions.feed(stage, functions.handlers[stage])
            assert functions.outcomes[-1][0] == stage, f"{stage} had no event"
        functions.tick(event("scheduler"), Context())
        account.close()
        floor = self._lambdas.invoke(FLOOR, {})
        return {FLOOR: floor, **dict(functions.outcomes)}


def packages(runs: int) -> None:
    """Print a row a package, with what both are times the floor's import of the same run."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        moto = stack.enter_context(Moto(folder))
        lambdas = stack.enter_context(Lambdas(folder / "lambdas"))
        deployed = Deployed(folder, moto, lambdas)
        found = [deployed.run() for _ in range(runs + 1)][1:]
    rows = {}
    for name in (FLOOR, *PACKAGES):
        of = [(each[name].began, each[name].took, each[FLOOR].began) for each in found]
        whole = [(began + took) / floor for began, took, floor in of]
        rows[name] = [
            spread([began * 1000 for began, _, _ in of], 0),
            spread([took * 1000 for _, took, _ in of], 0),
            spread([began / floor for began, _, floor in of]),
            spread(whole),
        ]
    columns = ("import ms", "first event ms", "import ratio", "together ratio")
    table(f"packages, medians of {runs}", rows, *columns)


def main(runs: int = 9) -> None:
    """Print a row a stage, beside the floor and the aim; then the packages."""
    rows: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        prepare(state)
        for name, (imports, work, aim) in {"(python)": ("", "", 0), **STAGES}.items():
            measure(state, imports, work, 1)  # Compiles, and warms the files.
            found = measure(state, imports, work, runs)
            loading, working, busy, size = ([each[part] for each in found] for part in range(4))
            whole = [sum(each[:2]) for each in found]
            cells = [spread(each) for each in (loading, working, whole, busy, size)]
            rows[name] = [*cells, str(aim or "")]
    columns = ("imports ms", "first use ms", "together ms", "of a processor", "MB", "aim ms")
    table(f"medians of {runs} processes", rows, *columns)
    packages(runs)


if __name__ == "__main__":
    run(main)
