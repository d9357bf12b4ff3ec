"""`bellhop doctor`: the way into clusters and back, piece by piece, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from bellhop.cli import output, session
from bellhop.cli.examples import Command
from bellhop.cli.options import JSON, YAML, output_option, state_option
from bellhop.cli.output import compose, styled
from bellhop.cli.selection import FindKeys, named_clusters
from bellhop.core.printable import visible

if TYPE_CHECKING:
    from bellhop.diagnosis.doctor import CheckResult

WRONG = 1
"""The exit code where anything is wrong."""

_COLOURS = {"well": "green", "wrong": "red", "open": "yellow"}
_MARKS = {"well": "OK", "wrong": "FAIL", "open": "WARN"}
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
@state_option
def command(find_keys: FindKeys, form: str) -> None:
    """Check the connection to one cluster and back, or to all, step by step.

    Credentials, permissions, the webhook and the forwarder's last heartbeat are checked; each
    problem comes with what to do. A dry-run call through the API server tests the forwarder.
    Nothing is written, neither to Bellhop nor to clusters, and `bellhop serve` need not run. The
    exit code is 1 if there is a problem.
    """
    here = session.looking()
    from bellhop.diagnosis.doctor import examine, house

    keys = find_keys(here) or list(here.catalogs.known().clusters)
    own = list(house(here, answers=session.answers(here.inbound)))
    found: list[tuple[str, Sequence[CheckResult]]] = [("", own), *examine(here, keys)]
    if form in {JSON, YAML}:
        output.records(rows(found), form)
    else:
        for name, signs in found:
            _tell(f"Cluster {name}" if name else "Bellhop", signs)
        if not keys:
            output.say("No cluster is registered.", err=True)
    ill = any(sign.verdict == "wrong" for _, signs in found for sign in signs)
    raise click.exceptions.Exit(WRONG if ill else 0)


def rows(found: Sequence[tuple[str, Sequence[CheckResult]]]) -> Iterator[dict[str, str]]:
    """Yield what was found as `bellhop doctor -o json` prints it."""
    for key, signs in found:
        for sign in signs:
            yield {
                "cluster": key,
                "piece": sign.piece,
                "status": _MARKS[sign.verdict],
                # The key of earlier versions, for one more release.
                "verdict": sign.verdict,
                "sentence": sign.sentence,
                "cure": sign.cure,
            }


def _tell(title: str, signs: Sequence[CheckResult]) -> None:
    compose(styled(title, "cyan", bold=True))
    for sign in signs:
        mark = styled(f"{_MARKS[sign.verdict]:<4}", _COLOURS[sign.verdict])
        compose(f"  {mark}  {sign.piece:<{_WIDTH}}  {visible(sign.sentence)}")
        if sign.cure and sign.verdict != "well":
            compose(f"        {'':<{_WIDTH}}  -> {visible(sign.cure)}")
