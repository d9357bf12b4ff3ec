"""Notices to people: chats over HTTPS, and mail. No client library, and no words of a Secret.

A chat's interface is one request: a client for each would be a dozen packages in a function's zip,
and one for all of them reads its secrets out of addresses, which end up in logs. Where a notice
goes is written by users: nothing but `reach` lets through is called, whatever a name leads to, no
redirect is followed and no proxy of the environment is asked.
"""

from bellhop.adapters.notices.sender import Sender

__all__ = ["Sender"]
