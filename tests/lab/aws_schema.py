"""Make the schema of version 6 of Terraform's provider for AWS, as far as our modules use it.

Tests validate, plan and apply with version 5.100 itself, which is where they run. Version 6 is not,
but `cdktn-provider-aws` on PyPI (MPL-2.0) is generated from its schema, as the package for Google
that `tests.lab.google_schema` reads. `SchemaProvider` stands in for the provider with it.

    python -m pip download --no-deps cdktn-provider-aws==VERSION
    python -m tests.lab.aws_schema cdktn_provider_aws-VERSION-py3-none-any.whl

writes `tests/terraform/aws_schema.json`. The package has no ephemeral resources: the schema of the
one that we use is that of version 5.100.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tests.lab.google_schema import Type, Wheel, written

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "tests" / "terraform" / "aws_schema.json"
ADDRESS = "registry.terraform.io/hashicorp/aws"
KINDS = {
    "resource": ("resource_schemas", ""),
    "data": ("data_source_schemas", "data-aws-"),
    "ephemeral": ("ephemeral_resource_schemas", ""),
}
"""Terraform's words for each kind of type, in modules and in schemas, and how its folder begins."""

_LICENCE = "MPL-2.0, https://github.com/hashicorp/terraform-provider-aws"
_TEXT = {"type": "string", "optional": True}
_SWITCH = {"type": "bool", "optional": True}
_EPHEMERAL = {
    "aws_secretsmanager_random_password": {
        "attributes": {
            "exclude_characters": _TEXT,
            "exclude_lowercase": _SWITCH,
            "exclude_numbers": _SWITCH,
            "exclude_punctuation": _SWITCH,
            "exclude_uppercase": _SWITCH,
            "include_space": _SWITCH,
            "password_length": {"type": "number", "optional": True},
            "random_password": {"type": "string", "computed": True},
            "require_each_included_type": _SWITCH,
        }
    }
}


def used() -> dict[str, AbstractSet[str]]:
    """Return which types of the provider our modules and examples use, by kind."""
    folders = [*ROOT.glob("terraform/modules/aws"), *ROOT.glob("terraform/examples/aws-*")]
    text = "\n".join(path.read_text() for each in folders for path in each.glob("*.tf"))
    return {kind: set(re.findall(rf'^{kind} "(aws_\w+)"', text, re.MULTILINE)) for kind in KINDS}


def schema(wheel: Wheel, types: Mapping[str, AbstractSet[str]]) -> dict[str, Any]:
    """Return the provider's schema, as far as these types go."""
    provider = Type(wheel, "provider")
    found: dict[str, Any] = {"provider": {"version": 0, "block": provider.plain()}}
    for kind, (key, start) in KINDS.items():
        found[key] = {
            name: {"version": 0, "block": _block(wheel, kind, name, start)}
            for name in sorted(types[kind])
        }
    return {
        "format_version": "1.0",
        "made_from": f"hashicorp/aws {provider.version} ({_LICENCE})",
        "provider_version": provider.version,
        "provider_schemas": {ADDRESS: found},
    }


def _block(wheel: Wheel, kind: str, name: str, start: str) -> dict[str, Any]:
    if kind == "ephemeral":
        return _EPHEMERAL[name]
    return Type(wheel, start + name.removeprefix("aws_").replace("_", "-")).block()


def main() -> None:
    """Write the schema of what our modules use."""
    wheel = Wheel(Path(sys.argv[1]))
    PLACE.write_text(written(schema(wheel, used())))
    sys.stdout.write(f"wrote {PLACE}\n")


if __name__ == "__main__":
    main()
