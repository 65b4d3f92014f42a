"""Numbers as a person reads them."""

from __future__ import annotations


def three_digits(value: float) -> str:
    """A number with three digits that count: ``0.0118``, ``59.6``; ``1,710`` without exponent."""
    text = f"{value:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text
