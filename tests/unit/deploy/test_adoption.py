"""Whose an object is that is there already, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.deploy.features.resources.adoption import (
    NotOursError,
    SveltosDeploysError,
    adopted_from,
    left,
    meet,
)
from bellhop.deploy.features.resources.planning import (
    Adopt,
    Apply,
    Desired,
    Release,
    Remove,
    decorate,
    plan,
    undecorate,
)
from bellhop.state.content import Handling
from bellhop.state.deployment import Held

HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": "web",
        "meta.helm.sh/release-namespace": "shop",
    },
    "managedFields": [{"manager": "helm", "operation": "Update"}],
}


def make_desired(asked: str = "", *, force: bool = False) -> Desired:
    annotations = {"bellhop.dev/adopt": asked} if asked else {}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
    }
    how = Handling(force=force)
    return Desired(ObjectKey.of(manifest), manifest, "d", "ConfigMap default/addons", how=how)


def there(**metadata: Any) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "web", "uid": "there", **metadata}}


def refused(**metadata: Any) -> str:
    with pytest.raises(NotOursError) as caught:
        meet(Apply(make_desired(), None), there(**metadata), always=False)
    return str(caught.value)


def test_what_others_made_is_refused_with_who_made_it_and_how_to_adopt_it() -> None:
    """In one sentence that names the place where the annotation belongs."""
    assert refused(**HELM) == (
        "cannot apply Deployment 'shop/web': it already exists, created by Helm release 'shop/web'"
        " (field manager 'helm') and not by a profile; to take it over, annotate it in ConfigMap"
        ' default/addons with bellhop.dev/adopt: "true", or set force on that ref'
    )


@pytest.mark.parametrize(
    ("metadata", "maker"),
    [
        pytest.param({}, "somebody unknown", id="nothing tells"),
        pytest.param(
            {"managedFields": [{"manager": "kubectl-create", "operation": "Update"}]},
            "field manager 'kubectl-create'",
            id="a manager",
        ),
        pytest.param(
            {"managedFields": [{"manager": each} for each in ("a", "b", "a", "c", "d", "e")]},
            "field managers 'a', 'b', 'c' and 2 more",
            id="many managers, each once",
        ),
        pytest.param(
            {"managedFields": [{"manager": "kubelet", "subresource": "status"}, {"manager": "x"}]},
            "field manager 'x'",
            id="who writes the status alone made nothing",
        ),
        pytest.param(
            {"annotations": {"argocd.argoproj.io/tracking-id": "guestbook:apps/Deployment:a/b"}},
            "Argo CD application 'guestbook'",
            id="Argo's tracking id",
        ),
        pytest.param(
            {"labels": {"argocd.argoproj.io/instance": "guestbook"}},
            "Argo CD application 'guestbook'",
            id="Argo's label",
        ),
        pytest.param(
            {
                "labels": {
                    "kustomize.toolkit.fluxcd.io/name": "apps",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
                }
            },
            "Flux Kustomization 'flux-system/apps'",
            id="Flux",
        ),
        pytest.param(
            {"ownerReferences": [{"kind": "WebApp", "name": "shop"}]},
            "its owner WebApp 'shop'",
            id="an owner",
        ),
        pytest.param(
            {"ownerReferences": "none", "managedFields": {"a": 1}, "labels": [1]},
            "somebody unknown",
            id="what is no list",
        ),
        pytest.param(
            {"managedFields": [{"manager": "evil\x1b[31m\n" + 100 * "x"}]},
            "field manager 'evil [31m " + 54 * "x" + "…'",
            id="what would act on a terminal",
        ),
    ],
)
def test_names_the_owner(metadata: dict[str, Any], maker: str) -> None:
    """By every sign that there is of it."""
    assert f"created by {maker} and not by a profile" in refused(**metadata)


@pytest.mark.parametrize(
    ("desired", "always"),
    [
        pytest.param(make_desired("true"), False, id="by its annotation"),
        pytest.param(make_desired(force=True), False, id="by force"),
        pytest.param(make_desired(), True, id="by the setting"),
    ],
)
def test_what_is_asked_for_is_adopted(desired: Desired, always: bool) -> None:  # noqa: FBT001
    """In the life in which it was seen, and marked with who made it."""
    step = meet(Apply(desired, None), there(**HELM), always=always)

    assert step == Adopt(desired, None, "there", "Helm release 'shop/web' (field manager 'helm')")
    annotations = decorate(desired, "own", 100, step.adopted)["metadata"]["annotations"]
    assert annotations["bellhop.dev/adopted"] == "Helm release 'shop/web' (field manager 'helm')"
    assert "bellhop.dev/adopt" not in annotations


def test_what_is_adopted_for_good_bears_no_mark_of_it() -> None:
    """It is from then on as if a profile had made it."""
    step = meet(Apply(make_desired("own"), None), there(**HELM), always=False)

    assert isinstance(step, Adopt)
    assert step.adopted == ""


@pytest.mark.parametrize("asked", ["false", "yes"])
def test_another_word_asks_for_nothing(asked: str) -> None:
    """What a policy cannot have, a profile's extraAnnotations may."""
    with pytest.raises(NotOursError):
        meet(Apply(make_desired(asked), None), there(), always=False)


def test_what_is_there_no_more_is_made() -> None:
    """Only where there is none still, and by nobody's mark."""
    step = Apply(make_desired("true"), Held("d", "r", uid="gone"), "gone", "kubectl")

    assert meet(step, None, always=False) == Apply(step.desired, step.held)


