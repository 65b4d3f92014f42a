"""Tables for papers: CSV and LaTeX, with a unit in each heading and intervals in brackets."""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import pandas as pd

from qbkit.arguments import as_path
from qbkit.files import require_ending, write_whole, writing
from qbkit.traces.run.telemetry import unit_of, without_unit

LATEX = {
    "Δ": r"$\Delta$",
    "β": r"$\beta$",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "∞": r"$\infty$",
    "±": r"$\pm$",
}
"""Letters that pdfLaTeX's fonts do not have."""
MINUS = re.compile(r"(?<![\w.)\]-])-(?=[\d.∞])")
"""A hyphen that is a sign: before a number, and not inside a name such as ``quiche-0.7``."""
EXPONENT = re.compile(r"(?<=\d)e([+-])0*(\d+)\b")
DECIMALS = 2


def save_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as ``.csv`` or ``.tex`` (booktabs), and return the path.

    Names of rows, as ``set_index``, pivots and transposed tables have them, are the first columns;
    an index without a name that only counts rows is left out. Levels of headings are joined.
    Columns whose names end in a unit, such as ``throughput_mbps``, get it in their heading:
    "throughput (Mbit/s)". Columns ``X_low`` and ``X_high`` beside ``X`` become one interval
    "[low, high]". CSV has all digits; LaTeX rounds to two decimals and to two significant digits
    below 0.01, escapes all texts, and has real minus signs. The file is written atomically. Raises
    StoreError for another file extension and for a folder that cannot be written.
    """
    path, frame = as_path(path), _flat(frame)
    if require_ending(path, "a table", (".csv", ".tex")) == ".csv":
        text = _headed(frame).to_csv(index=False)
    else:
        text = _latex(frame)
    with writing(path):
        write_whole(path, text.encode())
    return path


def heading(name: str) -> str:
    """The heading of a column: its words, and its unit in parentheses."""
    unit, words = unit_of(name), without_unit(name)
    words = words.removeprefix("bottleneck.").replace("_", " ").strip()
    return f"{words} ({unit})" if unit else words


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with names of rows as columns, and one level of headings."""
    table = frame.copy()
    if table.columns.nlevels > 1:
        table.columns = pd.Index([", ".join(filter(None, map(str, name))) for name in table])
    index = table.index
    if index.nlevels == 1 and index.name is None and index.dtype.kind in "iu":
        return table
    names = ["" if name is None else str(name) for name in index.names]
    return table.reset_index(names=names, allow_duplicates=True)


def _headed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns=lambda name: heading(str(name)))


def _latex(frame: pd.DataFrame) -> str:
    table = _headed(_with_intervals(frame).map(_cell))
    numbers = [all(_is_number(v) for v in frame.get(name, pd.Series([""]))) for name in frame]
    columns = "".join("r" if number else "l" for number in numbers[: table.shape[1]])
    columns = columns.ljust(table.shape[1], "l")
    table.columns = [_escaped(str(name)) for name in table.columns]
    return str(table.map(_escaped).to_latex(index=False, escape=False, column_format=columns))


def _with_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with each pair of bounds as one column of texts, behind its value."""
    table = frame.copy()
    for name in frame.columns:
        low, high = f"{name}_low", f"{name}_high"
        if low in table and high in table:
            pairs = zip(table[low], table[high], strict=True)
            table[low] = [f"[{_cell(a)}, {_cell(b)}]" if a == a else "" for a, b in pairs]
            table = table.drop(columns=high).rename(columns={low: f"{name} interval"})
    return table


def _cell(value: Any) -> str:
    if not _is_number(value):
        return str(value)
    if isinstance(value, Integral):
        return str(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else f"{value:g}".replace("inf", "∞")
    if value and abs(value) < 10**-DECIMALS:
        return f"{value:.2g}"
    return f"{value + 0.0:.{DECIMALS}f}"  # adding 0 turns -0 into 0


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _escaped(text: str) -> str:
    text = MINUS.sub("−", text)
    text = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    for letter, command in LATEX.items():
        text = text.replace(letter, command)
    text = text.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    return EXPONENT.sub(lambda m: rf"$\times10^{{{m[1].lstrip('+')}{m[2]}}}$", text)
