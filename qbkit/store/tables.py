"""Published tables: CSV files in a folder, with an index of facts and check sums."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from qbkit.arguments import as_path
from qbkit.errors import StoreError
from qbkit.files import write_whole, writing
from qbkit.store.index import published_files, require_file_names, write_index

DIGITS = 7
"""Significant digits of published numbers: a microsecond in a load of ten seconds."""


def publish_tables(
    tables: Mapping[str, pd.DataFrame],
    folder: str | Path,
    *,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write tables by name as NAME.csv, and return the path of the index.

    The index holds the ``facts`` and the SHA-256 and number of rows of each file. Raises SpecError
    for a name that is none of a file, and StoreError if the folder cannot be written.
    """
    target = as_path(folder)
    require_file_names(tables)
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, table in tables.items():
        path = target / f"{name}.csv"
        content = table.to_csv(index=False, float_format=f"%.{DIGITS}g").encode()
        path.write_bytes(content)
        files[path.name] = {"rows": len(table), "sha256": hashlib.sha256(content).hexdigest()}
    return write_index(target, files, facts)


def replace_rows(table: Path, rows: pd.DataFrame, key: str) -> None:
    """Write rows into a CSV file, in place of those that have the same values of ``key``."""
    if table.exists():
        old = pd.read_csv(table)
        rows = pd.concat([old[~old[key].isin(rows[key])], rows])
    write_whole(table, rows.to_csv(index=False, float_format="%.5g").encode())


def load_tables(folder: str | Path) -> dict[str, pd.DataFrame]:
    """The tables that `publish_tables` wrote, by name; StoreError for a changed or lost file."""
    tables = {}
    for path, _ in published_files(folder, "tables"):
        try:
            tables[path.stem] = pd.read_csv(path)
        except (ValueError, OSError):
            raise StoreError(f"{path} is no table of comma-separated values") from None
    return tables
