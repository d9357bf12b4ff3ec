"""The golden files of the command line: what they are to hold, and how they are written."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.cli.scenes import SCENES
from tests.golden.cli.signals import signals
from tests.golden.cli.world import opened_world, play

EXPECTED = Path(__file__).with_name("expected")


@lru_cache(1)
def printed() -> dict[str, str]:
    """Play all scenes; return the text of each file by its name."""
    with TemporaryDirectory() as folder, opened_world(Path(folder)) as world:
        return {**play(world, SCENES), "signals.txt": signals()}


def write() -> None:
    """Write all files, and remove others."""
    texts = printed()
    EXPECTED.mkdir(exist_ok=True)
    for old in set(EXPECTED.iterdir()) - {EXPECTED / name for name in texts}:
        old.unlink()
    for name, text in texts.items():
        (EXPECTED / name).write_text(text, encoding="utf-8")
