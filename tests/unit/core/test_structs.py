"""Structs are read by several threads at once, also where nobody has read their class before."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec import Struct, ValidationError

from bellhop.core.structs import read_struct

_AT_ONCE = '''
import sys, threading, types
from bellhop.core.structs import read_struct

sys.setswitchinterval(1e-6)
SOURCE = """
from __future__ import annotations
from collections.abc import Mapping
from msgspec import Struct

class Outer(Struct, frozen=True):
    a: int
    several: tuple[Inner, ...] = ()
    named: Mapping[str, Inner] = {}

class Inner(Struct, frozen=True):
    text: str
    counts: dict[str, int] = {}
"""
INNER = {"text": "t", "counts": {"k": 1}}
VALUE = {"a": 1, "several": [INNER], "named": {"n": INNER}, "later": "passed over"}

for number in range(200):
    module = types.ModuleType(f"fresh{number}")
    sys.modules[module.__name__] = module
    exec(SOURCE, module.__dict__)
    barrier = threading.Barrier(4)

    def read(kind, value):
        barrier.wait()
        read_struct(value, kind)

    pairs = [(module.Outer, VALUE), (module.Inner, INNER)] * 2
    threads = [threading.Thread(target=read, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("read")
'''


def test_a_class_that_several_threads_read_first_is_read_by_all() -> None:
    """In a process of its own: without a lock msgspec ends it, nearly always."""
    done = subprocess.run(
        [sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")


class One(Struct, frozen=True):
    """Something to read."""

    text: str
    number: int = 1


def test_what_is_not_known_is_passed_over_and_what_lacks_is_the_default() -> None:
    assert read_struct({"text": "a", "more": 1}, One) == One("a")


@pytest.mark.parametrize("value", [{}, {"text": 1}, {"text": "a", "number": "1"}])
def test_what_is_of_another_type_is_refused(value: dict[str, object]) -> None:
    for _ in range(2):
        with pytest.raises(ValidationError):
            read_struct(value, One)
