"""What is made late is made once, when it is first asked for something."""

from __future__ import annotations

import threading
import time
from collections import Counter

from bellhop.runtime.embedded.lazy import at_once, late


def test_is_made_once_by_the_first_use() -> None:
    """Threads that ask at once get the same."""
    made: list[Counter[str]] = []

    def make() -> Counter[str]:
        time.sleep(0.05)
        made.append(Counter())
        return made[-1]

    counter = late(make)
    assert made == []
    threads = [threading.Thread(target=counter.update, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [Counter({"a": 8})]


def test_what_is_needed_in_any_case_is_made_at_once() -> None:
    """`serve` loads all before the first event comes."""
    assert at_once(lambda: [1]) == [1]
