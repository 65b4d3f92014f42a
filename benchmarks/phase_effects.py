"""Share of the link that a flow gets against the kernel's CUBIC, against the senders' jitter.

    python benchmarks/phase_effects.py [--test quic-go:cubic] [--seeds 4]

An exact clock causes phase effects (Floyd and Jacobson 1991); with enough jitter the share no
longer depends on it.
"""

from __future__ import annotations

import argparse

from qbkit.execution.many import datasets, run_all
from qbkit.metrics import throughput_ratio
from qbkit.spec import Experiment

JITTERS_MS = (0.0, 0.1, 0.3, 0.6, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", default="quic-go:cubic")
    parser.add_argument("--seeds", type=int, default=4)
    words = parser.parse_args()
    flows = [words.test, "tcp:cubic"]
    for jitter_ms in JITTERS_MS:
        wanted = [
            Experiment(flows=flows, duration_s=60, seed=seed, jitter_ms=jitter_ms)
            for seed in range(1, words.seeds + 1)
        ]
        shares = [throughput_ratio(run, 0, 1) for run in datasets(run_all(wanted))]
        mean = sum(shares) / len(shares)
        each = " ".join(f"{share:.2f}" for share in shares)
        print(f"±{jitter_ms:g} ms: {mean:.2f} ({each})", flush=True)


if __name__ == "__main__":
    main()
