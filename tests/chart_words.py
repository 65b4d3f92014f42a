"""What a chart says beside its marks, and the tables that it draws."""

from __future__ import annotations

import csv
import io
from typing import Any


def said(chart: Any) -> str:
    """Subtitle and description of a chart, or of its specification."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    return f"{spec['title']['subtitle']}\n{spec.get('description', '')}"


def tables_of(chart: Any) -> list[list[dict[str, str]]]:
    """Every inline table of a chart, or of its specification."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    texts = (text for text in spec["datasets"].values() if isinstance(text, str))
    return [list(csv.DictReader(io.StringIO(text))) for text in texts]
