"""Pictures made of noise, as data URLs: small, unlike each other, and without an image library."""

from __future__ import annotations

import base64
import random
import struct
import zlib

CELLS = 12
_HEADER = struct.Struct(">IIBBBBB")


def picture(side: int, *key: object) -> str:
    """A square PNG of ``side`` pixels, coloured cells that depend on ``key`` alone."""
    rng = random.Random(repr(key))
    colours = [[rng.randbytes(3) for _ in range(CELLS)] for _ in range(CELLS)]
    of = [at * CELLS // side for at in range(side)]
    # Every line of a PNG begins with the number of its filter; 0 is none.
    lines = (b"\0" + b"".join(colours[row][column] for column in of) for row in of)
    header = _HEADER.pack(side, side, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
