"""RoleRequests give service accounts rights in selected clusters, and take them back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE, OWNER
from bellhop.errors import MissingError
from bellhop.operations.pause import find_pausable, pause_manifest
from bellhop.operations.previews import preview_now
from bellhop.state.delays import granted_timer
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.unit.events.test_access_reviews import matched, rules, there

GROUP = "rbac.authorization.k8s.io"
ACCOUNT = GVK("", "v1", "ServiceAccount")
ROLE = GVK(GROUP, "v1", "Role")
CLUSTER_ROLE = GVK(GROUP, "v1", "ClusterRole")
ROLE_BINDING = GVK(GROUP, "v1", "RoleBinding")
CLUSTER_ROLE_BINDING = GVK(GROUP, "v1", "ClusterRoleBinding")
ALL = (ACCOUNT, ROLE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)
_ANN = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "ann", "namespace": "team"},
}
PROD = "matchLabels: {env: production}"


def request(
    name: str = "anns", account: str = "ann", ref: str = "roles", *, selected: str = PROD
) -> str:
    """Return a RoleRequest for an account in the namespace team."""
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: RoleRequest
metadata: {{name: {name}}}
spec:
  clusterSelector: {{{selected}}}
  serviceAccountName: {account}
  serviceAccountNamespace: team
  roleRefs: [{{kind: ConfigMap, namespace: default, name: {ref}}}]
"""


def role(name: str = "writes", resource: str = "configmaps", namespace: str = "team") -> str:
    """Return a Role, or without a namespace a ClusterRole, for all verbs on a resource."""
    kind, place = ("Role", f", namespace: {namespace}") if namespace else ("ClusterRole", "")
    rules = f"[{{apiGroups: [''], resources: [{resource}], verbs: ['*']}}]"
    metadata = f"metadata: {{name: {name}{place}}}"
    return f"apiVersion: {GROUP}/v1\nkind: {kind}\n{metadata}\nrules: {rules}\n"


def names(kube: FakeKube, *kinds: GVK) -> list[str]:
    """Return kinds and names of what is in a cluster, without the ends of names that are made."""
    found = []
    for gvk in kinds or ALL:
        for meta in (each["metadata"] for each in kube.objects(gvk)):
            name = meta["name"] if gvk == ACCOUNT else meta["name"].rpartition("-")[0]
            found.append(f"{gvk.kind} {'/'.join(filter(None, (meta.get('namespace'), name)))}")
    return sorted(found)


def subjects(kube: FakeKube) -> list[tuple[str, str]]:
    """Return which account is bound to which role that is there."""
    return sorted(
        (f"{subject['namespace']}/{subject['name']}", each["roleRef"]["name"].rpartition("-")[0])
        for kind, roles in ((ROLE_BINDING, ROLE), (CLUSTER_ROLE_BINDING, CLUSTER_ROLE))
        for each in kube.objects(kind)
        for subject in each["subjects"]
        if each["roleRef"]["name"] in {role["metadata"]["name"] for role in kube.objects(roles)}
    )


def lives(kube: FakeKube) -> set[str]:
    """Return which lives roles and bindings have."""
    found = (each for kind in (ROLE, ROLE_BINDING) for each in kube.objects(kind))
    return {each["metadata"]["uid"] for each in found}


def outcome(fleet: Fleet, name: str = "RoleRequest:anns") -> DeploymentStatus:
    found = value_of(fleet.records.outcomes.get("fleet/east", name))
    assert found
    return found


GIVEN = ["Role team/writes", "RoleBinding team/writes", "ServiceAccount team/ann"]


