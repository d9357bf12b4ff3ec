"""Checks of the values of a Helm release: one YAML mapping for each text."""

from __future__ import annotations

from bellhop.documents.document import read_documents
from bellhop.errors import InvalidError


def values_problem(text: str) -> str:
    """Say why Helm cannot take a text as values of a chart; empty if it can."""
    try:
        documents = read_documents(text, source="values", expand_lists=False, repeats=True)
    except InvalidError as error:
        return str(error)
    if all(isinstance(each.data, dict) for each in documents):
        return ""
    return "values of a chart must be a mapping, as in 'replicaCount: 2'"
