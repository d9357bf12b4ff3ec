"""Deploys releases by Helm's command line, and recovers those that an interruption left half done.

none, deployed, failed ────────────────────────────► upgrade --install
pending-upgrade, pending-rollback ─► rollback ──────► upgrade --install
pending-install, failed and never deployed ─► uninstall ─► upgrade --install
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bellhop.adapters.helm.box import USUAL, Ended, Limits, run
from bellhop.adapters.helm.failures import failure, is_missing
from bellhop.adapters.helm.program import find
from bellhop.errors import TooLargeError, UnreachableError
from bellhop.ports.charts import DEPLOYED, Options, Propagation, Release, Wanted

_KUBECONFIG = "{kubeconfig}"
_SUPERSEDED = "superseded"
_INTERRUPTED = {"pending-upgrade", "pending-rollback"}
_NEVER = {"pending-install", "uninstalling"}
_HISTORY = 256
_SLACK = 30
"""Seconds that a call may take beyond what Helm itself waits for."""


class HelmCharts:
    """Releases by the program `helm`, or the one that is found when it is asked for first."""

    def __init__(self, program: Path | None = None, limits: Limits = USUAL) -> None:
        self._named = program
        self._limits = limits

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        """Read the newest revision of a release; None if there is none."""
        found = self._history(kubeconfig, namespace, name, 1)
        return found[-1] if found else None

    def deploy(self, kubeconfig: bytes, wanted: Wanted) -> Release:
        """Install or upgrade a release."""
        self._recover(kubeconfig, wanted)
        options = wanted.options
        files = {f"values-{number}": text.encode() for number, text in enumerate(wanted.values)}
        arguments = ["upgrade", wanted.name, str(wanted.archive), "--install", "--hide-notes"]
        arguments += [part for name in files for part in ("--values", f"{{{name}}}")]
        self._ask(
            kubeconfig,
            wanted.namespace,
            [*arguments, *_flags(options)],
            f"deploy the release '{wanted.namespace}/{wanted.name}'",
            files=files,
            seconds=options.timeout_seconds,
        )
        made = self.release(kubeconfig, wanted.namespace, wanted.name)
        if made is None:
            raise UnreachableError(
                f"cannot read the release '{wanted.namespace}/{wanted.name}' back"
            )
        return made

    def _recover(self, kubeconfig: bytes, wanted: Wanted) -> None:
        """Bring a release into a state that can be upgraded."""
        history = self._history(kubeconfig, wanted.namespace, wanted.name, _HISTORY)
        if not history:
            return
        status = history[-1].status
        once = [each for each in history if each.status in (DEPLOYED, _SUPERSEDED)]
        doing = f"recover the release '{wanted.namespace}/{wanted.name}', which is {status}"
        if status in _INTERRUPTED and once:
            asked = ["rollback", wanted.name, str(once[-1].revision), "--no-hooks"]
            self._ask(kubeconfig, wanted.namespace, asked, doing)
        elif status in _NEVER or (not once and status != DEPLOYED):
            asked = ["uninstall", wanted.name, "--no-hooks", "--ignore-not-found"]
            self._ask(kubeconfig, wanted.namespace, asked, doing)

    def remove(
        self,
        kubeconfig: bytes,
        namespace: str,
        name: str,
        *,
        keep_history: bool = False,
        hooks: bool = True,
        propagation: Propagation = "",
        timeout_seconds: int = 300,
    ) -> bool:
        """Uninstall a release; say whether it was there."""
        found = self.release(kubeconfig, namespace, name)
        if found is None or found.status == "uninstalled":
            return False
        arguments = ["uninstall", name, "--ignore-not-found", f"--timeout={timeout_seconds}s"]
        arguments += ["--keep-history"] if keep_history else []
        arguments += [] if hooks else ["--no-hooks"]
        arguments += [f"--cascade={propagation}"] if propagation else []
        doing = f"remove the release '{namespace}/{name}'"
        self._ask(kubeconfig, namespace, arguments, doing, seconds=timeout_seconds)
        return True

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        """Return the objects of a release's newest revision as YAML, without its hooks."""
        doing = f"read the release '{namespace}/{name}'"
        return self._ask(kubeconfig, namespace, ["get", "manifest", name], doing)

    def render(self, wanted: Wanted, *, kubernetes: str = "") -> str:
        """Render a chart without a cluster."""
        files = {f"values-{number}": text.encode() for number, text in enumerate(wanted.values)}
        options = wanted.options
        arguments = ["template", wanted.name, str(wanted.archive), "--namespace", wanted.namespace]
        arguments += [part for name in files for part in ("--values", f"{{{name}}}")]
        arguments += [f"--kube-version={kubernetes}"] if kubernetes else []
        arguments += [] if options.skip_crds else ["--include-crds"]
        arguments += ["--skip-schema-validation"] if options.skip_schema_validation else []
        doing = f"render the chart of '{wanted.namespace}/{wanted.name}'"
        ended = self._run(arguments, files, self._limits, doing)
        if ended.code:
            raise failure(ended.errors, doing)
        return ended.output.decode()

    def _history(
        self, kubeconfig: bytes, namespace: str, name: str, most: int
    ) -> Sequence[Release]:
        """Read the newest revisions of a release, the newest one last."""
        doing = f"read the history of the release '{namespace}/{name}'"
        arguments = ["history", name, f"--max={most}", "--output=json"]
        ended = self._call(kubeconfig, namespace, arguments, doing)
        if ended.code and is_missing(ended.errors):
            return ()
        if ended.code:
            raise failure(ended.errors, doing)
        return tuple(_release(namespace, name, each) for each in json.loads(ended.output.decode()))

    def _ask(
        self,
        kubeconfig: bytes,
        namespace: str,
        arguments: Sequence[str],
        doing: str,
        *,
        files: dict[str, bytes] | None = None,
        seconds: int = 0,
    ) -> str:
        ended = self._call(kubeconfig, namespace, arguments, doing, files=files, seconds=seconds)
        if ended.code:
            raise failure(ended.errors, doing)
        return ended.output.decode(errors="replace")

    def _call(
        self,
        kubeconfig: bytes,
        namespace: str,
        arguments: Sequence[str],
        doing: str,
        *,
        files: dict[str, bytes] | None = None,
        seconds: int = 0,
    ) -> Ended:
        where = ["--kubeconfig", _KUBECONFIG, "--namespace", namespace]
        whole = Limits(
            max(self._limits.seconds, seconds + _SLACK), self._limits.memory, self._limits.output
        )
        speed = ["--qps=1000", "--burst-limit=2000"]
        held = {"kubeconfig": kubeconfig, **(files or {})}
        return self._run([*arguments, *where, *speed], held, whole, doing)

    def _run(
        self, arguments: Sequence[str], files: dict[str, bytes], limits: Limits, doing: str
    ) -> Ended:
        program = self._named or find()
        try:
            return run(program, arguments, files=files, limits=limits)
        except TooLargeError as error:
            raise TooLargeError(f"cannot {doing}: {error}") from error
        except UnreachableError as error:
            raise UnreachableError(f"cannot {doing}: {error}") from error


