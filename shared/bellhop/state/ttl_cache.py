"""A cache with a time to live, whose values one thread loads while others wait for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from datetime import timedelta
from typing import Generic, TypeVar

from bellhop.ports.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Loads in flight, by key; callers of one key share its value, or its error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[K, Future[V]] = {}

    def join(self, key: K, load: Callable[[], V]) -> V:
        """Return the value that another thread is loading, or load it."""
        with self._lock:
            found = self._under_way.get(key)
            if found is None:
                mine = self._under_way[key] = Future()
        if found is not None:
            return found.result()
        try:
            value = load()
        except BaseException as error:
            self._end(key)
            mine.set_exception(error)
            raise
        self._end(key)
        mine.set_result(value)
        return value

    def _end(self, key: K) -> None:
        with self._lock:
            del self._under_way[key]


class TtlCache(Generic[K, V]):
    """Values for `seconds` each, of at most `most` weight in all; errors are not cached.

    The least recently used ones are evicted first.
    """

    def __init__(
        self, clock: Clock, seconds: float, most: int, weight: Callable[[V], int] = lambda _: 1
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._weight = weight
        self._total = 0
        self._lock = threading.Lock()
        self._loads: SingleFlight[K, V] = SingleFlight()
        # The least recently used first, each with the time when it expires.
        self._values: OrderedDict[K, tuple[timedelta, V]] = OrderedDict()

    def get(self, key: K, load: Callable[[], V], seconds: float | None = None) -> V:
        """Return the value of a key, loaded at most so many seconds ago."""
        lifetime = timedelta(seconds=self._seconds if seconds is None else seconds)
        return self._loads.join(key, lambda: self._get(key, load, lifetime))

    def _get(self, key: K, load: Callable[[], V], lifetime: timedelta) -> V:
        with self._lock:
            self._evict(0)
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        value = load()
        weight = self._weight(value)
        if weight <= self._most:
            with self._lock:
                self._evict(weight)
                self._values[key] = (self._clock.steady() + lifetime, value)
                self._total += weight
        return value

    def _evict(self, weight: int) -> None:
        """Evict expired values, and others until `weight` fits."""
        now = self._clock.steady()
        for key in [key for key, (until, _) in self._values.items() if until <= now]:
            self._drop(key)
        while self._values and self._total + weight > self._most:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        self._total -= self._weight(self._values.pop(key)[1])
