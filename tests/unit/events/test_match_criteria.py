"""Objects are selected by kind, place and labels; an object on its way out is not."""

from typing import Any

import pytest

from bellhop.api.source import FilterOperation, LabelFilter, ResourceSelector
from bellhop.core.gvk import GVK
from bellhop.core.selector import Selector
from bellhop.events.rules_match import Traits, passes, selects

SERVICE = GVK("", "v1", "Service")


def service(**metadata: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "eng", **metadata}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def label(operation: FilterOperation, value: str = "") -> LabelFilter:
    return LabelFilter(key="env", operation=operation, value=value)


@pytest.mark.parametrize(
    ("selector", "obj", "selected"),
    [
        pytest.param(ResourceSelector(SERVICE), service(), True, id="kind alone"),
        pytest.param(
            ResourceSelector(GVK("apps", "v1", "Service")), service(), False, id="another group"
        ),
        pytest.param(
            ResourceSelector(GVK("", "v2", "Service")), service(), False, id="another version"
        ),
        pytest.param(ResourceSelector(GVK("", "v1", "Pod")), service(), False, id="another kind"),
        pytest.param(ResourceSelector(SERVICE, "eng"), service(), True, id="namespace"),
        pytest.param(ResourceSelector(SERVICE, "hr"), service(), False, id="another namespace"),
        pytest.param(ResourceSelector(SERVICE, name="web"), service(), True, id="name"),
        pytest.param(ResourceSelector(SERVICE, name="db"), service(), False, id="another name"),
        pytest.param(
            ResourceSelector(SERVICE),
            service(deletionTimestamp="2024-01-01T00:00:00Z"),
            False,
            id="being deleted",
        ),
        pytest.param(
            ResourceSelector(SERVICE, deleting=True),
            service(deletionTimestamp="2024-01-01T00:00:00Z"),
            True,
            id="being deleted, which is asked for",
        ),
        pytest.param(
            ResourceSelector(SERVICE, deleting=True),
            service(),
            True,
            id="asking for what is being deleted asks for nothing less",
        ),
        pytest.param(
            ResourceSelector(SERVICE),
            service(deletionTimestamp=None),
            True,
            id="not being deleted",
        ),
        pytest.param(
            ResourceSelector(SERVICE, selector=Selector.parse("env in (fv,qa)")),
            service(labels={"env": "qa"}),
            True,
            id="selector",
        ),
        pytest.param(
            ResourceSelector(SERVICE, selector=Selector.parse("env")),
            service(),
            False,
            id="selector and no labels",
        ),
        pytest.param(
            ResourceSelector(SERVICE, selector=Selector()),
            service(),
            True,
            id="an empty selector asks nothing of an object",
        ),
        pytest.param(
            ResourceSelector(
                SERVICE, label_filters=(label("Equal", "fv"),), selector=Selector.parse("tier")
            ),
            service(labels={"env": "fv"}),
            False,
            id="filters and selector must both be met",
        ),
        pytest.param(
            ResourceSelector(SERVICE, script="function evaluate() end"),
            service(),
            True,
            id="the script is asked later",
        ),
        pytest.param(ResourceSelector(SERVICE), {}, False, id="no object"),
        pytest.param(
            ResourceSelector(SERVICE),
            {"apiVersion": "v1", "kind": "Service", "metadata": None},
            True,
            id="no metadata",
        ),
        pytest.param(
            ResourceSelector(SERVICE, label_filters=(label("Has"),)),
            service(labels=None),
            False,
            id="labels that are null",
        ),
    ],
)
def test_selects(selector: ResourceSelector, obj: dict[str, Any], selected: bool) -> None:  # noqa: FBT001 - a table's column
    """Every condition that is set must be met."""
    assert selects(selector, Traits.of(obj)) is selected


@pytest.mark.parametrize(
    ("filters", "labels", "passed"),
    [
        pytest.param([], {}, True, id="no filter"),
        pytest.param([label("Equal", "fv")], {"env": "fv"}, True, id="Equal"),
        pytest.param([label("Equal", "fv")], {"env": "qa"}, False, id="Equal, another value"),
        pytest.param([label("Equal", "fv")], {}, False, id="Equal, no label"),
        pytest.param([label("Equal", "")], {}, False, id="Equal to nothing, no label"),
        pytest.param([label("Different", "fv")], {"env": "qa"}, True, id="Different"),
        pytest.param([label("Different", "fv")], {"env": "fv"}, False, id="Different, same value"),
        pytest.param([label("Different", "fv")], {}, True, id="Different, no label"),
        pytest.param([label("Has")], {"env": ""}, True, id="Has"),
        pytest.param([label("Has")], {"x": ""}, False, id="Has, no label"),
        pytest.param([label("DoesNotHave")], {"x": ""}, True, id="DoesNotHave"),
        pytest.param([label("DoesNotHave")], {"env": "x"}, False, id="DoesNotHave, and has"),
        pytest.param(
            [label("Has"), label("Different", "fv")], {"env": "fv"}, False, id="all must pass"
        ),
    ],
)
def test_label_filters(filters: list[LabelFilter], labels: dict[str, str], passed: bool) -> None:  # noqa: FBT001 - a table's column
    """Filters mean what the label selector that Sveltos made of them means."""
    assert passes(filters, labels) is passed