def test_the_life_that_was_meant_is_written_to_again() -> None:
    """A worker that lost the race for it has nothing to decide."""
    step = Apply(make_desired(), Held("d", "r", uid="there"), "there", "kubectl")

    assert meet(step, there(), always=False) is step


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"projectsveltos.io/owner-name": "p"}}, id="marked"),
        pytest.param({"labels": {"projectsveltos.io/reference-name": "p"}}, id="by an old Sveltos"),
        pytest.param(
            {"managedFields": [{"manager": "bellhop", "operation": "Apply"}]},
            id="a namespace that was made for an object",
        ),
    ],
)
def test_what_a_profile_made_is_written_to(metadata: dict[str, Any]) -> None:
    """The ownership records name its owner, and nobody has to ask."""
    assert meet(Apply(make_desired(), None), there(**metadata), always=False).life == "there"


def test_an_adopted_object_stays_adopted_by_its_own_word() -> None:
    """The next worker after a death, or the next profile, finds the mark."""
    marks = {"projectsveltos.io/owner-name": "other", "bellhop.dev/adopted": "kubectl"}

    step = meet(Apply(make_desired(), None), there(annotations=marks), always=False)

    assert (step.life, step.adopted) == ("there", "kubectl")
    assert isinstance(step, Apply)


@pytest.mark.parametrize(("asked", "adopted"), [("", "kubectl"), ("true", "kubectl"), ("own", "")])
def test_an_adopted_object_stays_so_until_it_is_made_ours(asked: str, adopted: str) -> None:
    """Taking the annotation away changes nothing."""
    desired = make_desired(asked)
    held = {desired.key.identity: Held("old", "r", uid="there", adopted="kubectl")}

    (step,) = plan([desired], held).applies

    assert (step.life, step.adopted) == ("there", adopted)


@pytest.mark.parametrize(
    ("held", "leaves"),
    [
        pytest.param(Held("d", "r", uid="u"), Remove, id="made"),
        pytest.param(Held("d", "r", uid="u", adopted="kubectl"), Release, id="adopted"),
        pytest.param(Held("", "r", adopted="kubectl"), Remove, id="unsure: its marks will tell"),
    ],
)
def test_what_was_adopted_is_left(held: Held, leaves: type) -> None:
    """It was there before the profile came."""
    (step,) = plan([], {make_desired().key.identity: held}).removals

    assert isinstance(step, leaves)


@pytest.mark.parametrize(
    ("annotations", "leaves"), [({}, Remove), ({"bellhop.dev/adopted": "kubectl"}, Release)]
)
def test_marks_restore_what_no_record_has(annotations: dict[str, str], leaves: type) -> None:
    """A worker that died between adoption and its record has marked it before."""
    step = Remove(make_desired().key.identity, Held("", "r"))

    assert isinstance(left(step, there(annotations=annotations)), leaves)


def test_what_is_left_bears_no_mark() -> None:
    """Neither that it came from a profile, which did not make it, nor that it was adopted."""
    adopted = decorate(make_desired("true"), "own", 100, "kubectl")
    assert adopted_from(adopted) == "kubectl"

    annotations = undecorate(adopted)["metadata"]["annotations"]
    assert set(annotations.values()) == {None}
    assert {"bellhop.dev/adopted", "projectsveltos.io/owner-name"} <= annotations.keys()


SVELTOS = {
    "labels": {"projectsveltos.io/reason": "Resources"},
    "annotations": {
        "projectsveltos.io/owner-kind": "ClusterProfile",
        "projectsveltos.io/owner-name": "web",
    },
    "managedFields": [{"manager": "application/apply-patch", "operation": "Apply"}],
}
OURS = {"manager": "bellhop", "operation": "Apply"}


@pytest.mark.parametrize("always", [False, True])
def test_what_sveltos_deploys_is_refused_until_it_is_released(always: bool) -> None:  # noqa: FBT001
    """The sentence names Sveltos' profile, and what to do; no setting overrides it."""
    with pytest.raises(SveltosDeploysError) as caught:
        meet(Apply(make_desired(), None), there(**SVELTOS), always=always)

    assert str(caught.value) == (
        "cannot apply Deployment 'shop/web': Sveltos deploys it for its ClusterProfile 'web';"
        " release it there first, or annotate it in ConfigMap default/addons with"
        ' bellhop.dev/adopt: "true" to take it over'
    )


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"projectsveltos.io/hash": "1"}}, id="it was released"),
        pytest.param(
            {"managedFields": [*SVELTOS["managedFields"], OURS]}, id="a profile of ours has it"
        ),
        pytest.param(
            {"managedFields": [{"manager": "velero-server", "operation": "Update"}]},
            id="a backup brought it back",
        ),
    ],
)
def test_what_sveltos_deploys_no_more_is_a_profiles(metadata: dict[str, Any]) -> None:
    """It is written to where it is, and is not kept as an adopted one is."""
    step = meet(Apply(make_desired(), None), there(**SVELTOS | metadata), always=False)

    assert step == Apply(make_desired(), None, "there")


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param(make_desired("true"), id="by the annotation"),
        pytest.param(make_desired(force=True), id="by force"),
    ],
)
def test_what_sveltos_deploys_is_taken_over_where_that_is_asked(desired: Desired) -> None:
    """As when the management cluster is lost, and nobody can release anything."""
    step = meet(Apply(desired, None), there(**SVELTOS), always=False)

    assert step == Apply(desired, None, "there")
