"""Share of the link that a flow gets against the kernel's CUBIC, against the senders' jitter.

    python benchmarks/phase_effects.py [--test quic-go:cubic] [--seeds 4] [--write]

An exact clock causes phase effects (Floyd and Jacobson 1991); with enough jitter the share no
longer depends on it. The table is ``phase_effects``.
"""

from __future__ import annotations

from markdown_tables import arguments, record

from qbkit.execution.many import datasets, run_all
from qbkit.metrics import throughput_ratio
from qbkit.spec import Experiment

JITTERS_MS = (0.0, 0.1, 0.3, 0.6, 1.0)
KEYS = ["flow", "jitter, ms"]


def main() -> None:
    parser = arguments(__doc__)
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
        record("phase_effects", [row(words.test, jitter_ms, shares)], KEYS, words.write)


def row(flow: str, jitter_ms: float, shares: list[float]) -> dict[str, object]:
    """The flow's shares of the link with one jitter."""
    return {
        "flow": flow,
        "jitter, ms": f"±{jitter_ms:g}",
        "share, mean": sum(shares) / len(shares),
        "by seed": " ".join(f"{share:.2f}" for share in shares),
    }


if __name__ == "__main__":
    main()