def test_the_account_its_roles_and_their_bindings_are_made(fleet: Fleet, east: FakeKube) -> None:
    """A Role is bound in its namespace, a ClusterRole everywhere, both to the account."""
    fleet.deploy(request(), holder("roles", role(), role("sees", "nodes", "")))

    assert names(east) == ["ClusterRole sees", "ClusterRoleBinding sees", *GIVEN]
    assert subjects(east) == [("team/ann", "sees"), ("team/ann", "writes")]
    [binding] = east.objects(ROLE_BINDING)
    [made] = east.objects(ROLE)
    assert binding["metadata"]["name"] == made["metadata"]["name"]
    assert binding["metadata"]["annotations"]["projectsveltos.io/owner-kind"] == "RoleRequest"
    assert binding["metadata"]["annotations"][OWNER] == "RoleRequest:anns"
    assert made["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    assert outcome(fleet).phase == "Provisioned"


def test_names_stay_whatever_changes(fleet: Fleet, east: FakeKube) -> None:
    """A role with other rules, and another account, are written where the former were."""
    fleet.deploy(request(), holder("roles", role()))
    before = {
        each["metadata"]["uid"] for kind in (ROLE, ROLE_BINDING) for each in east.objects(kind)
    }

    fleet.deploy(request(account="bob"), holder("roles", role(resource="secrets")))

    after = {
        each["metadata"]["uid"] for kind in (ROLE, ROLE_BINDING) for each in east.objects(kind)
    }
    assert before == after
    assert subjects(east) == [("team/bob", "writes")]
    assert east.objects(ROLE)[0]["rules"][0]["resources"] == ["secrets"]
    assert names(east, ACCOUNT) == ["ServiceAccount team/bob"]


def test_a_name_of_any_length_is_a_name(fleet: Fleet, east: FakeKube) -> None:
    """Roles may have very long ones, and two that begin alike stay two."""
    long = "a" * 240
    fleet.deploy(request(), holder("roles", role(f"{long}-1"), role(f"{long}-2")))

    found = {each["metadata"]["name"] for each in east.objects(ROLE)}
    assert len(found) == 2
    assert all(len(each) <= 253 for each in found)


def test_what_a_roleref_holds_no_more_goes(fleet: Fleet, east: FakeKube) -> None:
    """The role and its binding; the rest stays."""
    fleet.deploy(request(), holder("roles", role(), role("sees", "nodes", "")))
    fleet.deploy(holder("roles", role()))

    assert names(east) == GIVEN


def test_it_goes_where_labels_say(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that gets the labels gets the rights, and one that loses them loses those."""
    west = fleet.register("west", env="test")
    fleet.deploy(request(), holder("roles", role()))
    assert (names(east), names(west)) == (GIVEN, [])

    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.pump()
    assert (names(east), names(west)) == ([], GIVEN)


def test_all_goes_with_the_request(fleet: Fleet, east: FakeKube) -> None:
    """The account, too; a second deletion finds none."""
    fleet.deploy(request(), holder("roles", role(), role("sees", "nodes", "")))
    fleet.delete("RoleRequest", "anns")

    assert names(east) == []
    assert fleet.records.profiles.head("", "", "RoleRequest:anns") is None
    with pytest.raises(MissingError, match="cannot delete RoleRequest 'anns': there is none"):
        fleet.declare.delete([("RoleRequest", "", "anns")])


def test_two_requests_for_an_account_do_not_affect_each_other(fleet: Fleet, east: FakeKube) -> None:
    """They may name the same roles; if one is deleted, those of the other stay."""
    fleet.deploy(request(), request("also"), holder("roles", role()))
    assert subjects(east) == [("team/ann", "writes")] * 2
    assert names(east, ACCOUNT) == ["ServiceAccount team/ann"]
    assert {outcome(fleet, f"RoleRequest:{each}").phase for each in ("anns", "also")} == {
        "Provisioned"
    }
    [owner] = {each["metadata"]["annotations"][OWNER] for each in east.objects(ACCOUNT)}

    fleet.delete("RoleRequest", owner.partition(":")[2])
    assert names(east) == GIVEN
    assert subjects(east) == [("team/ann", "writes")]
    assert {each["metadata"]["annotations"][OWNER] for each in east.objects(ACCOUNT)} != {owner}

    [left] = {"anns", "also"} - {owner.partition(":")[2]}
    fleet.delete("RoleRequest", left)
    assert names(east) == []


def test_two_accounts_may_have_the_same_roles(fleet: Fleet, east: FakeKube) -> None:
    """Each is bound by itself, and loses nothing when the other does."""
    fleet.deploy(request(), request("bobs", "bob"), holder("roles", role()))
    assert subjects(east) == [("team/ann", "writes"), ("team/bob", "writes")]

    fleet.delete("RoleRequest", "anns")
    assert subjects(east) == [("team/bob", "writes")]


def test_a_profile_of_the_same_name_is_another_one(fleet: Fleet, east: FakeKube) -> None:
    """The rights of one, and its end, are nothing to the other."""
    own = profile("clusterSelector: {matchLabels: {env: production}}", name="anns")
    fleet.deploy(request(), own, holder("roles", role()), holder("anns", config("a")))
    assert names(east) == GIVEN
    assert len(east.objects(CONFIG)) == 1

    fleet.delete("ClusterProfile", "anns")
    assert names(east) == GIVEN
    assert not east.objects(CONFIG)


def test_an_account_that_is_there_is_taken_as_it_is(fleet: Fleet, east: FakeKube) -> None:
    """It stays when the rights go, without our marks."""
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    east.put({**_ANN, "secrets": [{"name": "hers"}]})
    fleet.deploy(request(), holder("roles", role()))
    assert subjects(east) == [("team/ann", "writes")]

    fleet.delete("RoleRequest", "anns")
    [there] = east.objects(ACCOUNT)
    assert there["secrets"] == [{"name": "hers"}]
    assert OWNER not in (there["metadata"].get("annotations") or {})


def test_an_account_that_a_profile_deploys_is_used_as_it_is(fleet: Fleet, east: FakeKube) -> None:
    """The profile that deploys it keeps it; when that is deleted, the request makes the account."""
    account = json.dumps(_ANN)
    own = profile("clusterSelector: {matchLabels: {env: production}}")
    fleet.deploy(own, holder("own", account))
    fleet.deploy(request(), holder("roles", role()))
    [there] = east.objects(ACCOUNT)
    assert there["metadata"]["annotations"][OWNER] == "own"
    assert subjects(east) == [("team/ann", "writes")]
    assert outcome(fleet).phase == "Provisioned"

    fleet.delete("ClusterProfile", "own")
    [there] = east.objects(ACCOUNT)
    assert there["metadata"]["annotations"][OWNER] == "RoleRequest:anns"


def test_a_role_that_is_there_is_not_touched(fleet: Fleet, east: FakeKube) -> None:
    """Kubernetes' own `view` is not what a roleRef says that view is."""
    metadata = {"name": "view"}
    view = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []}
    before = east.put(view)
    fleet.deploy(request(), holder("roles", role("view", "pods", "")))

    assert east.get(CLUSTER_ROLE, "", "view") == before
    assert subjects(east) == [("team/ann", "view")]


@pytest.mark.parametrize("annotations", ["", "projectsveltos.io/template: ok"])
def test_what_is_no_role_is_refused(fleet: Fleet, east: FakeKube, annotations: str) -> None:
    """Nothing of it is written, and the sentence names what it is and where it belongs."""
    fleet.deploy(request(), holder("roles", role(), config("a"), annotations=annotations))

    assert names(east) == []
    said = outcome(fleet).message
    assert "ConfigMap default/roles, main.yaml holds: ConfigMap 'a' is neither a Role nor a" in said
    assert "deploy it by a ClusterProfile" in said

    fleet.apply(holder("roles", role(), annotations=annotations))
    fleet.wait(timedelta(seconds=5))
    assert names(east) == GIVEN


def test_a_binding_is_no_role(fleet: Fleet, east: FakeKube) -> None:
    """Nor is a kind of that name in another group: who is bound, the request says."""
    for written in (
        role().replace("kind: Role\n", "kind: RoleBinding\n"),
        role().replace(GROUP, "shop.io"),
    ):
        fleet.deploy(request(), holder("roles", written))
        assert "is neither a Role nor a ClusterRole" in outcome(fleet).message
    assert names(east) == []


def test_templates_are_rendered_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """A role's name may be the cluster's, as with any other policyRef."""
    west = fleet.register("west", env="production")
    named = role("of-{{ .Cluster.metadata.name }}")
    fleet.deploy(request(), holder("roles", named, annotations="projectsveltos.io/template: ok"))

    assert subjects(east) == [("team/ann", "of-east")]
    assert subjects(west) == [("team/ann", "of-west")]


def test_a_cluster_may_name_the_roles(fleet: Fleet, east: FakeKube) -> None:
    """A roleRef's name is a template over the cluster, as with any other policyRef."""
    west = fleet.register("west", env="production")
    fleet.apply(request(ref="'of-{{ .Cluster.metadata.name }}'"))
    fleet.deploy(*(holder(f"of-{each}", role(each)) for each in ("east", "west")))

    assert subjects(east) == [("team/ann", "east")]
    assert subjects(west) == [("team/ann", "west")]


def test_roles_that_are_missing_are_waited_for(fleet: Fleet, east: FakeKube) -> None:
    """The sentence names the field, and nobody has to ask again when they come."""
    fleet.deploy(request())
    assert "cannot find ConfigMap default/roles that roleRefs names; apply it" in (
        outcome(fleet).message
    )
    assert names(east) == []

    fleet.deploy(holder("roles", role()))
    assert names(east) == GIVEN


def test_a_secret_may_hold_roles(fleet: Fleet, east: FakeKube) -> None:
    """Of the type that policyRefs refer to as well."""
    fleet.deploy(
        request().replace("kind: ConfigMap", "kind: Secret"),
        f"""
apiVersion: v1
kind: Secret
metadata: {{name: roles, namespace: default}}
type: addons.projectsveltos.io/cluster-profile
stringData:
  role.yaml: {json.dumps(role())}
""",
    )

    assert subjects(east) == [("team/ann", "writes")]


def test_a_changed_role_is_corrected(fleet: Fleet, east: FakeKube) -> None:
    """Permissions that nobody requested do not last."""
    fleet.deploy(request(), holder("roles", role()))
    [there] = east.objects(ROLE)
    stored = east.put(
        {**there, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    )
    fleet.send("east", {"object": stored})
    fleet.pump()

    [back] = east.objects(ROLE)
    assert back["rules"] == there["rules"]


def test_it_deploys_only_kinds_that_its_annotation_allows(fleet: Fleet, east: FakeKube) -> None:
    """The annotation limits it as it limits a profile."""
    allowed = "bellhop.dev/allow: 'Role.rbac.authorization.k8s.io in team'"
    limited = request().replace("{name: anns}", f"{{name: anns, annotations: {{{allowed}}}}}")
    fleet.deploy(limited, holder("roles", role()))
    assert names(east) == []
    assert "RoleRequest 'anns' may not deploy a ServiceAccount in namespace 'team'" in (
        outcome(fleet).message
    )

    more = "; RoleBinding.rbac.authorization.k8s.io in team; ServiceAccount in team'"
    fleet.deploy(limited.replace("in team'", f"in team{more}"))
    assert names(east) == GIVEN


def test_who_was_denied_is_asked_when_rights_come(fleet: Fleet, east: FakeKube) -> None:
    """At once, whatever pause was set; others' denials are none of it."""
    anns = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
    bobs = anns.replace(": ann,", ": bob,")
    fleet.deploy(
        profile().replace("metadata: {", f"metadata: {{{anns}"),
        holder("own", config("a")),
        profile(name="bobs").replace("metadata: {", f"metadata: {{{bobs}"),
        holder("bobs", config("b")),
    )
    for _ in range(8):
        fleet.clock.advance(timedelta(minutes=15))
        fleet.schedule.tick()
        fleet.pump()
    assert outcome(fleet, "own").reason == "Denied"
    retry_at = outcome(fleet, "own").retry_at
    assert retry_at
    assert retry_at - fleet.clock.now() > timedelta(minutes=1)

    # What RBAC makes of the roles that are about to be written.
    east.rbac.grant("team/ann", "ConfigMap")
    before = outcome(fleet, "bobs")
    assert before.reason == "Denied"
    fleet.deploy(request(), holder("roles", role()))

    assert outcome(fleet, "own").phase == "Provisioned"
    assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["a"]
    assert outcome(fleet, "bobs") == before


def test_sources_see_by_rights_as_soon_as_they_come(fleet: Fleet, east: FakeKube) -> None:
    """A few seconds later, though the cluster denied it within the minute; no resync is due."""
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    fleet.deploy(rules(), request(account="bob"), holder("roles", role()))
    there(fleet, "web", "a")
    fleet.pump()
    assert matched(fleet) == []

    # What RBAC makes of the roles that are about to be written.
    east.rbac.grant("team/ann", "Service", "a", "get", "list")
    fleet.apply(request("more", account="bob"))
    _seconds_later(fleet)
    assert matched(fleet) == []

    fleet.deploy(request("others"))
    _seconds_later(fleet)
    assert matched(fleet) == ["a/web"]


def test_no_resync_is_requested_for_an_account_that_reads_all(fleet: Fleet, east: FakeKube) -> None:
    """Nor for an account by which no source reads."""
    east.rbac.grant("team/ann", "Service", "", "get", "list")
    fleet.deploy(rules(), holder("roles", role()))
    fleet.deploy(request(), request("bobs", account="bob"))

    assert fleet.records.timers.get(granted_timer("fleet/east")) is None


def _seconds_later(fleet: Fleet) -> None:
    fleet.pump()
    fleet.clock.advance(timedelta(seconds=3))
    fleet.schedule.tick()
    fleet.pump()


def test_a_preview_reports_changes_and_makes_none(fleet: Fleet, east: FakeKube) -> None:
    """Of two requests for one account the second has nothing to do about it."""
    fleet.apply(request(), request("also"), holder("roles", role()))
    here = fleet.installation()
    fleet.pump()
    [owner] = {each["metadata"]["annotations"][OWNER] for each in east.objects(ACCOUNT)}
    [other] = {"RoleRequest:anns", "RoleRequest:also"} - {owner}
    fleet.apply(holder("roles", role(), role("sees", "nodes", "")))

    told = {each.change.key.kind: each.change.action for each in preview_now(here, other)}

    assert told["ServiceAccount"] == "No Action"


def test_a_paused_one_stays_as_it_is(fleet: Fleet, east: FakeKube) -> None:
    """Until it goes on, with what was declared meanwhile."""
    fleet.deploy(request(), holder("roles", role()))
    here = fleet.installation()
    key = find_pausable(here, "", "RoleRequest:anns")
    assert pause_manifest(here, key, "true") == "configured"
    fleet.deploy(holder("roles", role("other")))
    assert names(east) == GIVEN

    pause_manifest(here, key, None)
    fleet.pump()
    assert names(east, ROLE) == ["Role team/other"]


def test_a_permanently_failed_profile_is_tried_when_permissions_come(
    fleet: Fleet, east: FakeKube
) -> None:
    """Nothing of the profile changes, and nobody needs `redeploy`."""
    anns = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
    own = profile(more="maxConsecutiveFailures: 1").replace("metadata: {", f"metadata: {{{anns}")
    fleet.deploy(own, holder("own", config("a")))
    assert outcome(fleet, "own").phase == "FailedNonRetriable"
    east.rbac.grant("team/ann", "ConfigMap")

    fleet.deploy(request(), holder("roles", role()))
    assert outcome(fleet, "own").phase == "Provisioned"
