"""Users read the words of Kubernetes, Flux and the clouds, and none of a language of our own.

`WORDS` is the list: a word that does not belong into text for users, and the one to use instead.
Names of code, records and metrics are not text: what stands in backticks is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.docs.user_text import Text, files, helps, read

WORDS = {
    r"tells?|telling": "report, show, explain, say; determine",
    r"told": "reported, notified, published",
    r"brings?|brought|bringing": "deploy, apply, install",
    r"rings?|rang|rung|ringing|knock(?:s|ed|ing)?": "send an event, call the webhook; dry-run call",
    r"mak(?:e|es|ing) good|made good": "correct, catch up",
    r"alone": "only",
    r"anew": "again; re-create, re-render",
    r"at hand": "available",
    r"in hand": "in flight",
    r"let(?:s|ting)? go|let be": "release; leave unchanged",
    r"not well": "unhealthy",
    r"is well|are well": "healthy",
    r"given up|giv(?:es|ing) up|gave up": "dead-lettered, failed permanently, stopped retrying",
    r"overt(?:ake|akes|aken|aking|ook)": "take priority; stale, lost the race",
    r"stands? on|stood on": "depend on",
    r"(?:ownership|Bellhop's|its|our|their|the) marks": "ownership labels, annotations",
    r"whoever|whomever|whom": "the worker, the user, the sender: name the actor",
    r"com(?:e|es|ing) to nothing|came to nothing": "has no effect",
    r"strangers?": "unauthenticated client",
    r"sweeps?|swept|sweeping": "resync",
    r"strays?": "orphan",
    r"desks?": "delaying queue",
    r"debts?": "pending object",
    r"batons?": "queue consumer",
    r"couriers?": "message sender",
    r"shel(?:f|ves)": "message store",
    r"ledgers?": "event log",
    r"rehears(?:e|es|ed|al|als|ing)": "dry run, offline render",
    r"hearing|heard|pulses?": "heartbeat; last contact",
    r"rooms?": "cluster; space",
    r"carr(?:y|ies|ied|ying)": "deploy; have",
    r"nobody knows": "cannot find out; is not known yet",
    r"(?<!here )is none(?! of)": "is invalid, is not a …",
    r"(?<!here )(?<!hat )is no (?!longer)[a-zA-Z]+": "is not a …",
}
"""Word to what stands there instead."""

ALLOWED: dict[str, str] = {
    r"'rang'": "a key of a forwarder's message",
    r"(?<!\ba )(?<!next )(?<!its )(?<!each )\bsweep\b": "a stage, with its function and queue",
    r"[Kk]ey rings?|keyRings/RING": "a resource of Cloud KMS",
}
"""Pattern to why it is no such word: false friends, and names that users type."""

_CLAUSE = re.compile(r"(?:^|[.:|] |\*\*|- )(Whoever|Whom|Who|What)\b[^.?:|]*[.](?:\s|$|\|)")

AREAS: dict[str, Callable[[], Iterable[Text]]] = {
    "readme": lambda: texts("*.md"),
    "index": lambda: texts("docs/*.md", "docs/images/*"),
    "how-to": lambda: texts("docs/how-to/*", "docs/tutorial/*"),
    "reference": lambda: texts("docs/reference/*"),
    "explanation": lambda: texts("docs/explanation/*"),
    "adr": lambda: texts("docs/adr/*"),
    "examples": lambda: texts("docs/examples/**/*", "infra/base/**/*", "infra/overlays/**/*"),
    "terraform": lambda: texts("terraform/**/*"),
    "help": helps,
    "messages": lambda: texts("shared/**/*.py", "functions/**/*.py"),
    "demo": lambda: texts("infra/demo/*.py", "infra/release/*.py", "infra/serve/*"),
}


def texts(*patterns: str) -> Iterator[Text]:
    for path in files(*patterns):
        yield from read(path)


def hits(area: str) -> list[str]:
    """Return a line for each word found: file, line, word, and the word to use."""
    found = []
    for file, line, text in AREAS[area]():
        plain = _ALLOWED.sub("…", text)
        found += [
            f"{file}:{line}: {hit[0]!r}: write {_instead(hit[0])}" for hit in _WORD.finditer(plain)
        ]
        found += [
            f"{file}:{line}: a sentence begins with {hit[1]!r}: name its actor"
            for hit in _CLAUSE.finditer(plain)
        ]
    return found


def _instead(word: str) -> str:
    return next(use for no, use in WORDS.items() if re.fullmatch(no, word, re.IGNORECASE))


_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)
_ALLOWED = re.compile("|".join([*ALLOWED, r"(?!)"]))


@pytest.mark.parametrize("area", AREAS)
def test_users_read_words_of_the_field(area: str) -> None:
    """One word has one meaning, and a search engine knows it."""
    found = hits(area)

    assert not found, "\n" + "\n".join(found)
