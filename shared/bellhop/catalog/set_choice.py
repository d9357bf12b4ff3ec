"""Which clusters a set with maxReplicas has: those that it had, as long as they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellhop.state.record import SetSelection


def choose(
    most: int, pool: Sequence[str], old: SetSelection, is_down: Callable[[str], bool]
) -> SetSelection:
    """Choose from a pool so many clusters at most; who was chosen stays.

    One that left the pool is replaced, and so is one that is down: by the first that is not, in
    the pool's order. Where nobody can take its place it stays, as what it has may still work. None
    that is down is chosen anew. Of too many those go first that are down, then those chosen last.
    """
    there, known = set(pool), set(old.clusters)
    stay = [each for each in old.clusters if each in there]
    down = {each for each in stay if is_down(each)}
    chosen = [each for each in stay if each not in down][:most]
    spare = (each for each in pool if each not in known and not is_down(each))
    while len(chosen) < most and (new := next(spare, None)):
        chosen.append(new)
    failing = [each for each in stay if each in down][: most - len(chosen)]
    return SetSelection((*chosen, *failing), tuple(failing))
