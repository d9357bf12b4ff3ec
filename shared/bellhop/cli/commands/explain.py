"""`bellhop explain`: the reason why an object was or was not deployed, and the next thing to do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_cluster, complete_explained
from bellhop.cli.kinds import singular_name, split_kind
from bellhop.cli.options import JSON, YAML, output_option
from bellhop.cli.output import print_objects, print_styled, style, wrap
from bellhop.cli.queries import TRIGGER
from bellhop.core.printable import visible
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.diagnosis.condition import Condition
    from bellhop.diagnosis.explain.result import Explanation
    from bellhop.installation import Installation


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
    explanation = _explain(session.open_installation(), _read_words(words), namespace)
    if form in {JSON, YAML}:
        print_objects([make_row(explanation)], form, one=True)
        return

    print_explanation(explanation)


def make_row(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as `bellhop explain -o json` prints it."""
    links = [
        {
            "step": each.type,
            "name": each.about,
            "state": each.status,
            "said": each.message,
            "cure": each.cure,
        }
        for each in explanation.links
    ]
    return {
        "about": explanation.about,
        "links": links,
        "rest": dict(explanation.rest),
        "next": explanation.next,
    }


def _read_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Read KIND/NAME for KIND NAME, as the other commands do."""
    *before, last = words or ("",)
    if len(before) == _WORDS - 2:
        kind, slash, name = last.partition("/")
        last_words = (kind, name) if slash else (last,)
        words = words if singular_name(before[0]) == TRIGGER else (*before, *last_words)
    elif not before:
        words = tuple(filter(None, split_kind(last, [TRIGGER])))
    is_trigger = len(words) == _WORDS - 1 and singular_name(words[0]) == TRIGGER
    if not is_trigger and len(words) != _WORDS:
        raise click.UsageError("write CLUSTER KIND [NAMESPACE/]NAME, or: trigger NAME")
    return words


def _explain(here: Installation, words: tuple[str, ...], namespace: str) -> Explanation:
    if len(words) < _WORDS:
        from bellhop.diagnosis.explain.trigger import explain_trigger

        return explain_trigger(here, words[1], partial(session.is_served, here))
    from bellhop.diagnosis.explain.object import explain_object

    cluster, kind, name = words
    place, slash, rest = name.partition("/")
    if slash and namespace not in ("", place):
        raise InvalidError(f"'{name}' and -n {namespace} name two namespaces")
    if slash:
        namespace, name = place, rest
    return explain_object(here, cluster, kind, namespace, name, partial(session.is_served, here))


_TITLES = {
    "cluster": "Cluster",
    "object": "Object",
    "source": "Sources",
    "trigger": "Triggers",
    "profile": "Profiles",
    "destination": "Destinations",
}
_COLOURS = {"yes": "green", "no": "yellow", "waits": "yellow", "failed": "red"}
_STATE = 6
_INDENT = "    "


def print_explanation(explanation: Explanation) -> None:
    print_styled(style(explanation.about, "cyan", bold=True))
    steps = dict.fromkeys((*(link.type for link in explanation.links), *explanation.rest))
    for step in steps:
        print_styled(f"  {_TITLES[step]}:")
        for link in explanation.links:
            if link.type == step:
                _print_link(link)
        if explanation.rest.get(step):
            print_styled(f"{_INDENT}{visible(explanation.rest[step])}")
    print_styled("")
    print_styled(wrap(f"{style('Next:', 'white', bold=True)} {visible(explanation.next)}"))


def _print_link(link: Condition) -> None:
    gap = " " * (_STATE - len(link.status))
    state = style(link.status, _COLOURS[link.status])
    said = f"{state}{gap}  {visible(link.about)}: {visible(link.message)}"
    print_styled(wrap(f"{_INDENT}{said}", _INDENT * 3))
