"""Hostile rules end, soon, in a sentence; the process and the next rule do not notice."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bellhop.celbox import (
    CelError,
    CelLimitError,
    CelRuntimeError,
    CelSyntaxError,
    Limits,
    Rule,
)
from tests.waiting import eventually

MIB = 1024 * 1024
MEMORY = 32 * MIB
LONG = "x" * MIB
GIVEN: dict[str, Any] = {
    "k": list(range(1000)),
    "many": list(range(20_000)),
    "s": LONG,
    "half": "x" * (MIB // 2) + "y",
    "p": r"(\pL{900})" * 3,
    "z": "(a{30}){30}" * 9,
    "m": {str(number): LONG[:1000] for number in range(1000)},
    "items": [{"name": f"n{number}", "s": LONG[:1000]} for number in range(1000)],
    "text": "x" * 20_000,
    "one": [1],
    "none": None,
    "joined": "e\u0301\u202e\U0001f60e",
}

SPENT: dict[str, tuple[str, str]] = {
    "doubles a text for each": (
        "size(resource.k.map(x, resource.s + resource.s)) > 0",
        "memory time",
    ),
    "adds a text up, thirty times": (
        f"size(resource.s{' + resource.s' * 20}) > 0 && "
        + " && ".join(f"size(resource.s + '{n}' + resource.s + resource.s) > 0" for n in range(30)),
        "memory time",
    ),
    "replaces each letter by all": ("size(resource.s.replace('x', resource.s)) > 0", "memory time"),
    "replaces nothing by all": ("size(resource.s.replace('', resource.s)) > 0", "memory time"),
    "replaces in a chain": (
        "size(resource.text.replace('x', resource.text).replace('x', resource.text)) > 0",
        "memory time",
    ),
    "joins by something long": (
        "size(resource.k.map(x, 'a').join(resource.s)) > 0",
        "memory time",
    ),
    "joins letters by something long": (
        "size(resource.s.split('').join(resource.s)) > 0",
        "memory time",
    ),
    "splits into letters": ("size(resource.k.map(x, resource.s.split(''))) > 0", "memory time"),
    "formats for each": (
        "size(resource.k.map(x, '%s%s'.format([resource.s, resource.s]))) > 0",
        "memory time",
    ),
    "quotes for each": ("size(resource.k.map(x, strings.quote(resource.s))) > 0", "memory time"),
    "reverses for each": ("size(resource.k.map(x, resource.s.reverse())) > 0", "memory time"),
    "makes bytes of texts": ("size(resource.k.map(x, bytes(resource.s + 'a'))) > 0", "memory time"),
    "gathers lists": (
        "size(resource.k.map(x, resource.many + resource.many)) > 0",
        "memory time",
    ),
    "copies a list for each": ("resource.k.all(x, size(resource.many + [x]) > 0)", "memory time"),
    "finds everything": ("size(resource.k.map(x, resource.s.findAll('x'))) > 0", "memory time"),
    "loops over many": ("resource.many.all(x, x >= 0)", "iterations"),
    "loops in a loop": ("resource.k.all(x, resource.k.all(y, x + y >= 0))", "iterations"),
    "loops in loops in loops": (
        "resource.k.all(a, resource.k.all(b, resource.k.all(c, a + b + c >= 0)))",
        "iterations",
    ),
    "loops six deep": (
        "".join(f"resource.k.all({name}, " for name in "abcdef") + "a >= 0" + ")" * 6,
        "iterations",
    ),
    "maps what was mapped": (
        "size(resource.many.map(x, [x, x]).map(x, [x, x]).map(x, [x, x])) > 0",
        "iterations memory time",
    ),
    "filters what is long": ("size(resource.many.filter(x, x > 0)) > 0", "iterations memory time"),
    "searches a text in a text": ("resource.s.contains(resource.half)", "time"),
    "searches from the end": ("resource.s.lastIndexOf(resource.half) == -1", "time"),
    "matches a large pattern": (
        "resource.k.all(x, !'a'.matches(resource.p + string(x)))",
        "time",
    ),
    "matches a pattern out of the object": (
        "resource.k.all(x, !resource.s.matches(resource.z + string(x)))",
        "time",
    ),
    # Several times: how fast letters are counted differs most between processors.
    "counts letters for each": (
        f"resource.k.all(x, {' && '.join(['size(resource.s) > 0'] * 6)})",
        "time",
    ),
    "maps many by many": (
        "resource.many.map(x, resource.many.map(y, [x, y])).size() > 0",
        "iterations memory time",
    ),
    "loops over what it writes, five deep": (
        "".join(f"[{'1, ' * 9}1].all({name}, " for name in "abcde") + "a > 0" + ")" * 5,
        "iterations",
    ),
    "adds a text up, each time to itself": (
        "['ab']" + f".map(a, {' + '.join('a' * 20)})" * 6 + "[0].size() > 0",
        "memory time",
    ),
    "finds nothing, everywhere": ("size(resource.s.findAll('')) > 0", "memory time"),
    "has a hundred patterns that are too large": (
        " || ".join(f"'a'.matches('[\\\\pL]{{{900 - number}}}')" for number in range(100)),
        "time",
    ),
}

HARMLESS: dict[str, str] = {
    "backtracks": "!resource.s.matches('(x+x+)+y')",
    "nests repetitions": "!resource.one.exists(x, resource.text.matches('(((x*)*)*)*y'))",
    "searches a list for each": "resource.k.all(x, !(-1 in resource.many))",
    "compares with itself for each": "resource.k.all(x, resource.m == resource.m)",
    "asks for the longest number": "size('%.100f'.format([1.0])) > 0",
    "looks for a thousand states": "!resource.text.matches('(.*x){9}y')",
    "has a number beyond all": "1e999999999 > 0.0 && double('nan') != double('nan')",
    "has letters that join": "resource.joined.reverse().size() == 4",
    "parts a query": "url('http://a/?' + resource.text.replace('x', 'a&')).getQuery().size() > 0",
    "gives a loop the name of all": "[1].all(resource, resource == 1)",
    "asks what cannot be answered, beside what can": "resource.gone.x == 1 || true",
}

FAILED: dict[str, str] = {
    "a number with a thousand million places": "size('%.1000000000f'.format([1.0])) > 0",
    "a pattern too large": r"'a'.matches('(\\pL{1000}){1000}')",
    "an overflow": "resource.one[0] + 9223372036854775807 > 0",
    "a negative overflow": "-(-9223372036854775807 - resource.one[0]) > 0",
    "a division by zero": "resource.one[0] / 0 == 1",
    "a remainder of zero": "resource.one[0] % 0 == 1",
    "an index beyond the end": "resource.one[9223372036854775807] == 1",
    "an index before the beginning": "resource.one[-1] == 1",
    "a quantity with a large exponent": "quantity('1e999999999').sign() == 1",
    "a quantity of a million digits": "quantity(resource.s).sign() == 1",
    "a version of a million letters": "semver(resource.s).major() == 1",
    "an address of a million letters": "ip(resource.s).family() == 4",
    "a timestamp out of range": "timestamp('99999-01-01T00:00:00Z') > timestamp(0)",
    "a forged quantity": "{'quantity': '1/0'}.sign() == 1",
    "a forged quantity that is long": "{'quantity': resource.s}.sign() == 1",
    "a forged version": "{'semver': 'x'}.major() == 1",
    "a forged address": "{'ip': [1]}.family() == 1",
    "a pattern with a way back": r"'aa'.matches('(a)\\1')",
    "a pattern that looks ahead": "'aa'.matches('(?=a)')",
    "a pattern that is none": "'a'.matches(resource.none)",
    "repetitions of repetitions": "'a'.matches('((a{100}){100}){100}')",
    "a timestamp beyond all": "timestamp(9223372036854775807) > timestamp(0)",
    "a timestamp before all": "timestamp('0000-01-01T00:00:00Z') > timestamp(0)",
    "an hour after the last": ("timestamp('9999-12-31T23:59:59Z') + duration('1h') > timestamp(0)"),
    "a timestamp of a million letters": "timestamp(resource.s) > timestamp(0)",
    "a timezone that is a file": "timestamp(0).getHours('../../etc/passwd') == 0",
    "a duration beyond all": "duration('9223372036854775807h') > duration('0s')",
    "a duration of a million letters": "duration(resource.s) > duration('0s')",
    "an int of twenty digits": "int('99999999999999999999') > 0",
    "an int of no number": "int(double('nan')) > 0",
    "an int without end": "int(1e400) > 0",
    "a uint below nothing": "uint(-resource.one[0]) > 0u",
    "a product beyond all": "resource.one[0] * 2 * 9223372036854775807 > 0",
    "the least by minus one": "-9223372036854775808 / -resource.one[0] > 0",
    "a text that is walked through": "resource.s.all(x, true)",
    "a list and a text": "resource.one + 'a' == ''",
    "an order of what has none": "resource.s < resource.one",
    "a field of nothing": "resource.none.x == 1",
    "a condition that is a list": "resource.one ? true : false",
    "what is no bool": "resource.s",
    "an index that is a text": "resource.one['a'] == 1",
    "a part before the beginning": "resource.s.substring(-1) == ''",
    "a part that ends before it begins": "resource.s.substring(2, 1) == ''",
    "a letter far beyond the end": "'abc'.charAt(9223372036854775807) == ''",
    "a format of memory": "'%n'.format([1]) == ''",
    "a format with a width to come": "'%*d'.format([1, 2]) == ''",
    "a format without its values": "'%s %s'.format(['x']) == ''",
    "bytes that are no text": r"string(b'\xff\xfe') == ''",
    "a key twice": "{resource.one[0]: 1, 1: 2} == {}",
    "a quantity in other digits": "quantity('\u0661').sign() == 1",
    "a quantity that is no number": "quantity('NaN').sign() == 0",
    "a quantity of a list": "quantity(resource.one).sign() == 0",
    "an integer out of a large quantity": "quantity('9999999999999999999E').asInteger() > 0",
    "a URL with half an address": "url('http://[::1').getHost() == ''",
    "a URL with a NUL": r"url('http://a\x00b/').getHost() == ''",
    "a URL with a large port": "url('http://a:99999999999999999999/').getPort() == ''",
    "a URL that becomes another": "url('http://\u2100/').getHost() == ''",
    "an address in octal": "ip('0177.0.0.1').isLoopback()",
    "an address in other digits": "ip('\u0661.1.1.1').family() == 4",
    "an address with a zone": "ip('fe80::1%eth0').family() == 6",
    "a range beyond its length": "cidr('1.2.3.4/999999999').prefixLength() == 1",
    "a version beyond all": "semver('1.2.99999999999999999999999').patch() > 0",
    "a version in other digits": "semver('1.2.\u0663').patch() == 3",
    "a sum of unlike things": "[1, 'a'].sum() == 1",
    "the least of nothing": "[].min() == 1",
}

REFUSED: dict[str, str] = {
    "the process": "os.getenv('HOME') == ''",
    "an import": "__import__('os') == 1",
    "a dunder": "resource.one.map(x, type(x).__class__()) == []",
    "a file": "open('/etc/passwd') == ''",
    "an environment variable": "env('HOME') == ''",
    "a message type": "bellhop.Secret{value: 'x'} == null",
    "an assignment": "resource.one = [2]",
    "a function of its own": "f(x) == x",
    "parentheses": "(" * 5000 + "true" + ")" * 5000,
    "a chain of sums": "+".join(["1"] * 5000) + " > 1",
    "a chain of fields": "resource" + ".a" * 5000 + " == 1",
    "a chain of calls": "'a'" + ".trim()" * 2000 + " == 'a'",
    "nested lists": "[" * 2000 + "]" * 2000 + " == []",
    "nested conditions": "true ? " * 2000 + "true" + " : true" * 2000,
    "nothing but backslashes": "'" + "\\" * 1001,
    "a NUL": "resource.a == 'x\x00' + ",
    "half a surrogate pair": "resource.a == '\ud800'",
    "half a surrogate pair, escaped": r"resource.a == '\ud800'",
    "a letter beyond all": r"resource.a == '\U00110000'",
    "a letter that looks like another": "r\u0435source.a == ''",
    "a literal beyond all": "9223372036854775808 > 0",
    "nothing": "",
    "a word that is kept": "for == 1",
    "what is no bool for sure": "1 + 1",
    "a field that may be": "resource.?a.orValue(1) == 1",
    "a loop with two names": "resource.m.all(k, v, true)",
    "a loop without a name": "[1].exists(1, true)",
}


def most_kept() -> int:
    """Return the most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(("text", "kinds"), SPENT.values(), ids=SPENT.keys())
