"""Words of a private language that are left in what engineers read, and sentences without an actor.

Read are docstrings and comments, and the names of modules, classes, functions, parameters and
variables. Fields of structs are not: stored data and messages have them, as well as any string
that is no docstring. Nor is what stands in backticks: it quotes a name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from tests.house import source
from tests.house.source import Source

WORDS = {
    "told": r"told|untold|tells?|telling",
    "bring": r"brings?|brought|bringing",
    "ring": r"rings?|rang|rung|ringing|knock(?:s|ed|ing)?",
    "gone": r"gone",
    "make good": r"mak(?:e|es|ing) good|made good",
    "alone": r"alone",
    "anew": r"anew",
    "at hand": r"(?:at|in) hand",
    "let go": r"let(?:s|ting)? (?:go|be)",
    "is well": r"(?:is|are|not|all is) well",
    "give up": r"given up|giv(?:es|ing) up|gave up",
    "overtake": r"overt(?:ake|akes|aken|aking|ook)",
    "stand on": r"stands? on|stood on",
    "whoever": r"whoever|whomever|whom",
    "come to nothing": r"com(?:e|es|ing) to nothing|came to nothing",
    "stranger": r"strangers?",
    "sweep": r"sweeps?|swept|sweeping|sweeper",
    "walk": r"walks?|walked|walking",
    "course": r"courses?",
    "survey": r"surveys?|surveyed",
    "strike": r"strikes?|struck",
    "finding": r"findings?",
    "stray": r"strays?",
    "hearing": r"hearings?|heard",
    "pulse": r"pulses?",
    "vitals": r"vitals",
    "entrance": r"entrances?|doors?",
    "judge": r"judg(?:e|es|ed|ing|ement|ements)",
    "weigh": r"weigh(?:s|ed|ing)?",
    "trail": r"trails?",
    "ledger": r"ledgers?",
    "consequence": r"consequences?",
    "recipe": r"recipes?",
    "rehearse": r"rehears(?:e|es|ed|al|als|ing)",
    "trial": r"trials?",
    "hands": r"hands",
    "upshot": r"upshots?",
    "wants": r"wants?|wanted",
    "rota": r"rotas?",
    "follower": r"followers?",
    "departure": r"departures?",
    "elsewhere": r"elsewhere",
    "guest": r"guests?",
    "agree": r"agreeing|agreements?",
    "permit": r"permits?|permitting",
    "pace": r"paces?|pacing|paced",
    "inquiry": r"inquir(?:y|ies)",
    "seat": r"seats?",
    "room": r"rooms?",
    "choosing": r"choosing",
    "desk": r"desks?",
    "debt": r"debts?",
    "uplink": r"uplinks?",
    "courier": r"couriers?",
    "shelf": r"shel(?:f|ves)",
    "intake": r"intakes?",
    "reach": r"abroad|breach(?:es|ed)?",
    "baton": r"batons?|mates",
}
"""Word, or its best known form, to the pattern of all its forms.

Words of the field that meant something else here, such as title, turn or lot, are left out: a
count would name their good uses, too.
"""

_FORMS = {word: re.compile(pattern) for word, pattern in WORDS.items()}
_PHRASES = {word: pattern for word, pattern in WORDS.items() if " " in pattern}
_PHRASE = re.compile("|".join(rf"(?<!\w)(?:{each})(?!\w)" for each in _PHRASES.values()))
_SINGLE = re.compile(r"(?<![\w`-])[a-z]+(?![\w`-])")
_QUOTED = re.compile(r"`[^`\n]*`")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ACTORLESS = re.compile(r"(?:^|[.:;]\s+|\n\s*\n\s*)(?:What|Which|Who|Whoever|Whom|Whose)\b")

Place = tuple[str, str]
"""A word, and the file that has it."""


def words() -> dict[str, int]:
    """Count each word in the product and in the tests, and sentences that name no actor."""
    figures = {
        "docstring sentences that begin with what, which, who": sum(
            len(_ACTORLESS.findall(str(each.value).strip()))
            for file in source.product()
            for each in file.docstrings
        )
    }
    for where, files in (("product", source.product()), ("tests", _others())):
        counts = Counter(word for word, _ in places(files))
        figures |= {f"word {word}, {where}": counts[word] for word in WORDS}
    return figures


def places(files: Iterable[Source]) -> Iterator[Place]:
    """Yield each word of the list that files have, as often as they have it."""
    for file in files:
        prose = _QUOTED.sub("`", "\n".join(file.prose))
        names = " ".join(part for name in _names(file) for part in _PARTS.findall(name))
        text = " ".join(f"{prose} . {names}".lower().split())
        for found in (*_SINGLE.findall(text), *_PHRASE.findall(text)):
            if word := _word_of(found):
                yield word, file.name


@cache
def _word_of(found: str) -> str:
    return next((word for word, form in _FORMS.items() if form.fullmatch(found)), "")


def _others() -> Iterator[Source]:
    """Yield the tests but for this list of words."""
    return (each for each in source.tests() if not each.name.startswith("tests/house/"))


def _names(file: Source) -> Iterator[str]:
    """Yield the name of a module, and each that it gives to a thing of its own."""
    yield file.name.rpartition("/")[2].removesuffix(".py")
    # A field is annotated; so is a variable now and then, which is passed over, too.
    fields = {id(each.target) for each in file.nodes if isinstance(each, ast.AnnAssign)}
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield from () if id(node) in fields else (node.id,)
