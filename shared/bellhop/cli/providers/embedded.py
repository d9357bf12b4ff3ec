"""Embedded installations, in a state folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from bellhop.cli.contexts import Context
from bellhop.cli.providers.provider import (
    OpenInstallation,
    Provider,
)
from bellhop.errors import InvalidError
from bellhop.registration.managed_clusters import ClusterRequest, make_unreachable_error
from bellhop.runtime.embedded.state import Embedded, look_into, open_state, require_state, vitals
from bellhop.settings import read


class EmbeddedProvider(Provider):
    """Opens a folder that exists, unless it may create one: a mistyped name is not a new one."""

    def open(self, context: Context, environment: Mapping[str, str], *, create: bool) -> Embedded:
        if not create:
            require_state(context.state)
        return open_state(context.state, read(environment), whole=False)

    def open_read_only(self, context: Context, environment: Mapping[str, str]) -> Embedded:
        return look_into(context.state, read(environment))

    def open_log(self, context: Context, environment: Mapping[str, str], function: str) -> NoReturn:
        del context, environment, function
        raise InvalidError(
            "cannot read the log of an embedded installation: `bellhop serve` writes it to its"
            " standard output; `bellhop show events` shows the decisions"
        )

    def find_cluster(
        self, context: Context, opened: OpenInstallation, request: ClusterRequest
    ) -> NoReturn:
        del context, opened
        raise make_unreachable_error(request, "an embedded installation")

    def exists(self, context: Context) -> bool:
        return (context.state / "key").exists()

    def is_running(self, context: Context) -> bool | None:
        return vitals(context.state).running


PROVIDER = EmbeddedProvider()
