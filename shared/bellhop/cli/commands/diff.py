"""`bellhop diff`: the changes that applying profiles, or files, would make now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_revised, complete_stage
from bellhop.cli.options import (
    TABLE,
    applyset_options,
    files_options,
    output_option,
    refuse_prune_without_set,
)
from bellhop.cli.output import say
from bellhop.cli.queries import (
    PROFILES,
    PROMOTION,
    TRIGGER,
    check_stage,
    join_kind,
    resolve_profile_or_trigger,
)
from bellhop.cli.selection import cluster_option, find_cluster
from bellhop.cli.session import open_installation
from bellhop.errors import CloudDeniedError, InvalidError, PermanentError

if TYPE_CHECKING:
    from bellhop.diagnosis.names import ProfileNames
    from bellhop.installation import Installation
    from bellhop.operations.previews import Begin, PreviewedChange, UnknownChange

    Previews = Iterator[PreviewedChange | UnknownChange]

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
        "promotion NAME --stage STAGE [--cluster [NAMESPACE/]NAME] [--live] [OPTIONS]",
        "-f FILE|DIR|- [--applyset NAME [--prune [--allow-empty]]] [OPTIONS]",
    ),
    examples=(
        "bellhop diff web",
        "bellhop diff web --live",
        "bellhop diff web --cluster prod/eu-1 -o json",
        "bellhop diff promotion agent --stage production",
        "bellhop diff -f fleet/ -R --applyset fleet --prune",
    ),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE]…", shell_complete=complete_revised)
@cluster_option
@click.option(
    "--stage",
    metavar="STAGE",
    default="",
    help="Stage of a promotion.",
    shell_complete=complete_stage,
)
@click.option(
    "--live",
    is_flag=True,
    help="Also compare what is as applied by Bellhop's records with the clusters.",
)
@files_options("Manifests to compare with what is stored; may be repeated.")
@applyset_options
@output_option
def command(  # noqa: PLR0913 - one parameter an option
    profiles: tuple[str, ...],
    namespace: str,
    cluster: str,
    stage: str,
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

    Of a promotion these are the changes by the release that the stage gets next, with the contents
    that it has frozen; the first line says which release this is, and where it is now.

    With -f, show what `bellhop apply` with the same options would change of what is stored, as
    `diff -u` does. The exit code is 0 if nothing differs, 1 if something does, and 2 or more for an
    error.
    """
    refuse_prune_without_set(applyset, prune=prune, allow_empty=allow_empty)
    if bool(paths) == bool(profiles):
        raise click.UsageError("name what to compare: either profiles, or manifests by -f")
    if not paths:
        if recursive or applyset is not None:
            raise click.UsageError("--recursive and --applyset belong to -f")
        promotion = _read_promotion(profiles, stage)
        with _refuse_as_invalid():
            if promotion:
                code = _diff_promotion(promotion, stage, namespace, cluster, form, live=live)
            else:
                code = _diff_profiles(profiles, namespace, cluster, form, live=live)
        raise click.exceptions.Exit(code)
    if namespace or cluster or live or stage:
        raise click.UsageError("-f compares manifests with what is stored, in no cluster")
    with _refuse_as_invalid():
        differs = _diff_files(
            paths, applyset, form, recursive=recursive, prune=prune, allow_empty=allow_empty
        )
    raise click.exceptions.Exit(DIFFERS if differs else 0)


@contextmanager
def _refuse_as_invalid() -> Iterator[None]:
    """Give a refusal the exit code 2: in this command, 1 means that something differs."""
    try:
        yield
    except InvalidError:
        raise
    except (CloudDeniedError, PermanentError) as error:
        raise InvalidError(str(error)) from error


def _diff_files(
    paths: Sequence[str],
    applyset: str | None,
    form: str,
    *,
    recursive: bool,
    prune: bool,
    allow_empty: bool,
) -> bool:
    """Print the changes that applying files would make, and return whether there are any."""
    from bellhop.cli.apply_files import locate_refused_changes, read_manifests
    from bellhop.cli.diffs import MANIFEST_COLUMNS, list_differences, list_pruned
    from bellhop.cli.removal_warnings import say_plan

    documents, declared = read_manifests(
        paths, applyset, recursive=recursive, allow_empty=allow_empty
    )
    here = open_installation()
    pruned = list_pruned(here, applyset, declared, prune=prune)
    with locate_refused_changes(here, documents, declared):
        here.declare.preview(declared, anywhere=True)
    found = list(list_differences(here, declared, pruned))
    if form == TABLE:
        for each in found:
            say(*each.lines)
        if not found:
            say(_NOTHING, err=True)
    else:
        output.print_rows(MANIFEST_COLUMNS, (each.row for each in found), form, nothing=_NOTHING)
    say_plan(here, here.declare.foresee(declared, pruned))
    return bool(found)


