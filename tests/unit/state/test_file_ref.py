"""What refs are called, and what of it is read back."""

from __future__ import annotations

import pytest

from bellhop.state.content import ref_name, ref_parts


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        pytest.param(("ConfigMap", "default", "web"), "ConfigMap default/web", id="a ConfigMap"),
        pytest.param(("ConfigMap", "", "web"), "ConfigMap /web", id="in no namespace"),
        pytest.param(("RemoteURL", "", "https://x/y.yaml"), "https://x/y.yaml", id="a URL"),
        pytest.param(
            ("RemoteURL", "", "oci://x/{{ .Cluster.metadata.name }}"),
            "oci://x/{{ .Cluster.metadata.name }}",
            id="a template of a URL",
        ),
    ],
)
def test_a_ref_is_read_back_from_what_it_is_called(parts: tuple[str, str, str], name: str) -> None:
    """A URL is called by itself, without a kind."""
    assert ref_name(*parts) == name
    assert ref_parts(name) == parts
