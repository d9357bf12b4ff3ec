"""Hostile templates end in a limit: soon, in little memory, and never in a crash."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bellhop.gotemplate import (
    DepthLimitError,
    GoTemplateError,
    Limits,
    OutputLimitError,
    StepLimitError,
    Template,
    TimeLimitError,
    event_functions,
)
from tests.unit.gotemplate.hostile import ATTACKS, Attack

ROOT = Path(__file__).parents[3]
SLOWEST = 10.0
"""Seconds an attack may last on a slow and busy machine; on a quiet one each ends within one."""


@pytest.mark.rest
@pytest.mark.clocked
@pytest.mark.parametrize("attack", [pytest.param(a, id=a.name) for a in ATTACKS])
def test_ends_in_its_limit(attack: Attack) -> None:
    """A hostile template ends in the error of the limit it meets, and says where it was."""
    start = time.process_time()
    with pytest.raises((attack.error, TimeLimitError)) as caught:
        Template(attack.template, name="hostile", funcs=event_functions()).render({"a": {}})

    assert time.process_time() - start < SLOWEST
    assert str(caught.value).startswith("template: hostile:")


@pytest.mark.rest
def test_attacks_stay_small() -> None:
    """All attacks together fit into half a gigabyte of address space beyond the libraries'.

    It takes long: dozens of attacks use up their limits, one after the other.
    """
    script = textwrap.dedent(
        """
        import resource
        from bellhop.gotemplate import GoTemplateError, Template, event_functions
        from tests.unit.gotemplate.hostile import ATTACKS
        import cryptography, re2, yaml
        functions = event_functions()
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (512 << 20),) * 2)
        for attack in ATTACKS:
            if attack.name.startswith("laughing list, ") and "toYaml" not in attack.name:
                continue
            try:
                Template(attack.template, funcs=functions).render({"a": {}})
            except GoTemplateError:
                pass
        print("survived")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}"},
        timeout=110,
    )

    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_else_if_chains_may_be_long() -> None:
    """A chain of a thousand else-ifs neither nests nor recurses."""
    chain = "".join(f"{{{{ else if eq . {n} }}}}{n}" for n in range(1, 1000))

    assert Template(f"{{{{ if eq . 0 }}}}0{chain}{{{{ end }}}}").render(999) == "999"


@pytest.mark.parametrize(
    ("limits", "template", "error", "message"),
    [
        pytest.param(
            Limits(output=10),
            "{{ range 4 }}abcd{{ end }}",
            OutputLimitError,
            "template: t: more than 10 characters of output",
            id="output",
        ),
        pytest.param(
            Limits(output=10),
            '\n {{ repeat 11 "x" }}',
            OutputLimitError,
            "template: t:2:4: a value of more than 10 characters",
            id="one value",
        ),
        pytest.param(
            Limits(steps=10),
            "{{ range 11 }}{{ end }}",
            StepLimitError,
            "template: t: more than 10 steps",
            id="steps",
        ),
        pytest.param(
            Limits(depth=2),
            '{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}',
            DepthLimitError,
            "template: t:1:28: templates nested more than 2 deep",
            id="depth",
        ),
        pytest.param(
            Limits(seconds=0.02, steps=10**9),
            "{{ range 20000000 }}{{ print . }}{{ end }}",
            TimeLimitError,
            "took longer than 0.02 seconds",
            id="seconds",
        ),
    ],
)
def test_each_limit_can_be_set(
    limits: Limits, template: str, error: type[GoTemplateError], message: str
) -> None:
    """A limit given to the template, or to one render, is the one that holds."""
    for attempt in (
        lambda: Template(template, name="t", funcs=event_functions(), limits=limits).render(None),
        lambda: Template(template, name="t", funcs=event_functions()).render(None, limits=limits),
    ):
        with pytest.raises(error) as caught:
            attempt()
        assert message in str(caught.value)


@pytest.mark.clocked
@pytest.mark.parametrize(
    "call",
    [
        pytest.param('bcrypt "x"', id="bcrypt"),
        pytest.param('htpasswd "x" "y"', id="htpasswd"),
        pytest.param('derivePassword 1 "long" "a" "b" "c"', id="derivePassword"),
        pytest.param('genPrivateKey "rsa"', id="genPrivateKey"),
        pytest.param('genCA "x" 365', id="genCA"),
    ],
)
def test_no_slow_function_begins_after_the_time(call: str) -> None:
    """Each looks at the clock by itself: a hundred calls cost a processor many seconds."""
    template = f"{{{{ range 100 }}}}{{{{ $_ := {call} }}}}{{{{ end }}}}"
    late = Template(template, name="t", funcs=event_functions(), limits=Limits(seconds=0))

    start = time.process_time()
    with pytest.raises(TimeLimitError):
        late.render(None)
    assert time.process_time() - start < SLOWEST


def test_what_is_within_the_limits_renders() -> None:
    """The last allowed character, step and call are allowed."""
    limits = Limits(output=8, steps=5, depth=2)
    template = '{{ define "a" }}{{ template "b" }}{{ end }}{{ define "b" }}b{{ end }}'
    template += '{{ range 3 }}ab{{ end }}{{ template "a" 1 }}c'

    assert Template(template, limits=limits).render(None) == "abababbc"


@pytest.mark.parametrize(
    ("call", "rested"),
    [('genPrivateKey "rsa"', 1.1), ('genPrivateKey "dsa"', 1.1), ('genCA "a" 1', 1.8)],
)
def test_a_key_is_begun_only_while_there_is_time_for_it(call: str, rested: float) -> None:
    """Nothing can stop the making of one, so that it would end long after the time is up."""

    def rest(seconds: float) -> str:
        time.sleep(seconds)
        return ""

    funcs = {**event_functions(), "rest": rest}
    limits = Limits(seconds=2.0)

    with pytest.raises(TimeLimitError, match="has too little left of its 2 seconds for this"):
        Template(f"{{{{ rest {rested} }}}}{{{{ {call} }}}}", funcs=funcs, limits=limits).render(
            None
        )

    quick = '{{ rest 1.1 }}{{ genPrivateKey "ed25519" }}'
    assert "PRIVATE KEY" in Template(quick, funcs=funcs, limits=limits).render(None)
