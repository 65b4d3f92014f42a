"""Prints the tables and means of data/README.md from the published sweeps.

python data/findings.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import xarray as xr

import qbkit as qb
from qbkit.metrics.maps import FIRST

HERE = Path(__file__).parent
FAMILIES = ("cubic", "reno", "bbr")
BUFFER, RTT = "bottleneck.buffer_bdp", "bottleneck.rtt_ms"
HEADING = (
    "| implementation | conformance | interval | pooled | Conformance-T | Δ-throughput "
    "| mean throughput |\n|---|---|---|---|---|---|---|"
)


def conformance(family: str) -> None:
    """Table of a family's implementations, its means by buffer and by RTT, and its noise floor."""
    cube = qb.load_sweep(HERE / f"conformance/{family}.yaml")
    found = qb.metrics.conformance_map(cube, f"tcp:{family}")
    print(f"\n{family}: {int(cube.done.sum())} of {cube.done.size} runs\n")
    print(HEADING, *rows(found), sep="\n")
    print(f"\n{qb.metrics.map_sentence(found)}")
    print(f"largest p over all settings: {float(found.p_value_over_settings.max()):.4f}")
    at_least = int((found.p_value < 0.11).sum())
    print(f"{at_least} of {found.p_value.size} cells at the smallest p")
    print(f"{int((found.conformance > found.noise_floor).sum())} cells above their noise floor")
    moved = abs(found.delta_throughput_mbps - found.mean_throughput_difference_mbps)
    print(f"Δ-throughput and the difference of the means are up to {float(moved.max()):.1f} apart")
    for name in ("conformance", "noise_floor"):
        print(f"mean {name} {float(found[name].mean()):.2f}")
        for field in (BUFFER, RTT):
            print(f"{name} by {field}:", figures(mean_but(found[name], field)))


def rows(found: xr.Dataset) -> Iterator[str]:
    """A row of the table for each implementation, the least conformant first."""
    settings = [d for d in found.conformance.dims if d != FIRST]
    mean = found.mean(settings).sortby("conformance")
    for name in mean[FIRST].values:
        ours, every = mean.sel({FIRST: name}), found.conformance.sel({FIRST: name})
        span = f"{float(ours.conformance):.2f} [{float(every.min()):.2f}, {float(every.max()):.2f}]"
        reach = float(ours.conformance_high - ours.conformance_low) / 2
        shift, plain = ours.delta_throughput_mbps, ours.mean_throughput_difference_mbps
        yield (
            f"| {name} | {span} | ±{reach:.2f} | {float(ours.conformance_pooled):.2f} "
            f"| {float(ours.conformance_t):.2f} | {float(shift):+.1f} | {float(plain):+.1f} |"
        )


def interactions() -> None:
    """Print the order of dominance, intransitive triples, and unexpected CUBIC and BBR pairs."""
    cube = qb.load_sweep(HERE / "interactions/pairs.yaml")
    print(f"\npairs: {int(cube.done.sum())} runs")
    for buffer_bdp in cube[BUFFER].values:
        ratios = qb.metrics.throughput_ratios(cube).sel({BUFFER: buffer_bdp}, drop=True)
        print(f"\n{buffer_bdp:g} BDP:", figures(qb.metrics.dominance(ratios)))
        triples = qb.metrics.intransitive_triples(ratios)
        print(f"{len(triples)} intransitive triples", *map(" > ".join, triples), sep="\n  ")
        pairs = qb.metrics.expectations(ratios)
        seen = pairs.where(pairs.reversed)
        print(f"expected {pairs.attrs['expected']:.2f}; {int(pairs.reversed.sum())} of", end=" ")
        print(f"{pairs.size} reverse it:", figures(seen.drop_vars("reversed")))


def mean_but(values: xr.DataArray, field: str) -> xr.DataArray:
    """Mean over all dimensions but one."""
    return values.mean([d for d in values.dims if d != field])


def figures(values: xr.DataArray) -> str:
    """``place value`` of each value that is known."""
    known = values.to_series().dropna()
    places = (" - ".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in known.index)
    return ", ".join(f"{place} {value:.2f}" for place, value in zip(places, known, strict=True))


if __name__ == "__main__":
    for name in FAMILIES:
        conformance(name)
    interactions()
