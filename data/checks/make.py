"""Measures the tables of notebooks/14_is_it_the_stack.ipynb, except those in physical time.

python data/checks/make.py trains|jitter|bursts|segmentation|receivers|acks|samples|late [--seeds N]

``trains`` describes how each implementation's packets follow each other, alone on the shallowest
link of the conformance maps. ``jitter`` repeats one CUBIC and one BBR beside the kernel's there
with more and less jitter between sender and queue. ``bursts`` repeats them on a link of 1 BDP that
sends several frames back to back, and ``segmentation`` two senders there with and without UDP
segmentation offload. ``receivers`` lets three senders talk to another stack's receiver instead of
their own, and ``acks`` infers C of a CUBIC that is acknowledged more often. ``samples`` compares
the sample programs of five stacks (sample_programs.py) with our drivers. ``late`` repeats
picoquic's CUBIC with a receiver that acknowledges a little later. Stored runs are not run again.
The tables in physical time are written by
``python benchmarks/physical_time.py --out data/checks``.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sample_programs
import xarray as xr
from late_receiver import LateReceiver

import qbkit as qb
from qbkit import stacks
from qbkit.execution.many import datasets
from qbkit.files import write_whole

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=10, buffer_bdp=0.5)
"""A queue of eight full frames."""
LONGER = {"rate_mbps": 20, "rtt_ms": 50}
"""Rate and delay of the links with larger queues."""
ALONE_S, BESIDE_S, SHORTER_S = 20, 60, 30
JITTERS_MS = (0.0, 0.1, 0.3, 0.6, 1.0)
BURSTS_PACKETS = (1, 16)
BESIDE = ("quic-go:cubic", "quinn:bbr")
SEGMENTED = ("quinn:bbr", "quinn:cubic")
WHOLE = "segmentation=false"
"""The option with which each packet is a system call."""
SENDERS = ("quinn:cubic", "picoquic:cubic", "s2n-quic:cubic")
RECEIVER = "quic-go"
FEW_ACKS, PROMPT = "s2n-quic:cubic", "max_ack_delay_ms=1"
"""A CUBIC whose receiver acknowledges every tenth packet, and the option to do so earlier."""
WHOSE = ("own", "other")
"""Whose receiver: the sender's, or the other stack's."""
SAMPLES = (
    "picoquic:cubic",
    "quiche:cubic",
    "quinn:cubic",
    "tquic:cubic",
    "quic-go:reno",
    "tquic:bbr",
)
SAMPLES_BDP = (1, 3)
LATE_US = (50, 100, 300)
NOT_SURVEYED = ("qbkit",)
"""Our own controllers are no claim about somebody's software."""