def _read_promotion(words: Sequence[str], stage: str) -> str:
    """Return the promotion that is named together with a stage; empty if profiles are named."""
    found = join_kind(words, (PROMOTION,))
    names = [each.partition("/")[2] for each in found if each.startswith(f"{PROMOTION}/")]
    check_stage(is_promotion=bool(names), stage=stage)
    if names and len(found) > 1:
        raise click.UsageError("name one promotion: each has stages of its own")
    return names[0] if names else ""


def _diff_profiles(
    words: tuple[str, ...], namespace: str, cluster: str, form: str, *, live: bool
) -> int:
    """Print the changes that profiles would make in their clusters; return the exit code."""
    from bellhop.operations.previews import preview_now

    here = open_installation()
    key = find_cluster(here, cluster, namespace)

    def preview(begin: Begin) -> Previews:
        for name in _resolve_profiles(here, words, cluster=key):
            yield from preview_now(here, name, key, begin, live=live)

    return _print_changes(here, preview, form)


def _diff_promotion(
    name: str, stage: str, namespace: str, cluster: str, form: str, *, live: bool
) -> int:
    """Print the changes that the next release of a stage would make; return the exit code."""
    from bellhop.operations.release_previews import find_next_release, preview_release

    here = open_installation()
    key = find_cluster(here, cluster, namespace)
    found = find_next_release(here, name, stage)
    if found is None:
        say(
            f"Nothing waits for stage '{stage}' of promotion '{name}': there is no newer release"
            " that may go there.",
            err=True,
        )
        return 0
    empty = "" if found.clusters else ", which has no clusters"
    place = f"stage '{stage}' of promotion '{name}'{empty}"
    say(f"Release {found.number}, {found.place}, comes next to {place}.", err=form != TABLE)
    preview = partial(preview_release, here, name, stage, found.number, key, live=live)
    return _print_changes(here, preview, form)


def _print_changes(here: Installation, preview: Callable[[Begin], Previews], form: str) -> int:
    """Print changes, and return the exit code; clusters that cannot be called are an error."""
    from bellhop.cli import diffs
    from bellhop.cli.printer import Progress
    from bellhop.diagnosis.names import ProfileNames
    from bellhop.operations.previews import UnknownChange

    titled = ProfileNames(here)
    unknown: list[UnknownChange] = []
    seen: Counter[str] = Counter()

    def changes() -> Iterator[PreviewedChange]:
        with Progress() as progress:
            for each in preview(progress.ask):
                progress.clear()
                if isinstance(each, UnknownChange):
                    unknown.append(each)
                    continue
                seen[diffs.classify_change(each.change)] += 1
                yield each

    if form == TABLE:
        for line in diffs.format_previews(changes(), titled):
            say(line)
    else:
        rows = diffs.make_preview_rows(changes(), titled)
        output.print_rows(diffs.PREVIEW_COLUMNS, rows, form, nothing=_NOTHING)
    differs, refused = seen[diffs.DIFFERS], seen[diffs.REFUSED]
    if form == TABLE and not (unknown or differs or refused):
        say(_NOTHING, err=True)
    if seen[diffs.NOT_COMPARED]:
        say(_format_not_compared(seen[diffs.NOT_COMPARED]), err=True)
    _refuse_unknown(unknown, titled)
    return REFUSED if refused else DIFFERS if differs else 0


def _refuse_unknown(unknown: Sequence[UnknownChange], titled: ProfileNames) -> None:
    """Name the clusters that could not be called, and raise the first one's error."""
    for each in unknown:
        say(f"warning: '{titled.shown(each.profile)}' in '{each.cluster}': {each.error}", err=True)
    if unknown:
        raise unknown[0].error


def _format_not_compared(number: int) -> str:
    said = f"{number} objects that are" if number > 1 else "1 object that is"
    were, them = ("were", "them") if number > 1 else ("was", "it")
    return (
        f"{said} as applied by Bellhop's records {were} not compared with the clusters;"
        f" `bellhop diff --live` compares {them}, too"
    )


def _resolve_profiles(here: Installation, words: Sequence[str], *, cluster: str) -> Iterator[str]:
    """Yield the record names of profiles, each once; a trigger has several.

    Profiles of a trigger that have nothing to do with `cluster` are left out, if it is named.
    """
    from bellhop.diagnosis.names import list_trigger_profiles, resolve_profile

    names: dict[str, None] = {}
    for word in join_kind(words, (*PROFILES, TRIGGER)):
        name, trigger = resolve_profile_or_trigger(here, word)
        found = (
            list_trigger_profiles(here, trigger, cluster)
            if trigger
            else [resolve_profile(here, name)]
        )
        names |= dict.fromkeys(found)
    yield from names
