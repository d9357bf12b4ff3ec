"""Which modules a function may load, by its import statements."""

from __future__ import annotations

import pytest

from infra.package.modules import reached


def test_late_and_built_names_are_followed() -> None:
    """An import in a function, and any module of a package whose name is put together."""
    found = reached("bellhop.gotemplate.sets")

    assert {"bellhop/gotemplate/funcs/regex.py", "bellhop/gotemplate/funcs/crypto.py"} <= set(
        found.files
    )
    assert {"re2", "bcrypt"} <= {each.partition(".")[0] for each in found.others}


def test_packages_above_a_module_and_their_data_come_along() -> None:
    """Python loads each `__init__.py` on the way, and Lua lies where it is read."""
    found = reached("bellhop.luabox.state")

    assert {"bellhop/__init__.py", "bellhop/luabox/__init__.py"} <= set(found.files)
    assert "bellhop/luabox/lua/host.lua" in found.files
    assert "bellhop/py.typed" not in found.files


@pytest.mark.parametrize(
    ("stage", "absent"),
    [
        ("ingest", ["pydantic", "yaml", "lupa", "jinja2", "bellhop/adapters/kube"]),
        ("evaluate", ["bellhop/adapters/kube", "bellhop/fleet", "functions/ingest"]),
        ("deploy", ["bellhop/fleet", "bellhop/cli", "bellhop/embedded"]),
    ],
)
def test_a_function_reaches_only_its_own(stage: str, absent: list[str]) -> None:
    """The import contracts hold for what is packaged."""
    found = reached(f"functions.{stage}.aws")
    names = [*found.files, *found.others]

    assert f"functions/{stage}/aws.py" in found.files
    assert [name for name in names if name.startswith(tuple(absent))] == []
