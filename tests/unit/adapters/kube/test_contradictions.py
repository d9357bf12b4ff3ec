"""What a refusal names is looked for once, however often it is named."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.adapters.kube.contradictions import resolve
from bellhop.adapters.kube.old_servers import Server
from bellhop.adapters.kube.refusal import Refusal

MANY = range(10_000)


@pytest.mark.parametrize(("named", "duplicate"), [("v", False), ("w", True)])
def test_a_refusal_of_each_entry_of_a_long_list_is_answered_once(
    named: str, *, duplicate: bool
) -> None:
    """The time-out of a test ends what compares each entry with each other one.

    Those of the manifest have the same names, or other names and the same values.
    """
    there = [{"name": f"v{each}", "value": f"x{each}"} for each in MANY]
    entries = [{"name": f"{named}{each}", "value": f"x{each}"} for each in MANY]
    fields: dict[str, Any] = {
        f'k:{{"name":"v{each}"}}': {".": {}, "f:valueFrom": {}} for each in MANY
    }
    owner = {"manager": "other", "operation": "Update", "fieldsV1": {"f:env": fields}}
    live: dict[str, Any] = {
        "env": there,
        "metadata": {"resourceVersion": "1", "managedFields": [owner]},
    }
    reason = "FieldValueDuplicate" if duplicate else "FieldValueInvalid"
    field = "value" if duplicate else "valueFrom"
    causes = [
        {"reason": reason, "field": f"env[{each}].{field}", "message": "no"}
        for each in [*MANY, "9" * 5_000]
    ]
    patches: list[Any] = []

    def merge(patch: Any) -> Any:
        patches.append(patch)
        return {**live, "metadata": {**live["metadata"], **patch["metadata"]}}

    server = Server(read=lambda: live, merge=merge, apply=lambda _: {"kind": "Applied"})
    refusal = Refusal(422, details={"causes": causes})
    body = {"apiVersion": "v1", "metadata": {}, "env": entries}

    assert resolve(server, refusal, body) == {"kind": "Applied"}
    [patch] = patches
    [_, ours] = patch["metadata"]["managedFields"]
    assert len(ours["fieldsV1"]["f:env"]) == len(MANY)
