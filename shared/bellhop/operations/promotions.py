"""Decisions of people about promotions: approve, reject, force and roll back a release at a stage.

Each is one conditional write of the promotion's state; the message that follows has a worker take
the step. After a death between the two the next change of the promotion, or its timer, takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.api.promotion import ClusterPromotion
from bellhop.api.stage_profile import StageProfile
from bellhop.core import suggestion
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.installation import Installation
from bellhop.promotions import machine, outbox
from bellhop.state.concurrency import until_written
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import Promote
from bellhop.state.promotion import Approval, PromotionState, StageEvent, StageState, StageStep
from bellhop.state.table import Stored


class Decision(NamedTuple):
    """A decision: about which release at which stage, and whether it is new."""

    stage: str
    release: int
    is_new: bool


def approve(
    here: Installation, name: str, *, by: str, stage: str = "", release: int = 0, reason: str = ""
) -> Decision:
    """Approve a release at a stage: by default the one there, at the stage that waits for it.

    An approval before the checks have passed waits for them, and never skips one.

    Raises:
        ConflictError: no stage waits for an approval, the release is not at the stage, or that
            asks for none.
        MissingError: there is no such promotion, stage or release.
    """
    promotion = find_promotion(here, name)

    def decide(state: PromotionState) -> tuple[PromotionState, Decision]:
        found = find_stage(promotion, state, stage or _find_waiting(promotion, state, "approve"))
        _refuse_last(promotion, found, "approve")
        number = _check_release(state, found, release)
        if not (promotion.gate(found.name).manual or found.rejected == number):
            raise ConflictError(
                f"cannot approve a release at stage '{found.name}' of promotion '{name}': it asks"
                " for no approval, as its trigger is not manual"
            )
        known = found.approval is not None and found.approval.release == number
        approval = Approval(number, by, here.records.clock.now(), reason)
        new = state if known else machine.approve(state, found.name, approval)
        return new, Decision(found.name, number, not known)

    return _decide(here, name, "approved", f" by {_sign(by, reason)}", decide)


def reject(
    here: Installation, name: str, *, by: str, stage: str = "", release: int = 0, reason: str = ""
) -> Decision:
    """Have a release go no further than a stage; the next one may.

    Raises:
        ConflictError: no stage waits for an approval, or the release has passed the stage.
        MissingError: there is no such promotion, stage or release.
    """
    promotion, said = find_promotion(here, name), f"by {_sign(by, reason)}"

    def decide(state: PromotionState) -> tuple[PromotionState, Decision]:
        found = find_stage(promotion, state, stage or _find_waiting(promotion, state, "reject"))
        _refuse_last(promotion, found, "reject")
        number = _check_release(state, found, release)
        known = found.rejected == number
        new = state if known else machine.reject(state, found.name, number, said)
        return new, Decision(found.name, number, not known)

    return _decide(here, name, "rejected", f" {said}", decide)


def force(
    here: Installation, name: str, *, by: str, stage: str, release: int = 0, reason: str = ""
) -> Decision:
    """Give a stage a release at once, whatever the stages before it: by default the newest.

    Raises:
        ConflictError: the stage has, or had, a newer one.
        MissingError: there is no such promotion, stage or release.
    """
    promotion, signed = find_promotion(here, name), _sign(by, reason)

    def decide(state: PromotionState) -> tuple[PromotionState, Decision]:
        found = find_stage(promotion, state, stage)
        number = _find_release(here, state, release or state.latest)
        if found.release == number:
            return state, Decision(found.name, number, is_new=False)
        if number < max(found.release, found.skipped):
            raise ConflictError(
                f"cannot promote release {number} of '{name}' to stage '{found.name}': that had"
                f" release {max(found.release, found.skipped)} already; `bellhop rollback promotion"
                f" {name} --stage {found.name}` returns to a former one"
            )
        new = machine.force(state, found.name, number, signed, here.records.clock.now())
        return _unpublish(promotion, new, found.name), Decision(found.name, number, is_new=True)

    return _decide(here, name, "promoted", f" by {signed}, without its conditions", decide)


def roll_back(here: Installation, name: str, *, by: str, stage: str, release: int = 0) -> Decision:
    """Give a stage a former release, by default the one before, until there is a newer one.

    A stage that was rolled back already stays, unless a release is given.

    Raises:
        ConflictError: the stage never had that release, or no other one, or returns to it by the
            end of a rollback.
        MissingError: there is no such promotion, stage or release.
    """
    promotion = find_promotion(here, name)

    def decide(state: PromotionState) -> tuple[PromotionState, Decision]:
        found = find_stage(promotion, state, stage)
        number = release or (found.release if found.skipped else _find_former(name, found))
        if number == found.release:
            return state, Decision(found.name, number, is_new=False)
        _find_release(here, state, number)
        if number == found.skipped:
            raise ConflictError(
                f"stage '{found.name}' of promotion '{name}' is rolled back from release {number}:"
                f" `bellhop rollback promotion {name} --stage {found.name} --end` returns to it"
            )
        if number not in [each.release for each in found.visits]:
            raise ConflictError(
                f"cannot roll back promotion '{name}': stage '{found.name}' never had release"
                f" {number}; `bellhop history promotion {name}` lists those that it had"
            )
        new = machine.roll_back(state, found.name, number, by, here.records.clock.now())
        return _unpublish(promotion, new, found.name), Decision(found.name, number, is_new=True)

    return _decide(here, name, "rolled back", f" by {by}", decide)


def end_rollback(here: Installation, name: str, *, by: str, stage: str) -> Decision:
    """Give a stage the release again that it was rolled back from.

    Raises:
        MissingError: there is no such promotion or stage.
    """
    promotion = find_promotion(here, name)

    def decide(state: PromotionState) -> tuple[PromotionState, Decision]:
        found = find_stage(promotion, state, stage)
        new = machine.end_rollback(state, found.name, here.records.clock.now())
        number = new.stage(found.name).release
        return _unpublish(promotion, new, found.name), Decision(found.name, number, new != state)

    return _decide(here, name, "rollback ended", f" by {by}", decide)


def _sign(by: str, reason: str) -> str:
    """Return the user who decided, and the reason."""
    return f"{by}: {reason}" if reason else by


_Decide = Callable[[PromotionState], tuple[PromotionState, Decision]]


@until_written("change promotion '{name}'")
def _decide(here: Installation, name: str, what: StageStep, said: str, decide: _Decide) -> Decision:
    kept = read_state(here, name)
    new, decision = decide(kept.value)
    if new != kept.value:
        now = here.records.clock.now()
        event = StageEvent(what, decision.stage, decision.release, now, said.strip())
        # A release that is forced has not passed yet: the worker notifies of that.
        if what != "promoted" and find_promotion(here, name).notify:
            new = outbox.add(new, [event])
        here.records.promotions.put(new, expect=kept.token)
        note = Note(what, event.detail, context={"promotion": name})
        write(here.records, Nobody(), "", "", note)
    here.publisher.publish([Promote(name)])
    return decision


def find_promotion(here: Installation, name: str) -> ClusterPromotion:
    """Return a promotion by its name.

    Raises:
        MissingError: there is none.
    """
    promotions = here.catalogs.known().promotions
    if name not in promotions:
        near = suggestion.closest(name, promotions)
        hint = (
            f"did you mean '{near}'?" if near else "`bellhop get promotions` lists those that are"
        )
        raise MissingError(f"there is no promotion '{name}'; {hint}")
    return promotions[name]


def read_state(here: Installation, name: str) -> Stored[PromotionState]:
    """Return the state of a promotion.

    Raises:
        ConflictError: no worker has made a release of it yet.
    """
    kept = here.records.promotions.get(name)
    if kept is None or not kept.value.latest:
        cure = (kept and kept.value.missing) or here.worker.start
        raise ConflictError(f"promotion '{name}' has no release yet; {cure}")
    return kept


def find_stage(promotion: ClusterPromotion, state: PromotionState, name: str) -> StageState:
    """Return a stage of a promotion by its name.

    Raises:
        MissingError: there is none.
    """
    names = [each.name for each in promotion.stages]
    if name not in names:
        raise MissingError(
            f"promotion '{promotion.name}' has no stage '{name}'; its stages are {', '.join(names)}"
        )
    return state.stage(name)


def is_stage_profile(here: Installation, name: str) -> bool:
    """Return whether a promotion makes the profile of a name."""
    return isinstance(here.catalogs.known().profiles.get(name), StageProfile)


def refuse_stage_profile(here: Installation, name: str, verb: str, instead: str) -> None:
    """Refuse what would act on the profile of a stage, which its promotion makes again.

    `instead` is what does it, with the names of `promotion` and `stage` in braces.

    Raises:
        InvalidError: the name is that of such a profile.
    """
    declared = here.catalogs.known().profiles.get(name)
    if not isinstance(declared, StageProfile):
        return
    where = {"promotion": declared.stage.promotion, "stage": declared.stage.stage}
    place = "stage '{stage}' of promotion '{promotion}'".format(**where)
    raise InvalidError(
        f"cannot {verb} ClusterProfile '{name}': {place} makes it; {instead.format(**where)}"
    )


def _find_waiting(promotion: ClusterPromotion, state: PromotionState, verb: str) -> str:
    """Return the stage that waits for an approval, or the next one that will."""
    manual = [each.name for each in promotion.stages if promotion.gate(each.name).manual]
    waiting = [each for each in manual if state.stage(each).phase == "AwaitingApproval"]
    coming = [each for each in manual if state.stage(each).release > state.stage(each).passed]
    found = waiting or coming
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidError(
            f"cannot {verb} promotion '{promotion.name}': {' and '.join(found)} wait for an"
            " approval; name one by --stage"
        )
    raise ConflictError(
        f"cannot {verb} promotion '{promotion.name}': no stage waits for an approval;"
        f" `bellhop describe promotion {promotion.name}` shows its stages"
    )


def _check_release(state: PromotionState, stage: StageState, release: int) -> int:
    """Return the release that a decision at a stage is about.

    Raises:
        ConflictError: it is another one than is there, or it has passed the stage.
    """
    there = stage.release or state.latest
    if release and release != there:
        raise ConflictError(
            f"release {release} is not at stage '{stage.name}': that has release {there}"
        )
    if stage.passed >= there:
        raise ConflictError(f"release {there} has left stage '{stage.name}' already")
    return there


def _find_release(here: Installation, state: PromotionState, release: int) -> int:
    known = {each.number for each in here.records.releases.heads(state.name)}
    if release not in known:
        listed = ", ".join(map(str, sorted(known))) or "none"
        more = " any more" if release <= state.latest else ""
        raise MissingError(
            f"promotion '{state.name}' has no release {release}{more}; kept are {listed}"
        )
    return release


def _refuse_last(promotion: ClusterPromotion, stage: StageState, verb: str) -> None:
    """Refuse a decision at the last stage, which no release leaves.

    Raises:
        ConflictError: it is that one.
    """
    *before, last = [each.name for each in promotion.stages]
    if stage.name == last:
        entry = f"; what goes there is decided at stage '{before[-1]}'" if before else ""
        raise ConflictError(
            f"cannot {verb} a release at stage '{last}' of promotion '{promotion.name}': it is the"
            f" last stage, which no release leaves{entry}"
        )


def _find_former(name: str, stage: StageState) -> int:
    former = [each.release for each in stage.visits if each.release != stage.release]
    if not former:
        raise ConflictError(
            f"cannot roll back promotion '{name}': stage '{stage.name}' had no other release"
        )
    return former[-1]


def _unpublish(promotion: ClusterPromotion, state: PromotionState, stage: str) -> PromotionState:
    """Have the next worker render the profile of a stage that got another release."""
    profile = promotion.profile_name(stage)
    return replace(state, unpublished=tuple(dict.fromkeys((*state.unpublished, profile))))
