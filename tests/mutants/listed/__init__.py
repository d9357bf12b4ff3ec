"""The mutants; whoever rewrites a file gives them new snippets, or writes others."""

from __future__ import annotations

from tests.mutants.listed import (
    assess,
    charts,
    claim,
    classify,
    declare,
    deploy,
    doors,
    elsewhere,
    evaluate,
    execute,
    granting,
    guard,
    hosting,
    notices,
    order,
    pauses,
    records,
    sweep,
    turns,
)

_LISTS = (
    claim,
    execute,
    evaluate,
    guard,
    order,
    turns,
    pauses,
    records,
    deploy,
    sweep,
    declare,
    doors,
    classify,
    notices,
    assess,
    granting,
    hosting,
    elsewhere,
    charts,
)
MUTANTS = [mutant for each in _LISTS for mutant in each.MUTANTS]

EXPLAINED = {
    "What was due is due for ever.": (
        "It is not: the next tick finds that its timer is set for another time, or gone, and"
        " strikes it out. That it is struck out at once saves that look."
    ),
    "A sweep that was overtaken ends another's walk.": (
        "It cannot: the walk's own end is on condition of its token, too. What is asked for"
        " meanwhile is published twice at worst, and the next sweep says how the cluster is."
    ),
}
"""Mutants that nothing notices, by story: why that is right."""