def main() -> None:
    """Measure one table and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    table = MEASURES[args.what](args.seeds)
    write_whole(HERE / f"{args.what}.csv", table.to_csv(index=False, float_format="%.4g").encode())


def trains(seeds: int) -> pd.DataFrame:
    """A row for each implementation that is ready here: its gaps and trains, mean over seeds."""
    wanted = [
        qb.Experiment(bottleneck=LINK, flows=[name], duration_s=ALONE_S, seed=seed, jitter_ms=0)
        for name in implementations()
        for seed in range(1, seeds + 1)
    ]
    rows = []
    for outcome in qb.run_all(wanted, progress=True):
        if outcome.run is None:
            print(f"{outcome.experiment.flows[0].name}: {outcome.error}")
            continue
        found = qb.metrics.packet_trains(outcome.run)
        rows.append(
            {
                "flow": found.label,
                "back_to_back_share": found.back_to_back_share,
                **{f"train_packets_p{q}": found.train_quantile(q / 100) for q in (50, 95)},
                **{f"gap_ms_p{q}": np.percentile(found.gap_ms, q) for q in (5, 50, 95)},
                "loss_percent": float(qb.metrics.summary(outcome.run).loss_percent[0]),
            }
        )
    return pd.DataFrame(rows).groupby("flow").mean().reset_index().assign(seeds=seeds)


def implementations() -> list[str]:
    """All controllers that the surveys take, of all stacks that are ready."""
    return [
        f"{stack.name}:{controller}"
        for stack in stacks.all_stacks()
        if stack.status().ready and stack.name not in NOT_SURVEYED
        for controller in stack.surveyed()
    ]


def jitter(seeds: int) -> pd.DataFrame:
    """A row for each implementation and jitter: how it compares with the kernel's beside it."""
    rows = []
    for name in BESIDE:
        reference = f"tcp:{name.partition(':')[2]}"
        for jitter_ms in JITTERS_MS:
            ours, theirs = (
                beside(flow, reference, seeds, LINK, BESIDE_S, jitter_ms)
                for flow in (name, reference)
            )
            rows.append({"flow": name, "jitter_ms": jitter_ms, **compared(ours, theirs)})
            print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def beside(
    flow: str,
    other: str,
    seeds: int,
    link: qb.Bottleneck,
    duration_s: float,
    jitter_ms: float | None = None,
) -> list[xr.Dataset]:
    """Runs of two flows."""
    wanted = [
        qb.Experiment(
            bottleneck=link,
            flows=[flow, other],
            duration_s=duration_s,
            seed=seed,
            jitter_ms=jitter_ms,
        )
        for seed in range(1, seeds + 1)
    ]
    return datasets(qb.run_all(wanted))


def bursts(seeds: int) -> pd.DataFrame:
    """A row for each implementation and burst: how it compares with the kernel's beside it."""
    rows = []
    for name, burst_packets in product(BESIDE, BURSTS_PACKETS):
        link = qb.Bottleneck(**LONGER, buffer_bdp=1, burst_packets=burst_packets)
        reference = f"tcp:{name.partition(':')[2]}"
        ours, theirs = (
            beside(flow, reference, seeds, link, SHORTER_S) for flow in (name, reference)
        )
        rows.append({"flow": name, "burst_packets": burst_packets, **compared(ours, theirs)})
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def segmentation(seeds: int) -> pd.DataFrame:
    """A row for each sender: without segmentation offload, compared with itself with it.

    The flows compete with the kernel's of their family.
    """
    rows = []
    link = qb.Bottleneck(**LONGER, buffer_bdp=1)
    for name in SEGMENTED:
        reference = f"tcp:{name.partition(':')[2]}"
        on, off = (
            beside(flow, reference, seeds, link, SHORTER_S) for flow in (name, f"{name}?{WHOLE}")
        )
        found = qb.metrics.assess(off, on)
        rows.append(
            {
                "flow": name,
                **share(on, "on_"),
                **share(off, "off_"),
                **difference(found),
                **conformance(found),
                "on_back_to_back_share": back_to_back_share(on),
                "off_back_to_back_share": back_to_back_share(off),
            }
        )
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def back_to_back_share(runs: list[xr.Dataset]) -> float:
    """Part of the first flow's packets that follow the one before at once, mean over the runs."""
    return float(np.mean([qb.metrics.packet_trains(run).back_to_back_share for run in runs]))


def compared(ours: list[xr.Dataset], theirs: list[xr.Dataset]) -> dict[str, float]:
    """Conformance, noise floor and share of the first flow."""
    return {**share(ours), **conformance(qb.metrics.assess(ours, theirs))}


def share(runs: list[xr.Dataset], prefix: str = "") -> dict[str, float]:
    """Share of the first flow: mean and standard deviation over the runs."""
    shares = [qb.metrics.throughput_ratio(run, 0, 1) for run in runs]
    return {
        f"{prefix}share": float(np.mean(shares)),
        f"{prefix}share_sd": float(np.std(shares, ddof=1)),
    }


