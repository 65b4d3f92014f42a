"""Makes what notebooks/18_my_controller.ipynb opens where no engine works: a processor minute.

python data/my_controller/make.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import qbkit as qb
from qbkit.execution import notebooks

HERE = Path(__file__).parent


def main() -> None:
    """The runs of the notebook, executed in a folder of its own, into this one."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QBKIT_RUNS"] = folder
        notebooks.execute("18", Path(folder, "executed"), {})
        runs = [qb.load_run(path) for path in sorted(Path(folder).glob("*.nc"))]
        qb.publish_runs({run.attrs["spec_hash"]: run for run in runs}, HERE)


if __name__ == "__main__":
    main()
