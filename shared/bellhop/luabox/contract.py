"""Sveltos' contract of scripts: `evaluate` evaluates one object or many, selects, or writes.

It returns whether an object matches or, in a check, whether it is healthy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.luabox import convert
from bellhop.luabox.convert import Given
from bellhop.luabox.errors import LuaResultError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bellhop.luabox.keys import Keys
    from bellhop.luabox.script import Script

_MOST, _LONGEST = 5, 40
"""Fields that are named where one is missing, and characters of each."""

_NOT_A_TABLE = "lua script output is not a lua table"


class Lacking(NamedTuple):
    """The field that a script did not return, and those that it returned in its place."""

    field: str
    returned: tuple[str, ...]

    @property
    def plain(self) -> str:
        """Say which field is missing, without a word of the script's."""
        return f"its script returns no field '{self.field}'"

    def __str__(self) -> str:
        """Say which field is missing, and which ones are there instead."""
        shown = ", ".join(f"'{each[:_LONGEST]}'" for each in self.returned[:_MOST])
        more = ", …" if len(self.returned) > _MOST else ""
        return f"{self.plain}, but {shown}{more}"


class Verdict(NamedTuple):
    """Whether an object matches, and what the script has to say about it.

    `lacks` is there if the script returned other fields, and not `matching`.
    """

    matching: bool
    message: str
    lacks: Lacking | None = None


_USUAL = {f'{{"matching":{word}}}': Verdict(word == "true", "") for word in ("true", "false")}
"""The result of nearly every script, as the box writes it."""


class Selection(NamedTuple):
    """The resources a script chose or made, in its order, and its message."""

    resources: list[dict[str, Any]]
    message: str


class Subject:
    """One object that any number of scripts evaluate.

    The keys that a script can read are converted once for all scripts that can read the same ones,
    and copied for each.
    """

    def __init__(self, obj: dict[str, Any]) -> None:
        self._obj = obj
        self._given: dict[Keys | None, Given] = {}

    def given_to(self, script: Script) -> Given:
        """Return the object as a script gets it: as global `obj` and as its argument.

        Raises:
            LuaLimitError: what the script can ask of it is nested too deeply.
        """
        keys = script.keys
        given = self._given.get(keys)
        if given is None:
            obj, depth, name = self._obj, script.limits.depth, script.name
            given = Given({"obj": obj}, [obj], depth=depth, name=name, keys=keys)
            self._given[keys] = given
        return given


def evaluate(script: Script, obj: dict[str, Any] | Subject) -> Verdict:
    """Evaluate one object by `evaluate()`, which sees it as global `obj` and as its argument.

    Without `matching` in the returned table the object does not match, as in Sveltos.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    subject = obj if isinstance(obj, Subject) else Subject(obj)
    written = script.run("evaluate", subject.given_to(script))
    if written in _USUAL:
        return _USUAL[written]
    return _verdict(script, convert.restore(written))


def classify(script: Script, resources: list[dict[str, Any]]) -> Verdict:
    """Evaluate objects together by `evaluate()`, which sees them as global `resources`.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    result = script.call("evaluate", globals={"resources": resources}, args=[resources])
    return _verdict(script, result)


class Health(NamedTuple):
    """Whether an object is healthy, and what the script has to say about it.

    `lacks` is there if the script returned other fields, and not `healthy`.
    """

    healthy: bool
    message: str
    lacks: Lacking | None = None


def diagnose(
    script: Script, obj: dict[str, Any] | None, metrics: Mapping[str, float] | None = None
) -> Health:
    """Ask `evaluate()` of a check about one object, which it sees as `evaluate` above does.

    It sees numbers by name as global `metrics`, and only these where there is no object. Without
    `healthy` in the returned table what it was asked about is not, as in Sveltos.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    given = {"obj": obj, "metrics": dict(metrics or {})}
    returned = _table(script, script.call("evaluate", globals=given, args=[obj]))
    lacks = _lacks(returned, "healthy")
    return Health(_bool(script, returned, "healthy"), _message(script, returned), lacks)


HEALTHY = "Healthy"
_STATES = (HEALTHY, "Progressing", "Degraded", "Suspended")


class Assessed(NamedTuple):
    """The state of a resource, the script's message, and whether it asks to be run again."""

    resource: dict[str, Any]
    state: str
    message: str
    again: bool


