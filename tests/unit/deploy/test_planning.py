"""Plans, made from desired and owned objects; and the ownership labels of objects."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.deploy.features.resources.planning import (
    Desired,
    Plan,
    Release,
    Remove,
    decorate,
    desired_objects,
    disputed,
    plan,
    undecorate,
)
from bellhop.state.content import Content, Handling
from bellhop.state.deployment import Held


def manifest(kind: str, name: str, **more: Any) -> dict[str, Any]:
    versions = {"Deployment": "apps/v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}
    return {
        "apiVersion": versions.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": name},
        **more,
    }


def want(*manifests: dict[str, Any], ref: str = "ConfigMap default/a", tier: int = 100) -> Any:
    return desired_objects([Content(ref, "main.yaml", manifests)], tier=tier)


def held(objects: tuple[Desired, ...]) -> dict[Identity, Held]:
    return {each.key.identity: Held(each.digest, each.ref) for each in objects}


def applied(steps: Plan) -> tuple[Desired, ...]:
    return tuple(each.desired for each in steps.applies)


def left(steps: Plan) -> tuple[Identity, ...]:
    return tuple(each.key for each in steps.removals)


def test_applies_what_is_not_held() -> None:
    """In the order in which they are written, where nothing needs anything."""
    objects = want(manifest("ConfigMap", "b"), manifest("ConfigMap", "a"))

    steps = plan(objects, {})

    assert (applied(steps), left(steps), steps.unchanged) == (objects, (), ())


def test_does_nothing_with_what_is_held_as_desired() -> None:
    """Whatever the order of an object's keys."""
    first = want({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}})
    second = want({"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "ConfigMap"})

    steps = plan(second, held(first))

    assert (applied(steps), left(steps)) == ((), ())
    assert steps.unchanged == (first[0].key.identity,)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        pytest.param(want(manifest("ConfigMap", "a", data={"x": "2"})), "content", id="content"),
        pytest.param(want(manifest("ConfigMap", "a", data={"x": 1})), "type", id="type"),
        pytest.param(
            want(manifest("ConfigMap", "a", data={"x": "1"}), ref="ConfigMap default/b"),
            "ref",
            id="where it is written",
        ),
        pytest.param(want(manifest("ConfigMap", "a", data={"x": "1"}), tier=7), "tier", id="tier"),
    ],
)
def test_applies_again_a_changed_desired_state(now: tuple[Desired, ...], why: str) -> None:
    """All that an applied object says of itself counts."""
    before = held(want(manifest("ConfigMap", "a", data={"x": "1"})))

    assert applied(plan(now, before)) == now, why


def test_an_object_stays_itself_in_another_version_of_its_kind() -> None:
    """A raised apiVersion is applied, and nothing is removed."""
    old, new = (
        want({"apiVersion": f"policy/{each}", "kind": "PodDisruptionBudget", "metadata": {}})
        for each in ("v1beta1", "v1")
    )

    steps = plan(new, held(old))

    assert (applied(steps), left(steps)) == (new, ())


def test_one_object_in_two_versions_is_two_forms() -> None:
    """Two versions of one object in one profile contradict each other."""
    both = [
        {"apiVersion": f"policy/{each}", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}}
        for each in ("v1beta1", "v1")
    ]

    (rival,) = plan(want(*both), {}).rivals
    assert "two forms" in str(rival)


def test_applies_again_what_had_only_begun() -> None:
    """An empty digest is nobody's."""
    objects = want(manifest("ConfigMap", "a"))

    assert applied(plan(objects, {objects[0].key.identity: Held("", "x")})) == objects


def test_removes_what_is_no_longer_desired() -> None:
    """Also what had only begun: it may be there."""
    before = {
        **held(want(manifest("ConfigMap", "a"))),
        ObjectKey.of(manifest("Pod", "b")).identity: Held("", ""),
    }

    steps = plan((), before)

    assert set(left(steps)) == set(before)
    assert applied(steps) == ()


def test_what_others_need_is_removed_last() -> None:
    """By kind: nobody knows any more in which order it was written."""
    kinds = [
        "ValidatingWebhookConfiguration",
        "Deployment",
        "Service",
        "RoleBinding",
        "ClusterRole",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "CustomResourceDefinition",
        "Namespace",
    ]
    objects = want(*(manifest(kind, "x") for kind in kinds))

    removed = [key.kind for key in left(plan((), held(objects)))]

    assert removed[-1] == "Namespace"
    assert removed.index("Deployment") < removed.index("Secret")
    assert removed.index("RoleBinding") < removed.index("ClusterRole")
    assert removed[0] == "ValidatingWebhookConfiguration"


