"""Write YAML; texts that read as other values, or steer a terminal, are quoted."""

from __future__ import annotations

from typing import Any

import yaml

from bellhop.core.printable import escaped_yaml, steers
from bellhop.documents.yaml_nodes import TAG, NotJsonError, resolve_plain


def write(data: Any) -> str:
    """Write YAML, as `dump` says."""
    text: str = escaped_yaml(
        yaml.dump(
            data,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=1 << 30,
        )
    )
    return text


_Emitter: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Emitter):  # type: ignore[misc]
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.Node:
    node: yaml.Node = dumper.represent_scalar(f"{TAG}str", text, _style(text))
    return node


def _style(text: str) -> str | None:
    if steers(text):
        # Only between double quotes can such characters be written as escapes.
        return '"'
    if "\n" in text:
        return "|"
    try:
        return None if isinstance(resolve_plain(text), str) else '"'
    except NotJsonError:
        return '"'


_Dumper.add_representer(str, _represent_text)
