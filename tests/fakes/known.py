"""Histories that still end wrong: each by its name, with the reason; nothing else is left out.

A name is that of a step of a World, or of an Overlap, with the sort of its interruptions if only
those go wrong (see `turns`). `BELLHOP_ALL_HISTORIES=1` plays these too. Whoever cures a defect
takes its line out, and from then on the histories are played each time.
"""

from __future__ import annotations

import os

_MATCH = "A match is written without a condition: an older judgement may be written last."
_DRAFT = "A profile is written by whoever renders last, not by who read what is newest."
_HELD = "Two who both believe to hold a profile's place apply after each other what is not wanted."
_CLAIM = "Between winning an object and applying it nothing keeps another winner's object."
_GONE = "Who dies after removing an object, before noting it, and wants it again, has it already."
_CLUSTER = "The record of a cluster is written without a condition."
_RAISED = "An object whose apiVersion is raised is applied, and then removed as the old one."

KNOWN: dict[str, str] = {
    # Steps of a World.
    "long overlap": f"{_MATCH} {_DRAFT}",
    "overlap": _CLAIM,
    "replace": "A cluster made anew before its first sweep is taken for the one that it was.",
    "widgets": "A kind that is no longer served keeps what its objects brought.",
    "gadget": "A kind that vanished from a destination and came back is not looked at.",
    "gadgets": "A kind that vanished from a destination and came back is not looked at.",
    "raise": _RAISED,
    "refuse": "A message that was given up while a queue refused, and is replayed, tells nobody.",
    "flip": "A trigger made anew in another form leaves its old profiles behind.",
    "hand": "Destinations are not looked at: what is gone by hand is not put back.",
    "foreign": "What others put in the place of ours is removed with ours.",
    "restore": "Destinations are not looked at: what a restored cluster lost is not put back.",
    # Overlaps.
    "an object changes twice +": _DRAFT,
    "an object matches no more while it is judged +": _MATCH,
    "an object goes while it is judged": _MATCH,
    "an object goes, and another comes under its name +": _MATCH,
    "a large object changes while it is read +": _DRAFT,
    "a sweep meets a deletion +": _MATCH,
    "a text changes while it is rendered +": _DRAFT,
    "a source changes while an object is judged": _MATCH,
    "a source goes while an object is judged": _MATCH,
    "a trigger goes while it is instantiated": _MATCH,
    "a trigger is made anew in another form": "It leaves its old profiles behind.",
    "a profile shrinks and grows while it is applied": _HELD,
    "a profile goes while it is applied": _HELD,
    "the winner of an object gives it up while another takes it": _CLAIM,
    "tiers change sides": _CLAIM,
    "a destination is left and chosen again": _HELD,
    "a source cluster is chosen no more while it is swept": _HELD,
    "a label is set while a token is renewed": _CLUSTER,
    "two labels are set at once": _CLUSTER,
    "a cluster leaves and comes back while it is worked on !": _GONE,
    "a cluster is made anew while it is worked on": _HELD,
    "a backup is restored while it is worked on": "Destinations are not looked at.",
    "an apiVersion is raised while it is applied": _RAISED,
    "a definition vanishes while its objects are judged": "Its objects keep what they brought.",
}


def played(name: str, sort: str = "") -> bool:
    """Say whether a history is played: whether it should end well by now."""
    if os.environ.get("BELLHOP_ALL_HISTORIES"):
        return True
    return name not in KNOWN and f"{name} {sort}".strip() not in KNOWN
