"""The objects that a command line names: KIND NAME, KIND/NAME, NAMESPACE/NAME, -n and -l."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from bellhop.cli.completion import complete_revised
from bellhop.cli.kinds import KindName, find_kind, singular_name, split_kind
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.cli.views.view import Query
    from bellhop.core.selector import Selector
    from bellhop.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])

PROFILES = ("clusterprofile", "profile", "rolerequest")
TRIGGER = "eventtrigger"
PROMOTION = "clusterpromotion"


class ObjectQuery(Struct, frozen=True):
    """A kind, and the query of its objects."""

    kind: KindName
    query: Query


def naming_options(command: F) -> F:
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


def read_query(
    kind: str, name: str, namespace: str, selector: str = "", *, show_secrets: bool = False
) -> ObjectQuery:
    """Read KIND, NAME and the options that narrow a query."""
    from bellhop.cli.views.view import Query

    first, slash, rest = kind.partition("/")
    known = find_kind(first)
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
    return ObjectQuery(known, query)


def profile_argument(command: F) -> F:
    """Add the argument PROFILE, which may be two words: KIND NAME."""
    return click.argument(
        "profile",
        nargs=-1,
        required=True,
        metavar="PROFILE",
        callback=_read_profile,
        shell_complete=complete_revised,
    )(command)


def _read_profile(
    ctx: click.Context, _parameter: click.Parameter, words: Sequence[str]
) -> str | Sequence[str]:
    if ctx.resilient_parsing:
        # A shell completes them.
        return words
    found = join_kind(words, (*PROFILES, TRIGGER, PROMOTION))
    if len(found) != 1:
        raise click.UsageError("name one profile, as NAME, NAMESPACE/NAME or KIND NAME")
    if not found[0].startswith(f"{PROMOTION}/"):
        read_profile_name(found[0])
    return found[0]


def check_stage(*, is_promotion: bool, stage: str) -> None:
    """Refuse a promotion without the stage that is meant, and a stage without its promotion."""
    if is_promotion and not stage:
        raise click.UsageError("name the stage of the promotion, by --stage")
    if stage and not is_promotion:
        raise click.UsageError("--stage goes with `promotion NAME`")


def join_kind(words: Sequence[str], kinds: Collection[str]) -> Sequence[str]:
    """Return KIND NAME… and KIND/NAME… as the latter, with the kind's singular; names unchanged."""
    kind = singular_name(words[0]) if len(words) > 1 else ""
    if kind not in kinds:
        return ["/".join(filter(None, split_kind(word, kinds))) for word in words]
    if kind == "profile" and not all("/" in name for name in words[1:]):
        raise click.UsageError("a Profile is named by `profile NAMESPACE/NAME`")
    return [f"{kind}/{name}" for name in words[1:]]


def resolve_profile_or_trigger(here: Installation, word: str) -> tuple[str, str]:
    """Return the names of the profile and the trigger that a word means; one of them is empty.

    Without a kind it means a trigger only if no profile has that name.
    """
    kind, _, name = word.partition("/")
    if kind == TRIGGER and name:
        if name not in here.catalogs.known().triggers:
            raise MissingError(
                f"there is no EventTrigger '{name}'; `bellhop get eventtriggers` lists them"
            )
        return "", name
    profile = read_profile_name(word)
    trigger = find_trigger(here, profile)
    return ("", trigger) if trigger else (profile, "")


def read_profile_name(word: str) -> str:
    """Read NAME, NAMESPACE/NAME or KIND/NAME of a profile; a RoleRequest needs its kind."""
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


def find_trigger(here: Installation, word: str) -> str:
    """Return the trigger whose profiles a word means, and print a note; empty for a profile.

    A word that names a profile never means a trigger.
    """
    from bellhop.cli.output import say
    from bellhop.diagnosis.names import resolve_trigger

    trigger = resolve_trigger(here, word)
    if trigger:
        say(f"'{trigger}' is a trigger: this applies to all profiles that it generated.", err=True)
    return trigger


def make_missing_error(here: Installation, what: ObjectQuery) -> MissingError:
    """Make the error of an object that does not exist, with the nearest name."""
    from bellhop.cli.views.view import Query
    from bellhop.diagnosis.names import require_namespace

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


def explain_nothing(here: Installation, what: ObjectQuery) -> str:
    from bellhop.diagnosis.names import require_namespace

    if what.query.namespace:
        require_namespace(here, what.query.namespace)
        return f"No {what.kind.plural} found in namespace '{what.query.namespace}'."
    return f"No {what.kind.plural} found."


def read_selector(text: str) -> Selector | None:
    """Read a label selector; an empty one selects everything."""
    if not text:
        return None
    from pydantic import ValidationError

    from bellhop.core.selector import Selector

    try:
        return Selector.parse(text)
    except ValidationError as error:
        sentence = error.errors(include_url=False, include_context=False)[0]["msg"]
        raise InvalidError(f"cannot read the selector '{text}': {sentence}") from error