def _release(namespace: str, name: str, told: dict[str, object]) -> Release:
    chart, _, version = _split(str(told["chart"]))
    return Release(name, namespace, int(str(told["revision"])), str(told["status"]), chart, version)


def _split(told: str) -> tuple[str, str, str]:
    """Split `demo-chart-1.2.3-rc.1` into its name and version: that begins with a digit."""
    for at, letter in enumerate(told):
        if letter == "-" and told[at + 1 : at + 2].isdigit():
            return told[:at], "-", told[at + 1 :]
    return told, "", ""


def _flags(options: Options) -> Iterator[str]:
    """Yield Helm's flags for an upgrade that installs what is not there."""
    chosen = {
        "--create-namespace": options.create_namespace,
        "--skip-crds": options.skip_crds,
        "--skip-schema-validation": options.skip_schema_validation,
        "--disable-openapi-validation": options.disable_openapi_validation,
        "--no-hooks": options.disable_hooks,
        "--take-ownership": options.take_ownership,
        "--wait=watcher": options.wait,
        "--wait-for-jobs": options.wait_for_jobs,
        "--rollback-on-failure": options.atomic,
        "--cleanup-on-fail": options.cleanup_on_fail,
        "--force-replace": options.force,
        "--reuse-values": options.reuse_values,
        "--reset-values": options.reset_values,
        "--reset-then-reuse-values": options.reset_then_reuse_values,
    }
    yield from (flag for flag, is_asked in chosen.items() if is_asked)
    yield f"--history-max={options.max_history}"
    yield f"--timeout={options.timeout_seconds}s"
    if options.labels:
        yield "--labels=" + ",".join(f"{key}={value}" for key, value in options.labels.items())
    if options.description:
        yield f"--description={options.description}"