def test_objects_are_applied_in_the_order_in_which_they_were_written() -> None:
    """Definitions and namespaces are moved to the front, what an API server calls to the end."""
    kinds = [
        "APIService",
        "Deployment",
        "Bell",
        "Secret",
        "CustomResourceDefinition",
        "ConfigMap",
        "Namespace",
        "Deployment",
    ]
    objects = want(*(manifest(kind, f"x{number}") for number, kind in enumerate(kinds)))

    phases = [[each.key.kind for each in phase] for phase in plan(objects, {}).apply_phases]

    assert phases == [
        ["Namespace"],
        ["CustomResourceDefinition"],
        ["Deployment", "Bell"],
        ["Secret"],
        ["ConfigMap"],
        ["Deployment"],
        ["APIService"],
    ]


def test_equal_objects_of_two_refs_are_one() -> None:
    """The first ref has it."""
    first, second = want(manifest("Pod", "a")), want(manifest("Pod", "a"), ref="Secret default/b")

    assert applied(plan((*first, *second), {})) == first


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(manifest("Pod", "a", spec={"on": False}), id="another value"),
        pytest.param(manifest("Pod", "a", spec={"on": 1}), id="1 is not true"),
        pytest.param(manifest("Pod", "a", spec={"on": 1.0}), id="1.0 is not true"),
    ],
)
def test_one_object_in_two_forms_is_a_conflict(other: dict[str, Any]) -> None:
    """The first is applied, and both places are named."""
    first = want(manifest("Pod", "a", spec={"on": True}))

    made = plan((*first, *want(other, ref="Secret default/b")), {})

    assert applied(made) == first
    (rival,) = made.rivals
    assert str(rival) == (
        "cannot apply Pod '/a': ConfigMap default/a and Secret default/b of one profile want it in"
        " two forms, of which the first is deployed; give the ref that is to win a lower tier"
    )


def test_the_ref_of_the_lower_tier_wins_and_contradicts_nobody() -> None:
    """Wherever it stands in the profile."""
    contents = [
        Content("ConfigMap default/a", "x", (manifest("Pod", "a", spec={"on": True}),)),
        Content(
            "ConfigMap default/b",
            "x",
            (manifest("Pod", "a", spec={"on": False}),),
            how=Handling(tier=50),
        ),
    ]
    first, second = desired_objects(contents, tier=100)

    made = plan((first, second), {})

    assert (applied(made), made.rivals) == ((second,), ())


@pytest.mark.parametrize("continues", [False, True])
def test_a_conflict_within_a_profile_removes_nothing(*, continues: bool) -> None:
    """And objects behind it are applied only if the profile continues with conflicts."""
    on, off = (manifest("Pod", "a", spec={"on": each}) for each in (True, False))
    objects = want(on, off, manifest("Pod", "b"))
    before = held(want(manifest("Pod", "old")))

    made = plan(objects, before, despite_rivals=continues)

    assert [each.key.name for each in applied(made)] == (["a", "b"] if continues else ["a"])
    assert left(made) == ()
    assert len(made.rivals) == 1


def test_an_object_with_values_of_a_secret_is_marked_as_one() -> None:
    """Its errors are not quoted: a Secret, and whatever a template wrote with a Secret in reach."""
    plain, secret = manifest("ConfigMap", "a"), manifest("Secret", "b")
    contents = [
        Content("ConfigMap default/a", "x", (plain, secret)),
        Content("ConfigMap default/b", "x", (manifest("ConfigMap", "c"),), secret=True),
    ]

    marked = [each.secret for each in desired_objects(contents, tier=100)]

    assert marked == [False, True, True]


def test_an_adopted_or_local_object_is_released_and_not_removed() -> None:
    """A Local one only while its ref stays: it may have been for a cluster that is left."""
    ref = "ConfigMap default/a"
    before = {
        ObjectKey.of(manifest("Pod", name)).identity: each
        for name, each in {
            "adopted": Held("x", ref, uid="u", adopted="kubectl"),
            "never adopted": Held("x", ref, adopted="kubectl"),
            "local": Held("x", ref, local=True),
            "local of another ref": Held("x", "ConfigMap default/b", local=True),
            "own": Held("x", ref, uid="u"),
        }.items()
    }

    made = plan((), before, staying=(ref,), untouched=True)

    released = [each for each in made.removals if isinstance(each, Release)]
    assert {each.key.name for each in released} == {"adopted", "local"}
    assert all(each.untouched for each in released)
    assert {each.key.name for each in made.deletions} == {
        "never adopted",
        "local of another ref",
        "own",
    }
    assert {each.key: each.held for each in made.removals} == before
    assert not any(isinstance(each, Remove) for each in plan((), before, releases=True).removals)


