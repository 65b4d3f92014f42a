"""What notebook 14 measures from packets, on packets whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from lateness import ONE_WAY_S, ack_delays_s, responses_s
from phase import FRAME_S, PARTS, in_step

FRAMES = 600


def packets(flow: list[int], time_s: list[float], departure_s: list[float]) -> dict[str, object]:
    """Packets in the form of a run."""
    return {
        "packet_flow": ("packet", flow),
        "packet_time_s": ("packet", time_s),
        "packet_departure_s": ("packet", departure_s),
    }


def test_in_step_is_one_at_a_fixed_phase_and_a_sixth_at_any_time():
    leaves_s = 6 + FRAME_S * np.arange(FRAMES)
    fixed_s = leaves_s + FRAME_S / 4
    any_s = leaves_s + FRAME_S * (np.arange(FRAMES) % PARTS + 0.5) / PARTS
    run = xr.Dataset(
        packets(
            [2] * FRAMES + [0] * FRAMES + [1] * FRAMES,
            [*(leaves_s - 5 * FRAME_S), *fixed_s, *any_s],
            [*leaves_s, *np.full(2 * FRAMES, np.nan)],  # only flow 2 is not lost
        )
    )
    assert in_step(run, 0) == 1
    assert in_step(run, 1) == pytest.approx(1 / PARTS)


def test_an_ack_is_late_by_the_time_since_the_last_packet_reached_the_receiver():
    departure_s = [1.0, 1.1]
    sent_s = np.array([1.0 + ONE_WAY_S + 0.3e-3, 1.1 + ONE_WAY_S + 0.7e-3])
    acks = {"ack_flow": ("ack", [0, 0]), "ack_time_s": ("ack", sent_s)}
    run = xr.Dataset({**packets([0, 0], [0.99, 1.09], departure_s), **acks})
    assert ack_delays_s(run, 0) == pytest.approx([0.3e-3, 0.7e-3])


def test_a_response_counts_where_one_ack_alone_can_have_released_the_packet():
    times_s = [4.0, 4.1, 4.2]
    due_s = np.array([4.1 - 0.5e-3, 4.2 - 0.5e-3, 4.2 - 1e-3])  # two for the last packet
    acks = {"ack_flow": ("ack", [0] * 3), "ack_time_s": ("ack", np.sort(due_s) - ONE_WAY_S)}
    run = xr.Dataset({**packets([0] * 3, times_s, [5.0] * 3), **acks})
    assert responses_s(run, 0) == pytest.approx([0.5e-3])
