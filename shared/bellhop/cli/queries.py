"""Which objects a command line means: KIND NAME, KIND/NAME, NAMESPACE/NAME, -n and -l."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from bellhop.cli.completion import complete_profile
from bellhop.cli.kinds import KindName, kind_named, singular, split_kind
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.cli.views.view import Query
    from bellhop.core.selector import Selector
    from bellhop.installation.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])

PROFILES = ("clusterprofile", "profile", "rolerequest")
TRIGGER = "eventtrigger"


class Asked(Struct, frozen=True):
    """A kind, and which objects of it."""

    kind: KindName
    query: Query


def naming_options(command: F) -> F:
    """Add -n, -A and -l."""
    command = click.option(
        "-l",
        "--selector",
        metavar="SELECTOR",
        default="",
        help="Labels, as in env=prod,tier in (a,b),!edge.",
    )(command)
    # It is what happens anyway; the option is there for fingers used to kubectl.
    command = click.option(
        "-A",
        "--all-namespaces",
        is_flag=True,
        expose_value=False,
        help="Objects in all namespaces; the default.",
    )(command)
    return click.option(
        "-n", "--namespace", metavar="NAMESPACE", default="", help="Only objects in this namespace."
    )(command)


def asked(
    kind: str, name: str, namespace: str, selector: str = "", *, show_secrets: bool = False
) -> Asked:
    """Read which objects are meant.

    Raises:
        InvalidError: there is no such kind, or the selector cannot be read.
    """
    from bellhop.cli.views.view import Query

    first, slash, rest = kind.partition("/")
    known = kind_named(first)
    name = name or (rest if slash else "")
    if known.namespaced and "/" in name:
        place, _, name = name.partition("/")
        if namespace not in ("", place):
            raise InvalidError(f"'{place}/{name}' and -n {namespace} name two namespaces")
        namespace = place
    elif "/" in name:
        raise InvalidError(f"cannot find '{name}': {known.plural} have no namespace")
    query = Query(
        namespace=namespace if known.namespaced else "",
        name=name,
        selector=read_selector(selector),
        show_secrets=show_secrets,
    )
    return Asked(known, query)


def profile_argument(command: F) -> F:
    """Add the argument PROFILE, which may be two words: KIND NAME."""
    return click.argument(
        "profile",
        nargs=-1,
        required=True,
        metavar="PROFILE",
        callback=_one_profile,
        shell_complete=complete_profile,
    )(command)


def _one_profile(_ctx: click.Context, _parameter: click.Parameter, words: Sequence[str]) -> str:
    found = join_kind(words, (*PROFILES, TRIGGER))
    if len(found) != 1:
        raise click.UsageError("name one profile, as NAME, NAMESPACE/NAME or KIND NAME")
    profile_named(found[0])
    return found[0]


def join_kind(words: Sequence[str], kinds: Collection[str]) -> Sequence[str]:
    """Return KIND NAME… and KIND/NAME… as the latter, with the kind's singular; names as they are.

    Raises:
        UsageError: a Profile is named without its namespace.
    """
    kind = singular(words[0]) if len(words) > 1 else ""
    if kind not in kinds:
        return ["/".join(filter(None, split_kind(word, kinds))) for word in words]
    if kind == "profile" and not all("/" in name for name in words[1:]):
        raise click.UsageError("a Profile is named by `profile NAMESPACE/NAME`")
    return [f"{kind}/{name}" for name in words[1:]]


def profile_or_trigger(here: Installation, word: str) -> tuple[str, str]:
    """Return the names of the profile and of the trigger that a word means; one of them is empty.

    Without a kind it means a trigger only where no profile has that name.

    Raises:
        MissingError: there is no trigger of that name.
    """
    kind, _, name = word.partition("/")
    if kind == TRIGGER and name:
        if name not in here.catalogs.known().triggers:
            raise MissingError(
                f"there is no EventTrigger '{name}'; `bellhop get eventtriggers` lists them"
            )
        return "", name
    profile = profile_named(word)
    trigger = named_by_trigger(here, profile)
    return ("", trigger) if trigger else (profile, "")


def profile_named(word: str) -> str:
    """Read NAME, NAMESPACE/NAME or KIND/NAME of a profile; a RoleRequest has its kind before it.

    Raises:
        UsageError: it names something else.
    """
    from bellhop.api.manifest import DeclarationKey
    from bellhop.core.identity import ROLE_REQUEST
    from bellhop.core.names import namespace_problem

    kind, slash, rest = word.partition("/")
    if slash and kind.lower() == "clusterprofile" and "/" not in rest:
        return rest
    if slash and kind.lower() == ROLE_REQUEST.lower() and "/" not in rest:
        return DeclarationKey(ROLE_REQUEST, "", rest).rule
    if kind.lower() == "profile" and rest.count("/") == 1:
        return rest
    if slash and ("/" in rest or namespace_problem(kind)):
        raise click.UsageError(
            f"'{word}' is not a profile; write its NAME, ClusterProfile/NAME,"
            " Profile/NAMESPACE/NAME or RoleRequest/NAME"
        )
    return word


def named_by_trigger(here: Installation, word: str) -> str:
    """Return the trigger whose profiles are meant, and say so; empty where a profile is.

    A word that names a profile never means a trigger.
    """
    from bellhop.cli.output import say
    from bellhop.diagnosis.names import trigger_meant

    trigger = trigger_meant(here, word)
    if trigger:
        say(f"'{trigger}' is a trigger: this applies to all profiles that it generated.", err=True)
    return trigger


def absent(here: Installation, what: Asked) -> MissingError:
    """Say that an object is not there, and what may have been meant."""
    from bellhop.cli.views.view import Query
    from bellhop.diagnosis.object_names import require_namespace

    namespace = what.query.namespace
    everything = list(what.kind.view.rows(here, Query(namespace=namespace)))
    if namespace and not everything:
        require_namespace(here, namespace)
    names = [str(row["name"]) for row in everything]
    near = difflib.get_close_matches(what.query.name, names, n=1)
    hint = (
        f"did you mean '{near[0]}'?"
        if near
        else f"`bellhop get {what.kind.plural}` lists those that are there"
    )
    place = f"{what.query.namespace}/" if what.query.namespace else ""
    return MissingError(f"there is no {what.kind.singular} '{place}{what.query.name}'; {hint}")


def nothing(here: Installation, what: Asked) -> str:
    """Say that there is nothing of a kind.

    Raises:
        MissingError: its namespace is not there, so that nothing could be in it.
    """
    from bellhop.diagnosis.object_names import require_namespace

    if what.query.namespace:
        require_namespace(here, what.query.namespace)
        return f"No {what.kind.plural} found in namespace '{what.query.namespace}'."
    return f"No {what.kind.plural} found."


def read_selector(text: str) -> Selector | None:
    """Read a label selector; an empty one asks nothing.

    Raises:
        InvalidError: it is not written as Kubernetes has them.
    """
    if not text:
        return None
    from pydantic import ValidationError

    from bellhop.core.selector import Selector

    try:
        return Selector.parse(text)
    except ValidationError as error:
        sentence = error.errors(include_url=False, include_context=False)[0]["msg"]
        raise InvalidError(f"cannot read the selector '{text}': {sentence}") from error
