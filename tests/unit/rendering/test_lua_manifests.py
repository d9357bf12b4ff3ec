"""`projectsveltos.io/lua`: a script writes the manifests of a ConfigMap or Secret."""

from __future__ import annotations

import textwrap

import pytest

from bellhop.settings import Settings
from bellhop.state.content import NO_OBJECT
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, holder, join, profile, source, trigger

LUA = "projectsveltos.io/lua: ok"
READS = """templateResourceRefs:
  - identifier: Colours
    resource: {apiVersion: v1, kind: %s, namespace: default, name: colours}
"""
FROM = """
function evaluate()
  local text = ""
  for name, value in pairs(resources["Colours"].data) do
    text = text .. [[
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ]] .. name .. [[, namespace: default}
data: {v: "]] .. value .. [["}
]]
  end
  return {resources = text}
end
"""
COLOURS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, namespace: default}
data: {sky: blue, sun: red}
"""
ONE = """
function evaluate()
  return {resources = [[{apiVersion: v1, kind: ConfigMap,
    metadata: {name: one, namespace: default}, data: {v: "VALUE"}}]]}
end
"""


def said(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def secret(name: str, text: str, *, kind: str = "", annotations: str = "") -> str:
    body = textwrap.indent(text, "    ")
    return f"""
apiVersion: v1
kind: Secret
type: {kind or "Opaque"}
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
stringData:
  main: |
{body}
"""


def ended(fleet: Fleet) -> DeploymentStatus:
    found = value_of(fleet.records.outcomes.get("fleet/east", "own"))
    assert found
    return found


def held(fleet: Fleet) -> Profile:
    found = value_of(fleet.records.profiles.get("", "", "own"))
    assert found
    return found


def test_a_script_writes_the_manifests(fleet: Fleet, east: FakeKube) -> None:
    """Of objects that it reads by identifier; when one changes, the script runs again."""
    fleet.deploy(
        COLOURS, join(profile(more=READS % "ConfigMap"), holder("own", FROM, annotations=LUA))
    )
    assert said(east) == {"sky": "blue", "sun": "red"}

    fleet.deploy(COLOURS.replace("blue, sun: red", "grey"))

    assert said(east) == {"sky": "grey"}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("function evaluate() return {resources = 1} end", "'resources' must be a string"),
        ("function evaluate() return {resources = {}} end", "'resources' must be a string"),
        ("function evaluate() return 'x' end", "lua script output is not a lua table"),
        ("function evaluate() error('no colours') end", "no colours"),
        ("function evaluate() while true do end end", "default/own"),
        ("local x = 1", "evaluate"),
        ("function evaluate() return {resources = 'a: ['} end", "YAML"),
        ("function evaluate() return {resources = 'a: 1'} end", "has no 'apiVersion'"),
        ("function evaluate() return {resources = string.rep('a', 9000000)} end", "8,388,608"),
    ],
)
def test_a_script_that_fails_says_where(
    fleet: Fleet, east: FakeKube, script: str, words: str
) -> None:
    """And nothing is applied, nor retried before it is changed."""
    fleet.deploy(join(profile(), holder("own", script, annotations=LUA)))

    assert said(east) == {}
    assert ended(fleet).phase.startswith("Failed")
    assert words in ended(fleet).message
    assert "default/own" in ended(fleet).message


def test_nothing_is_something(fleet: Fleet, east: FakeKube) -> None:
    """A script that returns no resources deploys none, and its cluster says so."""
    script = "function evaluate() return {} end"
    fleet.deploy(join(profile(), holder("own", script, annotations=LUA)))

    assert said(east) == {}
    assert (ended(fleet).phase, ended(fleet).message) == ("Provisioned", NO_OBJECT)


def test_braces_of_lua_are_no_template(fleet: Fleet, east: FakeKube) -> None:
    """Not even where everything was rendered with the event, in v1alpha1."""
    script = ONE.replace("VALUE", "]] .. ({{1}})[1][1] .. [[")
    legacy = trigger(name="made", more="").replace("v1beta1", "v1alpha1")
    legacy = legacy.replace(
        "sourceClusterSelector: {matchLabels: {env: production}}",
        "sourceClusterSelector: env=production",
    )
    fleet.apply(join(source(), legacy, holder("made", script, annotations=LUA)))
    fleet.write("east", service("shop"))
    fleet.pump()

    assert said(east) == {"one": "1"}


def test_an_event_may_write_the_script(fleet: Fleet, east: FakeKube) -> None:
    """With the annotation that asks for it: the script is run for each cluster after that."""
    script = ONE.replace("VALUE", "{{ .Resource.metadata.name }}")
    fleet.apply(
        join(source(), trigger(), holder("made", script, annotations=f"{LUA}, {INSTANTIATE}"))
    )
    fleet.write("east", service("shop"))
    fleet.pump()

    assert said(east) == {"one": "shop"}


def test_it_is_a_template_or_a_script(fleet: Fleet, east: FakeKube) -> None:
    """With both annotations it is not clear which is meant."""
    marks = f"{LUA}, projectsveltos.io/template: ok"
    fleet.deploy(join(profile(), holder("own", ONE, annotations=marks)))

    assert "it has projectsveltos.io/template and projectsveltos.io/lua" in held(fleet).error
    assert said(east) == {}


def test_no_error_quotes_what_a_secret_holds(fleet: Fleet, east: FakeKube) -> None:
    """Be it what the script read, or the script itself."""
    reads = READS % "Secret"
    colours = secret("colours", "hunter2")
    script = "function evaluate() error(resources['Colours'].data.main) end"
    fleet.deploy(colours, join(profile(more=reads), holder("own", script, annotations=LUA)))
    assert "the script fails" in ended(fleet).message
    assert "aHVudGVyM" not in ended(fleet).message

    own = profile().replace("kind: ConfigMap, name: own", "kind: Secret, name: own")
    kind = "addons.projectsveltos.io/cluster-profile"
    fleet.deploy(join(own, secret("own", "local hunter2 hunter2", kind=kind, annotations=LUA)))

    assert "the script fails" in ended(fleet).message
    assert "hunter2" not in ended(fleet).message
    assert said(east) == {}


def test_a_name_made_of_a_secret_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """As in templates: names are shown to all."""
    script = FROM.replace('"]] .. value .. [["', "x")
    script = script.replace("]] .. name .. [[", "]] .. value:lower() .. [[")
    fleet.deploy(
        secret("colours", "hunter2hunter22"),
        join(profile(more=READS % "Secret"), holder("own", script, annotations=LUA)),
    )

    assert said(east) == {}
    assert "is made of a value of a Secret" in ended(fleet).message


def test_it_has_the_time_of_a_template(open_fleet: OpenFleet) -> None:
    """A script that takes longer is stopped, and said so."""
    fleet = open_fleet(Settings(template_seconds=0.05))
    fleet.register("east", env="production")
    script = "function evaluate() local n = 0 while true do n = n + 1 end end"
    fleet.deploy(join(profile(), holder("own", script, annotations=LUA)))

    assert "0.05" in ended(fleet).message