def test_stops_what_takes_too_much(text: str, kinds: str) -> None:
    """Neither memory nor time is spent here, and the error names the limit that was met.

    Here it takes some hundredths of a second; without limits most of these take minutes.
    """
    rule = Rule(text, limits=Limits(seconds=0.5, memory=MEMORY))
    before, used, begun = most_kept(), time.thread_time(), time.monotonic()

    with pytest.raises(CelLimitError) as caught:
        rule.holds(GIVEN)

    assert caught.value.kind in kinds.split()
    assert caught.value.plain == str(caught.value)
    assert most_kept() - before < MEMORY
    assert time.thread_time() - used < 5
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_takes_what_only_looks_dangerous(text: str) -> None:
    """Regular expressions are linear, and formats are bounded: these come to an end."""
    assert Rule(text, limits=Limits(seconds=10)).holds(GIVEN)


@pytest.mark.parametrize("text", FAILED.values(), ids=FAILED.keys())
def test_fails_where_a_value_is_absurd(text: str) -> None:
    """It is an error of the rule, which counts as no; nothing hangs, nothing dies."""
    with pytest.raises(CelRuntimeError):
        Rule(text).holds(GIVEN)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_what_reaches_out_or_down(text: str) -> None:
    """There is `resource` and CEL's functions, and 32 levels: all else is no rule."""
    with pytest.raises(CelSyntaxError):
        Rule(text)


