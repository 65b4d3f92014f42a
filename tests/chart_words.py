"""What a chart says beside its marks."""

from __future__ import annotations

from typing import Any


def said(chart: Any) -> str:
    """Subtitle and description of a chart, or of its specification."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    return f"{spec['title']['subtitle']}\n{spec.get('description', '')}"
