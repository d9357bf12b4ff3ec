"""Fill in what real Lua 5.1 makes of the cases beside this script.

    python -m tests.golden.lua.make [/usr/bin/lua5.1]

Without a path, `tests.golden.programs` fetches Debian's Lua.
Each case has a script, the name of the global it reads and the values to run it on; real Lua
adds `returns` or `error` to each. The literal writer and the printer below share nothing with
the product on purpose.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.golden import programs

PRINTER = r"""
local function show(v)
  local kind = type(v)
  if kind == "table" then
    local parts, list = {}, #v > 0
    if list then
      for index = 1, #v do parts[index] = show(v[index]) end
      return "[" .. table.concat(parts, ",") .. "]"
    end
    for key, item in pairs(v) do parts[#parts + 1] = show(tostring(key)) .. ":" .. show(item) end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif kind == "string" then
    return '"' .. v:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
  elseif kind == "number" then
    return v == math.floor(v) and ("%.0f"):format(v) or ("%.17g"):format(v)
  end
  return tostring(v)
end
local ok, result = pcall(function()
  assert(loadstring(SCRIPT, "=script"))()
  _G[NAME] = VALUE
  return evaluate(VALUE)
end)
print('{"' .. (ok and "returns" or "error") .. '":' .. show(result) .. "}")
"""


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def literal(value: Any) -> str:
    """Return a value as Lua source."""
    if isinstance(value, dict):
        pairs = (f"[{literal(k)}]={literal(v)}" for k, v in value.items() if v is not None)
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "{" + ",".join(literal(v) for v in value) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\{byte:03d}" for byte in value.encode()) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def run(lua: str, script: str, name: str, value: Any) -> dict[str, Any]:
    """Return what real Lua says to a script and a value."""
    program = f"local SCRIPT, NAME, VALUE = {literal(script)}, {literal(name)}, {literal(value)}"
    source = (program + PRINTER).encode()
    done = subprocess.run([lua, "-"], input=source, capture_output=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.decode("utf-8", "replace"))
    return answer


def main(lua: str) -> None:
    """Rewrite every file of cases with real Lua's answers."""
    for path in sorted(Path(__file__).parent.glob("*.yaml")):
        cases = yaml.safe_load(path.read_text("utf-8"))
        for case in cases:
            for trial in case["trials"]:
                trial.pop("returns", None)
                trial.pop("error", None)
                trial.update(run(lua, case["script"], case["global"], trial["value"]))
        text = yaml.dump(cases, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(programs.lua()))
