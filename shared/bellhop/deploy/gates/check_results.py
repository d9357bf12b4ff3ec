"""The result of a check for the objects of a cluster, by its script and rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from bellhop import celbox, luabox
from bellhop.core.gvk import ObjectKey
from bellhop.rendering import secrecy
from bellhop.state.check import Check

NONE: Mapping[str, float] = MappingProxyType({})
_SICK = "is not healthy"
_WITHHELD = "what its script says is withheld, for it may quote a Secret"


def objection(
    check: Check,
    objects: Iterable[Mapping[str, Any]],
    limits: luabox.Limits,
    metrics: Mapping[str, float] = NONE,
) -> str:
    """Say in a sentence what a check has against objects and metrics; nothing where it passes.

    It stops at the first that is not healthy. An object is healthy by its script and, where there
    are rules, by one of them. Nothing passes where a profile leaves a cluster, and nowhere else.

    Raises:
        TemporaryError: internal error where a Secret was in reach.
    """
    if not check.kind.kind:
        said = _by_script(check, None, limits, metrics, secret=False)
        return f"it {said}" if said else ""
    found = False
    for each in objects:
        found = True
        secret = secrecy.holds_values(each)
        with secrecy.withhold_unforeseen(f"cannot run check '{check.name}'", secret=secret):
            said = _by_script(check, each, limits, metrics, secret=secret)
            said = said or _by_rules(check, each, limits, secret=secret)
        if said:
            return f"{_format_object(each)} {said}"
    return "" if found or check.of_removal else f"there is no {_format_query(check)}"


def unserved(check: Check) -> str:
    """Say what a check has against a cluster that does not serve its kind.

    It is the same as for one without objects of it: a kind that is not there yet is no health.
    """
    return "" if check.of_removal else f"the cluster does not serve {check.kind}"


def _by_script(
    check: Check,
    obj: Mapping[str, Any] | None,
    limits: luabox.Limits,
    metrics: Mapping[str, float],
    *,
    secret: bool,
) -> str:
    if not check.script:
        return ""
    try:
        script = _compile(check.script, check.name, limits)
        health = luabox.diagnose(script, dict(obj) if obj is not None else None, metrics)
    except luabox.LuaError as error:
        return f"{_SICK}: its script fails: {error.plain if secret else error}"
    if health.healthy:
        return ""
    said = [health.lacks.plain if secret else str(health.lacks)] if health.lacks else []
    if health.message:
        said.append(_WITHHELD if secret else health.message)
    return ": ".join((_SICK, *said))


def _by_rules(check: Check, obj: Mapping[str, Any], limits: luabox.Limits, *, secret: bool) -> str:
    """Ask rules in turn until one holds, as Sveltos does; one that fails does not hold."""
    failed = []
    for each in check.rules:
        try:
            if _compile_rule(each.rule, f"{check.name}, rule '{each.name}'", limits).holds(
                dict(obj)
            ):
                return ""
        except celbox.CelRuntimeError as error:
            failed.append(f"; rule '{each.name}' fails" + ("" if secret else f": {error.wording}"))
        except celbox.CelError as error:
            return f"cannot be checked: {error}"
    return "".join((_SICK, ": no CEL rule holds", *failed)) if check.rules else ""


@lru_cache(maxsize=256)
def _compile(text: str, name: str, limits: luabox.Limits) -> luabox.Script:
    return luabox.Script(text, name=name, limits=limits)


@lru_cache(maxsize=256)
def _compile_rule(text: str, name: str, limits: luabox.Limits) -> celbox.Rule:
    bounds = celbox.Limits(seconds=limits.seconds, memory=limits.memory)
    return celbox.Rule(text, name=name, limits=bounds)


def _format_object(obj: Mapping[str, Any]) -> str:
    key = ObjectKey.of(obj)
    return f"{key.gvk.kind} '{'/'.join(filter(None, (key.namespace, key.name)))}'"


def _format_query(check: Check) -> str:
    """Name the objects that are asked for."""
    where = f" in namespace '{check.namespace}'" if check.namespace else ""
    labels = f" with the labels '{check.labels}'" if check.labels else ""
    return f"{check.kind.kind}{where}{labels}"
