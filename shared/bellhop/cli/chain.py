"""Prints an explanation: each step with its links, and at the end the one thing to do."""

from __future__ import annotations

from bellhop.cli.output import compose, fold, styled
from bellhop.core.printable import visible
from bellhop.diagnosis.explain.chain import Explanation, Link

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


def tell(explanation: Explanation) -> None:
    """Print an explanation for people."""
    compose(styled(explanation.about, "cyan", bold=True))
    steps = dict.fromkeys((*(link.step for link in explanation.links), *explanation.rest))
    for step in steps:
        compose(f"  {_TITLES[step]}:")
        for link in explanation.links:
            if link.step == step:
                _tell(link)
        if explanation.rest.get(step):
            compose(f"{_INDENT}{visible(explanation.rest[step])}")
    compose("")
    compose(fold(f"{styled('Next:', 'white', bold=True)} {visible(explanation.next)}"))


def _tell(link: Link) -> None:
    gap = " " * (_STATE - len(link.state))
    state = styled(link.state, _COLOURS[link.state])
    said = f"{state}{gap}  {visible(link.name)}: {visible(link.said)}"
    compose(fold(f"{_INDENT}{said}", _INDENT * 3))
