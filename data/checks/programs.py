"""How much the driver decides: the stacks' own sample programs in its place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import sample_programs
import xarray as xr
from runs import (
    SHORTER_S,
    Row,
    ack_gap_ms,
    ack_ratio,
    back_to_back_share,
    conformance,
    difference,
    longer,
    share,
)

import qbkit as qb
from qbkit.studies.reproduction import Recipe

SAMPLES = (
    "picoquic:cubic",
    "quiche:cubic",
    "quinn:cubic",
    "tquic:cubic",
    "quic-go:reno",
    "tquic:bbr",
)
SAMPLES_BDP = (1, 3)


def samples(seeds: int) -> Iterator[Recipe]:
    """A row for each sample program and buffer: how it compares with our driver of its stack.

    The flows compete with the kernel's of their family.
    """
    sample_programs.register()
    for buffer_bdp, name in product(SAMPLES_BDP, SAMPLES):
        stack, controller = name.split(":")
        both = [
            longer([flow, f"tcp:{controller}"], buffer_bdp, SHORTER_S, seeds)
            for flow in (name, f"{stack}{sample_programs.SUFFIX}:{controller}")
        ]
        keys = {"flow": name, "buffer_bdp": buffer_bdp}
        yield Recipe(both, compare, keys, in_this_process=True)


def compare(driver: list[xr.Dataset], sample: list[xr.Dataset]) -> Row:
    """Shares, the difference, and what else may make two senders of one stack differ."""
    found = qb.metrics.assess(sample, driver)
    return {
        **share(driver, "driver_"),
        **share(sample, "sample_"),
        **difference(found),
        **conformance(found),
        **habits(driver, "driver"),
        **habits(sample, "sample"),
    }


def habits(runs: list[xr.Dataset], whose: str) -> dict[str, float]:
    """What else may make two senders of one stack differ, mean over the runs."""
    sizes = [run.packet_size_bytes[run.packet_flow == 0].mean() for run in runs]
    return {
        f"packet_bytes_{whose}": float(np.mean(sizes)),
        f"packets_per_ack_{whose}": ack_ratio(runs),
        f"ack_gap_ms_{whose}": ack_gap_ms(runs),
        f"back_to_back_share_{whose}": back_to_back_share(runs),
    }
