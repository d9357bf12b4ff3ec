"""What the users of a World may declare, each in its variants."""

from __future__ import annotations

from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from tests.fakes.health import cluster_check, health_check
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def _made(name: str, value: str) -> str:
    return config(name, f"v: '{value}'", namespace="made")


def _also(api_version: str, kind: str) -> str:
    return f"""
apiVersion: {api_version}
kind: {kind}
metadata: {{name: also, namespace: made}}
"""


def _team(selected: str) -> str:
    return profile(selected, namespace="fleet", more="tier: 60")


def _set(selected: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: Set
metadata: {{name: own, namespace: fleet}}
spec: {{{selected}}}
"""


def _class(selected: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {{name: rings}}
spec:
  deployedResourceConstraint:
    resourceSelectors: [{{group: '', version: v1, kind: Service, {selected}}}]
  classifierLabels: [{{key: class, value: rings}}]
"""


_ANN = f"{ACCOUNT_NAMESPACE}: team, {ACCOUNT_NAME}: ann"
_RING = ", selector: {matchLabels: {ring: 'yes'}}"
_ENG = "destinationClusterSelector: {matchLabels: {dep: eng}}"
_WORDS = ("preDeployChecks", "validateHealths", "preDeleteChecks", "postDeleteChecks")


def _check(when: str) -> str:
    """Ask of the ConfigMaps in kube-system that none of them says no to what is checked."""
    script = f'function evaluate() return {{healthy = (obj.data or {{}}).{when} ~= "no"}} end'
    kind = "featureID: Resources, version: v1, kind: ConfigMap, namespace: kube-system"
    return f"  {when}: [{{name: gate, {kind}, script: '{script}'}}]"


def _checked(tier: int) -> str:
    more = "\n".join((f"tier: {tier}", *map(_check, _WORDS)))
    return profile("clusterSelector: {matchLabels: {dep: eng}}", name="checked", more=more)


_WEST = "clusterRefs: [{namespace: fleet, name: west, kind: SveltosCluster}]"
_HERE = "here-{{ .Cluster.metadata.name }}"
_DEPLOY = "projectsveltos.io/template: ok"


def _local(selected: str) -> str:
    here = "{kind: ConfigMap, name: here, namespace: default, deploymentType: Local}"
    near = "[{kind: ConfigMap, name: near, namespace: default}"
    one = profile(selected, name="local").replace("name: local, namespace", "name: near, namespace")
    return one.replace(f"{near}]", f"{near}, {here}]")


_READ = '{{ with getResource "Read" }}{{ .metadata.labels.v }}{{ else }}none{{ end }}'


def _reads(name: str) -> str:
    read = f"{{apiVersion: shop.io/v1, kind: Widget, namespace: default, name: {name}}}"
    refs = f"templateResourceRefs: [{{resource: {read}, identifier: Read, optional: true}}]"
    more = refs if name else ""
    return profile("clusterSelector: {matchLabels: {dep: eng}}", name="reads", more=more)


def _grant(label: str) -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: RoleRequest
metadata: {{name: grant}}
spec:
  clusterSelector: {{matchLabels: {{{label}}}}}
  serviceAccountName: ann
  serviceAccountNamespace: made
  roleRefs: [{{kind: ConfigMap, namespace: default, name: grant}}]
"""


def _unwell(condition: str) -> str:
    return f"""
function evaluate()
  local found = {{}}
  for _, each in ipairs(resources) do
    if each.metadata.labels.v {condition} then
      table.insert(found, {{resource = each, healthStatus = "Degraded"}})
    end
  end
  return {{resources = found}}
end
"""


def _role(name: str, verb: str = "get") -> str:
    return f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {name}, namespace: made}}
rules: [{{apiGroups: [''], resources: [configmaps], verbs: ['{verb}']}}]
"""


_EACH = "each-{{ .Cluster.metadata.name }}-{{ lower .Resource.kind }}-{{ .Resource.metadata.name }}"
_V = "{{ .Resource.metadata.labels.v }}"
_ALL = "{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}"
_LATER = '{{ "{{ len .Cluster.metadata.labels }}" }}'
_BOTH = "projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok"
_FLIP = 'flip-{{ .Cluster.metadata.name }}{{ with get . "Resource" }}-{{ .metadata.name }}{{ end }}'
_TOLD = "told-{{ .Cluster.metadata.name }}-{{ .CloudEvent.subject }}"
_ENDS = 'if eq .CloudEvent.type "removed"'
_ACTION = f"cloudEventAction: '{{{{ {_ENDS} }}}}Delete{{{{ else }}}}Create{{{{ end }}}}'"
_HEARD = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: heard}
spec:
  messagingMatchCriteria: [{cloudEventType: built|removed}]
