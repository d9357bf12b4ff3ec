"""The one place that knows lupa: Lua states with the box loaded, and a pool of them.

A state serves one call at a time. lupa runs Lua without the interpreter's lock, so states
of several threads run side by side. No Python object is ever given to a script: values
cross as scalars, results as text, and the only callable the box holds is its clock.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from bellhop.luabox import convert, source
from bellhop.luabox.convert import Given

_PARTS = ("meter", "matcher", "library", "json", "strings", "runes", "kubernetes", "host")
_BATCH = 4000  # A C function may push 8000 values.
_MOST_SCRIPTS = 4096
_MOST_TEXT = 2 * 1024 * 1024  # Of all scripts loaded: compiled they take some times as much.
_MOST_IDLE = 8
_MOST_KEPT = 32 * 1024 * 1024  # A state that grew beyond this is not kept.
_HEADROOM = 1024 * 1024  # For the environment and the values crossing.

Answer = tuple[str, str, float | None, bool]
"""A status, its text, a line, and whether the state must not be used again."""


class Limits(NamedTuple):
    """The bounds of one call; each is named in the LuaLimitError of a script that meets it.

    Steps decide first in all but pathological scripts, so that the same script on the same
    object ends the same way on a slow machine and on a busy one.
    """

    seconds: float = 1.0
    """Processor time of the calling thread. A script cannot sleep, so this bounds a call."""

    steps: int = 20_000_000
    """Lua instructions."""

    memory: int = 64 * 1024 * 1024
    """Bytes a call may allocate beyond its input. Lua frees late: count on half of it."""

    depth: int = 100
    """Tables within tables, in values given and returned."""

    size: int = 256 * 1024
    """Bytes of the script's text."""


class State:
    """A Lua state with the box in it."""

    def __init__(self) -> None:
        # Not at the top: a process that compiles no script must not pay for these, nor for
        # the 9 MB of lupa.
        import pkgutil  # noqa: PLC0415

        from lupa import lua51  # noqa: PLC0415

        self._memory_error = lua51.LuaMemoryError
        self._lua = lua51.LuaRuntime(
            register_eval=False, register_builtins=False, attribute_filter=_refuse, max_memory=0
        )
        self._clock = _Clock()
        self._known: set[int] = set()
        self._length = 0
        self._given: Given | None = None
        self._box = self._lua.table(
            time_left=self._clock.left,
            modules=self._lua.table(),
            marks=self._lua.table(),
            map=convert.MAP,
            list=convert.LIST,
            stop=convert.END,
            same=convert.SAME,
        )
        for part in _PARTS:
            text = pkgutil.get_data("bellhop.luabox", f"lua/{part}.lua")
            self._lua.execute(text, self._box, name="=[box]")
        self._compile, self._run, self._forget = (
            self._box[name] for name in ("compile", "run", "forget")
        )
        self._feed, self._drop = (self._box[name] for name in ("feed", "drop"))

    def compile(self, key: int, text: str) -> str | None:
        """Load a script once; return what Lua has against it, or None."""
        if key in self._known:
            return None
        self._length += len(text)
        if len(self._known) >= _MOST_SCRIPTS or self._length > _MOST_TEXT:
            self._forget()
            self._known.clear()
            self._length = len(text)
        why = self._compile(key, text, source.jointed(text))
        if why is None:
            self._known.add(key)
            return None
        return str(convert.restore(why))

    def call(self, key: int, function: str, given: Given, limits: Limits) -> Answer:
        """Run a loaded script once; the limits bind only what the script does."""
        if self._given is not given:
            self._given = None
            self._give(given.tokens)
            self._given = given
        self._box.depth = limits.depth
        self._box.memory = limits.memory
        used = self._lua.get_memory_used(total=True)
        self._clock.until = time.thread_time() + limits.seconds
        self._lua.set_max_memory(used + limits.memory + _HEADROOM, total=True)
        try:
            answer: Answer = self._run(key, function, limits.steps, limits.seconds)
        except self._memory_error:
            return "limit", "memory", None, True
        finally:
            self._lua.set_max_memory(0)
        status, text, line, spent = answer
        return status, text, line, spent or self._lua.get_memory_used(total=True) > _MOST_KEPT

    def _give(self, tokens: list[Any]) -> None:
        self._drop()
        try:
            for start in range(0, len(tokens), _BATCH):
                self._feed(*tokens[start : start + _BATCH])
        except UnicodeEncodeError:
            self._give(convert.without_surrogates(tokens))


class _Clock:
    """The clock that Lua calls; apart from State, or neither could ever be freed."""

    def __init__(self) -> None:
        self.until = 0.0

    def left(self) -> float:
        return self.until - time.thread_time()


def _refuse(_owner: object, name: object, _is_setting: bool) -> object:  # noqa: FBT001 - lupa's.
    raise AttributeError(name)


class Pool:
    """Idle states, at most a few; a call takes one out and puts it back."""

    def __init__(self) -> None:
        self._idle: list[State] = []

    def take(self) -> State:
        """Return an idle state or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return State()

    def put(self, state: State) -> None:
        """Keep a state for the next call."""
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(state)
