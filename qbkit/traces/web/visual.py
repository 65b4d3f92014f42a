"""How complete a page looks in each screenshot, as Lighthouse's speedline measures it."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from qbkit.traces.arrays import FloatArray, IntArray

WHITE = 249
"""A pixel whose three channels are all at least this counts as white, and is left out."""


def visual_progress(screenshots: Sequence[bytes]) -> FloatArray:
    """Visual progress of each screenshot in whole per cent, from a white page to the last one.

    speedline compares histograms: per channel and value, the share of the pixels that must appear
    or vanish and that have done so (speed-index.js, `calculateFrameProgress`). The images are of
    any format that Pillow reads. Without change at all every progress is 100.
    """
    histograms = np.array([_histogram(data) for data in screenshots])
    target = histograms[-1]
    total = target.sum()
    if not total:
        return np.full(len(histograms), 100.0)
    match = np.minimum(histograms, target).sum(axis=(1, 2))
    return np.floor(match / total * 100)


def _histogram(screenshot: bytes) -> IntArray:
    """Pixels by channel (3) and value (256) without white ones."""
    from PIL import Image

    with Image.open(io.BytesIO(screenshot)) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    pixels = pixels[~(pixels >= WHITE).all(axis=1)]
    return np.array([np.bincount(pixels[:, channel], minlength=256) for channel in range(3)])
