"""Contexts: the installations a user talks to, by name, in one small file.

$XDG_CONFIG_HOME/bellhop/config.yaml, 0600, replaced as a whole:

  current: local
  contexts:
    - {name: local, kind: embedded, state: /home/ann/.local/state/bellhop}
    - {name: prod, kind: aws, aws: {region: eu-west-1, table: bellhop, ...}}
    - {name: test, kind: gcp, gcp: {project: lab-7, database: bellhop, ...}}

Names and addresses are kept here, and no credentials: a cloud is asked with its user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import InvalidError, MissingError

LOCAL = "local"
EMBEDDED = "embedded"
AWS = "aws"
GCP = "gcp"
KINDS = (EMBEDDED, AWS, GCP)

_WHERE = {AWS: ("table", "region"), GCP: ("database", "project")}
"""The outputs that identify an installation: the store, and its region or project."""


class Context(Struct, frozen=True):
    """One installation: `state` is the folder of an embedded one, `place` where a cloud's is."""

    name: str
    kind: str
    state: Path = Path()
    place: Mapping[str, Any] = {}

    @property
    def where(self) -> str:
        """The name of its location, for people."""
        if self.kind == EMBEDDED:
            return str(self.state)
        return " in ".join(str(self.place.get(name, "")) for name in _WHERE[self.kind])

    def to_dict(self) -> dict[str, Any]:
        """Return the context as the file has it."""
        named = {"name": self.name, "kind": self.kind}
        if self.kind == EMBEDDED:
            return {**named, "state": str(self.state)}
        return {**named, self.kind: dict(self.place)}


class Contexts(Struct, frozen=True):
    """All contexts, and which one is current."""

    current: str
    known: Mapping[str, Context]

    def find(self, name: str) -> Context:
        if name not in self.known:
            raise MissingError(
                f"cannot use context '{name}': no context has this name;"
                " `bellhop context list` shows those that are there"
            )
        return self.known[name]

    def use(self, name: str) -> Contexts:
        return replace(self, current=self.find(name).name)

    def add(self, context: Context) -> Contexts:
        return replace(self, known={**self.known, context.name: context})

    def remove(self, name: str) -> Contexts:
        removed = self.find(name).name
        if removed == self.current:
            raise InvalidError(
                f"cannot remove context '{name}': it is the current one; use another one first"
            )
        if removed == LOCAL:
            raise InvalidError(f"cannot remove context '{name}': it is there without any file")
        return replace(
            self, known={key: each for key, each in self.known.items() if key != removed}
        )


def config_file(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "bellhop" / "config.yaml"


def default_state(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "bellhop"


def load(environment: Mapping[str, str]) -> Contexts:
    """Read the contexts; `local` exists without a file."""
    import yaml

    path = config_file(environment)
    local = Context(LOCAL, EMBEDDED, default_state(environment))
    try:
        data = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        return Contexts(LOCAL, {LOCAL: local})
    except OSError as error:
        raise InvalidError(f"cannot read '{path}': {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read '{path}': it is not YAML; fix or remove it") from error
    known = {LOCAL: local}
    for entry in _read_entries(data, path):
        known[entry.name] = entry
    current = str(data.get("current") or LOCAL)
    return Contexts(current, known)


def save(contexts: Contexts, environment: Mapping[str, str]) -> None:
    """Write the contexts as a whole."""
    import yaml

    from bellhop.adapters.local.files import write_whole

    data = {
        "current": contexts.current,
        "contexts": [each.to_dict() for each in contexts.known.values()],
    }
    path = config_file(environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidError(f"cannot make the folder '{path.parent}': {error.strerror}") from error
    write_whole(path, yaml.safe_dump(data, sort_keys=False).encode())


def choose(state: Path | None, context: str | None, environment: Mapping[str, str]) -> Context:
    """Choose the installation: --state or --context, BELLHOP_STATE, BELLHOP_CONTEXT, the current.

    An empty --context counts as none, as kubectl has it.
    """
    if state is not None and context:
        raise InvalidError(
            f"cannot use --state '{state}' and --context '{context}': each names an installation;"
            " leave one of them out"
        )
    if state is None and not context and environment.get("BELLHOP_STATE"):
        state = Path(environment["BELLHOP_STATE"])
    if state is not None:
        return Context("", EMBEDDED, state.absolute())
    contexts = load(environment)
    chosen = contexts.find(context or environment.get("BELLHOP_CONTEXT") or contexts.current)
    refuse_unknown_kind(chosen)
    return chosen


def refuse_unknown_kind(context: Context) -> None:
    """Refuse a context that a later release has written."""
    if context.kind not in KINDS:
        raise InvalidError(
            f"cannot use context '{context.name}': this release cannot talk to an installation of"
            f" kind '{context.kind}'; use one of kind {' or '.join(map(repr, KINDS))}"
        )


def _read_entries(data: Any, path: Path) -> list[Context]:
    wrong = InvalidError(f"cannot read '{path}': it is not a list of contexts; fix or remove it")
    if not isinstance(data, dict) or not isinstance(data.get("contexts") or [], list):
        raise wrong
    found = []
    for entry in data.get("contexts") or []:
        if not isinstance(entry, dict) or not entry.get("name"):
            raise wrong
        kind = str(entry.get("kind") or EMBEDDED)
        place = entry.get(kind) or {}
        if not isinstance(place, dict):
            raise wrong
        state = Path(str(entry.get("state") or ""))
        found.append(Context(str(entry["name"]), kind, state, place))
    return found
