"""The mutants; whoever rewrites a file gives them new snippets, or writes others."""

from __future__ import annotations

from tests.mutants.listed import (
    claim,
    declare,
    deploy,
    doors,
    evaluate,
    execute,
    records,
    sweep,
)

_LISTS = (claim, execute, evaluate, records, deploy, sweep, declare, doors)
MUTANTS = [mutant for each in _LISTS for mutant in each.MUTANTS]

EXPLAINED: dict[str, str] = {}
"""Mutants that nothing notices, by story: why that is right."""
