"""Conditions that few sources have: CEL rules, and filters of CloudEvents."""

from typing import Annotated

from pydantic import Field

from bellhop.core.base import Many, Model
from bellhop.core.names import Text

Pattern = Annotated[str, Field(max_length=1024)]
"""A regular expression, which is searched for; an empty one asks nothing."""


class CelRule(Model):
    """A named rule in the Common Expression Language."""

    name: Text
    rule: Text


class MessagingMatch(Model):
    """A filter of CloudEvents: by their attributes, and by their data with Lua or CEL."""

    subject: Pattern = ""
    cloud_event_source: Pattern = ""
    cloud_event_type: Pattern = ""
    cloud_event_subject: Pattern = ""
    evaluate: str = ""
    evaluate_cel: Many[CelRule] = Field(default=(), alias="evaluateCEL")