def conformance(found: qb.metrics.Assessment) -> dict[str, float]:
    """Conformance with its interval, and the noise floor."""
    return {
        "conformance": found.conformance,
        "conformance_low": found.conformance_ci[0],
        "conformance_high": found.conformance_ci[1],
        "noise_floor": found.noise_floor,
    }


def difference(found: qb.metrics.Assessment) -> dict[str, float]:
    """Interval of the difference of the throughputs (Mbit/s), and p of no difference."""
    low, high = found.mean_throughput_difference_ci
    return {
        "throughput_difference_low": low,
        "throughput_difference_high": high,
        "p_value": found.p_value,
    }


def receivers(seeds: int) -> pd.DataFrame:
    """A row for each sender: its flows to another stack's receiver, compared with those to its own.

    The flows compete with the kernel's of their family.
    """
    rows = []
    for name in SENDERS:
        sender, controller = name.split(":")
        crossed = Crossed(stacks.get(sender), stacks.get(RECEIVER))
        stacks.register(crossed)
        reference = f"tcp:{controller}"
        own, other = (
            one_by_one([f"{stack}:{controller}", reference], 1, BESIDE_S, seeds)
            for stack in (sender, crossed.name)
        )
        acks = {
            f"packets_per_ack_{what}": ack_ratio(runs)
            for what, runs in zip(WHOSE, (own, other), strict=True)
        }
        rows.append(
            {
                "flow": name,
                "receiver": RECEIVER,
                "own_share": share(own)["share"],
                **compared(other, own),
                **acks,
            }
        )
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def acks(seeds: int) -> pd.DataFrame:
    """A row for each receiver: C of s2n-quic's CUBIC alone, as inferred, and its packets per ACK.

    Its own receiver, the same with an option to acknowledge earlier, and another stack's.
    """
    sender, controller = FEW_ACKS.split(":")
    crossed = Crossed(stacks.get(sender), stacks.get(RECEIVER))
    stacks.register(crossed)
    flows = {
        "own": FEW_ACKS,
        f"own, {PROMPT}": f"{FEW_ACKS}?{PROMPT}",
        RECEIVER: f"{crossed.name}:{controller}",
    }
    rows = []
    for receiver, flow in flows.items():
        runs = one_by_one([flow], 1, BESIDE_S, seeds)
        inferred = (
            qb.metrics.infer(runs).frame().loc["cubic_c", ["value", "low", "high", "samples"]]
        )
        row = {"flow": FEW_ACKS, "receiver": receiver, "packets_per_ack": ack_ratio(runs)}
        rows.append({**row, **inferred.add_prefix("cubic_c_")})
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def one_by_one(
    flows: list[str], buffer_bdp: float, duration_s: float, seeds: int
) -> list[xr.Dataset]:
    """Runs at 20 Mbit/s and 50 ms, in this process, which knows their stacks."""
    link = qb.Bottleneck(**LONGER, buffer_bdp=buffer_bdp)
    return [
        qb.Experiment(bottleneck=link, flows=flows, duration_s=duration_s, seed=seed).run()
        for seed in range(1, seeds + 1)
    ]


class Crossed(stacks.Stack):
    """Sends as one stack and receives as another; both speak the perf protocol."""

    def __init__(self, sender: stacks.Stack, receiver: stacks.Stack) -> None:
        self.sender = sender
        # A sender on BoringSSL needs a certificate without Ed25519.
        shown = {"certificate": sender.certificate}
        self.receiver = type("Receiver", (type(receiver),), shown)()
        self.name = f"{sender.name}-to-{receiver.name}"
        self.reports, self.options = sender.reports, sender.options

    def controllers(self) -> tuple[str, ...]:
        """The sender's."""
        return self.sender.controllers()

    def version(self) -> str:
        """Versions of both."""
        return f"{self.sender.version()}, to {self.receiver.version()}"

    def program(self) -> list[str]:
        """The sender's program."""
        return self.sender.program()

    def mounts(self) -> dict[str, Path]:
        """Folders of both."""
        return {**self.sender.mounts(), **self.receiver.mounts()}

    def env(self) -> dict[str, str]:
        """Variables of both."""
        return {**self.sender.env(), **self.receiver.env()}

    def send_argv(self, **words: Any) -> list[str]:
        """The sender's command."""
        return self.sender.send_argv(**words)

    def recv_argv(self, **words: Any) -> list[str]:
        """The receiver's command."""
        return self.receiver.recv_argv(**words)


