"""The stand-in for Google's provider knows the package's schema, and validates by it."""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.lab.google_schema import ADDRESS, KINDS, OLDEST, PLACE, Wheel, schema, used, written
from tests.lab.google_schema_wire import UNKNOWN, field, texts, unpacked

CODE = """\
class ThingSizeOutputReference extends cdktn.ComplexObject {
    // least - computed: false, optional: true, required: false
    _least;
    get least() {
        return this.getNumberAttribute('least');
    }
}
class ThingPartsList extends cdktn.ComplexList {
}
class ThingPartsOutputReference extends cdktn.ComplexObject {
    // tags - computed: false, optional: false, required: true
    _tags;
    get tags() {
        return cdktn.Fn.tolist(this.getListAttribute('tags'));
    }
}
class ThingMadeList extends cdktn.ComplexList {
}
class ThingMadeOutputReference extends cdktn.ComplexObject {
    // at - computed: true, optional: false, required: false
    get at() {
        return this.getStringAttribute('at');
    }
}
class ThingTimeoutsOutputReference extends cdktn.ComplexObject {
    // create - computed: false, optional: true, required: false
    _create;
    get create() {
        return this.getStringAttribute('create');
    }
}
class Thing extends cdktn.TerraformResource {
    providerVersion: '1.2.3'
    // kind - computed: false, optional: false, required: true
    _kind;
    get kind() {
        return this.getStringAttribute('kind');
    }
    // data_wo - computed: false, optional: true, required: false
    _dataWo;
    get dataWo() {
        return this.getStringAttribute('data_wo');
    }
    // words - computed: true, optional: true, required: false
    _words;
    get words() {
        return this.getStringMapAttribute('words');
    }
    // counted - computed: true, optional: false, required: false
    _counted = new cdktn.NumberMap(this, "counted");
    // made - computed: true, optional: false, required: false
    _made = new ThingMadeList(this, "made", false);
    // parts - computed: false, optional: false, required: true
    _parts = new ThingPartsList(this, "parts", true);
    // size - computed: false, optional: true, required: false
    _size = new ThingSizeOutputReference(this, "size");
    // timeouts - computed: false, optional: true, required: false
    _timeouts = new ThingTimeoutsOutputReference(this, "timeouts");
    // =========
    // SYNTHESIS
    // =========
}
"""
PROVIDER = """\
class GoogleProvider extends cdktn.TerraformProvider {
    // project - computed: false, optional: true, required: false
    _project;
    get project() {
        return this._project;
    }
    synthesizeHclAttributes() {
        const attrs = {
            project: {
                value: cdktn.stringToHclTerraform(this._project),
                isBlock: false,
                type: "simple",
                storageClassType: "string",
            },
        };
    }
}
"""
DECLARED = """\
export interface ThingConfig extends cdktn.TerraformMetaArguments {
    /**
    * What it is. Possible values: ["LARGE", "SMALL"]
    *
    * Docs at Terraform Registry: {@link https://registry.terraform.io/x/thing#kind Thing#kind}
    */
    readonly kind: string;
}
"""


def package(folder: Path, files: dict[str, str]) -> Wheel:
    """Make a wheel as those on PyPI are, with these files in it."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for name, text in files.items():
            each = tarfile.TarInfo(f"package/lib/{name}")
            each.size = len(text)
            archive.addfile(each, io.BytesIO(text.encode()))
    path = folder / "package.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("package/_jsii/provider@1.jsii.tgz", inner.getvalue())
    return Wheel(path)


def test_reads_a_package(tmp_path: Path) -> None:
    """Each argument has its type and what it may be, each block how often it comes."""
    files = {
        "thing/index.js": CODE,
        "thing/index.d.ts": DECLARED,
        "provider/index.js": PROVIDER,
        "provider/index.d.ts": "",
    }
    types = {"google": {"resource": {"google_thing"}, "data": set[str]()}}
    found = schema({"google": package(tmp_path, files)}, types)

    (provider,) = found["provider_schemas"].values()
    optional, computed = {"optional": True}, {"computed": True}
    tags = {"attributes": {"tags": {"type": ["set", "string"], "required": True}}}
    assert provider["provider"]["block"]["attributes"] == {
        "project": {"type": "string", **optional}
    }
    assert provider["resource_schemas"]["google_thing"]["block"] == {
        "attributes": {
            "kind": {"type": "string", "required": True, "values": ["LARGE", "SMALL"]},
            "data_wo": {"type": "string", **optional, "write_only": True},
            "words": {"type": ["map", "string"], **computed, **optional},
            "counted": {"type": ["map", "number"], **computed},
            "made": {"type": ["list", ["object", {"at": "string"}]], **computed},
        },
        "block_types": {
            "parts": {"nesting_mode": "set", "block": tags, "min_items": 1},
            "size": {
                "nesting_mode": "list",
                "block": {"attributes": {"least": {"type": "number", **optional}}},
                "max_items": 1,
            },
            "timeouts": {
                "nesting_mode": "single",
                "block": {"attributes": {"create": {"type": "string", **optional}}},
            },
        },
    }
    assert json.loads(written(found)) == found


def test_reads_a_package_that_initializes_in_constructors(tmp_path: Path) -> None:
    """Older packages mark only nested arguments; the others are known by their accessors."""
    code = """\
