"""Structs that do not show their secrets, as a traceback or a failed assertion would."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from msgspec import Struct


class Redacted(Struct, frozen=True):
    """Shows all of its fields but the `secret_fields`."""

    secret_fields: ClassVar[Collection[str]] = ()

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if name not in self.secret_fields]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"
