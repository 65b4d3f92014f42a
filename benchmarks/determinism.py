"""Repeat one experiment on a busy machine and compare every byte of every data variable.

python benchmarks/determinism.py [--flows quic-go:cubic tcp:cubic] [--repeats 20] [--write]
python benchmarks/determinism.py --kernels OLD/linux NEW/linux --repeats 1 --quiet

With several kernels each runs all repeats; they must give the same bytes, too. The table is
``determinism``.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import xarray as xr
from background_load import PREEMPTING, SPINNING, background_load
from markdown_tables import arguments, record

from qbkit.spec import Experiment
from qbkit.testbed import kernel

KEYS = ["flows", "virtual s"]
NEIGHBOURS = 2 * [SPINNING, PREEMPTING, PREEMPTING]


def digest(run: xr.Dataset) -> str:
    """SHA-256 over the names and bytes of all variables."""
    whole = hashlib.sha256()
    for name in sorted(run.variables, key=str):
        whole.update(str(name).encode() + run[name].values.tobytes())
    return whole.hexdigest()


def run_with(path: str, experiment: Experiment) -> str:
    """Digest of a new run on the kernel of that path."""
    os.environ["QBKIT_KERNEL"] = path
    with tempfile.TemporaryDirectory() as folder:
        return digest(experiment.run(engine="virtual", out=Path(folder) / "run.nc"))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--flows", nargs="+", default=["quic-go:cubic", "tcp:cubic"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--duration-s", type=float, default=20)
    parser.add_argument("--kernels", nargs="+", help="kernels to compare (default: the one in use)")
    parser.add_argument("--quiet", action="store_true", help="without the neighbours")
    words = parser.parse_args()
    kernels = words.kernels or [str(kernel.require().path)]
    experiment = Experiment(flows=words.flows, duration_s=words.duration_s)
    found = set()
    with nullcontext() if words.quiet else background_load(NEIGHBOURS):
        for repeat in range(words.repeats):
            found |= {run_with(path, experiment) for path in kernels}
            runs = (repeat + 1) * len(kernels)
            print(f"{' '.join(words.flows)}: {runs} runs, {len(found)} distinct", flush=True)
    measured = row(words.flows, words.duration_s, runs, len(found))
    record("determinism", [measured], KEYS, words.write)
    sys.exit(len(found) != 1)


def row(flows: list[str], duration_s: float, runs: int, distinct: int) -> dict[str, object]:
    """How many different results so many runs gave."""
    return {
        "flows": ", ".join(flows),
        "virtual s": f"{duration_s:g}",
        "runs": runs,
        "distinct results": distinct,
    }


if __name__ == "__main__":
    main()
