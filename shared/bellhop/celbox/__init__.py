"""CEL in a box: evaluates rules that nobody has to trust.

Standalone: it imports nothing of Bellhop, and CEL's runtime (`cel-expr-python`, 16 MB) only
when the first rule is compiled. A rule sees one variable, `resource`, and cannot reach
the process; it cannot outlast its limits either: what it may cost is worked out before it is run,
and what might be too much is run in a process of its own, which is ended when it is.

    rule = Rule("resource.spec.ports.exists(p, p.port == 443)", name="https")
    rule.holds({"spec": {"ports": [{"port": 443}]}})    # True
"""

from bellhop.celbox.errors import (
    CelError,
    CelLimitError,
    CelMissingError,
    CelRuntimeError,
    CelSyntaxError,
)
from bellhop.celbox.limits import Limits, thread_time
from bellhop.celbox.rule import Rule

__all__ = [
    "CelError",
    "CelLimitError",
    "CelMissingError",
    "CelRuntimeError",
    "CelSyntaxError",
    "Limits",
    "Rule",
    "thread_time",
]
