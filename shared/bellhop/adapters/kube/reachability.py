"""Whether an API server answers at all, asked before anything else is after a silence.

A call may take long for good reasons: a slow webhook, a large list. A server that is not there at
all takes as long as one is patient. So a server that was silent for a while is greeted first,
with little patience; threads that come meanwhile wait for that one greeting.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from bellhop.errors import UnreachableError

QUIET_SECONDS = 60.0
"""After so long without an answer a server is greeted."""

_STILL_SECONDS = 0.5
"""For so long a greeting that was not answered stands for the next."""


class Greeting:
    """The greeting of one API server; shared between threads."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._answered_at = -math.inf
        self._failed = -math.inf

    @property
    def is_due(self) -> bool:
        """Say whether the server was silent for so long that it is to be greeted."""
        return self._seconds() - self._answered_at >= QUIET_SECONDS

    def answered(self) -> None:
        """Note that the server has answered something."""
        self._answered_at = self._seconds()

    def missed(self) -> None:
        """Note that a call was not answered: the next one begins with a greeting."""
        self._answered_at = -math.inf

    def exchange(self, greet: Callable[[], None], again: Callable[[], UnreachableError]) -> None:
        """Greet a server that was silent, once for all threads that need it.

        Raises:
            UnreachableError: it does not answer, as `greet` says, or as `again` where another
                thread has just found that out.
        """
        begun = self._seconds()
        if begun - self._answered_at < QUIET_SECONDS:
            return
        with self._lock:
            if not self.is_due:
                return
            if self._failed >= begun - _STILL_SECONDS:
                raise again()
            try:
                greet()
            except UnreachableError:
                self._failed = self._seconds()
                raise
            self.answered()
