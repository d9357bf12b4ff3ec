"""The `bellhop` command: it finds the subcommand, and reports errors as shells expect.

Only click is loaded here. A subcommand is imported when it is called, so that `bellhop --help`
and completion answer at once.

exit code   0 done   1 refused (permanent, or by a cloud)   2 wrong input
            75 may pass, try again   70 a fault of ours
            130 Ctrl-C   141 the reader of a pipe went away
"""

from __future__ import annotations

import errno
import gc
import importlib
import keyword
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from bellhop import __version__
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_context
from bellhop.cli.options import Choice
from bellhop.errors import BellhopError, CloudDeniedError, InvalidError, TemporaryError

GROUPS = {
    "Set up": {
        "serve": "Run the embedded mode.",
        "register": "Add a cluster to the fleet.",
        "deregister": "Take a cluster out of the fleet.",
        "rotate": "Rotate the token of a cluster's sender.",
        "sender": "Manage senders of CloudEvents for a cluster.",
        "context": "Choose the installation that the CLI talks to.",
        "charts": "Download the programs that deploy Helm charts.",
        "install": "Install custom resource definitions in a cluster.",
        "backup": "Write an installation into a sealed file.",
        "restore": "Fill a new installation from a backup.",
        "import": "Convert the configuration of other tools.",
        "export": "Write manifests for the cluster that holds the configuration.",
    },
    "Deploy": {
        "apply": "Validate and store manifests.",
        "delete": "Delete manifests, or orphans in a cluster.",
        "approve": "Approve a release at a stage of a promotion.",
        "annotate": "Set and remove annotations.",
        "label": "Set and remove labels.",
        "set": "Set the maintenance windows of clusters.",
        "promote": "Give a stage of a promotion a release at once.",
        "reject": "Have a release go no further than a stage of a promotion.",
        "pause": "Pause a profile, the profiles of a trigger, or a cluster.",
        "resume": "End a pause.",
        "resync": "Resync clusters now.",
        "redeploy": "Apply the contents of profiles again.",
        "release": "Confirm removals that the deletion guard holds.",
        "rollback": "Return a profile, or a stage of a promotion, to what it had before.",
    },
    "Inspect": {
        "status": "Show whether the installation is healthy, and if not, why.",
        "get": "List objects, or show one.",
        "describe": "Show details of one object.",
        "show": "Show add-ons, events and failures.",
        "events": "Show events, as `show events` does.",
        "explain": "Explain why something was deployed, or was not.",
        "history": "List the revisions of a profile, or the releases of a promotion.",
        "doctor": "Check the connection to clusters and back, piece by piece.",
        "logs": "Show what functions have logged.",
        "dead-letters": "List, replay or drop dead-lettered messages.",
        "support-bundle": "Write what others need to find a fault, without secrets.",
        "wait": "Wait until clusters are ready, profiles are provisioned, or objects are deleted.",
    },
    "Try": {
        "diff": "Show what applying profiles would change now.",
        "evaluate": "Show whether objects match an EventSource, and why.",
        "render": "Render a template, or all that a trigger would generate, offline from files.",
        "schema": "Print JSON Schemas of manifests, for editors and validators.",
        "test": "Test EventSources on the objects beside them.",
    },
    "Other": {
        "completion": "Print the completion script of a shell.",
        "version": "Print the versions of this program, the server and the forwarders.",
    },
}
"""The commands as `bellhop --help` lists them."""

COMMANDS = {name: GROUPS[group][name] for group in GROUPS for name in GROUPS[group]}

_SHARED = {
    "annotate": "label",
    "describe": "get",
    "events": "show",
    "history": "rollback",
    "promote": "approve",
    "reject": "approve",
    "restore": "backup",
    "resume": "pause",
    "resync": "redeploy",
    "rotate": "deregister",
    "test": "evaluate",
}
"""Commands that stand in the module of another one, under their own name."""