def test_refuses_a_rule_that_is_too_long() -> None:
    """Compiling takes time that grows with the text."""
    with pytest.raises(CelLimitError, match="longer than 32768 bytes") as caught:
        Rule("true" + " || true" * 5000)

    assert caught.value.kind == "size"


@pytest.mark.parametrize("levels", [101, 1000, 5000, 200_000])
def test_refuses_an_object_that_is_nested_too_deeply(levels: int) -> None:
    """The runtime recurses, and 10,000 levels exhaust its stack."""
    deep: Any = {}
    for _ in range(levels):
        deep = {"a": deep} if levels % 2 else [deep]

    with pytest.raises(CelLimitError, match="more than 100 levels deep") as caught:
        Rule("size(resource.b) == 1").holds({"b": deep})

    assert caught.value.kind == "depth"


def test_refuses_an_object_that_contains_itself() -> None:
    """Its depth has no end."""
    endless: dict[str, Any] = {}
    endless["a"] = endless

    with pytest.raises(CelLimitError, match="levels deep"):
        Rule("resource.a == resource.a.a").holds(endless)


def test_takes_an_object_with_many_marks_of_depth_and_little_of_it() -> None:
    """Two hundred lists side by side are two levels; a text full of brackets is none."""
    wide = {"a": [[] for _ in range(200)], "b": "{[" * 200}

    assert Rule("size(resource.a) == 200 && size(resource.b) == 400").holds(wide)


