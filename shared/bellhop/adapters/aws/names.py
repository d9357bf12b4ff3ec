"""Names of secrets in the characters that a service of AWS takes."""

from __future__ import annotations

import re

from bellhop.errors import InvalidError


def encode(name: str, not_taken: re.Pattern[bytes], mark: str) -> str:
    """Return a name with each byte that is not taken as a mark and two hexadecimal digits.

    The mark is one of these bytes.

    Raises:
        InvalidError: it is not valid Unicode.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidError("cannot use a secret's name: it is not valid Unicode") from error
    return not_taken.sub(lambda found: b"%s%02X" % (mark.encode(), found[0][0]), encoded).decode()


def decode(encoded: str, mark: str) -> str:
    """Return the name that `encode` has encoded with that mark."""
    spelled = re.sub(f"{mark}([0-9A-F]{{2}})", lambda found: chr(int(found[1], 16)), encoded)
    return spelled.encode("latin-1", "replace").decode("utf-8", "replace")
