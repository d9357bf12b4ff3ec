"""What `bellhop render` prints: the profiles that a trigger generates, as YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bellhop.cli.output import compose, document, say
from bellhop.core.printable import visible

if TYPE_CHECKING:
    from bellhop.diagnosis.offline_render import OfflineRender
    from bellhop.diagnosis.offline_result import Generated
    from bellhop.diagnosis.source_evaluation import Tried

ALL, PROFILES, CONFIGMAPS, MANIFESTS = "all", "profiles", "configmaps", "manifests"


def reason(judged: Tried) -> str:
    """Return what the source itself said of an object that it takes, else why it does not."""
    return judged.message if judged.matching else judged.because


def print_yaml(
    _rehearsal: OfflineRender, _judged: Sequence[Tried], generated: Iterable[Generated], show: str
) -> None:
    """Print profiles, ConfigMaps and manifests as documents, with a comment above each."""
    from bellhop.diagnosis.overview import object_name
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
            compose(said)
        for comment, manifest in _documents(made, said, show):
            compose(f"---\n{comment}\n{dump(dict(manifest))}".removesuffix("\n"))
    if nothing:
        say("Nothing would be generated.", err=True)


def _documents(made: Generated, said: str, show: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what is shown of one profile, each with the comment above it."""
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
    rehearsal: OfflineRender, judged: Sequence[Tried], generated: Iterable[Generated], show: str
) -> None:
    """Print one object: what the source said of each object, and all that was generated."""
    from bellhop.diagnosis.overview import object_name

    told = {
        "trigger": rehearsal.trigger.name,
        "source": rehearsal.source().name,
        "cluster": rehearsal.cluster.key,
        "objects": [
            {
                "object": object_name(each.key),
                "matching": each.matching,
                "because": reason(each),
            }
            for each in judged
        ],
        "profiles": [
            {
                "name": made.profile.shown,
                "object": object_name(made.profile.object),
                "tier": made.profile.tier,
                **_shown(made, show),
            }
            for made in generated
        ],
    }
    document(told)


def _shown(made: Generated, show: str) -> dict[str, Any]:
    """Return what is shown of one profile, each part under its own key."""
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
