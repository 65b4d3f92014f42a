"""Images and fonts of an exact size in bytes, made by real encoders."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image

QUALITIES = (5, 95)
LEAST_COMMENT_BYTES, MOST_COMMENT_BYTES = 4, 65_537
"""A JPEG segment: marker, length, and up to 65,533 bytes (ITU T.81, B.1.1.4)."""


def picture(width: int, height: int, rng: np.random.Generator) -> Image.Image:
    """A colourful landscape of noise: soft shapes with fine grain, like a photograph's."""
    total = np.zeros((height, width, 3))
    for cells, weight in ((3, 130.0), (9, 60.0), (40, 30.0)):
        grid = rng.random((cells, cells, 3)) * 255
        layer = Image.fromarray(grid.astype(np.uint8)).resize(
            (width, height), Image.Resampling.BICUBIC
        )
        total += np.asarray(layer, float) * weight / 255
    total += rng.normal(0, 6, (height, width, 1))
    return Image.fromarray(np.clip(total, 0, 255).astype(np.uint8))


def jpeg(width: int, height: int, size_bytes: int, rng: np.random.Generator) -> bytes:
    """A JPEG of exactly this size: the highest quality that fits, and comments for the rest.

    Where no quality fits, it has fewer pixels; below about 700 bytes it is no image but filler.
    """
    image = picture(width, height, rng)
    while not (best := _best(image, size_bytes)):
        if image.size == (1, 1):
            return filler(size_bytes, rng)
        image = image.resize((max(1, image.width // 2), max(1, image.height // 2)))
    return best[:2] + _comments(size_bytes - len(best), rng) + best[2:]


def _best(image: Image.Image, size_bytes: int) -> bytes:
    """The best encoding that leaves room for a comment; empty if there is none."""
    best, (low, high) = b"", QUALITIES
    while low <= high:
        quality = (low + high) // 2
        data = _jpeg(image, quality)
        if len(data) + LEAST_COMMENT_BYTES <= size_bytes:
            best, low = data, quality + 1
        else:
            high = quality - 1
    return best


def _jpeg(image: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _comments(size_bytes: int, rng: np.random.Generator) -> bytes:
    """Comment segments that together have this size, at least that of the smallest."""
    parts = []
    while size_bytes:
        whole = min(size_bytes, MOST_COMMENT_BYTES)
        if 0 < size_bytes - whole < LEAST_COMMENT_BYTES:
            whole -= LEAST_COMMENT_BYTES
        parts.append(b"\xff\xfe" + struct.pack(">H", whole - 2) + filler(whole - 4, rng))
        size_bytes -= whole
    return b"".join(parts)


def png(width: int, height: int, size_bytes: int, rng: np.random.Generator) -> bytes:
    """A PNG of exactly this size: a few flat colours, and a private chunk for the rest."""
    grid = rng.integers(0, 255, (4, 4, 3), dtype=np.uint8)
    image = Image.fromarray(grid).resize((width, height), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.convert("P", palette=Image.Palette.ADAPTIVE).save(file, "PNG")
    data = file.getvalue()
    spare = size_bytes - len(data) - 12
    if spare < 0:
        return filler(size_bytes, rng)
    end = len(data) - 12  # the chunk IEND
    return data[:end] + _chunk(b"qbKT", filler(spare, rng)) + data[end:]


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def filler(size_bytes: int, rng: np.random.Generator) -> bytes:
    """Random bytes, which no compression shortens."""
    return rng.bytes(size_bytes)
