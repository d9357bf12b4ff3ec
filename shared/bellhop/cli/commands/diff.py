"""`bellhop diff`: what applying profiles, or files, would change right now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completion import complete_profile
from bellhop.cli.examples import Command
from bellhop.cli.options import (
    TABLE,
    applyset_options,
    files_options,
    output_option,
    refuse_prune_alone,
    state_option,
)
from bellhop.cli.output import say
from bellhop.cli.queries import PROFILES, TRIGGER, join_kind, profile_or_trigger
from bellhop.cli.session import installation
from bellhop.errors import CloudDeniedError, InvalidError, PermanentError

if TYPE_CHECKING:
    from bellhop.diagnosis.names import Titled
    from bellhop.installation.installation import Installation
    from bellhop.operations.previews import Previewed, Unknown

DIFFERS = 1
"""The exit code where anything would change, as kubectl has it; of an error it is 2."""

REFUSED = 2
"""The exit code where an API server refuses the dry run of an object, as for a missing right."""

_NOTHING = "Nothing would change."


@click.command(
    "diff",
    cls=Command,
    usage=(
        "PROFILE... [--cluster [NAMESPACE/]NAME] [--live] [OPTIONS]",
        "-f FILE|DIR|- [--applyset NAME [--prune [--allow-empty]]] [OPTIONS]",
    ),
    examples=(
        "bellhop diff web",
        "bellhop diff web --live",
        "bellhop diff web --cluster prod/eu-1 -o json",
        "bellhop diff -f fleet/ -R --applyset fleet --prune",
    ),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE]…", shell_complete=complete_profile)
@cluster_option
@click.option(
    "--live",
    is_flag=True,
    help="Also compare what is as applied by Bellhop's records with the clusters.",
)
@files_options("Manifests to compare with what is stored; may be repeated.")
@applyset_options
@output_option
@state_option
def command(  # noqa: PLR0913 - one parameter an option
    profiles: tuple[str, ...],
    namespace: str,
    cluster: str,
    paths: Sequence[str],
    applyset: str | None,
    form: str,
    *,
    live: bool,
    recursive: bool,
    prune: bool,
    allow_empty: bool,
) -> None:
    """Show what applying profiles would change now: a line for each object, and its diff.

    The API servers' own dry run is used, and nothing is written, neither to clusters nor to
    Bellhop; a profile need not be in DryRun. Objects that are as applied by Bellhop's records are
    compared with the clusters only with --live, which shows what others changed or deleted, and
    `bellhop redeploy` would revert. If an API server refuses an object, its action is Error. Values
    of Secrets are hidden. PROFILE is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile,
    or KIND NAME, as in `rolerequest NAME`. The name of a trigger means all profiles that it
    generated.

    With -f, show what `bellhop apply` with the same options would change of what is stored, as
    `diff -u` does. The exit code is 0 if nothing differs, 1 if something does, and 2 or more for an
    error.
    """
    refuse_prune_alone(applyset, prune=prune, allow_empty=allow_empty)
    if bool(paths) == bool(profiles):
        raise click.UsageError("name what to compare: either profiles, or manifests by -f")
    if not paths:
        if recursive or applyset is not None:
            raise click.UsageError("--recursive and --applyset belong to -f")
        with _refusing():
            code = _of_profiles(profiles, namespace, cluster, form, live=live)
        raise click.exceptions.Exit(code)
    if namespace or cluster or live:
        raise click.UsageError("-f compares manifests with what is stored, in no cluster")
    with _refusing():
        differs = _of_files(
            paths, applyset, form, recursive=recursive, prune=prune, allow_empty=allow_empty
        )
    raise click.exceptions.Exit(DIFFERS if differs else 0)


@contextmanager
def _refusing() -> Iterator[None]:
    """Give a refusal another exit code: 1, which it has elsewhere, means that something differs."""
    try:
        yield
    except InvalidError:
        raise
    except (CloudDeniedError, PermanentError) as error:
        raise InvalidError(str(error)) from error


def _of_files(
    paths: Sequence[str],
    applyset: str | None,
    form: str,
    *,
    recursive: bool,
    prune: bool,
    allow_empty: bool,
) -> bool:
    """Print what applying files would change, and say whether anything."""
    from bellhop.cli.apply_files import read, refusing_changes
    from bellhop.cli.manifest_diffs import COLUMNS, differences, left
    from bellhop.cli.removal_warnings import say_plan

    documents, declared = read(paths, applyset, recursive=recursive, allow_empty=allow_empty)
    here = installation()
    pruned = left(here, applyset, declared, prune=prune)
    with refusing_changes(here, documents, declared):
        here.declare.rehearse(declared)
    found = list(differences(here, declared, pruned))
    if form == TABLE:
        for each in found:
            say(*each.lines)
        if not found:
            say(_NOTHING, err=True)
    else:
        output.present(COLUMNS, (each.row for each in found), form, nothing=_NOTHING)
    say_plan(here, here.declare.foresee(declared, pruned))
    return bool(found)


def _of_profiles(
    words: tuple[str, ...], namespace: str, cluster: str, form: str, *, live: bool
) -> int:
    """Print what profiles would change in their clusters; return the exit code."""
    from bellhop.cli import previews
    from bellhop.cli.progress import Progress
    from bellhop.diagnosis.names import Titled
    from bellhop.operations import previews as previewing

    here = installation()
    key, titled = known(here, cluster, namespace), Titled(here)
    unknown: list[Unknown] = []
    seen: Counter[str] = Counter()

    def changes() -> Iterator[Previewed]:
        with Progress() as progress:
            for name in _meant(here, words, cluster=key):
                for each in previewing.now(here, name, key, progress.ask, live=live):
                    progress.clear()
                    if isinstance(each, previewing.Unknown):
                        unknown.append(each)
                        continue
                    seen[previews.sort_of(each.change)] += 1
                    yield each

    if form == TABLE:
        for line in previews.texts(changes(), titled):
            say(line)
    else:
        rows = previews.rows(changes(), titled)
        output.present(previews.COLUMNS, rows, form, nothing=_NOTHING)
    differs, refused = seen[previews.DIFFERS], seen[previews.REFUSED]
    if form == TABLE and not (unknown or differs or refused):
        say(_NOTHING, err=True)
    if seen[previews.NOT_COMPARED]:
        say(_not_compared(seen[previews.NOT_COMPARED]), err=True)
    _refuse_unknown(unknown, titled)
    return REFUSED if refused else DIFFERS if differs else 0


def _refuse_unknown(unknown: Sequence[Unknown], titled: Titled) -> None:
    """Name the clusters that could not be asked, and raise the first one's error."""
    for each in unknown:
        say(f"warning: '{titled.shown(each.profile)}' in '{each.cluster}': {each.error}", err=True)
    if unknown:
        raise unknown[0].error


def _not_compared(number: int) -> str:
    """Say how many objects the clusters were not asked about."""
    said = f"{number} objects that are" if number > 1 else "1 object that is"
    were, them = ("were", "them") if number > 1 else ("was", "it")
    return (
        f"{said} as applied by Bellhop's records {were} not compared with the clusters;"
        f" `bellhop diff --live` compares {them}, too"
    )


def _meant(here: Installation, words: Sequence[str], *, cluster: str) -> Iterator[str]:
    """Yield our names of the profiles that words mean, each once; a trigger's are several.

    Of a trigger those are left out that have nothing to do with the cluster, if one is named.
    """
    from bellhop.diagnosis.names import made_by, meant

    names: dict[str, None] = {}
    for word in join_kind(words, (*PROFILES, TRIGGER)):
        name, trigger = profile_or_trigger(here, word)
        found = made_by(here, trigger, cluster) if trigger else [meant(here, name)]
        names |= dict.fromkeys(found)
    yield from names
