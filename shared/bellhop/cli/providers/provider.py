"""The providers of installations: embedded, on AWS and on Google Cloud.

The module of a provider is imported when an installation of its kind is opened: a cloud's SDK takes
longer to load than most commands take.
"""

from __future__ import annotations

import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bellhop.cli.contexts import AWS, GCP, Context
from bellhop.errors import InvalidError, MissingError
from bellhop.logs import configure
from bellhop.registration.managed_clusters import ClusterRequest, make_unreachable_error
from bellhop.runtime.embedded.lazy import late, tools
from bellhop.state.messages import CHARTS, INBOXES

if TYPE_CHECKING:
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation import Installation
    from bellhop.state.event_log import Entry

OUTPUT = "bellhop"
"""The output that describes an installation."""

OWN = ("profile", "role_arn", "endpoint")
"""The fields of a context beside the output: how its user calls."""

LARGEST = 1024 * 1024


class _Shape(Struct, frozen=True):
    """The fields of a cloud module's output: texts, one of `by_inbox` each, and named texts."""

    texts: tuple[str, ...]
    may_be_empty: tuple[str, ...]
    by_inbox: str
    named: tuple[str, ...]


_SHAPES = {
    AWS: _Shape(
        ("region", "table", "bucket", "secrets", "key_secret", "ingest_key_secret"),
        ("ingest_url", "kms_key", "version"),
        "queues",
        ("log_groups", "roles"),
    ),
    GCP: _Shape(
        ("project", "region", "database", "bucket", "secrets", "key_secret", "ingest_key_secret"),
        ("ingest_url", "kms_key", "logs", "secret_region", "version"),
        "topics",
        ("services", "accounts"),
    ),
}


def read_outputs(text: str, source: str, kind: str) -> dict[str, Any]:
    """Read where an installation of a cloud is; what is not known is left out."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            f"cannot read '{source}': it is not JSON; write it with `terraform output -json`"
        ) from error
    if isinstance(data, dict) and isinstance(data.get(OUTPUT), dict):
        data = data[OUTPUT].get("value")
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise InvalidError(
            f"cannot read '{source}': it has no output '{OUTPUT}' of kind '{kind}'; write it with"
            " `terraform output -json` where the module is applied, and put the module's output"
            " out under that name"
        )
    return check_outputs(data, source, kind)


def check_outputs(data: Mapping[str, Any], source: str, kind: str) -> dict[str, Any]:
    """Return what a context keeps of an output."""
    shape = _SHAPES[kind]
    texts = (*shape.texts, *shape.may_be_empty)
    wrong = [name for name in shape.texts if not (isinstance(data.get(name), str) and data[name])]
    wrong += [name for name in shape.may_be_empty if not isinstance(data.get(name, ""), str)]
    named = {name: data.get(name) or {} for name in (shape.by_inbox, *shape.named)}
    wrong += [name for name, found in named.items() if not _is_map_of_names(found)]
    if shape.by_inbox not in wrong and INBOXES.keys() - named[shape.by_inbox].keys():
        wrong.append(shape.by_inbox)
    if wrong:
        raise InvalidError(
            f"cannot read '{source}': {', '.join(wrong)} of the output '{OUTPUT}' cannot be used;"
            " apply the Terraform module of this release"
        )
    return {**{name: data[name] for name in texts if data.get(name)}, **named}


def _is_map_of_names(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(text, str) and text for each in found.items() for text in each
    )


class OpenInstallation(Protocol):
    """An installation that a command has open."""

    @property
    def installation(self) -> Installation: ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Have reads within the block see one moment, if the store has snapshots."""
        ...

    def close(self) -> None: ...


class ManagedCluster(Struct, frozen=True):
    """A cluster that a cloud manages: its name there, its kubeconfig, and the network path `over`.

    `entries` are the commands that grant the functions access.
    """

    name: str
    kubeconfig: Kubeconfig
    entries: Sequence[str]
    over: str = ""


