"""Run the loads behind notebook 11, cell after cell: ``python data/web_pages/run.py [CELLS]``.

What is stored is not run again, so the program may be stopped and started at any time.
"""

from __future__ import annotations

import sys
import time

from cells import SEEDS, cells, load

import qbkit as qb


def main(count: int) -> None:
    """Run the first cells, one load at a time, and print what each cost."""
    for cell in cells()[:count]:
        start = time.monotonic()
        loads = [load(*cell, protocol, s + 1) for s in range(SEEDS) for protocol in ("h2", "h3")]
        outcomes = qb.run_web_all(loads)
        done = [outcome.run for outcome in outcomes if outcome.run is not None]
        cpu_s = sum(run.attrs["cpu_s"] for run in done)
        print(*cell, f"{len(done)} loads, {cpu_s:.0f} processor s,", flush=True)
        print(f"  in {time.monotonic() - start:.0f} s", flush=True)
        for outcome in outcomes:
            if outcome.error is not None:
                print(f"  {outcome.load.name}, seed {outcome.load.seed}: {outcome.reason}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else len(cells()))
