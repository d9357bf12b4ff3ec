"""Tables of handlers: a message, and the function that does its work.

Features do not call each other. They meet in the queue, or get the steps of others as hooks here. A
function loads the table of its own stage only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bellhop.errors import InvalidError
from bellhop.state.envelope import Envelope

Handler = Callable[[Any], None]
HandlerTable = dict[type[Envelope], Handler]


class Handlers:
    """A stage as a table: each message goes to the handler of its type.

    `follow` gets each message after its handler, also if that failed.
    """

    def __init__(
        self,
        stage: str,
        table: Mapping[type[Envelope], Handler],
        follow: Handler = lambda _: None,
    ) -> None:
        self._stage = stage
        self._table = table
        self._follow = follow

    def handle(self, message: Envelope) -> None:
        """Call the handler of a message.

        Raises:
            InvalidError: the message is another stage's.
        """
        handler = self._table.get(type(message))
        if handler is None:
            raise InvalidError(f"cannot {message.do}: it is not work of the `{self._stage}` stage")
        try:
            handler(message)
        finally:
            self._follow(message)
