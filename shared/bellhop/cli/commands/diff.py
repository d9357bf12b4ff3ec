"""`bellhop diff`: what applying profiles, or files, would change right now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.asking import PROFILES, join_kind, profile_named
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completing import complete_profile
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
from bellhop.cli.session import installation
from bellhop.errors import CloudDeniedError, InvalidError, PermanentError

if TYPE_CHECKING:
    from bellhop.fleet.previewing import Previewed, Unknown

DIFFERS = 1
"""The exit code where files differ from what is stored, as kubectl has it; of an error it is 2."""

REFUSED = 1
"""The exit code where an API server refuses the dry run of an object, as for a missing right."""

_NOTHING = "Nothing would change."


@click.command(
    "diff",
    cls=Command,
    usage=(
        "PROFILE... [--cluster [NAMESPACE/]NAME] [OPTIONS]",
        "-f FILE|DIR|- [--applyset NAME [--prune [--allow-empty]]] [OPTIONS]",
    ),
    examples=(
        "bellhop diff web",
        "bellhop diff web --cluster prod/eu-1 -o json",
        "bellhop diff -f fleet/ -R --applyset fleet --prune",
    ),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE]…", shell_complete=complete_profile)
@cluster_option
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
    recursive: bool,
    prune: bool,
    allow_empty: bool,
) -> None:
    """Show what applying profiles would change now: a line for each object, and its diff.

    The API servers' own dry run is used, and nothing is written, neither to clusters nor to
    Bellhop; a profile need not be in DryRun. Objects that match the desired state in Bellhop's
    records are not checked: `bellhop redeploy` reverts changes by others in them. If an API server
    refuses an object, its action is Error, and the exit code is 1. Values of Secrets are hidden.
    PROFILE is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile, or KIND NAME, as in
    `rolerequest NAME`.

    With -f, show what `bellhop apply` with the same options would change of what is stored, as
    `diff -u` does. The exit code is then 0 if nothing differs, 1 if something does, and 2 or more
    for an error.
    """
    refuse_prune_alone(applyset, prune=prune, allow_empty=allow_empty)
    if bool(paths) == bool(profiles):
        raise click.UsageError("name what to compare: either profiles, or manifests by -f")
    if not paths:
        if recursive or applyset is not None:
            raise click.UsageError("--recursive and --applyset belong to -f")
        _of_profiles(profiles, namespace, cluster, form)
        return
    if namespace or cluster:
        raise click.UsageError("-f compares manifests with what is stored, in no cluster")
    try:
        differs = _of_files(
            paths, applyset, form, recursive=recursive, prune=prune, allow_empty=allow_empty
        )
    except InvalidError:
        raise
    except (CloudDeniedError, PermanentError) as error:
        # A refusal has 1 elsewhere, which means here that something differs.
        raise InvalidError(str(error)) from error
    raise click.exceptions.Exit(DIFFERS if differs else 0)


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
    from bellhop.cli.applying import read, refusing_changes
    from bellhop.cli.holding import say_held
    from bellhop.cli.manifest_diffs import COLUMNS, differences, left

    documents, declared = read(paths, applyset, recursive=recursive, allow_empty=allow_empty)
    here = installation()
    pruned = left(here, applyset, declared, prune=prune)
    with refusing_changes(here, documents, declared):
        here.declare.rehearse(declared)
    found = list(differences(here, declared, pruned))
    if form == TABLE:
        for each in found:
            say(*each.lines)
    else:
        output.present(COLUMNS, (each.row for each in found), form, nothing=_NOTHING)
    say_held(here.declare.foresee(declared, pruned), dry=True)
    return bool(found)


def _of_profiles(profiles: tuple[str, ...], namespace: str, cluster: str, form: str) -> None:
    """Print what profiles would change in their clusters."""
    from bellhop.cli import previews
    from bellhop.cli.progress import Progress
    from bellhop.fleet.previewing import now
    from bellhop.fleet.titled import Titled, meant

    here = installation()
    key, titled = known(here, cluster, namespace), Titled(here)
    unknown: list[Unknown] = []
    refused: list[Previewed] = []

    def asked() -> Iterator[Previewed | Unknown]:
        with Progress() as progress:
            for name in dict.fromkeys(map(profile_named, join_kind(profiles, PROFILES))):
                for each in now(here, meant(here, name), key, progress.ask):
                    progress.clear()
                    yield each

    found = _changes(asked(), unknown, refused)
    if form == TABLE:
        told = False
        for line in previews.texts(found, titled):
            told = True
            say(line)
        if not told and not unknown:
            say(_NOTHING, err=True)
    else:
        output.present(previews.COLUMNS, previews.rows(found, titled), form, nothing=_NOTHING)
    for each in unknown:
        say(f"warning: '{titled.shown(each.profile)}' in '{each.cluster}': {each.error}", err=True)
    if unknown:
        raise unknown[0].error
    if refused:
        raise click.exceptions.Exit(REFUSED)


def _changes(
    asked: Iterable[Previewed | Unknown], unknown: list[Unknown], refused: list[Previewed]
) -> Iterator[Previewed]:
    """Yield what would change; collect clusters that cannot be asked, and objects they refuse."""
    from bellhop.fleet import previewing

    for each in asked:
        if isinstance(each, previewing.Unknown):
            unknown.append(each)
            continue
        if each.change.action == "Error":
            refused.append(each)
        yield each