def ack_ratio(runs: list[xr.Dataset]) -> float:
    """Data packets of the first flow that arrived, for each acknowledgement; mean over the runs."""
    return float(
        np.mean(
            [
                ((run.packet_flow == 0) & run.packet_departure_s.notnull()).sum()
                / (run.ack_flow == 0).sum()
                for run in runs
            ]
        )
    )


def samples(seeds: int) -> pd.DataFrame:
    """A row for each sample program and buffer: how it compares with our driver of its stack.

    The flows compete with the kernel's of their family.
    """
    sample_programs.register()
    rows = []
    for buffer_bdp, name in product(SAMPLES_BDP, SAMPLES):
        stack, controller = name.split(":")
        driver, sample = (
            one_by_one([flow, f"tcp:{controller}"], buffer_bdp, SHORTER_S, seeds)
            for flow in (name, f"{stack}{sample_programs.SUFFIX}:{controller}")
        )
        found = qb.metrics.assess(sample, driver)
        rows.append(
            {
                "flow": name,
                "buffer_bdp": buffer_bdp,
                **share(driver, "driver_"),
                **share(sample, "sample_"),
                **difference(found),
                **conformance(found),
                **habits(driver, "driver"),
                **habits(sample, "sample"),
            }
        )
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


def habits(runs: list[xr.Dataset], whose: str) -> dict[str, float]:
    """What else may make two senders of one stack differ, mean over the runs."""
    sizes = [run.packet_size_bytes[run.packet_flow == 0].mean() for run in runs]
    return {
        f"packet_bytes_{whose}": float(np.mean(sizes)),
        f"packets_per_ack_{whose}": ack_ratio(runs),
        f"ack_gap_ms_{whose}": ack_gap_ms(runs),
        f"back_to_back_share_{whose}": back_to_back_share(runs),
    }


def ack_gap_ms(runs: list[xr.Dataset]) -> float:
    """Median time from one acknowledgement of the first flow to the next."""
    times_s = [run.ack_time_s[run.ack_flow == 0].values for run in runs]
    return float(np.median(np.concatenate([np.diff(times) for times in times_s])) * 1e3)


def late(seeds: int) -> pd.DataFrame:
    """A row for each delay of the receiver: picoquic's CUBIC compared with that of our driver."""
    rows = []
    flow, reference = "picoquic:cubic", "tcp:cubic"
    ours = one_by_one([flow, reference], 1, SHORTER_S, seeds)
    for late_us in LATE_US:
        stack = LateReceiver(late_us)
        stack.build(print)
        stacks.register(stack)
        runs = one_by_one([f"{stack.name}:cubic", reference], 1, SHORTER_S, seeds)
        gaps = {"driver_ack_gap_ms": ack_gap_ms(ours), "ack_gap_ms": ack_gap_ms(runs)}
        shares = {**share(ours, "driver_"), **share(runs)}
        found = qb.metrics.assess(runs, ours)
        compares = {**difference(found), **conformance(found)}
        rows.append({"flow": flow, "late_us": late_us, **shares, **compares, **gaps})
        print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
    return pd.DataFrame(rows).assign(seeds=seeds)


MEASURES = {
    "trains": trains,
    "jitter": jitter,
    "bursts": bursts,
    "segmentation": segmentation,
    "receivers": receivers,
    "acks": acks,
    "samples": samples,
    "late": late,
}

if __name__ == "__main__":
    main()
