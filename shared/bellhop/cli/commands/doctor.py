"""`bellhop doctor`: check the connection to clusters and back, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from bellhop.cli import output, session
from bellhop.cli.command import Command
from bellhop.cli.options import JSON, YAML, output_option
from bellhop.cli.output import print_styled, style
from bellhop.cli.selection import FindKeys, named_clusters
from bellhop.core.printable import visible

if TYPE_CHECKING:
    from bellhop.diagnosis.condition import Condition

WRONG = 1
"""The exit code where anything is wrong."""

_COLOURS = {"yes": "green", "failed": "red", "unknown": "yellow"}
_MARKS = {"yes": "OK", "failed": "FAIL", "unknown": "WARN"}
_VERDICTS = {"yes": "well", "failed": "wrong", "unknown": "open"}
_WIDTH = 11


@click.command(
    "doctor",
    cls=Command,
    examples=(
        "bellhop doctor",
        "bellhop doctor prod/eu-1 -o json",
        "bellhop doctor -l env=production",
    ),
)
@named_clusters
@output_option
def command(find_keys: FindKeys, form: str) -> None:
    """Check the connection to one cluster and back, or to all, step by step.

    Credentials, permissions, the webhook and the forwarder's last heartbeat are checked; each
    problem comes with what to do. A dry-run call through the API server tests the forwarder. Of the
    cluster that holds the configuration the definitions, rights and webhook for it are checked.
    Nothing is written, neither to Bellhop nor to clusters, and `bellhop serve` need not run. The
    exit code is 1 if there is a problem.
    """
    here = session.open_read_only()
    from bellhop.configuration.doctor import check_configuration
    from bellhop.diagnosis.doctor import check_clusters
    from bellhop.diagnosis.worker_status import check_worker

    keys = find_keys(here) or list(here.catalogs.known().clusters)
    own = list(check_worker(here, answers=session.is_listening(here.inbound)))
    checked = check_clusters(here, keys, check_configuration)
    found: list[tuple[str, Sequence[Condition]]] = [("", own), *checked]
    if form in {JSON, YAML}:
        output.print_records(make_rows(found), form)
    else:
        for name, signs in found:
            _report(f"Cluster {name}" if name else "Bellhop", signs)
        if not keys:
            output.say("No cluster is registered.", err=True)
    ill = any(sign.status == "failed" for _, signs in found for sign in signs)
    raise click.exceptions.Exit(WRONG if ill else 0)


def make_rows(found: Sequence[tuple[str, Sequence[Condition]]]) -> Iterator[dict[str, str]]:
    """Yield check results as `bellhop doctor -o json` prints them."""
    for key, signs in found:
        for sign in signs:
            yield {
                "cluster": key,
                "piece": sign.type,
                "status": _MARKS[sign.status],
                # The key of earlier versions, for one more release.
                "verdict": _VERDICTS[sign.status],
                "sentence": sign.message,
                "cure": sign.cure,
            }


def _report(title: str, signs: Sequence[Condition]) -> None:
    print_styled(style(title, "cyan", bold=True))
    for sign in signs:
        mark = style(f"{_MARKS[sign.status]:<4}", _COLOURS[sign.status])
        print_styled(f"  {mark}  {sign.type:<{_WIDTH}}  {visible(sign.message)}")
        if sign.cure and sign.status != "yes":
            print_styled(f"        {'':<{_WIDTH}}  -> {visible(sign.cure)}")