"""

WATCHED: Key = ("EventSource", "", "watched")
OF_EAST: Key = ("EventSource", "", "of-east")
EACH: Key = ("EventTrigger", "", "each")
ALL: Key = ("EventTrigger", "", "all")
FLIP: Key = ("EventTrigger", "", "flip")
EACH_TEXT: Key = ("ConfigMap", "default", "each")
ALL_TEXT: Key = ("ConfigMap", "default", "all")
FLIP_TEXT: Key = ("ConfigMap", "default", "flip")
OWN: Key = ("ClusterProfile", "", "own")
OWN_TEXT: Key = ("ConfigMap", "default", "own")
TEAM: Key = ("Profile", "fleet", "own")
TEAM_SET: Key = ("Set", "fleet", "own")
TEAM_TEXT: Key = ("ConfigMap", "fleet", "own")
CHECKED: Key = ("ClusterProfile", "", "checked")
CHECKED_TEXT: Key = ("ConfigMap", "default", "checked")
THEN: Key = ("ClusterProfile", "", "then")
THEN_TEXT: Key = ("ConfigMap", "default", "then")
LASTING: Key = ("ClusterProfile", "", "lasting")
LASTING_TEXT: Key = ("ConfigMap", "default", "lasting")
HEARD: Key = ("EventSource", "", "heard")
TOLD: Key = ("EventTrigger", "", "told")
TOLD_TEXT: Key = ("ConfigMap", "default", "told")
CLASS: Key = ("Classifier", "", "rings")
CLASSED: Key = ("ClusterProfile", "", "classed")
CLASSED_TEXT: Key = ("ConfigMap", "default", "classed")

LOCAL: Key = ("ClusterProfile", "", "local")
NEAR_TEXT: Key = ("ConfigMap", "default", "near")
HERE_TEXT: Key = ("ConfigMap", "default", "here")
GRANT: Key = ("RoleRequest", "", "grant")
GRANT_TEXT: Key = ("ConfigMap", "default", "grant")
THEIRS: Key = ("ClusterProfile", "", "theirs")
THEIRS_TEXT: Key = ("ConfigMap", "default", "theirs")
READS: Key = ("ClusterProfile", "", "reads")
READS_TEXT: Key = ("ConfigMap", "default", "reads")
HEALTH: Key = ("HealthCheck", "", "services")
ALIVE: Key = ("ClusterHealthCheck", "", "alive")

DECLARED: dict[Key, tuple[str, ...]] = {
    WATCHED: (
        source(more=_RING),
        source(),
        source("ServiceAccount", more=_RING),
        source("Widget", more=_RING, group="shop.io"),
        source(more=_RING).replace("metadata: {", f"metadata: {{labels: {{{_ANN}}}, "),
    ),
    OF_EAST: (source(name="of-east", more=_RING),),
    EACH: (
        trigger("each"),
        trigger("each", more=_ENG),
        trigger("each", more="tier: 70"),
    ),
    ALL: (
        trigger("all", one="false"),
        trigger("all", one="false", more=_ENG),
        trigger("all", origin="of-{{ .Cluster.metadata.name }}", one="false", more="tier: 70"),
    ),
    FLIP: (
        trigger("flip"),
        trigger("flip", one="false"),
    ),
    EACH_TEXT: (
        holder("each", _made(_EACH, f"v{_V}"), annotations=INSTANTIATE),
        holder("each", _made(_EACH, f"w{_V}"), annotations=INSTANTIATE),
        holder("each", _made(_EACH, f"{_LATER}-{_V}"), annotations=_BOTH),
    ),
    ALL_TEXT: (
        holder("all", _made("all-{{ .Cluster.metadata.name }}", _ALL), annotations=INSTANTIATE),
    ),
    FLIP_TEXT: (holder("flip", _made(_FLIP, "1"), annotations=INSTANTIATE),),
    OWN: (
        profile("clusterSelector: {matchLabels: {dep: eng}}", more="tier: 50"),
        profile(
            "clusterSelector: {matchLabels: {dep: eng}}",
            more="tier: 200\n  continueOnConflict: true",
        ),
        profile(
            "clusterRefs: [{namespace: fleet, name: east, kind: SveltosCluster}]", more="tier: 50"
        ),
    ),
    OWN_TEXT: (
        holder("own", _made("own", "1")),
        holder("own", _made("own", "2"), _made("all-east", "mine")),
        holder("own", _made("own", "1"), _also("policy/v1beta1", "PodDisruptionBudget")),
        holder("own", _made("own", "1"), _also("policy/v1", "PodDisruptionBudget")),
        holder("own", _made("own", "1"), _also("shop.io/v1", "Gadget")),
    ),
}
"""Manifests that users may apply, each in its variants; `own` and `all` may have one object.

