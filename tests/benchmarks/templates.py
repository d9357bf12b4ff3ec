"""Measure templates against Jinja2: `python -m tests.benchmarks.templates [ROUNDS]`.

Each document is written in both languages, checked to render to the same text, and rendered in
turns, so that both meet the same weather. Where an oracle was built (`make oracle`), Go's own time
is shown beside.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from bellhop.gotemplate import Template, event_functions
from bellhop.gotemplate.compiler import Program
from bellhop.gotemplate.funcs.builtins import FUNCTIONS
from bellhop.gotemplate.functions import FunctionSet
from tests.benchmarks.figures import in_turns, run, spread, table
from tests.golden.programs import oracle_path

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENTS = Path(__file__).parents[1] / "golden" / "gotemplate" / "documents"
SMALLEST = (1,)
RENDER_AIM = 1.5
"""At most so many times Jinja2's time for a cached template."""
COMPILE_AIM = 1000.0
"""At most so many µs to compile the NetworkPolicy."""

NETWORK_POLICY = """\
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: front-{{ Resource.metadata.name }}
  namespace: {{ Resource.metadata.namespace }}
spec:
  podSelector:
    matchLabels:
      {% for key, value in Resource.spec.selector|dictsort %}
      {{ key }}: {{ value }}
      {% endfor %}
  ingress:
    - from:
      - podSelector:
          matchLabels:
            app: internal
      ports:
        {% for port in Resource.spec.ports %}
        - port: {{ port.port }}
        {% endfor %}
"""

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: ingress
  namespace: default
  annotations:
    nginx.ingress.kubernetes.io/rewrite-target: /
spec:
  ingressClassName: http-ingress
  rules:
    - http:
        paths:
        {% for resource in Resources %}
        - path: /{{ resource.metadata.name }}
          pathType: Prefix
          backend:
            service:
              name: {{ resource.metadata.name }}
              port:
                {% for port in resource.spec.ports %}
                {% if port.port == 443 or port.port == 8443 %}
                number: {{ port.port }}
                {% endif %}
                {% endfor %}
        {% endfor %}
"""


class Subject(NamedTuple):
    """One document in both languages."""

    name: str
    go: str
    jinja: str
    data: dict[str, Any]


def seed(name: str) -> tuple[str, dict[str, Any]]:
    """Read a golden document and its data."""
    data = json.loads((DOCUMENTS / f"{name}.json").read_text())
    return (DOCUMENTS / f"{name}.tmpl").read_text(), data


def long_document() -> Subject:
    """Make a manifest of two hundred lines: fields, conditions and loops in turn."""
    go = ["kind: List", "items:"]
    jinja = list(go)
    for number in range(20):
        shared = [f"- kind: Thing{number}", "  spec:"]
        go += [
            *shared,
            "    name: {{ .Resource.metadata.name }}",
            "    namespace: {{ .Resource.metadata.namespace }}",
            "    {{ range $port := .Resource.spec.ports }}",
            "    - port: {{ $port.port }}/{{ $port.protocol }}",
            "    {{ end }}",
            f'    {{{{ if eq .Resource.metadata.name "no{number}" }}}}',
            "    never: {{ .Resource.metadata.name }}",
            "    {{ end }}",
        ]
        jinja += [
            *shared,
            "    name: {{ Resource.metadata.name }}",
            "    namespace: {{ Resource.metadata.namespace }}",
            "    {% for port in Resource.spec.ports %}",
            "    - port: {{ port.port }}/{{ port.protocol }}",
            "    {% endfor %}",
            f'    {{% if Resource.metadata.name == "no{number}" %}}',
            "    never: {{ Resource.metadata.name }}",
            "    {% endif %}",
        ]
    return Subject("200 lines", "\n".join(go), "\n".join(jinja), seed("seed-001-networkpolicy")[1])


def subjects() -> list[Subject]:
    """Return what is measured."""
    policy, ingress = seed("seed-001-networkpolicy"), seed("seed-001-ingress")
    return [
        Subject("NetworkPolicy", policy[0], NETWORK_POLICY, policy[1]),
        Subject("Ingress", ingress[0], INGRESS, ingress[1]),
        long_document(),
    ]


def each_takes(action: Callable[[], object], repeat: int) -> Callable[[], list[float]]:
    """Return a block: the mean µs of an action that is repeated."""

    def block() -> list[float]:
        start = time.perf_counter()
        for _ in range(repeat):
            action()
        return [(time.perf_counter() - start) / repeat * 1e6]

    return block


def go_time(subject: Subject) -> float | None:
    """Ask the oracle how long Go takes, in seconds; None where there is no oracle."""
    program = oracle_path()
    if not program.exists():
        return None
    question = {
        "template": subject.go,
        "data": subject.data,
        "functions": "event",
        "missingkey": "error",
        "repeat": 2000,
    }
    done = subprocess.run(
        [program], input=json.dumps(question), capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout)["nanoseconds"]) / 1e9


def beside_jinja(
    rounds: int, repeat: int, ours: Callable[[], object], theirs: Callable[[], object]
) -> tuple[list[str], float, float]:
    """Measure both in turns; return what to print, our median µs, and the median ratio."""
    measured = in_turns(rounds, ours=each_takes(ours, repeat), theirs=each_takes(theirs, repeat))
    mine, jinja = ([times[0] for times in measured[name]] for name in ("ours", "theirs"))
    ratios = [a / b for a, b in zip(mine, jinja, strict=True)]
    cells = [spread(mine), spread(jinja), spread(ratios, 2)]
    return cells, statistics.median(mine), statistics.median(ratios)


def main(rounds: int = 40) -> int:
    """Print the figures; answer 1 where an aim is missed."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    names = FunctionSet({**FUNCTIONS, **event_functions()})
    rows: dict[str, list[str]] = {}
    missed = False
    for subject in subjects():
        ours = Template(subject.go, funcs=event_functions())
        theirs = environment.from_string(subject.jinja)
        assert ours.render(subject.data) == theirs.render(subject.data), subject.name
        go = go_time(subject)
        cells, _, ratio = beside_jinja(
            rounds,
            100,
            lambda ours=ours, subject=subject: ours.render(subject.data),
            lambda theirs=theirs, subject=subject: theirs.render(subject.data),
        )
        rows[f"{subject.name}: render"] = [*cells, f"{go * 1e6:.1f}" if go is not None else "-"]
        missed |= ratio > RENDER_AIM
        cells, took, _ = beside_jinja(
            rounds,
            2,
            lambda subject=subject: Program("t", subject.go, names, "error"),
            lambda subject=subject: environment.from_string(subject.jinja),
        )
        rows[f"{subject.name}: compile"] = [*cells, "-"]
        missed |= subject.name == "NetworkPolicy" and took > COMPILE_AIM
    table(f"medians of {rounds} rounds", rows, "µs", "Jinja2 µs", "ratio", "Go µs")
    return int(missed)


if __name__ == "__main__":
    run(main)
