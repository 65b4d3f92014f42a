"""The colours of a map's tiles, each with the ink that is legible on it."""

from __future__ import annotations

from itertools import pairwise

VIRIDIS = ((0.0, "440154"), (0.25, "3b528b"), (0.5, "21918c"), (0.75, "5ec962"), (1.0, "fde725"))
"""Value → colour, for a conformance."""
SHARE = ((0.0, "1f5f99"), (0.25, "86b6dc"), (0.5, "f4f4f2"), (0.75, "f3a65a"), (1.0, "b35806"))
"""Blue below one half, orange above."""
WEIGHTS = (0.2126, 0.7152, 0.0722)
"""Red, green and blue in the relative luminance of WCAG 2."""
BLACK_AND_WHITE = 0.179
"""The luminance on which black and white have the same contrast."""


def tile_style(value: float, scale: tuple[tuple[float, str], ...] = VIRIDIS) -> str:
    """CSS of a tile: its ground, and black or white ink; "" for a value that is unknown."""
    if value != value:
        return ""
    value = min(max(value, scale[0][0]), scale[-1][0])
    (low, a), (high, b) = next(pair for pair in pairwise(scale) if value <= pair[1][0])
    part = (value - low) / (high - low)
    ends = ([int(colour[i : i + 2], 16) for i in (0, 2, 4)] for colour in (a, b))
    colour = [round(x * (1 - part) + y * part) for x, y in zip(*ends, strict=True)]
    luminance = sum(w * _linear(c / 255) for w, c in zip(WEIGHTS, colour, strict=True))
    ink = "#fff" if luminance < BLACK_AND_WHITE else "#000"
    return f"background:#{''.join(f'{c:02x}' for c in colour)};color:{ink}"


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
