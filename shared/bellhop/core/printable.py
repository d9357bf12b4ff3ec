"""Untrusted texts on screens: none of their characters controls a terminal, or hides.

A name, a label or an API server's words may hold escape sequences that rewrite what stands above,
or marks that turn the order of letters round. Here such a character becomes the escape that JSON
and programmers know; plain text is left unchanged, whatever its script.
"""

from __future__ import annotations

import json
import re

# Controls (C0, DEL, C1), soft hyphens, marks of direction and of joining, separators of lines,
# fillers without width, halves of characters, annotations, and tags that nobody sees.
_STEERING = (
    "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_ALL = re.compile(f"[\x00-\x1f{_STEERING}]")
_BUT_LAYOUT = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE = 0xFF
_PLANE = 0xFFFF


def visible(text: str) -> str:
    """Return a text for one line of a screen; line ends and tabs are escaped too."""
    return _ALL.sub(_spell, text)


def visible_lines(text: str) -> str:
    """Return a text for a screen, with the lines and tabs it has."""
    return _BUT_LAYOUT.sub(_spell, text)


def steers(text: str) -> bool:
    """Say whether a text has characters that are not to be seen, line ends and tabs aside."""
    return _BUT_LAYOUT.search(text) is not None


def escaped_json(document: str) -> str:
    """Return JSON with the escapes that it has for what steers."""
    return _BUT_LAYOUT.sub(_escape_json, document)


def escaped_yaml(document: str) -> str:
    """Return YAML, whose texts stand in double quotes where they steer, with its escapes."""
    return _BUT_LAYOUT.sub(_escape, document)


def _spell(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code <= _BYTE else _escape(found))


def _escape_json(found: re.Match[str]) -> str:
    # Of the lower half of Unicode, json itself leaves only DEL unescaped.
    return json.dumps(found[0]).strip('"').replace("\x7f", "\\u007f")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= _PLANE else f"\\U{code:08x}"