Where `own` loses that to `all` it goes on with its others. Without `continueOnConflict` nothing of
it would change until the object is free, and what is there in the end would be a question of what
was there before: no model that is a function of what is could say.
"""

DRAWN = sorted(DECLARED)
"""What is declared at random."""

DECLARED |= {
    TEAM: (
        _team("clusterSelector: {matchLabels: {dep: eng}}"),
        _team("clusterRefs: [{name: west}]"),
        _team("setRefs: [own]"),
    ),
    TEAM_SET: (
        _set("clusterSelector: {matchLabels: {dep: eng}}"),
        _set("clusterRefs: [{name: west}]"),
    ),
    TEAM_TEXT: (
        holder("own", _made("team", "1"), namespace="fleet"),
        holder("own", _made("team", "2"), namespace="fleet"),
        holder("own", _made("own", "3"), namespace="fleet"),
    ),
}
"""A Profile and a Set: only in histories, as the first one owns an object of several."""

DECLARED |= {
    CHECKED: (_checked(50), _checked(60)),
    CHECKED_TEXT: (
        holder("checked", _made("checked", "1")),
        holder("checked", _made("checked", "2")),
    ),
    CLASS: (_class("selector: {matchLabels: {ring: 'yes'}}"), _class("name: b")),
    CLASSED: (profile("clusterSelector: {matchLabels: {class: rings}}", name="classed"),),
    CLASSED_TEXT: (holder("classed", _made("classed", "1")),),
}
"""Manifests that no draw applies: a profile that is checked at each time, as no draw opens gates;
and a label that clusters get by their contents, and its add-on."""

KEYS = [*DRAWN, TEAM, TEAM_SET, TEAM_TEXT, CHECKED, CHECKED_TEXT, CLASS, CLASSED, CLASSED_TEXT]

DECLARED |= {
    HEARD: (_HEARD,),
    TOLD: (trigger("told", origin="heard", more=_ACTION),),
    TOLD_TEXT: (holder("told", _made(_TOLD, "v{{ .CloudEvent.data }}"), annotations=INSTANTIATE),),
}
"""The add-ons of CloudEvents; nobody applies it at random, as no draw sends any."""

DECLARED |= {
    THEN: (
        profile("clusterSelector: {matchLabels: {dep: eng}}", name="then", more="dependsOn: [own]"),
        profile("clusterSelector: {matchLabels: {dep: eng}}", name="then"),
        profile("clusterSelector: {matchLabels: {dep: eng}}", name="then", more="maxUpdate: 1"),
    ),
    THEN_TEXT: (holder("then", _made("then", "1")), holder("then", _made("then", "2"))),
}
"""A profile that comes after `own`, or does not, or goes to one cluster at a time.

In histories in which `own` ends well.
"""

DECLARED |= {
    LASTING: (
        profile(
            "clusterSelector: {matchLabels: {dep: eng}}",
            name="lasting",
            more="stopMatchingBehavior: LeavePolicies",
        ),
    ),
    LASTING_TEXT: (
        holder("lasting", _made("lasting", "1")),
        holder("lasting", _made("lasting", "2")),
    ),
}
"""A profile that leaves its objects where it goes, in histories in which it comes back."""

DECLARED |= {
    LOCAL: (_local("clusterSelector: {matchLabels: {dep: eng}}"), _local(_WEST)),
    NEAR_TEXT: (holder("near", _made("near", "1")), holder("near", _made("near", "2"))),
    HERE_TEXT: (
        holder("here", _made(_HERE, "{{ len .Cluster.metadata.labels }}"), annotations=_DEPLOY),
        holder("here", _made(_HERE, "w"), _made("common", "1"), annotations=_DEPLOY),
    ),
    GRANT: (_grant("dep: eng"), _grant("env: production")),
    GRANT_TEXT: (
        holder("grant", _role("reads")),
        holder("grant", _role("reads"), _role("writes")),
        holder("grant", _role("acts", "*")),
    ),
}
"""A profile that is Local in part, and a RoleRequest: in random worlds only some have them."""

DECLARED |= {
    THEIRS: (
        profile("clusterSelector: {matchLabels: {dep: eng}}", name="theirs").replace(
            "metadata: {", f"metadata: {{labels: {{{_ANN.replace('team', 'made')}}}, "
        ),
    ),
    THEIRS_TEXT: (holder("theirs", _made("theirs", "1")), holder("theirs", _made("theirs", "2"))),
}
"""A profile by the rights of that RoleRequest, in histories in which it leaves before them."""

HOSTED = (LOCAL, NEAR_TEXT, HERE_TEXT)
GRANTED = (GRANT, GRANT_TEXT)

DECLARED |= {
    HEALTH: (health_check(_unwell('== "1"')), health_check(_unwell('~= "0"'))),
    ALIVE: (cluster_check("alive"),),
}
"""A check of Services by a label: in random worlds only some have it."""

JUDGED = (HEALTH, ALIVE)

DECLARED |= {
    READS: (_reads("price"), _reads("other"), _reads("")),
    READS_TEXT: (holder("reads", _made("reads", _READ), annotations=_DEPLOY),),
}
"""A profile whose template reads a Widget of `mgmt/mgmt`, one or another, or none."""

READING = (READS, READS_TEXT)

STEPS = [*KEYS, THEN, THEN_TEXT, LASTING, LASTING_TEXT, *HOSTED, *GRANTED, *JUDGED]
STEPS += [THEIRS, THEIRS_TEXT, *READING]
"""What steps declare and delete, by number."""

PLAIN = {OWN_TEXT: 3, WATCHED: 4, GRANT_TEXT: 2}
"""How many variants are chosen at random, where it is not all: steps of their own take the rest."""