class ThingSizeOutputReference extends cdktn.ComplexObject {
    get least() {
        return this.getNumberAttribute('least');
    }
    resetLeast() {
    }
    get leastInput() {
    }
}
class Thing extends cdktn.TerraformResource {
    constructor() {
        // size - computed: false, optional: false, required: true
        this._size = new ThingSizeOutputReference(this, "size");
    }
    get at() {
        return this.getStringAttribute('at');
    }
    get kind() {
        return this.getStringAttribute('kind');
    }
    get kindInput() {
    }
}
"""
    files = {"provider/index.js": PROVIDER, "provider/index.d.ts": "", "thing/index.d.ts": DECLARED}
    wheel = package(tmp_path, {**files, "thing/index.js": code})
    found = schema({"google": wheel}, {"google": {"resource": {"google_thing"}, "data": set()}})

    (provider,) = found["provider_schemas"].values()
    least = {"attributes": {"least": {"type": "number", "optional": True}}}
    assert provider["resource_schemas"]["google_thing"]["block"] == {
        "attributes": {
            "at": {"type": "string", "computed": True},
            "kind": {"type": "string", "required": True, "values": ["LARGE", "SMALL"]},
        },
        "block_types": {
            "size": {"nesting_mode": "list", "block": least, "min_items": 1, "max_items": 1}
        },
    }


def test_says_what_a_package_lacks(tmp_path: Path) -> None:
    """A type that another version of the provider has is named."""
    with pytest.raises(SystemExit, match="cannot describe 'thing'"):
        package(tmp_path, {"other/index.js": ""}).text("thing", ".js")


@pytest.mark.parametrize("place", [PLACE, OLDEST], ids=["newest", "oldest"])
def test_has_what_modules_and_examples_use(place: Path) -> None:
    """A type that is used, and not in the file, would be found by nobody who has no package."""
    found = json.loads(place.read_text())["provider_schemas"]

    for name, types in used().items():
        provider = found[ADDRESS.format(name)]
        assert {kind: set(provider[key]) for kind, (key, _) in KINDS.items()} == types


@pytest.mark.parametrize("place", [PLACE, OLDEST], ids=["newest", "oldest"])
def test_says_whose_it_is(place: Path) -> None:
    """A file from another project has its licence beside it."""
    found = json.loads(place.read_text())

    for each in found["made_from"]:
        assert re.fullmatch(r"hashicorp/[a-z-]+ [\d.]+ \(MPL-2\.0, https://.*\)", each)
    assert place.read_text() == written(found)


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        (b"\xc0", None),
        (b"\xc3", True),
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xcd\x02\x59", 601),
        (b"\xd1\xff\x00", -256),
        (b"\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", 0.5),
        (b"\xa3abc", "abc"),
        (b"\xd9\x03abc", "abc"),
        (b"\x92\x01\xa1a", [1, "a"]),
        (b"\xdc\x00\x01\xc2", [False]),
        (b"\x81\xa1a\x90", {"a": []}),
        (b"\xde\x00\x01\xa1a\xc0", {"a": None}),
        (b"\xd4\x00\x00", UNKNOWN),
        (b"\xc7\x03\x0c\x81\x01\xc2", UNKNOWN),
        (b"\x92\xd4\x00\x00\x07", [UNKNOWN, 7]),
    ],
)
def test_reads_message_pack(packed: bytes, value: object) -> None:
    """As Terraform writes the configuration of a resource."""
    assert unpacked(packed) == value


def test_writes_and_reads_messages() -> None:
    """Fields by their numbers; nothing is not written."""
    message = field(1, "a" * 300) + field(2, 0) + field(3, 300) + field(20, b"\x00")

    assert field(2, 0) == field(2, value=False) == b""
    assert list(texts(message)) == [(1, b"a" * 300), (20, b"\x00")]
