"""Makes what notebooks/15_changing_networks.ipynb opens without an engine: 10 processor minutes.

python data/changing_networks/make.py [FOLDER]

FOLDER keeps the runs, so that it can be stopped and started at any time.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import qbkit as qb
from qbkit.execution import notebooks

HERE = Path(__file__).parent
SERIES = ["throughput_mbps", "queue_delay_ms", "capacity_mbps", "ce_marked_packets"]


def main(folder: Path) -> None:
    """The runs of the notebook, executed in a folder of its own, into this one."""
    os.environ["QBKIT_RUNS"] = str(folder)
    with tempfile.TemporaryDirectory() as executed:
        notebooks.execute("15", Path(executed), {})
    runs = [qb.load_run(path) for path in sorted(folder.glob("*.nc"))]
    qb.publish_runs({run.attrs["spec_hash"]: run for run in runs}, HERE, series=SERIES)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
