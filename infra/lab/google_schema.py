"""Make the schema of Google's Terraform provider, as far as our modules use it, without it.

The provider itself cannot be had where tests run. What it takes can: `cdktn-provider-google` on
PyPI (MPL-2.0) is generated from the schema that one version of the provider publishes. It is a
package of JavaScript, in which a class stands for each block, a comment for each argument, and in
whose declarations the provider's own documentation names the values that an argument may have.

    python -m pip download --no-deps cdktn-provider-google==21.1.0
    python -m infra.lab.google_schema cdktn_provider_google-21.1.0-py3-none-any.whl

writes `tests/terraform/google_schema.json` anew, in the shape of `terraform providers schema -json`
and with `values` where the documentation lists them. What is not in the package is not in it
either: which arguments exclude each other, which numbers are in range, what is sensitive.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "tests" / "terraform" / "google_schema.json"
KINDS = {
    "resource": ("resource_schemas", ""),
    "data": ("data_source_schemas", "data-google-"),
}
"""What Terraform calls each kind of type, in modules and in schemas, and how its folder begins."""

ADDRESS = "registry.terraform.io/hashicorp/google"

_LICENCE = "MPL-2.0, https://github.com/hashicorp/terraform-provider-google"
_CLASS = re.compile(r"^class (\w+) extends cdktn\.(\w+) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_ARGUMENT = re.compile(
    r"^    // (\w+) - computed: (\w+), optional: (\w+), required: (\w+)$"
    r"(.*?)(?=^    // \w+ - computed|^    // ====|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NESTED = re.compile(r"^    _\w+ = new (\w+)\(this, \"\w+\"(?:, (true|false))?\);", re.MULTILINE)
_MAP = re.compile(r"= new cdktn\.(String|Number|Boolean)Map\(")
_GETTER = re.compile(r"(Fn\.tolist\()?this\.get(String|Number|Boolean)?(Map|List)?Attribute\(")
_PLAIN = re.compile(
    r"^ +(\w+): \{\n.*\n +isBlock: false,\n +type: \"simple\",\n +storageClassType: \"(\w+)\"",
    re.MULTILINE,
)
_DECLARED = re.compile(r"^export interface (\w+) .*?\{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_DESCRIBED = re.compile(r"/\*\*(.*?)\*/\n    readonly ", re.DOTALL)
_NAMED = re.compile(r"registry\.terraform\.io\S+#(\w+) ")
_VALUES = re.compile(r"Possible values: \[(.*?)\]", re.DOTALL)
_PRIMITIVES = {"String": "string", "Number": "number", "Boolean": "bool"}


class Wheel:
    """A wheel of the package: the generated code of each type, by the name of its folder."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as wheel:
            (inner,) = [each for each in wheel.namelist() if each.endswith(".jsii.tgz")]
            self._archive = gzip.decompress(wheel.read(inner))

    def text(self, folder: str, ending: str) -> str:
        """Return all files of a folder that end so, one after the other."""
        start = f"package/lib/{folder}/"
        with tarfile.open(fileobj=io.BytesIO(self._archive)) as archive:
            names = [n for n in archive.getnames() if n.startswith(start) and n.endswith(ending)]
            files = [archive.extractfile(each) for each in sorted(names)]
            texts = [each.read().decode() for each in files if each]
        if not texts:
            raise SystemExit(f"cannot describe '{folder}': this version of the provider has none")
        return "\n".join(texts)


