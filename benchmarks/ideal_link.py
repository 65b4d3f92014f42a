"""What an ideal link would do: for benchmarks and tests, and not from the code that they test."""

from __future__ import annotations

import numpy as np
import xarray as xr


def served_s(at_s: np.ndarray, sizes: np.ndarray, times_s: list, mbps: list) -> np.ndarray:
    """When a server of a piecewise constant rate begins with each frame, in order of arrival.

    ``times_s`` begin the rates; the last rate holds.
    """
    times, rates = np.asarray(times_s, float), np.asarray(mbps, float) * 125_000
    carried = np.concatenate([[0], np.cumsum(np.diff(times) * rates[:-1])])
    begun, free_s = np.empty(len(at_s)), 0.0
    for k in range(len(at_s)):
        start_s = max(at_s[k], free_s)
        i = np.searchsorted(times, start_s, "right") - 1
        while rates[i] == 0:
            i += 1
            start_s = times[i]
        begun[k] = start_s
        target = carried[i] + (start_s - times[i]) * rates[i] + sizes[k]
        j = np.searchsorted(carried, target, "right") - 1
        while rates[j] == 0:
            j += 1
        free_s = times[j] + max(target - carried[j], 0.0) / rates[j]
    return begun


def by_opportunities_s(at_s: np.ndarray, sizes: np.ndarray, times_s: np.ndarray) -> np.ndarray:
    """When mahimahi's link releases each packet: at the opportunity that carries its last byte.

    An opportunity carries 1514 bytes; what an empty queue does not use is lost.
    """
    released, now, left = np.empty(len(at_s)), 0, 0.0
    last_s = -1.0
    for k in range(len(at_s)):
        if at_s[k] > last_s:  # the queue was empty: it wastes what came before the packet
            left = 0.0
            now = max(now, int(np.searchsorted(times_s, at_s[k], "left")))
        while left < sizes[k]:
            left += 1514
            last_s = times_s[now]
            now += 1
        left -= sizes[k]
        released[k] = last_s
    return released


def departures(run: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrival (s), departure (s) and size (B) of the packets that came out, in that order."""
    left_s = run.packet_departure_s.values
    out = np.flatnonzero(np.isfinite(left_s))
    out = out[np.argsort(left_s[out], kind="stable")]
    arrays = (run.packet_time_s.values, left_s, run.packet_size_bytes.values.astype(float))
    at_s, left_s, sizes = (values[out] for values in arrays)
    return at_s, left_s, sizes


def capacity_bits(times_s: list, mbps: list, until_s: np.ndarray) -> np.ndarray:
    """The integral of a piecewise constant rate up to each time."""
    times, rates = np.asarray(times_s, float), np.asarray(mbps, float) * 1e6
    carried = np.concatenate([[0], np.cumsum(np.diff(times) * rates[:-1])])
    i = np.searchsorted(times, until_s, "right") - 1
    return carried[i] + (until_s - times[i]) * rates[i]
