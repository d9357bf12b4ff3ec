"""Files that a user names: why one cannot be read is said in the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.errors import InvalidError, MissingError


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say why what is read here, a file that `what` names, cannot be read.

    Raises:
        MissingError: it is not there.
        InvalidError: it cannot be read, or is no text.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise MissingError(f"cannot read {what}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot read {what}: it is not UTF-8 text") from error
    except OSError as error:
        raise InvalidError(f"cannot read {what}: {error.strerror}") from error
