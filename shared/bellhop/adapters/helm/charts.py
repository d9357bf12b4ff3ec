"""Deploys releases by Helm's command line, and recovers those that an interruption left half done.

installation failed ───────────────────────────────► install --replace
any other ─────────────────────────────────────────► upgrade --install; what that refuses:
pending-upgrade, pending-rollback ─► rollback ──────► upgrade --install
pending-install, failed and never deployed ─► uninstall ─► upgrade --install
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from math import ceil
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.egress.dialer import Dialer
from bellhop.adapters.egress.tunnel import Tunnel
from bellhop.adapters.helm.failures import (
    failure,
    is_missing,
    is_stuck,
    is_unapplied,
    refuse_killed,
)
from bellhop.adapters.helm.flags import (
    common_flags,
    files_of,
    upgrade_flags,
    value_flags,
)
from bellhop.adapters.helm.plugin import (
    CHANGES,
    ENVIRONMENT,
    OBJECTION,
    PLUGIN,
    objection,
)
from bellhop.adapters.programs.box import (
    USUAL,
    Ended,
    Limits,
    OvertimeError,
    never,
    private_home,
    run,
)
from bellhop.adapters.programs.program import HELM
from bellhop.core.address_policy import LOCAL, AddressPolicy
from bellhop.errors import (
    BellhopError,
    InvalidError,
    TemporaryError,
    TooLargeError,
)
from bellhop.ports.charts import DEPLOYED, OUR_LABEL, DesiredRelease, Release
from bellhop.state.chart import AS_USUAL, Removal

_KUBECONFIG = "{kubeconfig}"
_SUPERSEDED = "superseded"
_INTERRUPTED = {"pending-upgrade", "pending-rollback"}
_NEVER = {"pending-install", "uninstalling"}
_FAILED = "failed"
_UPGRADED = {DEPLOYED, _SUPERSEDED, *_INTERRUPTED}
"""The status of a revision that an upgrade comes after."""
_HISTORY = 256
_SLACK = 30
"""Seconds that a call may take beyond what Helm itself waits for."""


class HelmCharts:
    """Releases by the program `helm`, or the one that is found when it is asked for first.

    It calls only the API server of a cluster, if `reach` allows that.
    """

    def __init__(
        self,
        program: Path | None = None,
        limits: Limits = USUAL,
        *,
        reach: AddressPolicy = LOCAL,
        render_seconds: float = 5.0,
    ) -> None:
        """Take the limits of a call, and the processor time that `render` may take."""
        self._named = program
        self._limits = limits
        self._rendering = replace(limits, processor=ceil(render_seconds))
        self._reach = reach

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        doing = f"read the release '{namespace}/{name}'"
        arguments = ["get", "metadata", name, "--output=json"]
        ended = self._call(kubeconfig, namespace, arguments, doing)
        if ended.code and is_missing(ended.errors):
            return None
        if ended.code:
            raise failure(ended.errors, doing)
        answer = json.loads(ended.output.decode())
        status = str(answer["status"])
        return Release(
            name,
            namespace,
            int(answer["revision"]),
            status,
            str(answer["chart"]),
            str(answer["version"]),
            ours=OUR_LABEL.items() <= (answer.get("labels") or {}).items(),
            failures=self._failures(kubeconfig, namespace, name) if status == _FAILED else 0,
        )

    def _failures(self, kubeconfig: bytes, namespace: str, name: str) -> int:
        """Count the newest revisions that failed, unless one was deployed before them."""
        history = self._history(kubeconfig, namespace, name, _HISTORY)
        failed = list(takewhile(lambda each: each.status == _FAILED, reversed(history)))
        before = history[: len(history) - len(failed)]
        return 0 if before and before[-1].status in _UPGRADED else len(failed)

    def deploy(
        self, kubeconfig: bytes, desired: DesiredRelease, cancelled: Callable[[], bool] = never
    ) -> Release:
        begun = time.monotonic()
        release = self._install_or_upgrade(kubeconfig, desired, cancelled)
        if desired.options.run_tests:
            left = self._limits.seconds - (time.monotonic() - begun)
            self._test(kubeconfig, desired, left, cancelled)
        return release

    def _install_or_upgrade(
        self, kubeconfig: bytes, desired: DesiredRelease, cancelled: Callable[[], bool]
    ) -> Release:
        doing = f"deploy the release '{_place(desired)}'"
        upgrade = partial(self._upgrade, doing=doing, more=["--output=json"], cancelled=cancelled)
        try:
            answer = upgrade(kubeconfig, desired, there=desired.there)
        except TooLargeError:
            if found := self._read_back(kubeconfig, desired):
                return found
            raise
        except (InvalidError, TemporaryError) as error:
            if not is_stuck(str(error)):
                raise
            there, desired = self._recover(kubeconfig, desired), replace(desired, again=False)
            answer = upgrade(kubeconfig, desired, there=there)
        return _read_deployed(desired, json.loads(answer))

    def _read_back(self, kubeconfig: bytes, desired: DesiredRelease) -> Release | None:
        """Return a release that was deployed, though what Helm printed of it was too much to read.

        Helm prints the whole chart with it, after it has recorded the release and run its hooks. A
        Helm that was ended before that has recorded no new revision. Objects that are too large
        themselves are left out: another try would only make another revision of them.
        """
        found = self.release(kubeconfig, desired.namespace, desired.name)
        if found is None or found.status != DEPLOYED or not found.ours:
            return None
        if found.revision <= desired.revision:
            return None
        with suppress(TooLargeError):
            found = replace(found, manifest=self.manifest(kubeconfig, found.namespace, found.name))
        return found

    def _test(
        self, kubeconfig: bytes, desired: DesiredRelease, left: float, cancelled: Callable[[], bool]
    ) -> None:
        """Run the tests of a release that was deployed, in the seconds that its call has left.

        Helm's own timeout is for each test.
        """
        doing = f"run the tests of the release '{_place(desired)}', which is deployed"
        arguments = ["test", desired.name, f"--timeout={desired.options.timeout_seconds}s"]
        try:
            given = kubeconfig, desired.namespace, arguments, doing
            limits = replace(self._limits, seconds=max(1.0, left), cancelled=cancelled)
            self._ask(*given, limits=limits)
        except OvertimeError as error:
            # The tests take long, not the cluster.
            raise TemporaryError(f"cannot {doing}: they took longer than {left:.0f} s") from error

    def dry_run(self, kubeconfig: bytes, desired: DesiredRelease) -> str:
        doing = f"dry-run the release '{_place(desired)}'"
        there = desired.there
        more = ["--dry-run=server", "--output=json"]
        answer = self._upgrade(kubeconfig, desired, doing, more, there=there)
        return str(json.loads(answer).get("manifest") or "")

    def _upgrade(
        self,
        kubeconfig: bytes,
        desired: DesiredRelease,
        doing: str,
        more: Sequence[str] = (),
        *,
        there: bool,
        cancelled: Callable[[], bool] = never,
    ) -> str:
        options = desired.options if there or desired.install is None else desired.install
        upgrade = ["upgrade", "--install", *upgrade_flags(options)]
        action = ["install", "--replace"] if desired.again else upgrade
        arguments = [*action, desired.name, str(desired.archive), "--hide-notes"]
        arguments += [*value_flags(desired), *common_flags(options), *more]
        ask = partial(
            self._ask,
            kubeconfig,
            desired.namespace,
            doing=doing,
            files=files_of(desired),
            limits=self._extend_limits(options.timeout_seconds, cancelled),
        )
        if options.force:
            # Helm replaces objects by no server-side apply.
            return ask([*arguments, "--server-side=false"])
        try:
            # What others changed is put back, as of a profile's own objects.
            return ask([*arguments, "--server-side=true", "--force-conflicts"])
        except InvalidError as error:
            if not is_unapplied(str(error)):
                raise
        return ask([*arguments, "--server-side=false"])

    def _recover(self, kubeconfig: bytes, desired: DesiredRelease) -> bool:
        """Recover a release, so that it can be upgraded; return whether there is one then."""
        history = self._history(kubeconfig, desired.namespace, desired.name, _HISTORY)
        if not history:
            return False
        status = history[-1].status
        once = [each for each in history if each.status in (DEPLOYED, _SUPERSEDED)]
        doing = f"recover the release '{desired.namespace}/{desired.name}', which is {status}"
        if status in _INTERRUPTED and once:
            asked = ["rollback", desired.name, str(once[-1].revision), "--no-hooks"]
            self._ask(kubeconfig, desired.namespace, asked, doing)
        elif status in _NEVER or (not once and status != DEPLOYED):
            asked = ["uninstall", desired.name, "--no-hooks", "--ignore-not-found"]
            self._ask(kubeconfig, desired.namespace, asked, doing)
            return False
        return status != "uninstalled"

    def remove(self, kubeconfig: bytes, namespace: str, name: str, how: Removal = AS_USUAL) -> bool:
        found = self.release(kubeconfig, namespace, name)
        if found is None or found.status == "uninstalled":
            return False
        arguments = ["uninstall", name, "--ignore-not-found", f"--timeout={how.timeout_seconds}s"]
        arguments += ["--keep-history"] if how.keep_history else []
        arguments += [] if how.hooks else ["--no-hooks"]
        arguments += [f"--cascade={how.propagation}"] if how.propagation else []
        doing = f"remove the release '{namespace}/{name}'"
        limits = self._extend_limits(how.timeout_seconds)
        self._ask(kubeconfig, namespace, arguments, doing, limits=limits)
        return True

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        doing = f"read the release '{namespace}/{name}'"
        return self._ask(kubeconfig, namespace, ["get", "manifest", name], doing)

    def render(self, desired: DesiredRelease, *, kubernetes: str = "") -> str:
        options = desired.options
        arguments = [
            "template",
            desired.name,
            str(desired.archive),
            "--namespace",
            desired.namespace,
        ]
        arguments += value_flags(desired)
        arguments += [f"--kube-version={kubernetes}"] if kubernetes else []
        arguments += ["--is-upgrade"] if desired.there else []
        arguments += [] if options.skip_crds else ["--include-crds"]
        arguments += ["--skip-schema-validation"] if options.skip_schema_validation else []
        doing = f"render the chart of '{desired.namespace}/{desired.name}'"
        ended = self._run(arguments, files_of(desired), self._rendering, doing)
        if ended.code:
            raise _failure(ended, doing)
        return ended.output.decode()

    def definitions(self, desired: DesiredRelease) -> str:
        doing = f"read the definitions of the chart of '{_place(desired)}'"
        ended = self._run(["show", "crds", str(desired.archive)], {}, self._limits, doing)
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

    def _extend_limits(self, seconds: int, cancelled: Callable[[], bool] = never) -> Limits:
        """Return the limits of a call in which Helm itself may wait so many seconds."""
        longest = max(self._limits.seconds, seconds + _SLACK)
        return replace(self._limits, seconds=longest, cancelled=cancelled)

    def _ask(
        self,
        kubeconfig: bytes,
        namespace: str,
        arguments: Sequence[str],
        doing: str,
        *,
        files: dict[str, bytes] | None = None,
        limits: Limits | None = None,
    ) -> str:
        given = kubeconfig, namespace, arguments, doing
        ended = self._call(*given, files=files, limits=limits)
        if ended.code:
            raise _failure(ended, doing)
        return ended.output.decode(errors="replace")

    def _call(
        self,
        kubeconfig: bytes,
        namespace: str,
        arguments: Sequence[str],
        doing: str,
        *,
        files: dict[str, bytes] | None = None,
        limits: Limits | None = None,
    ) -> Ended:
        where = ["--kubeconfig", _KUBECONFIG, "--namespace", namespace]
        speed = ["--qps=1000", "--burst-limit=2000"]
        document = json.loads(kubeconfig)
        [cluster] = (each["cluster"] for each in document["clusters"])
        dialer = Dialer(self._reach, proxy=cluster.get("proxy-url", ""))
        with Tunnel(cluster["server"], dialer) as tunnel:
            cluster["proxy-url"] = tunnel.address
            held = {"kubeconfig": json.dumps(document).encode(), **(files or {})}
            return self._run([*arguments, *where, *speed], held, limits or self._limits, doing)

    def _run(
        self, arguments: Sequence[str], files: dict[str, bytes], limits: Limits, doing: str
    ) -> Ended:
        program = self._named or HELM.find()
        changes = CHANGES in files
        try:
            with private_home(PLUGIN if changes else None) as home:
                ended = run(
                    program,
                    arguments,
                    files=files,
                    limits=limits,
                    environment=ENVIRONMENT if changes else None,
                    home=home,
                )
            refuse_killed(ended, limits, doing)
        except (TooLargeError, OvertimeError) as error:
            raise type(error)(f"cannot {doing}: {error}") from error
        return ended


def _read_deployed(desired: DesiredRelease, answer: dict[str, Any]) -> Release:
    about = answer["chart"]["metadata"]
    return Release(
        desired.name,
        desired.namespace,
        int(answer["version"]),
        str(answer["info"]["status"]),
        str(about["name"]),
        str(about["version"]),
        ours=True,
        # A chart may write nothing but hooks.
        manifest=str(answer.get("manifest") or ""),
    )


def _failure(ended: Ended, doing: str) -> BellhopError:
    """Return what Helm says, or what our plugin has against a patch, as an error."""
    if wrote := ended.wrote.get(OBJECTION):
        return objection(doing, wrote)
    return failure(ended.errors, doing)


def _place(desired: DesiredRelease) -> str:
    return f"{desired.namespace}/{desired.name}"


def _release(namespace: str, name: str, answer: dict[str, Any]) -> Release:
    chart, _, version = _split(str(answer["chart"]))
    return Release(name, namespace, int(answer["revision"]), answer["status"], chart, version)


def _split(answer: str) -> tuple[str, str, str]:
    """Split `demo-chart-1.2.3-rc.1` into its name and version: that begins with a digit."""
    for at, letter in enumerate(answer):
        if letter == "-" and answer[at + 1 : at + 2].isdigit():
            return answer[:at], "-", answer[at + 1 :]
    return answer, "", ""
