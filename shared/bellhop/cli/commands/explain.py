"""`bellhop explain`: why something was deployed, or was not, and the one next thing to do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from bellhop.cli import session
from bellhop.cli.completion import complete_cluster, complete_explained
from bellhop.cli.examples import Command
from bellhop.cli.kinds import singular, split_kind
from bellhop.cli.options import JSON, YAML, output_option, state_option
from bellhop.cli.output import objects
from bellhop.cli.queries import TRIGGER
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.diagnosis.explain.chain import Explanation
    from bellhop.installation.installation import Installation

_WORDS = 3


@click.command(
    "explain",
    cls=Command,
    usage=(
        "CLUSTER KIND [NAMESPACE/]NAME [OPTIONS]",
        "KIND [NAMESPACE/]NAME --cluster [NAMESPACE/]NAME [OPTIONS]",
        "trigger NAME [OPTIONS]",
    ),
    examples=(
        "bellhop explain prod/eu-1 service default/web",
        "bellhop explain prod/eu-1 namespace team-a -o json",
        "bellhop explain trigger service-network-policy",
    ),
)
@click.argument(
    "words",
    nargs=-1,
    metavar="CLUSTER KIND [NAMESPACE/]NAME | trigger NAME",
    shell_complete=complete_explained,
)
@click.option("-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace of the object.")
@click.option(
    "--cluster",
    metavar="[NAMESPACE/]NAME",
    default="",
    help="The object's cluster, in place of the first argument.",
    shell_complete=complete_cluster,
)
@output_option
@state_option
def command(words: tuple[str, ...], namespace: str, cluster: str, form: str) -> None:
    """Explain why an object was or was not deployed, or what a trigger does, and what to do next.

    For an object, the output has its last known and its current state in the cluster; every source
    that names its kind, evaluated again; every trigger of these, and why its selector does or does
    not select the cluster; the rendered profiles; and their status in each cluster. For a trigger,
    it has missing objects that it names, the clusters that it selects, what matches, and its
    profiles. The object is read in its cluster, for five seconds at most. Nothing is changed, and
    no value of a Secret is shown.
    """
    words = (cluster, *words) if cluster else words
    explanation = _explain(session.installation(), _read(words), namespace)
    if form in {JSON, YAML}:
        objects([to_builtins(explanation)], form, one=True)
        return
    from bellhop.cli.chain import tell

    tell(explanation)


def _read(words: tuple[str, ...]) -> tuple[str, ...]:
    """Read KIND/NAME for KIND NAME, as the other commands do."""
    *before, last = words or ("",)
    if len(before) == _WORDS - 2:
        kind, slash, name = last.partition("/")
        last_words = (kind, name) if slash else (last,)
        words = words if singular(before[0]) == TRIGGER else (*before, *last_words)
    elif not before:
        words = tuple(filter(None, split_kind(last, [TRIGGER])))
    is_trigger = len(words) == _WORDS - 1 and singular(words[0]) == TRIGGER
    if not is_trigger and len(words) != _WORDS:
        raise click.UsageError("write CLUSTER KIND NAMESPACE/NAME, or: trigger NAME")
    return words


def _explain(here: Installation, words: tuple[str, ...], namespace: str) -> Explanation:
    if len(words) < _WORDS:
        from bellhop.diagnosis.explain.trigger import explain_trigger

        return explain_trigger(here, words[1], partial(session.serves, here))
    from bellhop.diagnosis.explain.object import explain_object

    cluster, kind, name = words
    place, slash, rest = name.partition("/")
    if slash and namespace not in ("", place):
        raise InvalidError(f"'{name}' and -n {namespace} name two namespaces")
    if slash:
        namespace, name = place, rest
    return explain_object(here, cluster, kind, namespace, name, partial(session.serves, here))