_INTERRUPTED = 130
_PIPE_CLOSED = 141
_TRY_AGAIN = 75
_REFUSED = 1
_FAULT = 70
_WRONG_INPUT = 2
_FULL = (errno.ENOSPC, errno.EDQUOT)

_SELDOM = 500_000
"""The number of new objects that starts a garbage collection."""


class Root(Group):
    """The group that imports its commands when they are needed, and answers for all errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        name = _SHARED.get(cmd_name, cmd_name).replace("-", "_")
        # A keyword of Python cannot be the name of a module.
        name += "_" * keyword.iskeyword(name)
        module = importlib.import_module(f"bellhop.cli.commands.{name}")
        found: click.Command = getattr(module, cmd_name if cmd_name in _SHARED else "command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        spacing = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                rows = [(name.ljust(spacing), line) for name, line in commands.items()]
                formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,
    ) -> Any:
        """Run the command and exit with its code."""
        del prog_name, standalone_mode  # Ours has one name, and this is where it ends.
        try:
            code = super().main(args, "bellhop", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except Exception as error:  # noqa: BLE001 - the one place that answers for everything
            code = _report_error(error)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that closes the pipe is no error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            ctx.exit(_PIPE_CLOSED)
        return result


@click.command(
    cls=Root,
    state=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "bellhop serve",
        "bellhop register cluster --namespace prod --cluster eu-1 --kubeconfig eu-1.kubeconfig",
        "bellhop apply -f sources/ -f triggers/",
        "bellhop show events --follow",
    ),
)
@click.version_option(__version__, "--version", message="bellhop %(version)s")
@click.option(
    "--state",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="State folder of an embedded installation.",
)
@click.option(
    "--context",
    "context_name",
    metavar="NAME",
    help="A context of `bellhop context`, not of a kubeconfig.",
    shell_complete=complete_context,
)
@click.pass_context
def cli(ctx: click.Context, state: Path | None, context_name: str | None) -> None:
    """Deploy add-ons to clusters in response to Kubernetes events."""
    ctx.obj = Choice(state=state, context=context_name)


def run() -> None:
    # What a command makes is needed until it ends: to look for garbage among thousands of
    # documents took a sixth of the time of applying them.
    gc.set_threshold(_SELDOM)
    cli.main()


def _drop_output() -> None:
    """Discard buffered output: writing it would fail once more when the interpreter ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_misuse(error: click.ClickException) -> int:
    """Print one sentence on the error of a command line, and the place of its help."""
    from bellhop.cli.output import say

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    # click puts each choice of a missing option on a line of its own.
    message = error.format_message().rstrip(".").replace("\n\t", " ")
    message = message[:1].lower() + message[1:]
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx else "bellhop"
    end = " " if message.endswith("?") else "; "
    say(f"error: {message}{end}`{path} --help` shows how it is used", err=True)
    return error.exit_code


def _report_error(error: Exception) -> int:
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return _INTERRUPTED
    if isinstance(error, click.ClickException):
        return _report_misuse(error)
    from bellhop.cli.output import say

    if os.environ.get("BELLHOP_DEBUG"):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            say(line, err=True)
    if isinstance(error, OSError) and error.errno in _FULL:
        _drop_output()
        say("error: cannot write: the disk is full; free some space", err=True)
        return _TRY_AGAIN
    if not isinstance(error, BellhopError):
        say(
            "error: internal error; run it again with BELLHOP_DEBUG=1 to see where",
            err=True,
        )
        return _FAULT
    problems: Sequence[Exception] = getattr(error, "problems", ())
    for each in problems or (error,):
        say(f"error: {each}", err=True)
    if isinstance(error, InvalidError):
        return _WRONG_INPUT
    may_pass = isinstance(error, TemporaryError) and not isinstance(error, CloudDeniedError)
    return _TRY_AGAIN if may_pass else _REFUSED


if __name__ == "__main__":
    run()
