"""``ds.qb`` is there for every dataset, whatever was imported first, without a slow import."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from synthetic import synthetic_run

from qbkit.errors import MetricError
from qbkit.metrics import envelope

EMPTY = "assert repr(type(xr.Dataset().qb)) == \"<class 'qbkit.accessor.RunAccessor'>\""


@pytest.mark.parametrize(
    "words",
    [
        "import qbkit, sys, importlib.util as u; assert 'xarray' not in sys.modules; "
        f"u.find_spec('xarray'); import xarray as xr; {EMPTY}; import importlib.resources as r; "
        "assert r.files('xarray').joinpath('__init__.py').is_file(); "
        "assert not [f for f in sys.meta_path if 'qbkit' in type(f).__module__]",
        f"import xarray as xr, qbkit; {EMPTY}",
    ],
    ids=["qbkit first", "xarray first"],
)
def test_datasets_have_the_accessor(words: str):
    subprocess.run([sys.executable, "-W", "error::FutureWarning", "-c", words], check=True)


@pytest.mark.parametrize("definition", ["imc22", "refined", "quicbench"])
def test_captures_without_their_rtt_say_what_to_give(definition: str):
    run = synthetic_run()
    run["base_rtt_ms"] = run.base_rtt_ms * np.nan
    run.attrs["rtt_ms"] = np.nan
    with pytest.raises(MetricError, match=r"the base RTT of its path is unknown; give it to read_"):
        envelope(run, definition=definition)
