"""The reference's examples do what it says, and it leaves nothing out."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop import luabox
from bellhop.luabox import Script

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "lua.md"
EXAMPLE = re.compile(r"```lua\n(.*?)```\n+```yaml\n(.*?)```\n+```yaml\n(.*?)```", re.DOTALL)


def examples() -> list[Any]:
    text = PAGE.read_text("utf-8")
    found = EXAMPLE.findall(text)
    assert len(found) == text.count("```lua")
    return [
        pytest.param(*example, id=example[0].split("\n")[0] + f" {n}")
        for n, example in enumerate(found)
    ]


@pytest.mark.parametrize(("script", "given", "expected"), examples())
def test_examples_return_what_the_page_says(script: str, given: str, expected: str) -> None:
    """Each script, on the values beside it, returns the values below it."""
    values = yaml.safe_load(given)
    result = Script(script).call("evaluate", globals=values, args=list(values.values()))

    assert result == yaml.safe_load(expected)["returns"]


def test_names_every_function_error_and_limit() -> None:
    """Whatever a script can call and whatever can stop it has its name on the page."""
    script = Script("""
        local names = {}
        local function add(t) for name in pairs(t) do names[#names + 1] = name end end
        function evaluate()
          add(require("json")) add(require("strings")) add(require("runes"))
          add(_G)
          return names
        end""")
    names = {*script.call("evaluate", globals={})} - {"_G", "_VERSION", "evaluate"}
    names |= {name for name in luabox.__all__ if name.startswith("Lua") and name != "LuaError"}
    names |= {"time", *luabox.Limits._fields} - {"seconds"}
    text = PAGE.read_text("utf-8")

    assert {name for name in names if not re.search(rf"`(json\.)?{name}\b", text)} == set()
