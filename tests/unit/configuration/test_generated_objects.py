"""ConfigMaps and Secrets of generated profiles, as Sveltos' users look for them."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.configuration.limits import MOST_BYTES, OMITTED, omit_data
from bellhop.configuration.mirrors import list_mirrors
from bellhop.core.gvk import GVK, Resource
from bellhop.state.messages import WriteStatus
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    source,
    trigger,
)
from tests.unit.configuration.test_writer import EVENTS, PROFILE, Hub, generated

CONFIG_MAP, SECRET = GVK("", "v1", "ConfigMap"), GVK("", "v1", "Secret")
LABEL = "eventtrigger.lib.projectsveltos.io/eventtriggername"
OURS = "projectsveltos"
PINNED = "example.com/pinned"
NO_OBJECT = join(
    source(), trigger(), holder("made", "'{{ .Resource.metadata.name }}'", annotations=INSTANTIATE)
)
FIELD = "[{namespace: default, name: token, nameFormat: 'token-{{ .Cluster.metadata.name }}'}]"


def secret(name: str, **entries: str) -> str:
    kept = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"projectsveltos.io/instantiate": "ok"},
            },
            "type": "addons.projectsveltos.io/cluster-profile",
            "data": kept,
        }
    )


@pytest.fixture
def hub(fleet: Fleet, east: FakeKube) -> Hub:
    """A writer for a configuration cluster with the two kinds."""
    assert east.version()
    hub = Hub(fleet)
    for gvk in (CONFIG_MAP, SECRET):
        hub.kube.serve(Resource(gvk, f"{gvk.kind.lower()}s", namespaced=True))
    hub.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OURS}})
    return hub


def show(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the mirrors of the trigger."""
    return list(list_mirrors(fleet.installation(), "EventTrigger", "", "made"))


def fire(hub: Hub, text: str) -> WriteStatus:
    """Deploy manifests and send an event; return the message of the generated profile."""
    hub.fleet.deploy(text)
    hub.fleet.write("east", service("a"))
    hub.fleet.pump()
    return generated(hub.fleet)


def withdraw(hub: Hub) -> None:
    hub.fleet.delete("EventTrigger", "made")
    hub.fleet.wait(timedelta(minutes=5))


def test_a_profile_names_the_instance_of_its_config_map(hub: Hub) -> None:
    """With the label of its trigger, the rendered text, and no annotation that renders again."""
    hub.write(fire(hub, EVENTS))

    [made] = hub.kube.objects(CONFIG_MAP)
    [profile] = hub.kube.objects(PROFILE)
    assert made["metadata"]["namespace"] == OURS
    assert made["metadata"]["labels"][LABEL] == "made"
    assert made["metadata"]["labels"]["eventtrigger.lib.projectsveltos.io/refname"] == "made"
    assert "annotations" not in made["metadata"]
    assert yaml.safe_load(made["data"]["main.yaml"])["metadata"]["name"] == "for-a"
    named = {"kind": "ConfigMap", "namespace": OURS, "name": made["metadata"]["name"]}
    assert profile["spec"]["policyRefs"] == [named]


def test_a_config_map_that_is_not_instantiated_is_named_itself(hub: Hub) -> None:
    """Nothing is written of it."""
    hub.write(fire(hub, join(source(), trigger(), holder("made", config("plain")))))

    assert hub.kube.objects(CONFIG_MAP) == []
    [profile] = hub.kube.objects(PROFILE)
    assert profile["spec"]["policyRefs"][0]["namespace"] == "default"


def test_an_instance_that_is_rendered_once_more_says_so(hub: Hub) -> None:
    """Its text is the template of deploy time."""
    twice = f"{INSTANTIATE}, projectsveltos.io/template: ok"
    text = holder("made", config("x-{{ `{{ .Cluster.metadata.name }}` }}"), annotations=twice)

    hub.write(fire(hub, join(source(), trigger(), text)))

    [made] = hub.kube.objects(CONFIG_MAP)
    assert made["metadata"]["annotations"] == {"projectsveltos.io/template": "ok"}
    assert "x-{{ .Cluster.metadata.name }}" in made["data"]["main.yaml"]


def test_an_instance_of_a_secret_is_a_secret(hub: Hub) -> None:
    """Of the type that add-ons have."""
    referring = trigger().replace("kind: ConfigMap", "kind: Secret")
    hub.write(
        fire(hub, join(source(), referring, secret("made", **{"main.yaml": config(FOR_EACH)})))
    )

    [made] = hub.kube.objects(SECRET)
    assert hub.kube.objects(CONFIG_MAP) == []
    assert made["type"] == "addons.projectsveltos.io/cluster-profile"
    assert b"for-a" in base64.b64decode(made["data"]["main.yaml"])
    [profile] = hub.kube.objects(PROFILE)
    assert profile["spec"]["policyRefs"][0]["kind"] == "Secret"


def test_the_value_of_a_secret_is_in_no_config_map(hub: Hub) -> None:
    """What may quote one is written without its data, and says why."""
    shown = "more: {{ .Resource.data.password }}"
    watched = source().replace("kind: Service", "kind: Secret").replace("Service", "Secret")
    hub.fleet.deploy(
        join(watched, trigger(), holder("made", config(shown), annotations=INSTANTIATE))
    )
    found = yaml.safe_load(secret("login", password="hunter2"))
    hub.fleet.write("east", found)
    hub.fleet.pump()

    made = [each for each in show(hub.fleet) if each["kind"] == "ConfigMap"]

    assert all("data" not in each for each in made)
    assert all(OMITTED in each["metadata"]["annotations"] for each in made)
    assert base64.b64encode(b"hunter2").decode() not in str(made)


