"""Qlogs that tests write by hand."""

from __future__ import annotations

import warnings
from pathlib import Path

import xarray as xr

import qbkit as qb


def read(folder: Path, text: str, **how: object) -> xr.Dataset:
    """The events of a qlog with this text, which must give no warning."""
    path = folder / "some.qlog"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return qb.read_qlog(path, **how)
