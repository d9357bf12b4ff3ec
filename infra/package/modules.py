"""Find the modules of ours that a function may load, and whose modules these want.

All import statements count, wherever they stand: what is loaded late is loaded all the same. A
module that is loaded by a name put together (`import_module(f"bellhop.model.{name}")`) may be any
of that package; one whose name is looked up may be any of others that a text in its file names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from infra.package.parts import whose

ROOT = Path(__file__).parents[2]

_ROOTS = (ROOT / "shared", ROOT)
_OURS = frozenset({"bellhop", "functions"})


@dataclass(frozen=True)
class Reached:
    """Files of ours by their place in a package, and the names that are imported of others."""

    files: Mapping[str, Path]
    others: frozenset[str]


def reached(module: str) -> Reached:
    """Follow all imports from a module of ours."""
    files: dict[str, Path] = {}
    others: set[str] = set()
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            continue
        if top not in _OURS:
            others.add(name)
        elif found := _found(name):
            files |= _with_data(*found)
            waiting += [name.rpartition(".")[0] or name, *_imports(name, found[1])]
    return Reached(files, frozenset(others))


def _found(name: str) -> tuple[str, Path] | None:
    """Find a module's place and file; a name imported from a module may be none."""
    place = name.replace(".", "/")
    for root in _ROOTS:
        for each in (f"{place}/__init__.py", f"{place}.py"):
            if (root / each).is_file():
                return each, root / each
    return None


def _with_data(place: str, path: Path) -> dict[str, Path]:
    """Return a file, and where it makes a package the data below it."""
    files = {place: path}
    if path.name == "__init__.py":
        for other in path.parent.rglob("*"):
            owner = other.parent
            while not (owner / "__init__.py").exists():
                owner = owner.parent
            if owner == path.parent and other.is_file() and _is_data(other):
                files[f"{place.rpartition('/')[0]}/{other.relative_to(owner)}"] = other
    return files


def _is_data(path: Path) -> bool:
    return path.suffix not in {".py", ".pyc"} and path.name != "py.typed"


@cache
def _imports(module: str, path: Path) -> tuple[str, ...]:
    """Name what a module imports; several stages reach the same ones."""
    return tuple(_imported(module, path))


def _imported(module: str, path: Path) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text("utf-8"))
    for node in _running(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                above = package.split(".")[: 1 - level or None] if level else []
                whole = ".".join([*above, *([base] if base else [])])
                yield whole
                yield from (f"{whole}.{each.name}" for each in names)
            case ast.Call(func=ast.Name("import_module") | ast.Attribute(attr="import_module")):
                yield from _any_of(node.args[0], tree)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through all but what is for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _running(child)


def _any_of(name: ast.expr, tree: ast.AST) -> Iterator[str]:
    """Yield all modules whose name begins as one that is put together does, or is looked up."""
    match name:
        case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]) if begin.endswith("."):
            package = begin.removesuffix(".")
        case _:
            listed = sorted({each for each in _texts(tree) if whose(each)})
            assert listed, f"cannot tell what is loaded by {ast.unparse(name)}"
            yield from listed
            return
    found = _found(package)
    assert found, f"there is no package {package}"
    for path in sorted(found[1].parent.glob("*.py")):
        yield f"{package}.{path.stem}"


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