class FunctionLog(Protocol):
    """The log of functions, as entries of the event log."""

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        ...

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield the lines since a moment, then new ones; `wait` gets the reason of a delay."""
        ...


class Provider(Protocol):
    """The way into the installations of one kind."""

    def open(
        self, context: Context, environment: Mapping[str, str], *, create: bool
    ) -> OpenInstallation:
        """Open an installation; `create` may make an embedded one."""
        ...

    def open_read_only(
        self, context: Context, environment: Mapping[str, str]
    ) -> OpenInstallation: ...

    def open_log(
        self, context: Context, environment: Mapping[str, str], function: str
    ) -> FunctionLog:
        """Open the log of one function, or of all if `function` is empty."""
        ...

    def find_cluster(
        self, context: Context, opened: OpenInstallation, request: ClusterRequest
    ) -> ManagedCluster:
        """Find a cluster of EKS or GKE that the installation's functions can reach as themselves.

        Raises:
            InvalidError: they cannot, whatever its name is.
        """
        ...

    def exists(self, context: Context) -> bool:
        """Say whether there is an installation, without a call."""
        ...

    def is_running(self, context: Context) -> bool | None:
        """Say whether a worker runs there, even if nothing can be read; None: unknown."""
        ...


class CloudProvider(Provider, ABC):
    """An installation in a cloud: only Terraform creates it; a context has its outputs."""

    kind: str
    service: str
    name: str
    functions: str
    """The output that names the functions, and `no_functions` if it is empty."""
    no_functions: str
    connect: ClassVar[Callable[..., Any]]
    """Opens an installation by the outputs, the environment and a name, by the caller's rights."""

    @abstractmethod
    def make_log(
        self,
        outputs: Mapping[str, Any],
        environment: Mapping[str, str],
        functions: Mapping[str, str],
    ) -> FunctionLog: ...

    @abstractmethod
    def make_cluster(
        self, outputs: Mapping[str, Any], opened: OpenInstallation, request: ClusterRequest
    ) -> ManagedCluster: ...

    def open(
        self, context: Context, environment: Mapping[str, str], *, create: bool = False
    ) -> OpenInstallation:
        del create
        opened = self.connect(self._read_outputs(context), environment, name=context.name)
        here = opened.installation
        # Previews call the Helm and kubectl of this machine.
        programs = late(partial(tools, None, here.settings, here.records.clock))
        found: OpenInstallation = replace(opened, installation=replace(here, tools=programs))
        return found

    def open_read_only(self, context: Context, environment: Mapping[str, str]) -> OpenInstallation:
        return self.open(context, environment)

    def open_log(
        self, context: Context, environment: Mapping[str, str], function: str
    ) -> FunctionLog:
        outputs = self._read_outputs(context)
        functions: Mapping[str, str] = outputs[self.functions]
        if not functions or (function and function not in functions):
            known = ", ".join(functions) or f"none, as Terraform has put out no {self.no_functions}"
            raise InvalidError(
                f"cannot read the logs of '{function or 'all'}': the functions are {known}"
            )
        chosen = {function: functions[function]} if function else functions
        return self.make_log(outputs, environment, chosen)

    def find_cluster(
        self, context: Context, opened: OpenInstallation, request: ClusterRequest
    ) -> ManagedCluster:
        if request.service != self.service:
            raise make_unreachable_error(request, f"an installation on {self.name}")
        return self.make_cluster(self._read_outputs(context), opened, request)

    def exists(self, context: Context) -> bool:
        del context
        return True

    def is_running(self, context: Context) -> bool | None:
        del context
        return None

    def _read_outputs(self, context: Context) -> dict[str, Any]:
        """Check a context once more: an edit of its file may have left something out."""
        own = {key: context.place[key] for key in OWN if key in context.place}
        return {**check_outputs(context.place, f"context {context.name}", self.kind), **own}


def load_provider(context: Context) -> Provider:
    """Import the provider of a context; its logs go to standard error.

    Raises:
        MissingError: the libraries of its cloud are not installed.
    """
    configure(sys.stderr)
    try:
        module = importlib.import_module(f"bellhop.cli.providers.{context.kind}")
    except ModuleNotFoundError as error:
        raise MissingError(
            f"cannot open the installation of context '{context.name}': the Python package"
            f" '{error.name}' is not installed; install the extra `{context.kind}`"
            f" (pip install 'bellhop-fleet[{context.kind}]')"
        ) from error
    found: Provider = module.PROVIDER
    return found


def list_calling_functions(functions: Mapping[str, str]) -> Sequence[str]:
    """Return the functions of an installation that call clusters."""
    return ("deploy", "sweep", *({CHARTS} & functions.keys()))
