"""A run does not import what it does not need: each of these costs more than the guest's boot."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"altair", "cryptography", "dask", "distributed", "h5netcdf", "scipy", "shapely", "zarr"}


def loaded_by(statement: str) -> set[str]:
    """Modules that a new process has after a statement."""
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    words = [sys.executable, "-c", script]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_a_run_loads_nothing_heavy():
    assert not {"ijson", "numpy", "xarray", *HEAVY} & loaded_by("import qbkit.execution.runner")


def test_the_command_line_loads_no_arrays_to_answer():
    script = "import sys; sys.argv = ['qbkit', '--help']\nfrom qbkit.cli import main\n"
    script += "try: main()\nexcept SystemExit: pass"
    assert not {"numpy", "pandas", "xarray", *HEAVY} & loaded_by(script)


def test_the_package_loads_no_arrays():
    assert not {"numpy", "pandas", "xarray", *HEAVY} & loaded_by("import qbkit")


def test_a_chart_loads_no_grammar():
    # jsonschema 4.25 builds one with lark when Altair imports it.
    assert "lark" not in loaded_by("import altair")


@pytest.mark.guest
def test_the_command_run_loads_neither_dask_nor_scipy(tmp_path):
    words = ["qbkit", "run", "tcp:cubic", "--duration-s", "0.1", "--out", str(tmp_path / "run.nc")]
    main = f"from qbkit.cli import main\nsys.argv = {words!r}\ntry: main()\nexcept SystemExit: pass"
    loaded = loaded_by(main)
    assert (tmp_path / "run.nc").exists()
    assert "xarray" in loaded
    assert not {"dask.array", "distributed", "scipy", "shapely"} & loaded


@pytest.mark.guest
def test_nothing_is_imported_while_the_guest_is_forked(tmp_path, monkeypatch):
    # A fork in the middle of an import of h5py prints that its lock cannot be released.
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path))
    main = """
from qbkit.cli import main
seen = []
def audit(event, args):
    if event == "subprocess.Popen" and args[1][0] == "linux":
        seen.append("guest")
    if event == "import" and args[0] == "h5py":
        seen.append("h5py")
sys.addaudithook(audit)
sys.argv = ["qbkit", "run", "tcp:cubic", "--duration-s", "0.1"]
try: main()
except SystemExit: pass
sys.modules["first-" + "-".join(seen[:2])] = None
"""
    assert "first-guest-h5py" in loaded_by(main)