def test_takes_apart_what_may_be_much_and_is_not() -> None:
    """Sveltos would take it: a rule with a large bound that needs little is evaluated."""
    rule = Rule("size(resource.text.replace('z', resource.s)) == 20000")

    assert not rule.harmless(GIVEN)
    assert rule.holds(GIVEN)


def test_says_the_same_apart_as_here() -> None:
    """An error in another process has the same words."""
    text = "resource.text.contains(resource.half) || resource.gone.x == 1"
    here, apart = Limits(here=3600), Limits(here=0)

    errors = []
    for limits in (here, apart):
        with pytest.raises(CelRuntimeError) as caught:
            Rule(text, name="mine", limits=limits).holds(GIVEN)
        errors.append(str(caught.value))

    assert errors == ['mine: Key not found in map : "gone"'] * 2


def test_a_cell_has_nothing_of_ours() -> None:
    """It knows where libraries lie, which Lambda's Python must, and none of the credentials."""
    names = ("AWS_SECRET_ACCESS_KEY", "LD_LIBRARY_PATH")
    text = f"import os; os.environ.update(dict.fromkeys({names}, 'planted'))\n{_LISTING}"

    answer = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    known = sorted(each.partition("=")[0] for each in answer.strip().split("\0") if each)
    assert known == ["LD_LIBRARY_PATH", "PYTHONPATH"]


