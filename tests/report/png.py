"""Pixels of a PNG with 8-bit RGB or RGBA, as browsers write them."""

import struct
import zlib


def pixels(data):
    """Rows of (r, g, b)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    at, packed, width, channels = 8, b"", 0, 0
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, _, depth, colour, *_ = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6), "unexpected kind of PNG"
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
    raw = zlib.decompress(packed)
    stride = width * channels
    rows, above = [], bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        row = _unfilter(raw[start], bytearray(raw[start + 1:start + 1 + stride]), above, channels)
        rows.append([tuple(row[x:x + 3]) for x in range(0, stride, channels)])
        above = row
    return rows


def _unfilter(kind, row, above, n):
    """PNG specification, section 9.2."""
    if kind == 0:
        return row
    for i in range(len(row)):
        left = row[i - n] if i >= n else 0
        up = above[i]
        if kind == 1:
            predicted = left
        elif kind == 2:
            predicted = up
        elif kind == 3:
            predicted = (left + up) // 2
        else:
            corner = above[i - n] if i >= n else 0
            guess = left + up - corner
            a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
            predicted = left if a <= b and a <= c else up if b <= c else corner
        row[i] = (row[i] + predicted) & 0xFF
    return row
