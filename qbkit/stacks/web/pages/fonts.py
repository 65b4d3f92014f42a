"""A TrueType font of an exact size: pixel letters, traced from Pillow's own bitmap font."""

from __future__ import annotations

import io
import string

import numpy as np
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables.DefaultTable import DefaultTable
from PIL import Image, ImageDraw, ImageFont

LETTERS = string.ascii_letters + string.digits + " .,;:!?'-()&/"
PIXEL, HEIGHT, ASCENT = 80, 11, 9
"""Units per pixel of 1000 units per em; rows of the bitmap, and those above the baseline."""
SPARE_TABLE = "qbkt"


def font(family: str, size_bytes: int, rng: np.random.Generator) -> bytes:
    """A font whose file has this size, rounded up to the whole words that TrueType demands.

    A table that browsers ignore holds the bytes that the letters do not fill.
    """
    empty = _font(family, b"")
    spare = max(0, size_bytes - len(empty) - 16)  # 16: the table's entry in the directory
    return _font(family, rng.bytes(spare))


def _font(family: str, spare: bytes) -> bytes:
    names = [".notdef", *(f"u{ord(letter):04X}" for letter in LETTERS)]
    shapes = [_glyph(letter) for letter in LETTERS]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(letter): f"u{ord(letter):04X}" for letter in LETTERS})
    outlines = [TTGlyphPen(None).glyph(), *(outline for outline, _ in shapes)]
    builder.setupGlyf(dict(zip(names, outlines, strict=True)))
    widths = [500, *(width for _, width in shapes)]
    builder.setupHorizontalMetrics({n: (w, 0) for n, w in zip(names, widths, strict=True)})
    builder.setupHorizontalHeader(ascent=ASCENT * PIXEL, descent=(ASCENT - HEIGHT) * PIXEL)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=ASCENT * PIXEL, usWinAscent=ASCENT * PIXEL, usWinDescent=200)
    builder.setupPost()
    builder.font["head"].created = builder.font["head"].modified = 3_600_000_000
    builder.font.recalcTimestamp = False
    if spare:
        table = builder.font[SPARE_TABLE] = DefaultTable(SPARE_TABLE)
        table.data = spare
    file = io.BytesIO()
    builder.save(file)
    return file.getvalue()


def _glyph(letter: str) -> tuple[object, int]:
    """Outline and advance width of a letter: a square for every black pixel."""
    face = ImageFont.load_default_imagefont()
    width = max(3, int(face.getlength(letter)))
    image = Image.new("1", (width, HEIGHT))
    ImageDraw.Draw(image).text((0, 0), letter, fill=1, font=face)
    pen = TTGlyphPen(None)
    for row, column in np.argwhere(np.asarray(image)):
        left, bottom = int(column) * PIXEL, (ASCENT - 1 - int(row)) * PIXEL
        right, top = left + PIXEL, bottom + PIXEL
        pen.moveTo((left, bottom))
        for corner in ((left, top), (right, top), (right, bottom)):
            pen.lineTo(corner)
        pen.closePath()
    return pen.glyph(), width * PIXEL