@pytest.mark.parametrize(
    ("field", "gvk"), [("configMapGenerator", CONFIG_MAP), ("secretGenerator", SECRET)]
)
def test_a_generator_writes_under_its_own_name(hub: Hub, field: str, gvk: GVK) -> None:
    """Beside the instances, and deleted with the profile."""
    origin = holder("token", "{{ .Cluster.metadata.name }}")
    if gvk == SECRET:
        origin = secret("token", token="{{ .Cluster.metadata.name }}")
    message = fire(
        hub,
        join(source(), trigger(more=f"{field}: {FIELD}"), holder("made", config("plain")), origin),
    )
    hub.write(message)

    [made] = hub.kube.objects(gvk)
    assert made["metadata"]["name"] == "token-east"
    assert made["metadata"]["labels"][LABEL] == "made"

    withdraw(hub)
    hub.write(message)
    assert hub.kube.objects(gvk) == []


def test_what_somebody_else_made_is_left_as_it_is(hub: Hub) -> None:
    """An object of that name without the label of a trigger."""
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "token-east", "namespace": OURS},
        "data": {"mine": "yes"},
    }
    hub.kube.put(theirs)
    origin = holder("token", "{{ .Cluster.metadata.name }}")
    made = trigger(more=f"configMapGenerator: {FIELD}")

    hub.write(fire(hub, join(source(), made, holder("made", config("plain")), origin)))

    [kept] = hub.kube.objects(CONFIG_MAP)
    assert kept["data"] == {"mine": "yes"}
    assert "no trigger generated the ConfigMap that is there" in hub.fleet.output.getvalue()


def test_an_object_is_taken_over_after_a_death_before_its_record(hub: Hub) -> None:
    """The one that was written is recognised by its label."""
    message = fire(hub, EVENTS)
    hub.write(message)
    [made] = hub.kube.objects(CONFIG_MAP)
    written = hub.fleet.records.written
    for owner in [f"{message.trigger}/{message.source}/{message.name}"]:
        for place, _ in list(written.rows(owner)):
            written.delete(owner, place)

    hub.write(message)

    [again] = hub.kube.objects(CONFIG_MAP)
    assert again["metadata"]["uid"] == made["metadata"]["uid"]


def test_texts_that_are_no_objects_are_shown_as_sveltos_shows_them(hub: Hub) -> None:
    """The profile has them and fails; a corrected text replaces them."""
    message = fire(hub, NO_OBJECT)
    hub.write(message)

    [made], [profile] = hub.kube.objects(CONFIG_MAP), hub.kube.objects(PROFILE)
    assert made["data"] == {"main.yaml": "'a'\n"}
    assert profile["spec"]["policyRefs"][0]["name"] == made["metadata"]["name"]
    assert "not a Kubernetes object" in str(profile["status"]["conditions"])

    hub.fleet.deploy(holder("made", config(FOR_EACH), annotations=INSTANTIATE))
    hub.write(message)
    [made] = hub.kube.objects(CONFIG_MAP)
    assert "for-a" in made["data"]["main.yaml"]


def test_a_template_that_fails_has_no_profile(hub: Hub) -> None:
    """Its reason is in the report."""
    broken = holder("made", config("{{ fail `no` }}"), annotations=INSTANTIATE)

    hub.write(fire(hub, join(source(), trigger(), broken)))

    assert hub.kube.objects(PROFILE) == hub.kube.objects(CONFIG_MAP) == []


@pytest.mark.parametrize("text", [EVENTS, NO_OBJECT], ids=["objects", "no objects"])
def test_a_config_map_is_deleted_after_the_profile_is_really_deleted(hub: Hub, text: str) -> None:
    """Somebody's finalizer keeps the profile; a timer has it looked at until then."""
    message = fire(hub, text)
    hub.write(message)
    [profile] = hub.kube.objects(PROFILE)
    hub.kube.merge(PROFILE, "", profile["metadata"]["name"], {"metadata": {"finalizers": [PINNED]}})
    withdraw(hub)

    for _ in range(3):
        hub.write(message)
        [pinned] = hub.kube.objects(PROFILE)
        assert pinned["metadata"]["deletionTimestamp"]
        assert len(hub.kube.objects(CONFIG_MAP)) == 1
    name = f"written/{message.trigger}/{message.source}/{message.name}/"
    timer = hub.fleet.records.timers.get(name)
    assert timer
    assert timer.value.body == message.message().body

    hub.kube.merge(PROFILE, "", profile["metadata"]["name"], {"metadata": {"finalizers": None}})
    hub.write(message)
    assert hub.kube.objects(PROFILE) == hub.kube.objects(CONFIG_MAP) == []


def test_a_profile_that_comes_back_while_it_is_deleted_is_written_again(hub: Hub) -> None:
    """Its former object is only on its way out."""
    message = fire(hub, EVENTS)
    hub.write(message)
    [profile] = hub.kube.objects(PROFILE)
    name = profile["metadata"]["name"]
    hub.kube.merge(PROFILE, "", name, {"metadata": {"finalizers": [PINNED]}})
    withdraw(hub)
    hub.write(message)

    hub.fleet.deploy(EVENTS)
    hub.write(message)
    hub.kube.merge(PROFILE, "", name, {"metadata": {"finalizers": None}})
    assert hub.kube.objects(PROFILE) == []
    hub.write(message)

    [again] = hub.kube.objects(PROFILE)
    assert "deletionTimestamp" not in again["metadata"]
    assert hub.write(replace(message)) == []


def test_what_is_too_large_has_no_data() -> None:
    """And says how large it is."""
    large = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"x": "y" * MOST_BYTES},
    }

    made = omit_data(large)

    assert "data" not in made
    assert made["metadata"]["annotations"][OMITTED].startswith("it has 1,000,")
    assert "data" in large
