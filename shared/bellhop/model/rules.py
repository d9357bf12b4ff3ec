"""Conditions that few sources have: CEL, and the matching of messaging systems, not built yet."""

from bellhop.model.base import Model
from bellhop.model.names import Text


class CelRule(Model):
    """A named rule in the Common Expression Language."""

    name: Text
    rule: Text


class MessagingMatch(Model):
    """Which CloudEvents of a messaging system count; every field is a regular expression."""

    subject: str = ""
    cloud_event_source: str = ""
    cloud_event_type: str = ""
    cloud_event_subject: str = ""
