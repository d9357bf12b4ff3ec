"""Files that a user names: errors about them are the same sentences everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.errors import InvalidError, MissingError


@contextmanager
def explained(what: str, verb: str = "read") -> Iterator[None]:
    """Raise what the operating system says of a file, which `what` names, as Bellhop's errors.

    Raises:
        MissingError: it is not there.
        InvalidError: it cannot be read or written, or is no text.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise MissingError(f"cannot {verb} {what}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot read {what}: it is not UTF-8 text") from error
    except OSError as error:
        raise InvalidError(f"cannot {verb} {what}: {error.strerror}") from error
