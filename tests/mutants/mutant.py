"""One way to break the code: a snippet of a file, and what stands there instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "shared" / "bellhop"


@dataclass(frozen=True)
class Mutant:
    """A small replacement; `old` stands in `file` exactly once, whatever else changes there."""

    file: str
    old: str
    new: str
    story: str
    """What goes wrong, in a sentence."""

    def apply(self, package: Path) -> None:
        """Break a copy of the package.

        Raises:
            LookupError: the snippet is not there exactly once.
        """
        path = package / self.file
        path.write_text(self.broken(path.read_text()))

    def broken(self, text: str) -> str:
        """Return a file's text with the replacement.

        Raises:
            LookupError: the snippet is not there exactly once.
        """
        found = text.count(self.old)
        if found != 1:
            raise LookupError(
                f"the mutant '{self.story}' fits {found} places of {self.file}, not one:"
                f" give it another snippet than\n{self.old}"
            )
        return text.replace(self.old, self.new)
