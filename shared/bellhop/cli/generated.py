"""The output of `bellhop render`: the profiles that a trigger generates, as YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bellhop.cli.output import print_document, print_styled, say
from bellhop.core.printable import visible

if TYPE_CHECKING:
    from bellhop.diagnosis.offline_render import OfflineRender
    from bellhop.diagnosis.offline_result import RenderedProfile
    from bellhop.diagnosis.source_evaluation import EvaluatedObject

ALL, PROFILES, CONFIGMAPS, MANIFESTS = "all", "profiles", "configmaps", "manifests"


def explain_match(evaluated: EvaluatedObject) -> str:
    """Return the source's message about an object that matches, else the reason why it does not."""
    return evaluated.message if evaluated.matching else evaluated.because


def print_yaml(
    _render: OfflineRender,
    _evaluated: Sequence[EvaluatedObject],
    generated: Iterable[RenderedProfile],
    show: str,
) -> None:
    """Print profiles, ConfigMaps and manifests as documents, with a comment above each."""
    from bellhop.diagnosis.names import object_name
    from bellhop.documents.document import dump

    nothing = True
    for made in generated:
        nothing = False
        profile = made.profile
        whose = object_name(profile.object) or "all objects that match"
        said = visible(
            f"# ClusterProfile {profile.name}, tier {profile.tier}: {whose} in {profile.cluster}"
        )
        if not made.placements:
            said += "\n# for no cluster: the destination selector selects none of those given"
        if show not in {ALL, PROFILES}:
            print_styled(said)
        for comment, manifest in _list_documents(made, said, show):
            print_styled(f"---\n{comment}\n{dump(dict(manifest))}".removesuffix("\n"))
    if nothing:
        say("Nothing would be generated.", err=True)


def _list_documents(
    made: RenderedProfile, said: str, show: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the shown manifests of a profile, each with the comment above it."""
    if show in {ALL, PROFILES}:
        yield said, made.manifest
    if show in {ALL, CONFIGMAPS}:
        for each in made.instantiated:
            comment = f"# {each.ref}, instantiated from {each.origin}"
            yield visible(comment), each.manifest
    if show in {ALL, MANIFESTS}:
        for placement in made.placements:
            for content in placement.contents:
                comment = visible(f"# for {placement.cluster}, from {content.ref}, {content.entry}")
                yield from ((comment, manifest) for manifest in content.manifests)


def print_json(
    render: OfflineRender,
    evaluated: Sequence[EvaluatedObject],
    generated: Iterable[RenderedProfile],
    show: str,
) -> None:
    """Print one object: the evaluation of each object, and everything that was generated."""
    from bellhop.diagnosis.names import object_name

    document = {
        "trigger": render.trigger.name,
        "source": render.source().name,
        "cluster": render.cluster.key,
        "objects": [
            {
                "object": object_name(each.key),
                "matching": each.matching,
                "because": explain_match(each),
            }
            for each in evaluated
        ],
        "profiles": [
            {
                "name": made.profile.shown,
                "object": object_name(made.profile.object),
                "tier": made.profile.tier,
                **_select_parts(made, show),
            }
            for made in generated
        ],
    }
    print_document(document)


def _select_parts(made: RenderedProfile, show: str) -> dict[str, Any]:
    """Return the shown parts of a profile, each under its own key."""
    parts: dict[str, Any] = {
        PROFILES: {"profile": made.manifest},
        CONFIGMAPS: {
            "configMaps": [
                {"from": str(each.origin), "manifest": each.manifest} for each in made.instantiated
            ]
        },
        MANIFESTS: {
            "destinations": [
                {
                    "cluster": placement.cluster,
                    "manifests": [
                        {"from": content.ref, "entry": content.entry, "manifest": manifest}
                        for content in placement.contents
                        for manifest in content.manifests
                    ],
                }
                for placement in made.placements
            ]
        },
    }
    return {
        key: value for name in parts if show in {ALL, name} for key, value in parts[name].items()
    }
