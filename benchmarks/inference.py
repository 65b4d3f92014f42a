"""Parameters inferred from packets, beside the truth: known from the source, or set by an option.

    python benchmarks/inference.py [--seeds 2] [--write] [IMPLEMENTATION ...]

The table is ``inference``. Each flow is alone on 20 Mbit/s, 50 ms, 1 BDP for 60 s; runs that exist
are loaded, a new one takes 3 (TCP) to 50 processor seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from markdown_tables import arguments, record

from qbkit import stacks
from qbkit.execution.many import datasets, run_all
from qbkit.metrics.parameters import Estimate, Parameters, infer
from qbkit.spec import Bottleneck, Flow
from qbkit.studies.conformance import experiments

LINK = Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
DURATION_S = 60.0
HEAD = ("flow", "options", "parameter", "truth", "inferred", "error")
KEYS = HEAD[:3]


@dataclass(frozen=True)
class Case:
    """One flow, and what is known of it."""

    name: str
    truth: dict[str, float | str]
    options: dict[str, Any] = field(default_factory=dict)


KERNEL_BBR = {
    "probe_up_gain": 1.25,
    "probe_down_gain": 0.75,
    "probe_cycle_rtts": 8.0,
    "probe_rtt_interval_s": 10.2,
    "probe_rtt_duration_ms": 200.0,
    "least_window_packets": 4.0,
}
CASES = [
    Case("tcp:cubic", {"decrease_factor": 0.7, "cubic_c": 0.4, "slow_start_exit": "delay"}),
    Case("tcp:cubic", {"slow_start_exit": "loss"}, {"hystart": False}),
    Case("tcp:reno", {"decrease_factor": 0.5, "increase_packets_per_rtt": 1, "pacing": "bursts"}),
    Case("tcp:reno", {"pacing": "paced", "pacing_gain": 2.0}, {"pacing": True}),
    Case("tcp:reno", {"initial_window_packets": 30}, {"initial_window_packets": 30}),
    Case("tcp:bic", {"decrease_factor": 819 / 1024}),
    Case("tcp:scalable", {"decrease_factor": 0.875}),
    Case("tcp:bbr", KERNEL_BBR),
    Case("quinn:cubic", {"decrease_factor": 0.7, "cubic_c": 0.4, "growth": "cubic"}),
    Case("quinn:newreno", {"decrease_factor": 0.5, "growth": "linear"}),
    Case("quinn:newreno", {"initial_window_packets": 30}, {"initial_window_packets": 30}),
    Case("quinn:newreno", {"packets_per_ack": 10}, {"ack_every_packets": 10}),
    Case(
        "ngtcp2-0.12:reno",
        {"packets_per_ack": 2, "decrease_factor": 0.5},
        {"ack_every_packets": 2},
    ),
    Case("ngtcp2-0.12:reno", {"packets_per_ack": 8}, {"ack_every_packets": 8}),
    Case("aioquic:reno", {"decrease_factor": 0.5, "increase_packets_per_rtt": 1}),
    Case("quic-go:reno", {"decrease_factor": 0.7, "initial_window_packets": 32}),
    Case("msquic:cubic", {"pacing": "bursts", "decrease_factor": 0.7}, {"pacing": False}),
    Case("msquic:cubic", {"pacing": "paced", "cubic_c": 0.4}),
    Case("tquic:cubic", {"initial_window_packets": 20}, {"initial_window_packets": 20}),
    Case("tquic:bbr", {"probe_rtt_duration_ms": 400}, {"bbr_probe_rtt_ms": 400}),
    Case("s2n-quic:cubic", {"slow_start_exit": "loss"}, {"hystart": False}),
    Case("google-quiche:cubic", {"decrease_factor": 0.85, "emulated_flows": 2}),
    Case("google-quiche:bbr", {"probe_up_gain": 1.25, "probe_down_gain": 0.75}),
    Case("qbkit:cubic", {"decrease_factor": 0.7, "emulated_flows": 1}),
    Case("qbkit:cubic", {"decrease_factor": 0.85, "emulated_flows": 2}, {"emulated_flows": 2}),
    Case("qbkit:bbr", {"probe_up_gain": 1.25, "probe_down_gain": 0.75}),
]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("implementations", nargs="*")
    parser.add_argument("--seeds", type=int, default=2)
    words = parser.parse_args()
    ready = {stack.name for stack in stacks.all_stacks() if stack.status().ready}
    for case in CASES:
        chosen = not words.implementations or case.name in words.implementations
        if chosen and case.name.partition(":")[0] in ready:
            found = rows(case, parameters(case, words.seeds))
            record("inference", found, KEYS, words.write)


def rows(case: Case, found: Mapping[str, Estimate]) -> Iterator[dict[str, object]]:
    options = ", ".join(f"{k}={v}" for k, v in case.options.items())
    for name, truth in case.truth.items():
        estimate = found[name]
        shown = f"{truth:.3g}" if isinstance(truth, float | int) else truth
        cells = case.name, options, name, shown, str(estimate), error(estimate, truth)
        yield dict(zip(HEAD, cells, strict=True))


def parameters(case: Case, seeds: int) -> Parameters:
    stack, _, controller = case.name.partition(":")
    flow = Flow(stack, controller, options=case.options)
    return infer(datasets(run_all(experiments([flow], LINK, duration_s=DURATION_S, seeds=seeds))))


def error(estimate: Estimate, truth: float | str) -> str:
    if isinstance(truth, str):
        return "right" if estimate.word == truth else "wrong"
    return "not seen" if math.isnan(estimate.value) else f"{estimate.value / truth - 1:+.1%}"


if __name__ == "__main__":
    main()
