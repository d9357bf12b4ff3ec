"""Helm's functions for YAML, JSON and TOML: writing never fails, reading reports in the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs import jsons, tomls, yamls
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOW, SLOWER, WRITTEN
from bellhop.gotemplate.values import ANY, type_name

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_NOT_A_MAP = "json: cannot unmarshal {} into Go value of type map[string]interface {{}}"
_NOT_A_LIST = "json: cannot unmarshal {} into Go value of type []interface {{}}"


@_add("toYaml", ANY, budgeted=True, most=WRITTEN)
def to_yaml(budget: Budget, value: Any) -> str:
    """Write YAML without the last newline, or nothing for what has none."""
    try:
        return yamls.dump(budget, value).removesuffix("\n")
    except FunctionError:
        return ""


@_add("toToml", ANY, budgeted=True, most=SLOW)
def to_toml(budget: Budget, value: Any) -> str:
    """Write TOML; what is wrong with the value comes back in its place."""
    try:
        return tomls.dump(budget, value)
    except FunctionError as error:
        return str(error)


@_add("fromYaml", "string", budgeted=True, most=WRITTEN)
def from_yaml(budget: Budget, text: str) -> dict[str, Any]:
    """Read a YAML map; a failure is under its key Error."""
    try:
        return _map(
            yamls.load(budget, text), f"error unmarshaling JSON: while decoding JSON: {_NOT_A_MAP}"
        )
    except FunctionError as error:
        prefix = "" if str(error).startswith("error ") else "error converting YAML to JSON: "
        return {"Error": prefix + str(error)}


@_add("fromYamlArray", "string", budgeted=True, most=WRITTEN)
def from_yaml_array(budget: Budget, text: str) -> list[Any]:
    """Read a YAML list; a failure is its only item."""
    try:
        return _list(
            yamls.load(budget, text), f"error unmarshaling JSON: while decoding JSON: {_NOT_A_LIST}"
        )
    except FunctionError as error:
        prefix = "" if str(error).startswith("error ") else "error converting YAML to JSON: "
        return [prefix + str(error)]


@_add("fromJson", "string", budgeted=True)
def from_json(budget: Budget, text: str) -> dict[str, Any]:
    """Read a JSON map; a failure is under its key Error."""
    try:
        return _map(jsons.from_json(budget, text), _NOT_A_MAP)
    except FunctionError as error:
        return {"Error": str(error)}


@_add("fromJsonArray", "string", budgeted=True)
def from_json_array(budget: Budget, text: str) -> list[Any]:
    """Read a JSON list; a failure is its only item."""
    try:
        return _list(jsons.from_json(budget, text), _NOT_A_LIST)
    except FunctionError as error:
        return [str(error)]


@_add("fromToml", "string", most=SLOWER)
def from_toml(text: str) -> dict[str, Any]:
    """Read TOML; a failure is under its key Error."""
    try:
        return tomls.load(text)
    except FunctionError as error:
        return {"Error": str(error)}


_JSON_NAMES = {"string": "string", "bool": "bool", "int64": "number", "float64": "number"}
_JSON_NAMES |= {"map[string]interface {}": "object", "[]interface {}": "array"}


def _map(value: Any, complaint: str) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise FunctionError(complaint.format(_JSON_NAMES[type_name(value)]))


def _list(value: Any, complaint: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise FunctionError(complaint.format(_JSON_NAMES[type_name(value)]))