_LISTING = """
import threading, time
from pathlib import Path
from bellhop.celbox import CelError, Limits, Rule
def busy(child):
    *_, user, system = Path(f"/proc/{child}/stat").read_text().split()[:15]
    return int(user) + int(system) > 0.8 * os.sysconf("SC_CLK_TCK")
def ask():
    try:
        rule = Rule("resource.s.contains(resource.h)", limits=Limits(seconds=2))
        rule.holds({"s": "x" * 2**22, "h": "x" * 2**21 + "y"})
    except CelError:
        pass
thread = threading.Thread(target=ask)
thread.start()
found = ""
while not found and thread.is_alive():
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    for child in [pid for path in children for pid in path.read_text().split()]:
        if "celbox" in Path(f"/proc/{child}/cmdline").read_text() and busy(child):
            found = Path(f"/proc/{child}/environ").read_text()
    time.sleep(0.01)
print(found)
thread.join()
"""


def test_a_cell_outlives_who_asked_by_no_more_than_its_time() -> None:
    """Who asks may be killed: the clock of the cell runs on."""
    program = _LISTING.replace("print(found)", "print(child, flush=True); os.kill(os.getpid(), 9)")

    answer = subprocess.run(
        [sys.executable, "-c", "import os\n" + program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    cell = Path("/proc") / answer.stdout.strip()

    assert answer.returncode == -9
    eventually("not cell.exists()", lambda: not cell.exists(), patience=60)
    assert not cell.exists()


def test_a_cell_is_held_to_its_memory() -> None:
    """However long it takes, it gets no more than it may have, and what it began with."""
    program = (
        "import resource\n"
        "from bellhop.celbox import CelLimitError, Limits, Rule\n"
        "rule = Rule(\"size(resource.s.replace('x', resource.s)) > 0\","
        " limits=Limits(seconds=30, memory=2**25))\n"
        "try: rule.holds({'s': 'x' * 60_000})\n"
        "except CelLimitError as error: print(error.kind)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100
    )
    kind, most = done.stdout.split()

    assert kind == "memory"
    assert int(most) < 200


def test_several_threads_ask_at_once() -> None:
    """One rule serves them all, here and apart; each gets its own answer."""
    cheap = Rule("resource.n % 2 == 0")
    dear = Rule("resource.n % 2 == 0 && size(resource.s.replace('z', resource.s)) > 0")
    answers: dict[int, list[bool]] = {}

    def ask(number: int) -> None:
        given = {"n": number, "s": LONG}
        answers[number] = [cheap.holds(given) for _ in range(50)] + [dear.holds(given)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {number: [number % 2 == 0] * 51 for number in range(6)}


def test_a_process_that_forks_goes_on() -> None:
    """What was compiled before a fork serves the child too."""
    rule = Rule("resource.s.startsWith('x')")
    assert rule.holds(GIVEN)
    child = os.fork()
    if not child:
        os._exit(0 if rule.holds({"s": "xy"}) else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert rule.holds(GIVEN)


def test_loads_nothing_until_a_rule_is_compiled() -> None:
    """Who writes no CEL pays for none of it."""
    text = (
        "import sys, bellhop.celbox; print([n for n in sys.modules if 'cel_expr' in n or 're2'==n])"
    )

    assert (
        subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_says_how_to_get_the_runtime() -> None:
    """Where it is not installed, one sentence says so, and what to do."""
    text = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from bellhop.celbox import CelMissingError, Rule\n"
        "try: Rule('true', name='mine')\n"
        "except CelMissingError as error: print(error)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    ).stdout

    assert answer == (
        "mine: CEL's runtime is not installed; install Bellhop with its"
        " dependencies (pip install bellhop-fleet), or in a cloud set `cel = true` in the Terraform"
        " module\n"
    )


def test_every_error_is_one_kind() -> None:
    """Callers catch one class."""
    for kind in (CelLimitError, CelRuntimeError, CelSyntaxError):
        assert issubclass(kind, CelError)
