"""Saved queries of CloudWatch Logs, which moto does not have: put, described and deleted."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from typing import Any

from moto.logs import responses

_Responses: Any = responses.LogsResponse

_saved: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
"""Definitions by account and region, then by id."""


def teach() -> None:
    """Give moto the three operations, once and for this process."""
    _Responses.put_query_definition = _put
    _Responses.describe_query_definitions = _describe
    _Responses.delete_query_definition = _delete


def _here(asked: Any) -> dict[str, dict[str, Any]]:
    return _saved[asked.current_account, asked.region]


def _put(self: Any) -> str:
    number = self._get_param("queryDefinitionId") or str(uuid.uuid4())
    _here(self)[number] = {
        "queryDefinitionId": number,
        "name": self._get_param("name"),
        "queryString": self._get_param("queryString"),
        "logGroupNames": self._get_param("logGroupNames") or [],
        "lastModified": 0,
    }
    return json.dumps({"queryDefinitionId": number})


def _describe(self: Any) -> str:
    prefix = self._get_param("queryDefinitionNamePrefix") or ""
    found = [each for each in _here(self).values() if each["name"].startswith(prefix)]
    return json.dumps({"queryDefinitions": found})


def _delete(self: Any) -> str:
    deleted = _here(self).pop(self._get_param("queryDefinitionId"), None)
    return json.dumps({"success": deleted is not None})
