"""Members of tar files that no packer writes."""

from __future__ import annotations


def raw(kind: bytes, content: bytes, name: bytes = b"demo/a", size: bytes = b"") -> bytes:
    """Write one member by hand, whatever it means."""
    said = size or b"%011o\0" % len(content)
    head = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + said.ljust(12, b"\0")
    head += b"00000000000\0" + b" " * 8 + kind + b"\0" * 100 + b"ustar\x0000"
    head = head.ljust(512, b"\0")
    head = head[:148] + b"%06o\0 " % sum(head) + head[156:]
    return head + content + b"\0" * (-len(content) % 512)
