"""Make the schema of Google's Terraform providers, as far as our modules use them, without them.

The providers themselves cannot be had where tests run. What they take can: `cdktn-provider-google`
on PyPI (MPL-2.0) is generated from the schema that one version of the provider publishes, and so
are those for `google-beta` and `time`. Each is a package of JavaScript, in which a class stands for
each block, a comment for each argument, and in whose declarations the provider's own documentation
names the values that an argument may have.

    python -m pip download --no-deps cdktn-provider-time==14.0.2
    python -m pip download --no-deps cdktn-provider-google{,-beta}==21.1.0
    python -m tests.lab.google_schema *.whl

writes `tests/terraform/google_schema.json` again, in the shape of
`terraform providers schema -json` and with `values` where the documentation lists them. Packages
19.0.0, of the oldest version that the module accepts, write `google_schema_oldest.json`. What is
not in a package is not in the file either: which arguments exclude each other, which numbers are in
range, what is sensitive.
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
OLDEST = PLACE.with_name("google_schema_oldest.json")
OLDEST_VERSION = "7.31.0"
"""The oldest version of `google` and `google-beta` that the module accepts."""

KINDS = {
    "resource": ("resource_schemas", ""),
    "data": ("data_source_schemas", "data-google-"),
}
"""Terraform's words for each kind of type, in modules and in schemas, and how its folder begins."""

PROVIDERS = ("google", "google-beta", "time")
ADDRESS = "registry.terraform.io/hashicorp/{}"

_LICENCE = "MPL-2.0, https://github.com/hashicorp/terraform-provider-{}"
_DECLARES = r'^{} "(\w+)" "\w+" \{{(?:\n  provider = ([\w-]+))?'
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
_INITIALIZED = re.compile(
    r"^        (// \w+ - computed: .*\n)        this\.(_\w+ = new )", re.MULTILINE
)
_UNMARKED = re.compile(
    r"^    get (\w+)\(\) \{\n((?:(?!^    \}).)*?Attribute\('(\w+)'\).*?)^    \}",
    re.MULTILINE | re.DOTALL,
)
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
        # Older packages initialize nested arguments in constructors, and mark no others.
        self._code = _INITIALIZED.sub(r"    \1    \2", wheel.text(folder, ".js"))
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
        """Return the plain arguments of a provider, of which no more is known."""
        found = {name: _PRIMITIVES[kind.capitalize()] for name, kind in _PLAIN.findall(self._code)}
        return {
            "attributes": {name: {"type": kind, "optional": True} for name, kind in found.items()}
        }

    def _block(self, name: str, interface: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        values = self._values.get(interface, {})
        for word, known, body in _arguments(self._classes[name][1]):
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


def _arguments(code: str) -> Iterator[tuple[str, dict[str, bool], str]]:
    """Yield the arguments of a class: the name, the flags and the code that has the type."""
    marked = _ARGUMENT.findall(code)
    for word, computed, optional, required, body in marked:
        flags = {"computed": computed, "optional": optional, "required": required}
        yield word, {flag: True for flag, given in flags.items() if given == "true"}, body
    names = {each[0] for each in marked}
    for name, body, word in _UNMARKED.findall(code):
        if word not in names:
            settable = "required" if f"get {name}Input()" in code else "computed"
            optional = f"reset{name[0].upper()}{name[1:]}()" in code
            yield word, {"optional" if optional else settable: True}, body


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


def used() -> dict[str, dict[str, set[str]]]:
    """Return which types our modules and examples use, by provider and kind."""
    folders = [*ROOT.glob("terraform/modules/gcp"), *ROOT.glob("terraform/examples/gcp-*")]
    text = "\n".join(path.read_text() for each in folders for path in each.glob("*.tf"))
    found: dict[str, dict[str, set[str]]] = {
        provider: {kind: set() for kind in KINDS} for provider in PROVIDERS
    }
    for kind in KINDS:
        for name, given in re.findall(_DECLARES.format(kind), text, re.MULTILINE):
            found[given or name.partition("_")[0]][kind].add(name)
    return found


def schema(
    wheels: Mapping[str, Wheel], types: Mapping[str, Mapping[str, AbstractSet[str]]]
) -> dict[str, Any]:
    """Return the schemas of these providers, as far as these types go."""
    kinds = {each: Type(wheel, "provider") for each, wheel in wheels.items()}
    return {
        "format_version": "1.0",
        "made_from": [
            f"hashicorp/{each} {kinds[each].version} ({_LICENCE.format(each)})" for each in wheels
        ],
        "provider_version": next(iter(kinds.values())).version,
        "provider_schemas": {
            ADDRESS.format(each): _provider(each, wheel, kinds[each], types[each])
            for each, wheel in wheels.items()
        },
    }


def _provider(
    name: str, wheel: Wheel, provider: Type, types: Mapping[str, AbstractSet[str]]
) -> dict[str, Any]:
    found: dict[str, Any] = {"provider": {"version": 0, "block": provider.plain()}}
    for kind, (key, start) in KINDS.items():
        folders = {each: start + _folder(name, each) for each in sorted(types[kind])}
        found[key] = {
            each: {"version": 0, "block": Type(wheel, folder).block()}
            for each, folder in folders.items()
        }
    return found


def _folder(provider: str, name: str) -> str:
    return name.removeprefix(f"{provider}_").replace("_", "-")


def written(found: Mapping[str, Any]) -> str:
    """Write schemas with a line for each type, so that a difference can be read."""
    head = {name: each for name, each in found.items() if name != "provider_schemas"}
    lines = [f"  {json.dumps(name)}: {json.dumps(each)}," for name, each in head.items()]
    providers = [_lines(address, each) for address, each in found["provider_schemas"].items()]
    body = ",\n".join(providers)
    return "{\n" + "\n".join(lines) + '\n  "provider_schemas": {\n' + body + "\n  }\n}\n"


def _lines(address: str, provider: Mapping[str, Any]) -> str:
    lines = [f"    {json.dumps(address)}: {{"]
    lines.append(f'      "provider": {json.dumps(provider["provider"], separators=(",", ":"))},')
    *_, last = kinds = [key for key in provider if key != "provider"]
    for key in kinds:
        types = [
            f"        {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}"
            for name, each in provider[key].items()
        ]
        lines.append(
            f'      "{key}": {{\n' + ",\n".join(types) + f"\n      }}{',' * (key != last)}"
        )
    return "\n".join(lines) + "\n    }"


def main() -> None:
    """Write the schemas of what our modules use, from a wheel of each provider."""
    wheels = {_provider_of(Path(each)): Wheel(Path(each)) for each in sys.argv[1:]}
    found = schema({each: wheels[each] for each in PROVIDERS}, used())
    place = OLDEST if found["provider_version"] == OLDEST_VERSION else PLACE
    place.write_text(written(found))
    sys.stdout.write(f"wrote {place}\n")


def _provider_of(wheel: Path) -> str:
    return wheel.name.partition("-")[0].partition("_provider_")[2].replace("_", "-")


if __name__ == "__main__":
    main()