class Type:
    """One resource, data source or provider: the block that its arguments make."""

    def __init__(self, wheel: Wheel, folder: str) -> None:
        self._code = wheel.text(folder, ".js")
        self._classes = {name: (base, body) for name, base, body in _CLASS.findall(self._code)}
        declared = _DECLARED.findall(wheel.text(folder, ".d.ts"))
        self._values = {name: dict(_values(body)) for name, body in declared}

    @property
    def version(self) -> str:
        """The version of the provider."""
        found = re.search(r"providerVersion: '([\d.]+)'", self._code)
        return found[1] if found else ""

    def block(self) -> dict[str, Any]:
        """Return the block in the words of `terraform providers schema -json`."""
        (name,) = [
            name for name, (base, _) in self._classes.items() if base.startswith("Terraform")
        ]
        return self._block(name, f"{name}Config")

    def plain(self) -> dict[str, Any]:
        """Return the plain arguments of a provider, of which nothing else is told."""
        found = {name: _PRIMITIVES[kind.capitalize()] for name, kind in _PLAIN.findall(self._code)}
        return {
            "attributes": {name: {"type": kind, "optional": True} for name, kind in found.items()}
        }

    def _block(self, name: str, interface: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        values = self._values.get(interface, {})
        for word, computed, optional, required, body in _ARGUMENT.findall(self._classes[name][1]):
            flags = {"computed": computed, "optional": optional, "required": required}
            known = {flag: True for flag, given in flags.items() if given == "true"}
            if nested := _NESTED.search(body):
                nesting, inner = self._nested(nested[1], nested[2])
                if "computed" in known:
                    attributes[word] = {"type": _listed(nesting, _object(inner)), **known}
                else:
                    blocks[word] = {
                        "nesting_mode": nesting,
                        "block": inner,
                        **_bounds(nested, known),
                    }
                continue
            kind = self._kind(word, body)
            attributes[word] = {"type": kind, **known, **values.get(word, {})}
            if word.endswith("_wo"):
                attributes[word]["write_only"] = True
        found = {"attributes": attributes, "block_types": blocks}
        return {key: each for key, each in found.items() if each}

    def _nested(self, name: str, of_set: str) -> tuple[str, dict[str, Any]]:
        base, _ = self._classes[name]
        if base == "ComplexList":
            element = name.removesuffix("List")
            inner = self._block(f"{element}OutputReference", element)
            return ("set" if of_set == "true" else "list"), inner
        element = name.removesuffix("OutputReference")
        # Blocks of time-outs are the only ones that are no list of one.
        return ("single" if element.endswith("Timeouts") else "list"), self._block(name, element)

    def _kind(self, word: str, body: str) -> Any:
        if found := _MAP.search(body):
            return ["map", _PRIMITIVES[found[1]]]
        if found := _GETTER.search(body):
            kind = _PRIMITIVES[found[2] or "String"]
            if found[3] == "List":
                return ["set" if found[1] else "list", kind]
            return ["map", kind] if found[3] else kind
        raise SystemExit(f"cannot describe the argument '{word}': its type is told in another way")


def _values(declared: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments whose documentation lists what they may be."""
    for described in _DESCRIBED.findall(declared):
        name, listed = _NAMED.search(described), _VALUES.search(described)
        if name and listed:
            yield name[1], {"values": sorted(re.findall(r'"([^"]*)"', listed[1]))}


def _bounds(nested: re.Match[str], known: Mapping[str, bool]) -> dict[str, int]:
    one = nested[1].endswith("OutputReference")
    if nested[1].endswith("TimeoutsOutputReference"):
        return {}
    least = {"min_items": 1} if "required" in known else {}
    return {**least, **({"max_items": 1} if one else {})}


def _object(block: Mapping[str, Any]) -> list[Any]:
    kinds = {name: each["type"] for name, each in block.get("attributes", {}).items()}
    for name, each in block.get("block_types", {}).items():
        kinds[name] = _listed(each["nesting_mode"], _object(each["block"]))
    return ["object", kinds]


def _listed(nesting: str, kind: Any) -> Any:
    return kind if nesting == "single" else [nesting, kind]


def used() -> dict[str, AbstractSet[str]]:
    """Return which types our modules and examples use, by kind."""
    folders = [*ROOT.glob("terraform/modules/gcp"), *ROOT.glob("terraform/examples/gcp-*")]
    text = "\n".join(path.read_text() for each in folders for path in each.glob("*.tf"))
    return {kind: set(re.findall(rf'^{kind} "(\w+)"', text, re.MULTILINE)) for kind in KINDS}


def schema(wheel: Wheel, types: Mapping[str, AbstractSet[str]]) -> dict[str, Any]:
    """Return the provider's schema, as far as these types go."""
    provider = Type(wheel, "provider")
    found: dict[str, Any] = {"provider": {"version": 0, "block": provider.plain()}}
    for kind, (key, start) in KINDS.items():
        folders = {each: start + _folder(each) for each in sorted(types[kind])}
        found[key] = {
            name: {"version": 0, "block": Type(wheel, folder).block()}
            for name, folder in folders.items()
        }
    return {
        "format_version": "1.0",
        "made_from": f"hashicorp/google {provider.version} ({_LICENCE})",
        "provider_version": provider.version,
        "provider_schemas": {ADDRESS: found},
    }


def _folder(name: str) -> str:
    return name.removeprefix("google_").replace("_", "-")


def written(found: Mapping[str, Any]) -> str:
    """Write a schema with a line for each type, so that a difference can be read."""
    head = {name: each for name, each in found.items() if name != "provider_schemas"}
    lines = [f"  {json.dumps(name)}: {json.dumps(each)}," for name, each in head.items()]
    ((address, provider),) = found["provider_schemas"].items()
    lines.append(f'  "provider_schemas": {{{json.dumps(address)}: {{')
    lines.append(f'    "provider": {json.dumps(provider["provider"], separators=(",", ":"))},')
    *_, last = kinds = [key for key in provider if key != "provider"]
    for key in kinds:
        types = [
            f"      {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}"
            for name, each in provider[key].items()
        ]
        lines.append(f'    "{key}": {{\n' + ",\n".join(types) + f"\n    }}{',' * (key != last)}")
    return "{\n" + "\n".join(lines) + "\n  }}\n}\n"


def main() -> None:
    """Write the schema of what our modules use."""
    wheel = Wheel(Path(sys.argv[1]))
    PLACE.write_text(written(schema(wheel, used())))
    sys.stdout.write(f"wrote {PLACE}\n")


if __name__ == "__main__":
    main()
