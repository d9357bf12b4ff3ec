"""Scripts that real Lua 5.1 ran first: the box must say the same (make.py wrote the answers)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.luabox import LuaRuntimeError, Script


def trials() -> list[Any]:
    found = []
    for path in sorted(Path(__file__).parent.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text("utf-8")):
            found += [
                pytest.param(case, trial, id=f"{case['name']}: {trial['about']}")
                for trial in case["trials"]
            ]
    return found


@pytest.mark.parametrize(("case", "trial"), trials())
def test_says_what_real_lua_says(case: dict[str, Any], trial: dict[str, Any]) -> None:
    """The result of a script, or the words of its error, are those of Lua 5.1.

    What a trial `differs` in is on purpose, and is as gopher-lua has it.
    """
    script = Script(case["script"])
    value = trial["value"]
    if "error" in trial:
        with pytest.raises(LuaRuntimeError) as caught:
            script.call("evaluate", globals={case["global"]: value}, args=[value])

        assert str(caught.value) == trial["error"]
    else:
        result = script.call("evaluate", globals={case["global"]: value}, args=[value])

        assert result == {**trial["returns"], **trial.get("differs", {})}
