"""From texts to objects: Lists, empty documents, and names that cannot be."""

from __future__ import annotations

import resource
import sys
import time

import pytest

from bellhop.errors import InvalidError
from bellhop.gotemplate import Limits
from bellhop.rendering.manifests import BOUNDS, read_manifests, render_manifests
from bellhop.rendering.templates import TemplateText


def names(text: str) -> list[str]:
    return [each["metadata"]["name"] for each in read_manifests(text, source="default/a/main.yaml")]


def test_refuses_declarations() -> None:
    """No cluster reads them; of a Secret the kind is not named, and others' kinds are fine."""
    text = "{apiVersion: lib.projectsveltos.io/v1beta1, kind: EventSource, metadata: {name: a}}"
    for secret, named in ((False, "EventSource"), (True, "object")):
        with pytest.raises(InvalidError, match=f"the {named} is a manifest for Bellhop"):
            read_manifests(text, source="default/a/main.yaml", secret=secret)

    assert names(text.replace("lib.projectsveltos", "lib.example")) == ["a"]


@pytest.mark.parametrize(("secret", "named"), [(False, "SveltosCluster"), (True, "object")])
def test_refuses_to_deploy_the_registration_of_a_cluster(named: str, *, secret: bool) -> None:
    """No cluster is registered by an object: the sentence says how to do it."""
    text = "{apiVersion: lib.projectsveltos.io/v1beta1, kind: SveltosCluster, metadata: {name: a}}"
    with pytest.raises(InvalidError, match=rf"the {named} registers a cluster.*register cluster`"):
        read_manifests(text, source="default/a/main.yaml", secret=secret)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("---\n# a comment\n---\n", [], id="empty documents"),
        pytest.param("{apiVersion: v1, kind: List, items: []}", [], id="an empty List"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
            ["a", "b"],
            id="a List",
        ),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems:\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n",
            ["a"],
            id="a List of one kind",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: 'system:a', labels: null}}",
            ["system:a"],
            id="a colon and null labels",
        ),
        pytest.param(
            "apiVersion: example.org/v1\nkind: WatchList\nmetadata: {name: w}\n",
            ["w"],
            id="a kind that only sounds like a List",
        ),
    ],
)
def test_reads_objects_in_their_order(text: str, expected: list[str]) -> None:
    """Lists are taken apart, once."""
    assert names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {v: '1'}}\n"
            "metadata:\n  name: b\n  name: c\n",
            id="YAML",
        ),
        pytest.param(
            '{"kind": "Pod",\n\t"apiVersion": "v1", "metadata": {"name": "a"},\n'
            '\t"metadata": {"name": "b", "name": "c"}}',
            id="JSON",
        ),
    ],
)
def test_of_a_key_that_stands_twice_the_last_counts(text: str) -> None:
    """Kubernetes' tools read so what templates write; the first one leaves nothing behind."""
    expected = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "c"}}
    written = TemplateText(text, "default/a/main.yaml")

    assert [expected] == list(read_manifests(text, source="default/a/main.yaml"))
    assert [expected] == list(render_manifests(written, {}, Limits()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "{name: a, labels: [x]}", "'metadata.labels' of the Pod must be a", id="labels"
        ),
        pytest.param("{name: a, annotations: x}", "'metadata.annotations' of the Pod", id="notes"),
        pytest.param(
            "{name: a, namespace: 7}", "'metadata.namespace' of the Pod must be a", id="7"
        ),
        pytest.param("{name: a/b}", "'metadata.name' of the object is not a name", id="slash"),
        pytest.param("{name: a, namespace: b/c}", "'metadata.namespace' of the object", id="place"),
    ],
)
def test_refuses_metadata_that_cannot_be(text: str, expected: str) -> None:
    """Here, where the error has its line, and not when it is applied."""
    with pytest.raises(InvalidError) as caught:
        names(f"apiVersion: v1\nkind: Pod\nmetadata: {text}\n")

    assert expected in str(caught.value)
    assert "default/a/main.yaml, line 1" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("a/b/v1", "Pod", id="two slashes in apiVersion"),
        pytest.param("v1", "Pod/status", id="a slash in kind"),
    ],
)
def test_refuses_kinds_that_cannot_be(version: str, kind: str) -> None:
    """Keys join group, version and kind by slashes."""
    with pytest.raises(InvalidError, match="it has a slash"):
        names(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")


LIMITS = Limits(output=8 * 1024 * 1024)
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: x}}"


@pytest.mark.clocked
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            HEAD + 'x:\n{{ repeat 2000000 "- a\\n" }}',
            r"e, rendered line 99\d{3}: .* 100,000 values that are read; .*'- a'.* its line 5",
            id="a long list",
        ),
        pytest.param(
            HEAD + 'x: [{{ repeat 2000000 "a," }}]',
            r"e, rendered line 4: this has more than the 100,000 values",
            id="on one line",
        ),
        pytest.param(
            HEAD + 'x: [{{ repeat 2000000 "{}," }}]',
            r"e, rendered line 4: this has more than the 100,000 values",
            id="empty mappings",
        ),
        pytest.param(
            '{{ repeat 2000000 "---\\n" }}', "e: this has more than the 100,000", id="documents"
        ),
        pytest.param(
            '{{ repeat 10001 "---\\n%s\\n" }}'.replace("%s", POD),
            r"e, rendered line 20002: this has more than the 10,000 documents",
            id="objects",
        ),
        pytest.param(
            'kind: List\napiVersion: v1\nitems:\n- &a %s\n{{ repeat 10000 "- *a\\n" }}'.replace(
                "%s", POD
            ),
            r"e, rendered line 4: this has more than the 10,000 objects",
            id="aliases of one object",
        ),
        pytest.param(
            HEAD + 'x:\n- &a {{ repeat 1000000 "a" }}\n{{ repeat 1000 "- *a\\n" }}',
            r"e, rendered line \d+: the aliases of this document expand without measure",
            id="aliases of a long text",
        ),
        pytest.param(
            HEAD + 'x: {{ repeat 1000000 "[" }}',
            "e: the document nests deeper than 100 levels",
            id="brackets",
        ),
        pytest.param(
            HEAD + 'x: {{ repeat 1000000 "{a: " }}', "e: the document nests deeper", id="braces"
        ),
        pytest.param(
            r'{"a": "\ud83d\ude00", "x":[{{ repeat 2000000 "0," }}0]}',
            "e: this JSON has more than the 100,000 values that are read",
            id="JSON that is no YAML",
        ),
    ],
)
def test_what_a_template_writes_is_bounded_as_a_tree(text: str, expected: str) -> None:
    """A text within the template's limits that would be a tree of gigabytes is refused early."""
    before, begun = peak(), time.process_time()

    with pytest.raises(InvalidError, match=expected):
        render_manifests(TemplateText(text, "e"), {}, LIMITS)

    # Unbounded, reading the first of them takes minutes and gigabytes.
    assert time.process_time() - begun < 20
    assert peak() - before < 600 * 1024 * 1024


def peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def test_large_but_honest_output_is_read() -> None:
    """Thousands of objects, and texts of a megabyte, are within the bounds."""
    many = render_manifests(
        TemplateText("{{ range until 5000 }}---\n%s\n{{ end }}".replace("%s", POD), "e"),
        {},
        Limits(output=8 * 1024 * 1024),
    )
    (large,) = render_manifests(
        TemplateText(HEAD + 'data: {a: "{{ repeat 1000000 "a," }}"}', "e"),
        {},
        Limits(output=8 * 1024 * 1024),
    )

    assert len(many) == 5000 < BOUNDS.documents
    assert len(large["data"]["a"]) == 2_000_000
