"""Pictures of noise: real PNGs, the same for the same key, and unlike for others."""

from __future__ import annotations

import base64
import struct
import zlib

from conformance.pictures import CELLS, picture

SIDE = 24


def pixels(url: str) -> tuple[tuple[int, int], list[bytes]]:
    """Size and lines of a PNG without filters, checksums looked at."""
    assert url.startswith("data:image/png;base64,")
    data = base64.b64decode(url.partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + content)
        chunks[kind], at = content, at + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 2)
    raw = zlib.decompress(chunks[b"IDAT"])
    size = 1 + 3 * width
    lines = [raw[row * size : (row + 1) * size] for row in range(height)]
    assert all(line[0] == 0 and len(line) == size for line in lines)
    return (width, height), lines


def test_it_is_a_png_of_coloured_cells() -> None:
    (width, height), lines = pixels(picture(SIDE, "key"))
    assert (width, height) == (SIDE, SIDE)
    wide = SIDE // CELLS
    assert all(lines[row] == lines[row // wide * wide] for row in range(height))
    assert len(set(lines)) == CELLS


def test_the_key_alone_says_what_is_on_it() -> None:
    assert picture(SIDE, "a", 1) == picture(SIDE, "a", 1)
    assert len({picture(SIDE, "a", 1), picture(SIDE, "a", 2), picture(SIDE, "b", 1)}) == 3