@pytest.mark.parametrize(
    ("cluster_form", "error"),
    [
        pytest.param(
            "fleet/west",
            "cannot apply Pod '/a': it is Local, and ConfigMap default/a makes it otherwise for"
            " cluster 'fleet/east' than for 'fleet/west'; render the cluster's name into its name,"
            " to have one for each",
            id="of two clusters",
        ),
        pytest.param(
            "fleet/east",
            "cannot apply Pod '/a': ConfigMap default/a for cluster 'fleet/east' holds it twice, in"
            " two forms; take one of them out",
            id="of one cluster",
        ),
    ],
)
def test_two_forms_of_a_local_object_name_their_clusters(cluster_form: str, error: str) -> None:
    """No form is deployed, since each is as good as the other."""
    how = Handling(local=True)
    one, other = (
        desired_objects(
            [
                Content(
                    "ConfigMap default/a", "x", (manifest("Pod", "a", spec={"on": on}),), how=how
                )
            ],
            tier=100,
            target=cluster,
        )
        for on, cluster in ((True, "fleet/east"), (False, cluster_form))
    )

    (found,) = disputed((*one, *other)).values()

    assert str(found) == error


def test_marks_say_where_an_object_comes_from() -> None:
    """What the manifest says itself stays; marks that lie are put right."""
    (each,) = want(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "a",
                "namespace": "written",
                "labels": {"app": "x"},
                "annotations": {"note": "y", "projectsveltos.io/owner-name": "forged"},
            },
        }
    )
    placed = Desired(each.key._replace(namespace="placed"), each.manifest, each.digest, each.ref)

    assert decorate(placed, "p", 7)["metadata"] == {
        "name": "a",
        "namespace": "placed",
        "labels": {"app": "x", "projectsveltos.io/reason": "Resources"},
        "annotations": {
            "note": "y",
            "projectsveltos.io/hash": f"sha256:{each.digest}",
            "projectsveltos.io/reference-kind": "ConfigMap",
            "projectsveltos.io/reference-namespace": "default",
            "projectsveltos.io/reference-name": "a",
            "projectsveltos.io/reference-tier": "100",
            "projectsveltos.io/owner-kind": "ClusterProfile",
            "projectsveltos.io/owner-name": "p",
            "projectsveltos.io/owner-tier": "7",
        },
    }
    assert each.manifest["metadata"]["namespace"] == "written"


@pytest.mark.parametrize("nothing", [pytest.param({}, id="absent"), pytest.param(None, id="null")])
def test_an_object_without_a_namespace_gets_none(nothing: Any) -> None:
    """Labels and annotations that are null are as good as none."""
    metadata = {"name": "a", "namespace": "x", "labels": nothing, "annotations": nothing}
    (each,) = want({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    placed = Desired(each.key._replace(namespace=""), each.manifest, each.digest, each.ref)

    assert "namespace" not in decorate(placed, "p", 100)["metadata"]


def test_takes_the_marks_from_an_object_and_nothing_else() -> None:
    """All of them, in just the state that was read; it says which profile had made it."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    each = Desired(ObjectKey.of(manifest), manifest, "d", "ConfigMap default/c/main.yaml")
    metadata = decorate(each, "p", 100)["metadata"]

    patch = undecorate({"metadata": {**metadata, "resourceVersion": "7"}})["metadata"]

    assert patch["resourceVersion"] == "7"
    for part in ("labels", "annotations"):
        marks = {"bellhop.dev/made-by": "p"} if part == "annotations" else {}
        assert patch[part].items() >= {**dict.fromkeys(metadata[part]), **marks}.items()
        ours = ("projectsveltos.io/", "bellhop.dev/adopted")
        assert all(mark.startswith(ours) for mark in patch[part].keys() - marks.keys())
    assert "managedFields" not in patch


@pytest.mark.parametrize(
    ("managers", "kept"),
    [
        pytest.param(["bellhop", "kubectl"], [{"manager": "kubectl"}], id="others stay"),
        pytest.param(["bellhop"], [{}], id="an empty list would change nothing"),
    ],
)
def test_manages_no_field_of_what_it_leaves(managers: list[str], kept: list[Any]) -> None:
    """The next field manager to apply the object meets no conflict with us."""
    fields = [{"manager": each} for each in managers]

    assert undecorate({"metadata": {"managedFields": fields}})["metadata"]["managedFields"] == kept
