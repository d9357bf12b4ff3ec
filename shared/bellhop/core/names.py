"""The rules Kubernetes has for names, labels and durations, as types for the models.

Fields that may be templates are checked only when they are none: what a template yields is
checked when it is rendered.
"""

import re
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, PlainValidator

from bellhop.core.allow import ANNOTATION as ALLOW
from bellhop.core.allow import read_allow
from bellhop.core.base import mistake
from bellhop.errors import InvalidError

LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
LARGEST_ANNOTATIONS = 256 * 1024

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+\Z")
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+\Z")
_PART = re.compile(r"([0-9.]+)([a-zµ]+)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_SHARE = re.compile(r"((100|[0-9]{1,2})%|[0-9]+)\Z")

_ACTION = re.compile(r"\s*\{\{.*?\}\}\s*", re.DOTALL)
_CHOICE = re.compile(r"\{\{-?\s*(if|range|with|define|block|template|/\*)")


def is_template(text: str) -> bool:
    """Return whether a field must be rendered before it means anything."""
    return "{{" in text


def fits_template(written: str, name: str) -> bool:
    """Return whether a field can be rendered to a name: its own text stays, by and large.

    Only the text beside actions is compared, and none where actions choose between texts.
    """
    if not is_template(written):
        return written == name
    if _CHOICE.search(written):
        return True
    first, *parts, last = _ACTION.split(written)
    if not (name.startswith(first) and name.endswith(last)):
        return False
    at = len(first)
    for part in parts:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at <= len(name) - len(last)


def name_problem(name: str) -> str:
    """Say what is wrong with an object's name; nothing when it is right."""
    if len(name) > LONGEST_SUBDOMAIN:
        return f"a name has at most {LONGEST_SUBDOMAIN} characters, this one has {len(name)}"
    if not _SUBDOMAIN.match(name):
        return f"{name!r} is not a name: it takes lower-case letters, digits, '-' and '.'"
    return ""


def namespace_problem(namespace: str) -> str:
    """Say what is wrong with a namespace; nothing when it is right."""
    if len(namespace) > LONGEST_LABEL:
        return f"a namespace has at most {LONGEST_LABEL} characters, this one has {len(namespace)}"
    if not _LABEL.match(namespace):
        return f"{namespace!r} is not a namespace: it takes lower-case letters, digits and '-'"
    return ""


def label_key_problem(key: str) -> str:
    """Say what is wrong with the key of a label or an annotation; nothing when it is right."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > LONGEST_SUBDOMAIN or not _SUBDOMAIN.match(prefix)):
        return f"{key!r} is not a key: what stands before '/' must be a DNS name"
    if len(name) > LONGEST_LABEL:
        return (
            f"{key!r} is not a key: a key's name has at most {LONGEST_LABEL} characters, "
            f"this one has {len(name)}"
        )
    if not _QUALIFIED.match(name):
        return f"{key!r} is not a key: it takes letters, digits, '-', '_' and '.'"
    return ""


def label_value_problem(value: str) -> str:
    """Say what is wrong with the value of a label; nothing when it is right."""
    if len(value) > LONGEST_LABEL:
        return f"a label's value has at most {LONGEST_LABEL} characters, this one has {len(value)}"
    if value and not _QUALIFIED.match(value):
        return f"{value!r} is not a label's value: it takes letters, digits, '-', '_' and '.'"
    return ""


def _refuse(problem: str) -> None:
    if problem:
        raise mistake(problem)


def _name(text: str) -> str:
    _refuse(name_problem(text))
    return text


def _namespace(text: str) -> str:
    if text:
        _refuse(namespace_problem(text))
    return text


def _name_or_template(text: str) -> str:
    return text if is_template(text) else _name(text)


def _namespace_or_template(text: str) -> str:
    return text if is_template(text) else _namespace(text)


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        _refuse(label_key_problem(key))
        if problem := label_value_problem(value):
            raise mistake(f"{key!r}: {problem}")
    return labels


def _labels_or_templates(labels: dict[str, str]) -> dict[str, str]:
    _labels({key: "" if is_template(value) else value for key, value in labels.items()})
    return labels


def _annotations(annotations: dict[str, str]) -> dict[str, str]:
    for key in annotations:
        _refuse(label_key_problem(key))
    if ALLOW in annotations:
        try:
            read_allow(annotations[ALLOW])
        except InvalidError as error:
            raise mistake(str(error)) from error
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > LARGEST_ANNOTATIONS:
        raise mistake(
            f"annotations have at most {LARGEST_ANNOTATIONS:,} bytes together, these have {size:,}"
        )
    return annotations


def data_key_problem(key: str) -> str:
    """Say what is wrong with a key in a ConfigMap's or Secret's data; nothing when it is right."""
    if len(key) > LONGEST_SUBDOMAIN:
        return f"a data key has at most {LONGEST_SUBDOMAIN} characters, this one has {len(key)}"
    if not _DATA_KEY.match(key) or key in {".", ".."}:
        return f"{key!r} is not a data key: it takes letters, digits, '-', '_' and '.'"
    return ""


def duration_problem(text: str) -> str:
    """Return what is wrong with a duration; nothing when it is right."""
    if _DURATION.match(text):
        return ""
    return f"{text!r} is not a duration; write it like '5m' or '1h30m'"


def _duration(text: str) -> str:
    _refuse(duration_problem(text))
    return text


def seconds_of(duration: str) -> float:
    """Say how long a `Duration` is, in seconds; without an end for one that no clock can reach."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def share_problem(value: Any) -> str:
    """Return what is wrong with a share of clusters; nothing when it is right."""
    countable = isinstance(value, int | str) and not isinstance(value, bool)
    if countable and _SHARE.match(str(value)):
        return ""
    return "this is neither a number of clusters nor a percentage like '20%'"


def _share(value: Any) -> int | str:
    _refuse(share_problem(value))
    return cast("int | str", value)


Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_name)]
Namespace = Annotated[str, AfterValidator(_namespace)]
NameOrTemplate = Annotated[str, Field(min_length=1), AfterValidator(_name_or_template)]
NamespaceOrTemplate = Annotated[str, AfterValidator(_namespace_or_template)]
Labels = Annotated[dict[str, str], AfterValidator(_labels)]
LabelsOrTemplates = Annotated[dict[str, str], AfterValidator(_labels_or_templates)]
Annotations = Annotated[dict[str, str], AfterValidator(_annotations)]
Duration = Annotated[str, AfterValidator(_duration)]
Share = Annotated[int | str, PlainValidator(_share, json_schema_input_type=int | str)]
