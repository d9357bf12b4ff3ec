"""Hints at templates, where users apply them, try them out and look at what became of them."""

from __future__ import annotations

from pathlib import Path

from bellhop.installation import Installation
from tests.fakes.manifests import config, holder, join, source, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

NAMED = config("{{ .Resource.metadata.name }}")
HINT = "add the annotation projectsveltos.io/instantiate"


def test_apply_warns_at_once(bellhop: Bellhop) -> None:
    first = bellhop("apply", "-f", "-", stdin=join(source(), trigger()))
    assert HINT not in first.stderr
    second = bellhop("apply", "-f", "-", stdin=holder("made", NAMED))
    assert (
        "warning: EventTrigger 'made': ConfigMap default/made says '{{ .Resource" in second.stderr
    )
    assert HINT in second.stderr
    mended = holder("made", NAMED, annotations="projectsveltos.io/instantiate: ok")
    assert bellhop("apply", "-f", "-", stdin=mended).stderr == ""

    collects = source().replace("collectResources: true", "collectResources: false")
    assert "give it collectResources: true" in bellhop("apply", "-f", "-", stdin=collects).stderr


def test_apply_names_a_mark_that_nobody_knows(bellhop: Bellhop) -> None:
    wrong = holder("made", NAMED, annotations="projectsveltos.io/instanciate: ok")
    result = bellhop("apply", "-f", "-", stdin=wrong)

    assert result.exit_code == 0
    assert (
        "warning: ConfigMap default/made has 'projectsveltos.io/instanciate', of which nothing is"
        " known; did you mean 'projectsveltos.io/instantiate'?" in result.stderr
    )
    kept = holder("made", NAMED, annotations="projectsveltos.io/hash: x, example.com/own: mine")
    assert bellhop("apply", "-f", "-", stdin=kept).stderr == ""


def test_render_warns(bellhop: Bellhop, tmp_path: Path) -> None:
    """Before anything is applied anywhere."""
    rules, thing = tmp_path / "rules.yaml", tmp_path / "service.yaml"
    rules.write_text(join(source(), trigger(), holder("made", config("a", "v: '{{ .Resource }}'"))))
    thing.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default}\n")
    cluster = "prod/eu,env=production"
    result = bellhop("render", "-f", str(rules), "--object", str(thing), "--cluster", cluster)

    assert result.exit_code == 0
    assert HINT in result.stderr


def test_a_report_and_its_trigger_show_what_is_probably_wrong(
    bellhop: Bellhop, here: Installation
) -> None:
    here.declare.register(fleet.cluster(env="production"))
    bellhop("apply", "-f", "-", stdin=join(source(), trigger(), holder("made", NAMED)))
    for kind in ("eventreport", "eventtrigger"):
        output = bellhop("describe", kind).stdout
        assert "Hints" in output
        assert HINT in " ".join(output.split())
    assert HINT in bellhop("get", "eventreports", "-o", "yaml").stdout