def assess(script: Script, resources: list[dict[str, Any]]) -> list[Assessed]:
    """Ask `evaluate()` how objects are, which it sees as global `resources` and as its argument.

    It returns them as `resources`, each with its `resource`, and its state as `healthStatus`, or as
    `status`, which Sveltos' code and its documents say in turn. A resource that it leaves out is
    healthy.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    result = script.call("evaluate", globals={"resources": resources}, args=[resources])
    returned = _tables(script, _field(_table(script, result), "resources") or [])
    return [_assessed(script, index, each) for index, each in enumerate(returned, start=1)]


def _assessed(script: Script, index: int, returned: dict[str, Any]) -> Assessed:
    resource = _field(returned, "resource")
    if not isinstance(resource, dict):
        raise _unfit(script, f"'resources[{index}].resource' must be a table; it says which one")
    state = _field(returned, "healthstatus", default=_field(returned, "status"))
    if state not in _STATES:
        raise _unfit(
            script,
            f"'resources[{index}].healthStatus' must be one of {', '.join(map(repr, _STATES))}",
        )
    return Assessed(
        resource, state, _message(script, returned), again=_bool(script, returned, "reevaluate")
    )


def select(script: Script, resources: list[dict[str, Any]]) -> Selection:
    """Select among objects by `evaluate()`, which sees them as global `resources`.

    The `resources` that it returns replace the given ones: selected, changed or created.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    result = script.call("evaluate", globals={"resources": resources}, args=[resources])
    returned = _table(script, result)
    chosen = _tables(script, _field(returned, "resources") or [])
    return Selection(chosen, _message(script, returned))


def write(script: Script, resources: dict[str, Any]) -> str:
    """Have manifests written by `evaluate()`, which sees objects by name as global `resources`.

    It returns `resources` as one text, of YAML or JSON; nothing at all is fine.

    Raises:
        LuaError: the script failed, or returned no table with the right fields.
    """
    result = script.call("evaluate", globals={"resources": resources}, args=[resources])
    written = _field(_table(script, result), "resources", default="")
    if not isinstance(written, str):
        raise _unfit(script, f"'resources' must be a string, not {_kind(written)}")
    return written


def _tables(script: Script, returned: object) -> list[dict[str, Any]]:
    """Read what a script returned as `resources`, which are to be tables."""
    if not isinstance(returned, list):
        raise _unfit(script, f"'resources' must be a list, not {_kind(returned)}")
    for index, item in enumerate(returned, start=1):
        if not isinstance(item, dict):
            raise _unfit(script, f"'resources[{index}]' must be a table, not {_kind(item)}")
    return returned


def _verdict(script: Script, result: object) -> Verdict:
    returned = _table(script, result)
    lacks = _lacks(returned, "matching")
    return Verdict(_bool(script, returned, "matching"), _message(script, returned), lacks)


def _lacks(returned: dict[str, Any], name: str) -> Lacking | None:
    """Return what a script returned instead of the field of a name; None if it is there.

    Lua drops a field that is nil, so an empty table and one with only a message are a plain no.
    """
    fields = tuple(sorted(each for each in returned if each.lower() != "message"))
    return Lacking(name, fields) if fields and name not in map(str.lower, fields) else None


def _table(script: Script, returned: object) -> dict[str, Any]:
    if isinstance(returned, dict):
        return returned
    if isinstance(returned, list):
        raise _unfit(script, "the table returned is a list, it must have named fields")
    raise _unfit(script, _NOT_A_TABLE)


def _field(returned: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a field whatever the case of its name, as Go reads JSON; its own name comes first."""
    if name in returned:
        return returned[name]
    return next((returned[each] for each in sorted(returned) if each.lower() == name), default)


def _bool(script: Script, returned: dict[str, Any], name: str) -> bool:
    value = _field(returned, name, default=False)
    if not isinstance(value, bool):
        raise _unfit(script, f"'{name}' must be a boolean, not {_kind(value)}")
    return value


def _message(script: Script, returned: dict[str, Any]) -> str:
    message = _field(returned, "message", default="")
    if not isinstance(message, str):
        raise _unfit(script, f"'message' must be a string, not {_kind(message)}")
    return message


def _unfit(script: Script, wording: str) -> LuaResultError:
    return LuaResultError(wording, name=script.name)


def _kind(value: object) -> str:
    if isinstance(value, dict | list):
        return "a table"
    if isinstance(value, bool):
        return "a boolean"
    return "a string" if isinstance(value, str) else "a number"
