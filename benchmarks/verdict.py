"""Size and power of the verdict, on real trials of the kernel's CUBIC against itself.

    python benchmarks/verdict.py [--controller cubic] [--seeds 20] [--draws 400] [--sides 5 10]
        [--write]

Disjoint sets of trials are drawn at random from runs of one kernel controller against itself; to
the operating points of the first set a shift of the throughput or of the queueing delay is added,
in parts of the mean of all trials. Without a shift the null hypothesis is true. Printed is how
often each test finds a difference at p <= 0.05 (without a shift: the false-positive rate), how
often the equivalence test says "conforms" at a margin of 10 % (at a shift of 10 % or more: its
false-positive rate), and the median of the shift that the verdict calls detectable. The tables are
``verdict_throughput`` and ``verdict_delay``.
"""

from __future__ import annotations

import numpy as np
from markdown_tables import arguments, record
from noise_floor import trials

from qbkit.metrics.envelopes.envelope import DEFINITIONS
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.verdicts.equivalence import detectable_shifts, equivalence_p
from qbkit.metrics.verdicts.permutation import permutation_test

SHIFTS = (0.0, 0.03, 0.05, 0.07, 0.1, 0.14, 0.18, 0.25)
"""Of the throughput, in parts of its mean; of the delay a quarter, because it varies less."""
LEVEL = 0.05
AXES = {"delay": (0, "queueing delay"), "throughput": (1, "throughput")}
"""Table → axis of the operating points, and its name."""


def rates(whole: Trials, axis: int, side: int, draws: int) -> dict[str, object]:
    """Shares of the draws in which each test says so, with ``side`` trials a side."""
    rng = np.random.default_rng(0)
    count = whole.tests
    mean = whole.means[count:, axis].mean()
    found = []
    for _ in range(draws):
        order = rng.permutation(count)
        # The shifted trials are the first ``count`` rows, the same trials unshifted the others.
        chosen = np.concatenate([order[:side], count + order[side : 2 * side]])
        drawn = Trials(whole.pairs[np.ix_(chosen, chosen)], whole.means[chosen], side)
        p = permutation_test(drawn)
        decided = [p.p <= LEVEL, p.envelopes <= LEVEL, p.means <= LEVEL]
        conforms = equivalence_p(drawn) <= LEVEL
        found.append([*decided, conforms, detectable_shifts(drawn, LEVEL)[axis] / mean])
    columns = np.array(found, dtype=float)
    names = ["detected", "by envelopes", "by means", "conforms"]
    shares = dict(zip(names, columns[:, :4].mean(axis=0).tolist(), strict=True))
    return {**shares, "detectable, %": f"{100 * np.median(columns[:, 4]):.1f}"}


def rows(
    name: str, points: list[np.ndarray], sides: list[int], draws: int
) -> list[dict[str, object]]:
    """The table of one axis: a row a shift, with the shares of each number of trials a side."""
    axis, quantity = AXES[name]
    mean = np.mean([p.mean(axis=0) for p in points], axis=0)
    found = []
    for shift in SHIFTS:
        part = shift if name == "throughput" else shift / 4
        moved = [p + part * mean * np.eye(2)[axis] for p in points]
        whole = Trials.of(moved, points, DEFINITIONS["imc22"])
        row: dict[str, object] = {f"shift of the {quantity}": f"{100 * part:g} %"}
        for side in (n for n in sides if 2 * n <= len(points)):
            shares = rates(whole, axis, side, draws)
            row |= {f"{side} + {side}: {what}": share for what, share in shares.items()}
        found.append(row)
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--controller", default="cubic")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--sides", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--duration-s", type=float, default=120)
    parser.add_argument("--jitter-ms", type=float)
    parser.add_argument("--start-window-s", type=float, help="0: both flows start at once")
    words = parser.parse_args()
    points = trials(words.controller, words)
    for name, (_, quantity) in AXES.items():
        found = rows(name, points, words.sides, words.draws)
        record(f"verdict_{name}", found, [f"shift of the {quantity}"], words.write)


if __name__ == "__main__":
    main()
